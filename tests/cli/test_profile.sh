#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Stack samples as files for other programs: which samples, how their frames are named, and what is missing.
# shellcheck source=tests/cli/harness.sh
. "$top_srcdir/tests/cli/harness.sh"

make_samples=$top_builddir/tests/cli/make_samples

# on_request() of worker 1 and on_timer() of worker 2; parse() is compiled into read_line().  Times in ns.
cat >t.script <<'END_S'
row 0x1010 0 read_line svc.c 10
row 0x1010 1 parse<a;b> svc.c 12
row 0x2011 0 on_request svc.c 20
row 0x2000 0 on_request svc.c 19
row 0x3011 0 main svc.c 30
row 0x3010 0 main svc.c 31
row 0x3000 0 on_timer svc.c 40
row 0x1030 0 hash_all svc.c 50
row 0xffffffff81000010 0 copy_to_user - 0
spawn 2000 0x2000 0 1
spawn 2000 0x3000 0 2
poll 10000 1 1 0x2000 0
taken 11000 1 0 0 0x1010 0x2011 0x3011
taken 12000 1 0 0 0x1010 0x2011 0x3011
taken 13000 1 0 0 0xffffffff81000010 0x2011 0x3011
taken 14000 1 0 1 0x1010 0x2011
taken 15000 1 0 0 0x99999 0x2011 0x3011
taken 15500 1 1 0 0x1010 0x2011 0x3011
end 16000 1
taken 17000 1 0 0 0x3010
poll 20000 2 2 0x3000 0
taken 21000 2 0 0 0x1030 0x3000 0x3011
taken 22000 2 0 0
end 30000 2
END_S
"$make_samples" plain t.bin <t.script || exit 99

say "folded: outermost first, what is compiled into a function behind it, equal stacks added up"
run export --format folded -o t.folded t.bin
cat t.folded
run export -o t.folded.gz t.bin
gzip -dc t.folded.gz | cmp - t.folded
"$dial9" export --format folded -o - - <t.bin | cmp - t.folded

say "some of them"
run export --format folded --kind off-cpu -o - t.bin
run export --format folded --worker 2 -o - t.bin
run export --format folded --callback on_timer -o - t.bin
run export --format folded --from 12us --to 13us -o - t.bin
run export --format folded --callback on_request --from 14us -o - t.bin

say "of long calls only: the other callback took 6 us"
run export --format folded --min-duration 8us -o - t.bin
run export --format folded --min-duration 6us --by callback -o - t.bin
run export --format folded --min-duration 1ms -o none t.bin
"$dial9" export --format folded --min-duration 8us -o none - <t.bin
status=$?
echo "status $status"

say "off the CPU: a switch until the next sign of its thread, whatever that is, a call that blocked as long as it says"
"$make_samples" plain off.bin <<'END_S' || exit 99
row 0x1010 0 nap svc.c 10
row 0x1020 0 save svc.c 11
row 0x1030 0 wait svc.c 12
row 0x1040 0 job job.c 1
spawn 2000 0x2000 0 1
poll 1000000 1 1 0x2000 0
taken 2000000 1 1 0 0x1010
taken 5000000 1 1 0 0x1010
taken 6000000 1 1 0 0x1020
blocked 6000000 1 fsync 9000000
end 15000000 1
park 15100000 1 0
taken 15200000 1 1 0 0x1030
unpark 25200000 1 0
taken 26000000 2 1 0 0x1040
taken 33000000 2 0 0 0x1040
taken 34000000 2 1 0 0x1040
unpark 40000000 1 0
END_S
run export --format folded --kind off-cpu -o - off.bin
run export --format folded --kind off-cpu --weight samples -o - off.bin
run flamegraph --kind off-cpu -o - off.bin | sed -n '/<text class="h"/p'
"$dial9" report --section samples off.bin | sed -n '/left the CPU/,$p'
run query off.bin "SELECT tid, stack, off_cpu_ns FROM samples WHERE source = 'off-cpu' ORDER BY time_ns"

say "a callback of a library, long enough for the function that it calls to be looked for: in every format, with a chart and without"
cat >library.script <<'END_S'
module /usr/lib/libevent-2.1.so.7 - 0x500000 0x1000 1600
row 0x1010 0 parse svc.c 12
row 0x2011 0 on_request svc.c 20
row 0x500111 0 evhttp_connection_done http.c 30
spawn 2000 0x500100 0 1 libevent-2.1.so.7+0x100 @ svc+0x10
poll 10000000 1 1 0x500100 0 libevent-2.1.so.7+0x100 @ svc+0x10
taken 11000000 1 0 0 0x1010 0x2011 0x500111
taken 12000000 1 0 0 0x1010 0x2011 0x500111
taken 13000000 1 0 0 0x1010 0x2011 0x500111
taken 14000000 1 1 0 0x1010 0x2011 0x500111
blocked 14000000 1 fsync 900000
end 16000000 1
poll 20000000 1 1 0x500100 0 libevent-2.1.so.7+0x100 @ svc+0x10
end 20001000 1
END_S
"$make_samples" plain library.bin <library.script || exit 99
run export --format folded --by callback -o - library.bin
for format in speedscope pprof; do
	run export --format $format -o library.$format library.bin
