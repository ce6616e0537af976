#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Wakes that polls tell are those that events told: of a whole recording, by kill -9, in a dump, and while a program runs;
# two recorded traces, one of each kind, say the same.
# shellcheck source=tests/cli/harness.sh
. "$top_srcdir/tests/cli/harness.sh"

"$top_srcdir/tests/support/has_node.sh" || skip "there is no node, or one older than 18"
wakes=$top_builddir/tests/cli/tell_wakes

# told WHERE FILE...: which kinds of wakes polls tell; all of them equal the events that were written beside.
told() {
	node "$top_srcdir/tests/toolkit/told_wakes.mjs" "$dial9" "$@" >told || cat told
	sed 's/\b[1-9][0-9]*/N/g' told
}

# rows TRACE: all that SQL tells of wakes.
rows() {
	"$dial9" query "$1" --format csv "SELECT time_ns, task, waker_task, waker_worker, reason FROM wakes ORDER BY 1, 2, 3, 5"
	"$dial9" query "$1" --format csv "SELECT name, count(*) FROM events WHERE name NOT LIKE 'Span%' GROUP BY 1 ORDER BY 1"
}

# same NAME TRACE OTHER: they tell the same wakes, and the same figures.
same() {
	rows "$2" >told.rows 2>&1
	rows "$3" >events.rows 2>&1
	cmp told.rows events.rows && [ "$(wc -l <told.rows)" -gt "$4" ] && echo "SQL: the same"
	"$dial9" report --json "$2" >told.json
	"$dial9" report --json "$3" >events.json
	python3 "$top_srcdir/tests/adapters/same_report.py" told.json events.json | sed 's/^[0-9]* /N /'
}

say "recorded as both"
DIAL9_OLD_EVENTS=both "$wakes" both end
told both/*/trace.*.zst

say "recorded as usual, and for readers from before"
"$wakes" usual end
"$dial9" export -f trc -o usual.trc usual
same usual usual usual.trc 10000
DIAL9_OLD_EVENTS=yes "$wakes" old end
for kind in usual old; do
	"$dial9" query $kind --format csv "SELECT task, waker_task, reason, count(*) FROM wakes WHERE reason <> 'cross_thread' GROUP BY 1, 2, 3
		ORDER BY 1, 2, 3" | sed 's/[0-9]*,[0-9]*,/TASK,TASK,/' >$kind.rows
done
cmp usual.rows old.rows && cat old.rows

say "two traces that were recorded in November 2026"
same recorded "$top_srcdir/tests/cli/wakes/told.bin.zst" "$top_srcdir/tests/cli/wakes/events.bin.zst" 100

# hang DIR VARIABLE=VALUE...: the program in the background, $pid, when it hangs.
hang() {
	dir=$1
	shift
	env DIAL9_OLD_EVENTS=both "$@" "$wakes" "$dir" hang 300 >"$dir.out" &
	pid=$!
	tries=0
	until grep -q hangs "$dir.out" 2>/dev/null && "$dial9" status --json "$pid" 2>/dev/null | grep -q '"running":\[{'; do
		tries=$((tries + 1))
		[ $tries -lt 600 ] || { echo "never hung"; break; }
		sleep 0.05
	done
}

say "killed while it hangs"
hang killed
kill -KILL "$pid"
wait "$pid" 2>/dev/null
"$dial9" recover killed >recovered
told killed/*/trace.*.zst

say "a dump"
hang flight DIAL9_MODE=flight
"$dial9" dump "$pid" >dumped 2>&1 || cat dumped
kill -KILL "$pid"
wait "$pid" 2>/dev/null
told flight/*/*.zst

# The task that is found with another waits while that one sleeps 5 ms.
say "while it runs"
"$wakes" live run 50 &
pid=$!
tries=0
until "$dial9" query live --format csv "SELECT max(delay_ns) > 4000000 FROM polls" 2>/dev/null >live.rows &&
	[ "$(tail -n 1 live.rows)" = 1 ]; do
	tries=$((tries + 1))
	[ $tries -lt 600 ] || { echo "no task has waited" && break; }
	sleep 0.05
done
"$dial9" events -e WakeEventEvent live | grep -c '"reason":1' | awk '{ print ($1 > 50) }'
kill -KILL "$pid"
wait "$pid" 2>/dev/null
"$dial9" recover live >recovered
"$dial9" query live --format csv "SELECT max(delay_ns) > 4000000 FROM polls"

finish ""
