#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# shellcheck source=tests/cli/harness.sh
. "$top_srcdir/tests/cli/harness.sh"

"$dial9" query --schema >schema || skip "dial9 was built without SQLite"
"$make_trace" small plain small.bin
"$make_trace" callbacks zstd callbacks.bin.zst 1000
"$make_trace" spans plain spans.bin
"$make_trace" life plain life.bin

say "calls with names, times and lengths"
run query small.bin 'SELECT * FROM calls'
say "tables and their columns, whose names and order are promises"
sed 's/ *--.*//' schema | tr -s ' \n' ' ' | tr ';' '\n' | sed -n 's/^ *CREATE TABLE //p'
say "formats"
for format in table csv jsonl json; do
	run query -f $format small.bin "SELECT name, ms, delay_ms, 'a \"b\", c' AS text FROM calls"
done
say "a table that is none, a column that is none, no SQL, changes: one line each"
run query small.bin 'SELECT * FROM poll'
run query small.bin 'SELECT length_ns FROM polls'
run query small.bin 'SELECT FROM WHERE'
run query small.bin 'DELETE FROM polls'
run query small.bin "ATTACH 'other.db' AS other"
run query small.bin 'PRAGMA journal_mode=WAL'
run query small.bin "SELECT load_extension('x')"
run query small.bin ' ;'
run query small.bin 'SELECT 1' 'SELECT 2'
run query none 'SELECT 1'
run query -f xml small.bin 'SELECT 1'
run query
[ ! -e other.db ] || echo "other.db was made"
say "statements end in time, and do not take more memory than they may"
run query --timeout 50ms small.bin 'WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n'
run query --memory 8M small.bin 'WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 9000000) SELECT percentile(i, 50) FROM n'
say "statements from standard input, the last without its semicolon; commands"
printf '%s\n' '.tables' '.schema parks' 'SELECT count(*)' 'FROM polls;' '.format csv' 'SELECT worker, calls FROM workers' | run query small.bin
printf '.nothing\n' | run query small.bin
"$dial9" query small.bin .schema | cmp - schema && echo "the same as --schema"
say "the trace itself from standard input"
"$dial9" query - 'SELECT count(*) FROM polls; SELECT count(*) FROM wakes' <small.bin
say "percentiles are nearest rank, as in the report"
run query callbacks.bin.zst "WITH n(i) AS (VALUES (1), (2), (3), (4), (NULL)) SELECT percentile(i, 0), percentile(i, 50), percentile(i, 51), percentile(i, 100) FROM n"
run query callbacks.bin.zst 'WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 1000) SELECT percentile(i, 99.9) FROM n'
run query callbacks.bin.zst 'SELECT percentile(ms, 101) FROM calls'
say "spans and tasks"
run query spans.bin 'SELECT span, parent, name, first_ns, last_ns, active_ns, enters, closed FROM spans ORDER BY first_ns LIMIT 5'
run query life.bin 'SELECT task, kind, fd, name, ended_ns - spawned_ns AS lived_ns FROM tasks'
run query life.bin 'SELECT task, waker_task, waker_worker, reason FROM wakes LIMIT 5'
say "findings have the numbers of the report"
run query -f csv small.bin 'SELECT finding, severity, check_id, name FROM findings'
say "every event, in JSON"
run query -f csv small.bin "SELECT name, count(*), max(json_extract(fields, '$.worker_id')) AS worker FROM events GROUP BY name"
say "damage: what precedes it is used, and the status tells"
head -c 700 small.bin >cut.bin
printf 'garbage' >>cut.bin
run query cut.bin 'SELECT count(*) > 0 AS some FROM events'
say "a database that stays"
run query -o kept.db callbacks.bin.zst
python3 - kept.db <<'END_PY'
import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
print(db.execute("PRAGMA integrity_check").fetchone()[0], db.execute("SELECT count(*), round(sum(ms), 3) FROM calls").fetchone())
END_PY
run query -o none/kept.db small.bin
for left in kept.db.*; do
	[ ! -e "$left" ] || echo "$left was left"
done

