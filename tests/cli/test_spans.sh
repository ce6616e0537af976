#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Spans as readers see them: what children inherit, what a life and a report tell.  One made by hand,
# to the nanosecond; one by a real program, whose numbers differ from run to run.
# shellcheck source=tests/cli/harness.sh
. "$top_srcdir/tests/cli/harness.sh"

"$make_trace" spans plain spans.bin

say "children have the fields of their parents, the nearest first, and their own before all"
run events --event SpanEnter:db::query:q.c:7 --event SpanExit:db::query:q.c:7 spans.bin
run events --format text --event SpanEnter:db::query:q.c:7 spans.bin

say "a life from the creation to the close, on threads that run no loop"
run events --life --span 1 spans.bin
run events --life --span 3 spans.bin
run events --life --span 4 spans.bin
run diagram --span 1 spans.bin | grep 'class="busy"' | grep '^<rect'

say "the report: by name, with busy and idle time"
run report --section spans spans.bin | sed -n '/^Spans/,/^$/p'
"$dial9" report -v spans.bin | grep -o 'INFO.*wrong order.*'
"$dial9" report --json spans.bin >report.json
if command -v python3 >/dev/null; then
	python3 - <<-'END'
		import json
		wanted = [("request", 2, 30000, 35000, 1, 1, 50000), ("step", 1, 14000, 0, 1, 0, 14000),
		    ("query", 2, 8000, 4000, 0, 0, 8000)]
		spans = json.load(open("report.json"))["spans"]
		got = [(span["name"], span["spans"], span["active_ns"],
		    span["idle_ns"], span["unclosed"], span["unmatched"], span["max_ns"]) for span in spans]
		if got != wanted:
		    print(got)
		if [o["origin"] for o in spans[2]["origins"]] != ["db::query:q.c:7"]:
		    print(spans[2])
	END
fi

say "spans that a rotation finds open: once, in the second segment alone and in both"
mkdir crossing
"$make_trace" crossing plain crossing/trace.0.bin
"$make_trace" crossing plain crossing/trace.1.bin behind
for trace in crossing/trace.1.bin crossing; do
	"$dial9" report --json $trace >report.json
	python3 -c '
import json
for span in json.load(open("report.json"))["spans"]:
    print(span["name"], span["spans"], span["unclosed"], span["unmatched"], span["active_ns"], span["max_ns"], [o["origin"] for o in span["origins"]])'
	"$dial9" query $trace "SELECT * FROM spans" 2>/dev/null | sed 's/ *$//'
done

say "a real program: 20 requests of three sections, 20 queries inside, 4 of them refused"
"$top_builddir/examples/spans" trace
"$dial9" events trace >events.jsonl
grep -c '"event":"SpanEnter:http::request:' events.jsonl
grep '"event":"SpanEnter:db::query:' events.jsonl | grep -c '"inherited":{"path":"/profile","user":[0-9]*}'
grep -c '"event":"SpanCloseEvent".*"status":"404"' events.jsonl
grep -c SpanMisuseEvent events.jsonl
id=$(sed -n 's/.*"event":"SpanCloseEvent".*"span_id":\([0-9]*\),.*"span_name":"request".*/\1/p' events.jsonl | head -n 1)
"$dial9" events --life --span "$id" trace | grep -c ' enter  '
"$dial9" diagram --span "$id" -o request.svg trace
grep -c '<rect.*class="busy"' request.svg
"$dial9" report -v trace | sed -n '/^Spans/,/^$/p' | awk '/request|query/ { print $5, $NF }'

finish ''
