#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What dial9 process makes of sealed segments: symbols into them, what must not leave out of them, programs that do well and
# programs that do not; and that whatever a stage does, no segment is harmed.
# shellcheck source=tests/cli/harness.sh
. "$top_srcdir/tests/cli/harness.sh"

make_samples=$top_builddir/tests/cli/make_samples
command -v flock >/dev/null || skip "no flock (Debian: util-linux)"
real=$top_srcdir/core/demo/web/trace.0.bin.zst # of examples/http_service, with stacks
seg=t/boot/trace.0.bin.zst
umask 077

# fresh: the real segment alone, with rights and times of its own.
fresh() {
	rm -rf t
	mkdir -p t/boot
	cp "$real" $seg
	chmod 640 $seg
	touch -d '2024-05-06 07:08:09 UTC' $seg
}
# process SEGMENT ARGUMENTS...: and whether the segment is as it was, and nothing else lies beside it.
process() {
	cp "$1" before
	folder=$(dirname "$1")
	names=$(ls -A "$folder")
	shift
	run process "$@"
	cmp -s before "$folder/trace.0.bin.zst" && echo "(as it was)"
	[ "$names" = "$(ls -A "$folder")" ] || ls -A "$folder"
}
# How long programs sleep that are to be killed: no other test's do.
seconds=$((100000 + $$))
# sleepers: how many of them live; one that was killed may need a moment.
sleepers() {
	tries=100
	while [ $tries -gt 0 ] && pgrep -fx "sleep $seconds" >/dev/null; do
		tries=$((tries - 1))
		sleep 0.1
	done
	pgrep -fxc "sleep $seconds"
}
events() {
	"$dial9" events "$@" || echo "[events: $?]"
}

say "symbols, as dial9 symbolize writes them; with the rights and times that the segment had"
fresh
"$make_samples" zstd s.bin.zst <<END
module $dial9 - 0x555500000000 0x100000 2000
sample 3000 0x555500001000 0x555500002000
END
cp s.bin.zst $seg
chmod 640 $seg
touch -d '2024-05-06 07:08:09 UTC' $seg
"$dial9" symbolize -o named.bin.zst $seg >/dev/null
process $seg t
cmp named.bin.zst $seg
TZ=UTC stat -c '%A %y' $seg
run process --stage symbolize $seg

say "a glob that is of nothing changes no event"
for demo in web helper hang; do
	cp "$top_srcdir/core/demo/$demo/trace.0.bin.zst" $seg
	events $seg >before.events
	"$dial9" process --stage redact:none t >/dev/null 2>&1 || echo "[exit status $?]"
	events $seg >after.events
	cmp before.events after.events
done
for kind in "types plain" "spans gzip" "timeless zstd" "wild plain" "odd gzip" "repeats zstd" "newest plain" "two gzip"; do
	# shellcheck disable=SC2086 # KIND PACKING
	"$make_trace" $kind t/boot/trace.1.bin
	events t/boot/trace.1.bin 2>&1 | sed 's/pool#[0-9]*/pool#N/' >before.events
	"$dial9" process --stage redact:none t/boot/trace.1.bin >/dev/null 2>said || echo "$kind: $(tail -1 said)"
	events t/boot/trace.1.bin 2>&1 | sed 's/pool#[0-9]*/pool#N/' >after.events
	cmp before.events after.events
	"$dial9" info t/boot/trace.1.bin | sed -n 's/^    \([a-z]*\), .*/\1/p'
done

say "types, fields and pairs that are redacted are gone, from every byte"
fresh
run process --stage 'redact:HttpRequest,SpanE*,*.path,*.file,*.source_file,*Metadata*.system.*,AllocEvent.callchain,WorkerParkEvent.tid' t
zstd -qdc $seg >bytes 2>/dev/null || "$dial9" export -f trc -o bytes $seg
for word in HttpRequest SpanEnter SpanExit system.kernel; do
	grep -aq "$word" bytes && echo "$word is there"
