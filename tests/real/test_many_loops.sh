#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A program with 500 loop threads, of which each writes 600 events, is recorded whole: every callback that
# it counts itself, under a worker of its own.  On a busy machine 500 threads may come faster than the
# flush thread makes room for the first event of each: what is lost then is told, event by event.
set -eu
# shellcheck source=tests/real/common.sh
. "$top_srcdir/tests/real/common.sh"

need awk

# of NAME: how many events of that name `dial9 info` counts.
of() {
	awk -v name="$1" '$1 == name { print $2; exit }' "$dir/info"
}

ran=$("$dial9" record --quiet --require -o "$dir/trace" -- "$helpers/many_loops" 500 200)
"$dial9" info "$dir/trace" >"$dir/info"
equal "callbacks that ran and begin in the trace" "$ran" "$(of PollStartEvent)"
equal "callbacks that ran and end in the trace" "$ran" "$(of PollEndEvent)"
# Polls tell most of it.
equal "what made them ready" "$ran" "$("$dial9" events -e WakeEventEvent "$dir/trace" | wc -l)"
lost=$(of no_chunk)
equal "loops entered, and those told as lost" 500 $(($(of WorkerUnparkEvent) + ${lost:-0}))
# Nor is there room in the ring for what 500 threads at once tell of their wait at the barrier.
lost=$(sed -n '/^lost events by cause/,/^[a-z]/p' "$dir/info" | awk 'NF == 2 { print $1 }' | grep -vE '^(none|no_chunk|side_ring)$' || true)
equal "what else is lost" "" "$lost"
workers=$("$dial9" events --format jsonl -e PollStartEvent "$dir/trace" |
	sed 's/.*"worker_id":"\{0,1\}\([0-9]*\).*/\1/' | sort -un | tee "$dir/workers" | wc -l)
equal "workers" 500 "$workers"
if grep -qxE '25[45]' "$dir/workers"; then
	fail "an id that in a wake means no worker was given out"
fi
