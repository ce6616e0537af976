#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Our traces keep every rule for producers of the format document: whatever the packing, segment by
# segment and as one file, through rotation, switching on and off, nested loops, and when most events
# are lost; and what was lost and what was written add up to what happened.
set -eu
# shellcheck source=tests/real/common.sh
. "$top_srcdir/tests/real/common.sh"

need_node
examples=$top_builddir/examples

# rules TRACE: of each process as a whole, and of each of its segments alone.
rules() {
	plain "$1"
	for segment in "$1"/*/trace.*; do
		"$dial9" export --format trc -o "$dir/segment.trc" "$segment"
		node "$top_srcdir/tests/toolkit/trace_rules.mjs" "$dir/segment.trc" --segment ||
			fail "$segment alone breaks the producer's rules"
	done
}

# What a report says of polls and tasks, on standard input.
tasks() {
	node -e 'const r = JSON.parse(require("fs").readFileSync(0, "utf8"));
		console.log(r.trace.processes.length, JSON.stringify(r.tasks),
			r.callbacks.map((c) => [c.name, c.polls, c.tasks_spawned]).join(" "));'
}

for compress in zstd gzip none; do
	DIAL9_COMPRESS=$compress "$examples/rotating_writer" "$dir/$compress" 700 >/dev/null
	rules "$dir/$compress"
done

# The last moments of a program that runs: what began before them is told in them, by name, and trace and
# dump together are what the trace is.
"$examples/rotating_writer" "$dir/whole" 60000 >/dev/null &
pid=$!
pids="$pids $pid"
tries=0
until [ -e "$(echo "$dir"/whole/*/trace.2.bin.zst)" ] || [ $tries = 600 ]; do
	tries=$((tries + 1))
	sleep 0.05
done
"$dial9" dump --last 50ms -o "$dir/window" $pid 2>/dev/null >"$dir/where"
equal "where the dump is" "$(dirname "$(cat "$dir/where")")" "$dir/window"
kill $pid
wait $pid || :
"$dial9" recover "$dir/whole" >/dev/null 2>&1
[ ! -e "$(echo "$dir"/window/*/trace.0.*)" ] || fail "the dump holds the beginning"
rules "$dir/window"
equal "the ticker of the dump" "$(report "$dir/window" 'r.callbacks.filter((c) => c.name === "tick" && c.kind === "timer").length')" 1
equal "tasks of trace and dump" "$("$dial9" report --json "$dir/whole" "$dir/window" | tasks)" \
	"$("$dial9" report --json "$dir/whole" | tasks)"

DIAL9_TRACE_DIR=$dir/nested "$examples/several_bases" 20 >/dev/null
rules "$dir/nested"

DIAL9_TRACE_DIR=$dir/threads "$examples/thread_per_core" 3 500 >/dev/null
rules "$dir/threads"

DIAL9_SPAN_FILTER=debug "$examples/spans" "$dir/spans"
rules "$dir/spans"

DIAL9_TRACE_DIR=$dir/switched "$examples/enable_later" 800 >/dev/null &
pid=$!
pids="$pids $pid"
until_it_catches_usr1 $pid
for i in 1 2 3 4 5 6 7; do
	kill -USR1 $pid || break # on a busy machine it may have ended
	sleep 0.07
done
wait $pid
rules "$dir/switched"

# Processes that start together in one directory collect what dead ones left there; none of them
# takes another's new directory for that.
for round in 1 2 3 4 5 6 7 8; do
	for i in 1 2 3 4 5 6; do
		DIAL9_TRACE_DIR=$dir/crowd "$examples/several_bases" 2 >/dev/null &
		eval "started$i=$!"
	done
	for i in 1 2 3 4 5 6; do
		eval "wait \$started$i" || fail "round $round: a program failed"
	done
done
equal "traces of 48 processes" "$(find "$dir/crowd" -name 'trace.0.bin.zst' | wc -l)" 48

# A ring of one MiB, four threads, as fast as they can: nearly everything is lost.
ran=$(DIAL9_RING_MB=1 DIAL9_TRACE_DIR=$dir/flood "$helpers/flood" 4 300000)
equal "callbacks run" "$ran" 1200000
rules "$dir/flood"
lost=$(report "$dir/flood" 'Object.values(r.trace.loss).reduce((a, b) => a + b, 0)')
[ "$lost" -gt 0 ] || fail "nothing was lost, so nothing was tested"
equal "first finding" "$(report "$dir/flood" 'r.findings[0].check')" incomplete-data
"$dial9" report "$dir/flood" | head -n 6 | grep -q lost || fail "the loss does not come first"