done
events -e ModuleEvent $seg | head -1 | sed 's/"build_id":"[^"]*"/"build_id":.../; s/:[0-9]\{1,\}/:N/g'
events -e WorkerParkEvent $seg | grep -vc '"tid":0'
events -e AllocEvent $seg | grep -vc '"callchain":\[\]'
events -e PollStartEvent $seg >after.events
events -e PollStartEvent "$real" | cmp - after.events
run process --stage 'redact:HttpRequest,*.path' t
say "a segment of which nothing is left is removed"
run process --stage 'redact:*' t
ls -A t/boot

say "what a program is told, and which words it gets"
fresh
cat >stage.sh <<'END'
printf '<%s>' "$@" >>told
printf ' %s %s\n' "${AWS_SECRET_ACCESS_KEY-no key}" "${MY_TOKEN-no token}" >>told
echo "$DIAL9_SEGMENT" >segment.json
cat
END
AWS_SECRET_ACCESS_KEY=x MY_TOKEN=x process $seg --stage "sh stage.sh a 'b c'  \"d \\\" e\" f\\ g ''" t
cat told
sed 's/"metadata.*//; s/: [0-9]\{2,\}/: N/g' segment.json
grep -c '"system.kernel": "' segment.json

say "the example of a stage: callbacks that took less than 1 ms are gone, and nothing else"
slow=$(cd "$top_builddir" && pwd)/examples/custom_stage/slow_calls
cp "$real" all.bin.zst
run process --stage-limit 0 --stage "$slow 1" t | sed "s|$slow|slow_calls|"
for file in all.bin.zst $seg; do
	events $file | grep -v '"event":"Poll' >"$(basename $file).rest"
done
cmp all.bin.zst.rest trace.0.bin.zst.rest
# Each that is left took so long, as the others are told.
events -e PollStartEvent -e PollEndEvent $seg | sed 's/.*_ns":\([0-9]*\).*/\1/' |
	awk 'NR % 2 { at = $1; next } $1 - at < 1000000 { print "short: " $1 - at } END { if (!NR) print "none is left" }'
fresh

say "a replacement is packed as the segment was"
"$dial9" export -f trc -o plain.trc.gz $seg >/dev/null
run process --stage "cat plain.trc.gz" t
"$dial9" info t | sed -n 's/^    \([a-z]*\), .*/\1/p'
fresh

say "programs that fail"
cat >bad.in <<'END'
case $1 in
hang) sleep $seconds & sleep $seconds ;;
begins) touch begun; sleep $seconds ;;
garbage) echo garbage ;;
nothing) ;;
half) head -c 30000 ;;
early) exec <&-; cat "$2" ;;
says) echo "I cannot do this" >&2; exit 3 ;;
dies) kill -SEGV $$ ;;
leaves) sleep $seconds >/dev/null 2>&1 & cat ;;
holds) sleep $seconds & cat ;;
loud) yes >&2 ;;
eats) tail /dev/zero ;;
endless) cat /dev/zero ;;
later) [ -e again ] && cat; touch again; exit 75 ;;
never) exit 75 ;;
evict) rm "$2"; cat ;;
replace) cp "$2" other; mv other "$2"; exit 1 ;;
esac
END
sed "s/\$seconds/$seconds/g" bad.in >bad.sh
for what in garbage nothing half "early $PWD/before" says dies leaves holds; do
	process $seg --stage "sh bad.sh $what" t
done
for what in hang loud; do
	process $seg --stage-timeout 300ms --stage "sh bad.sh $what" t
done
process $seg --stage-limit 16M --stage 'sh bad.sh endless' t
process $seg --stage-limit 64M --stage 'sh bad.sh eats' t 2>&1 | sed 's/\(status [0-9]*\).*;/\1;/'
sleepers