done
run export --format folded --kind off-cpu -o - library.bin
run flamegraph -o library.svg library.bin

say "inside of spans: of a worker, of another thread, one in another, left and entered again, closed while it is open"
"$make_samples" plain spans.bin <<'END_S' || exit 99
hz 100
row 0x1010 0 parse svc.c 10
row 0x1030 0 hash_all svc.c 50
row 0x2011 0 on_request svc.c 20
row 0x5010 0 compress job.c 5
taken 10000 1 0 0 0x2011
enter 11000 1 78 7 request
taken 12000 1 0 0 0x1010 0x2011
enter 13000 1 78 8 query
taken 14000 1 0 0 0x1030 0x2011
exit 15000 1 78 8
taken 15500 2 0 0 0x1030
exit 16000 1 78 7
taken 17000 1 0 0 0x1030 0x2011
enter 18000 1 78 7 request
taken 19000 1 0 0 0x1010 0x2011
close 20000 7
taken 21000 1 0 0 0x1030 0x2011
enter 22000 255 332 9 job
taken 23000 255 0 0 0x5010
exit 24000 255 332 9
taken 25000 255 0 0 0x5010
END_S
for span in request query job; do run export --format folded --span $span -o - spans.bin; done
run export --format folded --span request --worker 2 -o - spans.bin
run export --format folded --span qery -o none spans.bin
run export --format folded --span xyz -o none t.bin
run flamegraph --span query -o - spans.bin | sed -n '/<text class="h"/,/<text class="b"/p'

say "told apart by what they have in common, and counted otherwise"
for by in callback worker thread span; do run export --format folded --by $by -o - spans.bin; done
run export --format folded --by callback -o - t.bin
run export --format folded --weight ns -o - spans.bin
run export --format folded --weight samples --span job -o - spans.bin
run flamegraph --by span -o - spans.bin | sed -n '/<text class="h"/,/<script>/s/.*<g class="f \([a-z0-9]*\)".*<title>\(.*\)<\/title>.*/\1 \2/p'

say "of a loop, and of callbacks by a pattern"
{ echo "loop 1" && cat t.script; } >loop.script
"$make_samples" plain loop.bin <loop.script || exit 99
run export --format folded --loop main --callback 'on_*' --from 14us -o - loop.bin
run export --format folded --callback '*_timer' -o - loop.bin
run export --format folded --loop mian -o none loop.bin
run flamegraph --loop main -o - loop.bin | sed -n '/<text class="h"/p'

say "the recorder's frames, and what it calls itself, are no part of a stack; that of one callback begins with it, whatever called it"
"$make_samples" plain own.bin <<'END_S' || exit 99
module /usr/lib/libdial9.so.0 - 0x500000 0x1000 1600
module /usr/lib/libdial9-preload.so - 0x510000 0x1000 1600
module /lib/libc.so.6 - 0x600000 0x1000 1600
row 0x9011 0 main svc.c 90
row 0x2011 0 on_request svc.c 20
row 0x1010 0 parse svc.c 12
spawn 2000 0x2000 0 1 app+0x2000
row 0x2000 0 on_request svc.c 19
poll 10000 1 1 0x2000 0 app+0x2000
taken 11000 1 0 0 0x1010 0x2011 0x500111 0x9011
taken 12000 1 0 1 0x1010 0x2011 0x500111
taken 13000 1 0 0 0x600110 0x500222 0x2011 0x500111 0x9011
taken 13500 1 0 0 0x600110 0x500222
taken 14000 1 0 0 0x1010 0x500111 0x9011
end 15000 1
END_S
run export --format folded -o - own.bin
run export --format folded --own-frames -o - own.bin
run export --format folded --callback on_request -o - own.bin
run export --format folded --callback on_request --own-frames -o - own.bin
run flamegraph --callback on_request -o - own.bin | sed -n '/<text class="h"/,/<script>/s/.*<g class="f \([a-z0-9]*\)".*<title>\(.*\)<\/title>.*/\1 \2/p'

