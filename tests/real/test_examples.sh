#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Every example runs to its end, and its trace shows what it is there to show.
set -eu
# shellcheck source=tests/real/common.sh
. "$top_srcdir/tests/real/common.sh"

examples=$top_builddir/examples
need_node

# example NAME ARG...: run it with its own trace directory; its output in $dir/NAME.out.
example() {
	name=$1
	shift
	DIAL9_TRACE_DIR=$dir/$name "$examples/$name" "$@" >"$dir/$name.out" ||
		fail "$name exited with $?"
}

# shows NAME EXPRESSION EXPECTED
shows() {
	equal "$1: $2" "$(report "$dir/$1" "$2")" "$3"
}

polls() {
	echo "(r.callbacks.find((c) => c.name === '$1' && c.kind !== 'span') ?? { polls: 0 }).polls"
}

port=$((18000 + $$ % 2000))
example libevent_echo $port 4 &
"$top_builddir/tests/real/client" echo $port 4 250
wait
# One poll for each message, and one for each connection's end.
shows libevent_echo "$(polls on_readable)" 1004

example thread_per_core 3 300
grep -qx '300 jobs run on 3 cores' "$dir/thread_per_core.out" || fail "jobs were lost"
shows thread_per_core 'r.workers.map((w) => w.name).sort().join()' core-0,core-1,core-2,main
shows thread_per_core 'r.callbacks.some((c) => c.name === "deal_jobs")' true

example several_bases 5
shows several_bases 'r.workers.length' 1
shows several_bases "$(polls ask_synchronously)" 5
shows several_bases "$(polls inner_timer)" 15

example cpp_service
if grep -q '^#define HAVE_LIBIBERTY 1' "$top_builddir/config.h"; then
	shows cpp_service 'r.findings.find((f) => f.check === "long-callback").name' 'net::compute<long>'
	shows cpp_service "$(polls net::Server::on_tick)" "$(sed -n 's/ ticks, .*//p' "$dir/cpp_service.out")"
	shows cpp_service "$(polls 'main::{lambda(int, short, void*)#1}::_FUN')" 1
	"$dial9" events --format text "$dir/cpp_service" | grep -qF 'spawn_loc="net::Server::on_tick @ ' ||
		fail "events does not show the names of C++ functions"
fi

# It knows nothing of dial9, and its functions have names.
"$dial9" record -q -o "$dir/plain_http" -- "$examples/plain_http" >"$dir/plain_http.out" &
pid=$!
pids="$pids $pid"
until port=$(sed -n 's/^listening on //p' "$dir/plain_http.out") && [ -n "$port" ]; do
	kill -0 $pid || fail "plain_http ended"
	sleep 0.02
done
node -e 'fetch(`http://127.0.0.1:${process.argv[1]}/primes`).then((r) => r.text()).then((t) => console.log(t.trim()))' "$port" |
	grep -qx '2262 primes' || fail "plain_http does not answer"
kill $pid
wait $pid
shows plain_http 'r.callbacks.some((c) => c.name.includes("count_primes"))' true

# It rotates every 250 ms, and later where its background thread gets no CPU: then it has more time.
for ms in 900 4000 16000; do
	rm -rf "$dir/rotating_writer"
	mkdir "$dir/rotating_writer"
	"$examples/rotating_writer" "$dir/rotating_writer" $ms >"$dir/rotating_writer.out"
	sealed=$(sed -n 's/ segments sealed$//p' "$dir/rotating_writer.out")
	[ "$sealed" -lt 3 ] || break
done
[ "$sealed" -ge 3 ] || fail "only $sealed segments in $ms ms with a rotation of 250 ms"
shows rotating_writer 'r.trace.segments' "$sealed"

# Off, on, off: what it counted itself while recording is what the trace has.
DIAL9_TRACE_DIR=$dir/enable_later "$examples/enable_later" 1200 >"$dir/enable_later.out" &
pid=$!
pids="$pids $pid"
until_it_catches_usr1 $pid
kill -USR1 $pid
until "$dial9" status -j $pid 2>/dev/null | grep -q '"events":{"recorded":[1-9]' || ! kill -0 $pid; do :; done
kill -USR1 $pid || echo "on a very busy machine it ended while it was recorded"
wait $pid
recorded=$(sed -n 's/.* beats, \([0-9]*\) while recording$/\1/p' "$dir/enable_later.out")
[ "$recorded" -gt 0 ] || fail "nothing happened while recording was on"
shows enable_later "$(polls heartbeat)" "$recorded"