say "who ends the command ends the program, and leaves nothing"
"$dial9" process --stage 'sh bad.sh begins' t &
until [ -e begun ]; do kill -0 $! || break; done
kill $!
wait $! 2>/dev/null
sleepers
ls -A t/boot
cmp "$real" $seg

say "programs that ask for another time"
sed -i 's/later) .*/later) [ -e again ] || { touch again; exit 75; }; cat ;;/' bad.sh
process $seg --stage 'sh bad.sh later' t
process $seg --stage 'sh bad.sh never' t

say "what becomes of the segment then"
keep="redact:HttpRequest"
for what in ship keep drop; do
	fresh
	process $seg --on-stage-error $what --stage false --stage $keep t
	fresh
	process $seg --on-stage-error $what --stage $keep --stage false t
done
fresh
process $seg --stage false --stage $keep t
fresh
process $seg --stage $keep --stage false t
say "what cannot be redacted is not sent, whatever is asked"
fresh
(
	ulimit -f 16
	run process --on-stage-error ship --stage $keep t
)
cmp "$real" $seg
ls -A t/boot
head -c 50000 "$real" >$seg
process $seg --on-stage-error drop --stage $keep t

say "segments that others work on, remove or replace meanwhile"
fresh
flock $seg "$dial9" process --stage $keep t
cmp "$real" $seg
run process --stage "sh bad.sh evict $seg" t
ls -A t/boot
fresh
run process --stage "sh bad.sh replace $seg" t
cmp "$real" $seg

say "only sealed segments, and files of one's own"
fresh
cp $seg t/boot/trace.1.bin.zst.active
cp $seg t/boot/notes.bin.zst
ln -s trace.0.bin.zst t/boot/trace.2.bin.zst
mkfifo t/boot/trace.3.bin.zst
ln $seg t/boot/trace.4.bin.zst
run process --stage $keep t
cmp t/boot/trace.1.bin.zst.active t/boot/notes.bin.zst
run process t/boot/trace.1.bin.zst.active
run process --stage $keep t/boot/notes.bin.zst
chmod 777 t/boot
run process --stage redact:PollEndEvent t/boot/trace.0.bin.zst
chmod 700 t/boot
mkdir empty
run process empty
run process missing

say "a dump: the sealed segments that its manifest lists, and no others"
fresh
for other in trace.1.bin.zst trace.2.bin.zst.active trace.3.bin.zst; do cp $seg t/boot/$other; done
# dump SEGMENTS
dump() {
	printf '{ "dump_id": "01KB5B22APD3KS0BM3YXWVAB10", "trigger": "t", "trigger_time": "2020-11-28T15:19:10.000000000Z", "state": "closed",
	"from": "2020-11-28T15:19:00.000000000Z", "to": "2020-11-28T15:20:00.000000000Z", "complete": true, "segments": [%s], "segment_count": %d,
	"bytes": 1000, "fired": [], "fired_count": 0, "suppressed_before": 0, "pairs": {} }\n' "$1" "$(echo "$1" | wc -w)" >t/boot/dump.A.json
}
dump '"trace.0.bin.zst", "trace.2.bin.zst", "trace.3.bin.zst"'
run process --stage redact:PollEndEvent t/boot/dump.A.json
for file in t/boot/trace.*; do echo "$file $("$dial9" events "$file" | grep -c '"PollEndEvent"')"; done
dump '"trace.0.bin.zst", "trace.9.bin.zst"'
run process --stage redact:PollStartEvent t/boot/dump.A.json
dump '"trace.9.bin.zst"'
run process t/boot/dump.A.json
echo '{' >t/boot/dump.A.json
run process t/boot/dump.A.json

say "command lines that are wrong"
run process
run process --stage nonsuch t
run process --stage "cat 'a" t
run process --stage '  ' t
run process --stage redact t
run process --stage redact:a,,b t
run process --on-stage-error send t
run process --stage-timeout 0 t
run process $(printf ' --stage %s' cat cat cat cat cat cat cat cat cat cat cat cat cat cat cat cat cat) t

finish ''