say "what a kind is not counted in"
run export --format folded --weight ns -o none t.bin
run export --format folded --weight bytes -o none t.bin
run export --format folded --weight kilos -o none t.bin
run export --format folded --by day -o none t.bin
run export --format pprof --by worker -o none t.bin
run export --format pprof --weight ns -o none t.bin
run export --format folded --raw-addresses -o none t.bin

say "none, and what is wrong: no file"
run export --format folded --worker 9 -o none t.bin
run export --format folded --callback on_timr -o none t.bin
run export --format folded --callback xyz -o none t.bin
run export --format folded --callback on_timer --worker 1 -o none t.bin
run export --format folded --from 5us --to 4us -o none t.bin
run export --format trc --worker 1 -o none t.bin
"$make_trace" small plain small.bin
run export --format folded -o none small.bin
"$make_trace" unknown-tag plain damaged.bin
run export --format folded -o none damaged.bin
[ ! -e none ] || echo "it left a file"
run export --format folded -o no/such/folder/f t.bin
run export --format folded -o /dev/full t.bin

say "speedscope: frames by number"
run export --format speedscope -o t.speedscope.json t.bin
cat t.speedscope.json
run export --worker 2 -o w.speedscope.json.gz t.bin
gzip -dc w.speedscope.json.gz >w.json
if command -v python3 >/dev/null; then
	"$dial9" export -o s.speedscope.json spans.bin
	python3 - none t.speedscope.json none w.json nanoseconds s.speedscope.json <<'END_P'
import json, sys

for unit, name in zip(sys.argv[1::2], sys.argv[2::2]):
    file = json.load(open(name))
    for profile in (p for p in file["profiles"] if p["type"] != "evented"):
        assert profile["type"] == "sampled" and profile["unit"] == unit
        assert len(profile["samples"]) == len(profile["weights"]) > 0
        assert sum(profile["weights"]) == profile["endValue"] - profile["startValue"]
        assert all(0 <= n < len(file["shared"]["frames"]) for sample in profile["samples"] for n in sample)
END_P
fi

say "what each worker called when: spans and calls that blocked inside, none outlasts what it is in"
"$make_samples" plain calls.bin <<'END_S' || exit 99
loop 1
row 0x2000 0 on_request svc.c 19
row 0x3000 0 on_timer svc.c 40
spawn 2000 0x2000 0 1
spawn 2000 0x3000 0 2
poll 10000 1 1 0x2000 0
enter 11000 1 78 7 request
taken 12000 1 1 0 0x2000
blocked 12000 1 fsync 2000
end 20000 1
poll 20000 1 2 0x3000 0
exit 25000 1 78 7
end 25000 1
poll 26000 2 2 0x3000 0
end 26000 2
END_S
calls() {
	! command -v python3 >/dev/null || python3 - "$1" <<'END_P'
import json, sys

file = json.load(open(sys.argv[1]))
for profile in file["profiles"]:
    print(profile["type"], profile["name"], profile["endValue"])
    for event in profile.get("events", []):
        print(" ", event["at"], event["type"], file["shared"]["frames"][event["frame"]]["name"])
END_P
}
run export -o calls.speedscope.json calls.bin && calls calls.speedscope.json
run export --callback 'on_t*' --loop main -o some.speedscope.json calls.bin && calls some.speedscope.json
run export --from 15us --to 20us --worker 1 -o some.speedscope.json calls.bin && calls some.speedscope.json
run export --min-duration 8us -o some.speedscope.json calls.bin && calls some.speedscope.json
run export --kind off-cpu -o some.speedscope.json calls.bin && calls some.speedscope.json | grep -v '^ '
run export --span request -o none calls.bin --format speedscope

say "pprof: one message, packed unless the name says otherwise"
run export -o t.pb t.bin
run export --format pprof -o t.pb.gz t.bin
run export --format pprof -o packed t.bin
gzip -dc t.pb.gz | cmp - t.pb
gzip -dc packed | cmp - t.pb

say "flamegraph: one SVG, well-formed, with its script"
run flamegraph -o t.svg t.bin
sed -n '/<text class="h"/,/<script>/p' t.svg
! command -v python3 >/dev/null || python3 -c 'import sys, xml.dom.minidom; xml.dom.minidom.parse(sys.argv[1])' t.svg
! "$top_srcdir/tests/support/has_node.sh" || node "$top_srcdir/tests/cli/flame_dom.js" t.svg
run flamegraph --worker 2 --callback on_timer --from 1us --to 1ms -o - t.bin | sed -n '/<text class="h"/,/<text class="b"/p'
run flamegraph t.bin
run flamegraph --worker 9 -o none t.bin
[ ! -e none ] || echo "it left a file"

finish ''