say "a statement reads all tables that it names, in whatever way: as of a database of all tables"
"$dial9" agents demo demo >/dev/null || exit 99
"$dial9" query -o all.db demo/web
cat >shapes.sql <<'END_S'
SELECT count(*) FROM polls JOIN callbacks USING (callback)
SELECT round(avg(p.duration_ns)) FROM samples s JOIN polls p USING (poll)
SELECT count(*) FROM samples NATURAL JOIN frames
SELECT count(*) FROM callbacks LEFT JOIN polls USING (callback) WHERE polls.callback IS NULL
SELECT count(*) FROM "polls" AS [a] LEFT JOIN `callbacks` b USING (callback)
SELECT count(*) FROM main.calls
SELECT COUNT(*) FROM POLLS p WHERE EXISTS (SELECT 1 FROM Callbacks c WHERE c.callback = p.callback)
SELECT count(*) FROM polls WHERE EXISTS (SELECT * FROM blocking) OR callback IN (SELECT callback FROM callbacks)
WITH c AS (SELECT * FROM parks), d(x) AS (SELECT callback FROM callbacks) SELECT count(*) FROM c, d
WITH c AS MATERIALIZED (SELECT callback FROM tasks) SELECT count(*) FROM c JOIN callbacks USING (callback)
WITH RECURSIVE r(t, n) AS (SELECT min(task), 0 FROM wakes UNION SELECT w.task, n + 1 FROM r JOIN wakes w ON w.waker_task = r.t WHERE n < 4) SELECT count(*) FROM r
SELECT (SELECT count(*) FROM parks) + (SELECT max(events) FROM processes)
SELECT * FROM (SELECT count(*) FROM (SELECT 1 FROM metadata))
SELECT 1 FROM segments UNION ALL SELECT 1 FROM workers UNION SELECT 2 FROM spans
SELECT name FROM callbacks EXCEPT SELECT name FROM calls ORDER BY 1
SELECT count(*) FROM events e, json_each(e.fields) j WHERE e.name = 'QueueSampleEvent'
SELECT count(*) FROM samples JOIN stacks USING (stack)
SELECT count(*) FROM findings f LEFT JOIN evidence e USING (finding)
SELECT sum(n) FROM (SELECT count(*) OVER (PARTITION BY callback) AS n FROM polls)
SELECT count(*) FROM polls WHERE (process, task) IN (SELECT process, task FROM tasks)
SELECT count(*) FROM allocations CROSS JOIN processes USING (process)
VALUES ((SELECT count(*) FROM dumps))
END_S
while IFS= read -r sql; do
	"$dial9" query -f csv demo/web "$sql"
done <shapes.sql >some.csv
python3 - shapes.sql >all.csv <<'END_PY'
import csv, sqlite3, sys
db = sqlite3.connect("all.db")
for line in open(sys.argv[1]):
    rows = db.execute(line)
    out = csv.writer(sys.stdout, lineterminator="\n")
    out.writerow([column[0] for column in rows.description])
    out.writerows(rows)
END_PY
diff some.csv all.csv && wc -l <some.csv

say "calls are of the program's functions, inside of the library's callbacks, too; so are spans; threads are a table"
run query demo/web 'SELECT name, count(*) AS calls, count(poll) AS inside FROM calls GROUP BY name'
run query demo/web "SELECT c.name, count(*) AS samples FROM samples s JOIN runs r USING (run) JOIN callbacks c ON c.callback = r.callback GROUP BY 1 ORDER BY 2 DESC LIMIT 2"
run query demo/web 'SELECT name, callback, count(*) AS spans FROM spans GROUP BY 1'
run query demo/web 'SELECT * FROM threads'

say "a sleep in a library's call is divided among the runs in it, by what blocked there; none sleeps longer than it ran"
"$top_builddir/tests/cli/make_samples" plain burst.bin <<'END_EVENTS'
poll 1000000 0 1 0 0 libevent-2.1.so.7+0x300 @ app+0x310
enter 2000000 0 7 71 app+0x100@app+0x110
blocked 3000000 0 read 28000000
exit 32000000 0 7 71
enter 33000000 0 7 72 app+0x100@app+0x110
blocked 34000000 0 read 18000000
exit 53000000 0 7 72
enter 54000000 0 7 73 app+0x200@app+0x210
exit 54500000 0 7 73
end 60000000 0
offcpu 60000000 0 1 46000000 590000
END_EVENTS
run query burst.bin 'SELECT name, ms, blocked_ms, ready_ms FROM calls'
"$dial9" report -v burst.bin | sed -n '/^Longest calls/,/^$/p'
"$dial9" report --json burst.bin | grep '"name_'

say "another trace beside it"
run query demo/web --attach b=demo/wakes 'SELECT (SELECT count(*) FROM calls) AS web, (SELECT count(*) FROM b.calls) AS wakes'
run query demo/web --attach b=demo/wakes 'SELECT count(*) AS n FROM b.polls JOIN b.callbacks USING (callback)'
run query demo/web --attach b=demo/wakes 'SELECT name FROM b.calls EXCEPT SELECT name FROM calls'
run query demo/web --attach b=none 'SELECT 1'
run query demo/web --attach main=demo/wakes 'SELECT 1'
run query demo/web --attach b=demo/wakes --attach B=demo/wakes 'SELECT 1'
run query demo/web --attach b=demo/wakes -o kept.db

say "as many calls, as long, as the report tells"
for kind in small two types odd many life cut wild timeless spans repeats late callbacks; do
	"$make_trace" $kind zstd counted.bin.zst 100
	"$dial9" report -j counted.bin.zst >report.json 2>/dev/null
	echo "$kind $(tr -d '\n ' <report.json | sed 's/.*"polls":{"recorded":"[a-z]*","count":\([0-9]*\),"sum_ns":\([0-9]*\).*/\1,\2/')" \
		"$("$dial9" query -f csv counted.bin.zst 'SELECT count(duration_ns) - sum(resumed), sum(duration_ns) FROM polls' 2>/dev/null | tail -n 1)"
done
finish ''
