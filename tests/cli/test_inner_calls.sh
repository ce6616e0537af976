#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Functions that a library calls inside its own callbacks: one event each, or three as before, say the same; those that
# do not return are named, at the end of the program, by kill -9, and while they hang.
# shellcheck source=tests/cli/harness.sh
. "$top_srcdir/tests/cli/harness.sh"

calls=$top_builddir/tests/cli/inner_calls
compare="python3 $top_srcdir/tests/cli/same_figures.py"

# events DIR: how many events of spans there are, by their names.
events() {
	"$dial9" info "$1" | sed -n 's/^ *\(Span[A-Za-z]*:*[a-z]*\)[^ ]*  *\([0-9]*\)$/\1 \2/p'
}

# rows DIR: all that SQL tells of who called what how often, and inside of what.  The nearest call around is meant: of
# one event it is not told which span of the program it was in.
rows() {
	"$dial9" query "$1" --format csv "SELECT s.name, s.origin LIKE 'own', s.task, s.enters, s.closed, s.callback,
		CASE WHEN p.callback OR NOT s.callback THEN p.name ELSE q.name END AS inside, count(*) FROM spans s
		LEFT JOIN spans p ON p.span = s.parent LEFT JOIN spans q ON q.span = p.parent GROUP BY 1, 2, 3, 4, 5, 6, 7 ORDER BY 1, 3, 7"
	runs "$1"
}

# runs DIR: the second half of it.
runs() {
	"$dial9" query "$1" --format csv "SELECT c.name, d.name AS caller, r.task, r.worker, count(*), count(r.duration_ns), count(r.poll)
		FROM runs r JOIN callbacks c USING (callback) LEFT JOIN runs q ON q.run = r.caller LEFT JOIN callbacks d ON d.callback = q.callback
		GROUP BY 1, 2, 3 ORDER BY 1, 2, 3"
}

for how in end exit; do
	say "$how"
	"$calls" new-$how $how
	DIAL9_OLD_EVENTS=yes "$calls" old-$how $how
	events new-$how
	events old-$how
	for kind in new old; do
		"$dial9" report --json $kind-$how >$kind.json
		rows $kind-$how >$kind.rows 2>&1
	done
	$compare new.json old.json
	cmp new.rows old.rows && echo "SQL: the same"
done
cat new.rows

say "for readers from before"
"$dial9" export -f trc -o new.trc new-end
"$dial9" export -f trc -o old.trc old-end
events new.trc
for kind in new old; do
	runs $kind.trc >$kind.rows 2>&1
	"$dial9" report --json $kind.trc >$kind.json
done
cmp new.rows old.rows && echo "SQL: the same"
$compare new.json old.json

say "two traces that were recorded in November 2026"
for kind in call enter_exit_close; do
	trace=$top_srcdir/tests/cli/inner/$kind.bin.zst
	events "$trace"
	{
		"$dial9" query "$trace" --format csv "SELECT callback, task, enters, closed, count(*) FROM spans GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 4"
		"$dial9" query "$trace" --format csv "SELECT task, caller IS NOT NULL, count(*), count(duration_ns) FROM runs GROUP BY callback, 1, 2
			ORDER BY 1, 2, 3, 4"
	} >$kind.rows 2>&1
done
cmp call.rows enter_exit_close.rows && wc -l <call.rows

# hang: the program in the background, $pid, when it hangs and that is seen.
hang() {
	DIAL9_OLD_EVENTS=$2 "$calls" "$1" hang >"$1.out" &
	pid=$!
	tries=0
	until "$dial9" status --json "$pid" 2>/dev/null | grep -q "$3"; do
		tries=$((tries + 1))
		[ $tries -lt 600 ] || { echo "never in the status: $3"; break; }
		sleep 0.05
	done
}

# killed NAME OLD WORDS PATTERN: killed while it hangs as WORDS say, which its status shows by PATTERN.
killed() {
	say "killed in one $3, old events: $2"
	hang "$1-$2" "$2" "$4"
	kill -KILL "$pid"
	wait "$pid" 2>/dev/null
	"$dial9" recover "$1-$2" >recovered
	"$dial9" query "$1-$2" --format csv "SELECT name, closed, count(*) FROM spans WHERE callback GROUP BY 1, 2"
}

for old in no yes; do
	killed early $old "at once" '"running":\[{'
done

for old in no yes; do
	killed late $old "that hangs" '"for_ns":[2-9][0-9]\{9\}'
	"$dial9" report -v late-$old | grep -o 'CRITICAL.*on_body[^ ]*'
	"$dial9" events --format text late-$old | grep LastSign | head -n 1 | grep -o 'span=.*'
	"$dial9" report --json late-$old >late-$old.json
done
$compare late-no.json late-yes.json

finish "
	s|shop::request:[^,]*|shop::request|; s|inner_calls+0x[0-9a-f]*|inner_calls+OFFSET|g
	s/^\\(SpanEnter:shop\\|SpanExit:shop\\).*/\\1/"
