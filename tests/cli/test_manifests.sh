#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Manifests of dumps as anybody may have written them: what is good is listed and read, what is not has one line, and none
# leads out of its directory.
# shellcheck source=tests/cli/harness.sh
. "$top_srcdir/tests/cli/harness.sh"

# manifest FILE NUMBER [SED-SCRIPT]: one of a dump with the segments 0 to 2, changed by SED-SCRIPT.
manifest() {
	sed "s/NUMBER/$2/g; ${3:-}" >"$1" <<-'END_JSON'
		{
		  "dump_id": "01KB5B22APD3KS0BM3YXWVABNUMBER",
		  "trigger": "stall",
		  "trigger_time": "2020-11-28T15:19:NUMBER.123456789Z",
		  "state": "closed",
		  "from": "2020-11-28T15:19:00.000000000Z",
		  "to": "2020-11-28T15:20:00.000000000Z",
		  "complete": true,
		  "segments": ["trace.0.bin", "trace.1.bin.zst", "trace.2.bin"],
		  "segment_count": 3,
		  "bytes": 1000,
		  "fired": [
		    {"trigger": "stall", "condition": "poll", "threshold": 50000000, "value": 80300000, "time": "2020-11-28T15:19:NUMBER.123456789Z"}
		  ],
		  "fired_count": 1,
		  "suppressed_before": 0,
		  "pairs": {}
		}
	END_JSON
}

mkdir -p tr/web-1 tr/web-2 elsewhere empty
"$make_trace" process plain tr/web-1/trace.0.bin web-1 10
"$make_trace" process zstd tr/web-1/trace.1.bin.zst web-1 10
"$make_trace" process plain tr/web-1/trace.2.bin web-1 10
"$make_trace" process plain tr/web-1/trace.3.bin web-1 10
"$make_trace" process plain tr/web-2/trace.0.bin web-2 10
"$make_trace" process plain elsewhere/trace.9.bin web-9 10
manifest tr/web-1/dump.A.json 10
manifest tr/web-1/dump.C.json 30 's/"closed"/"open"/; s/"trace.1.*\]/"trace.5.bin"]/; s/"complete": true/"complete": false/; s/_count": 3/_count": 2/'
mv tr/web-1/trace.3.bin tr/web-1/trace.5.bin.active
manifest tr/web-2/dump.B.json 20 's/"trace.1.*\]/"trace.7.bin", "trace.8.bin"]/; s/{}/{"team": "web", "on": "call"}/; s/"suppressed_before": 0/"suppressed_before": 7/'
manifest tr/web-2/dump.D.json 40 's/"closed"/"failed",\n"error": "no space left on device"/; s/"poll"/"loss"/; s/50000000/100/; s/80300000/250/; s/\["trace.*\]/[]/; s/_count": 3/_count": 0/'
manifest tr/web-2/dump.E.json 50 's/"complete": true/"complete": false/; s/"trace.1.*\]/"trace.0.bin"]/; s/"fired_count": 1/"fired_count": 250/; s/_count": 3/_count": 1/; s/"stall",$/"a name that is much longer than any column",/
	s/^    {\(.*\)}$/    {\1},\n{\1},\n{\1}/; s/"poll", "threshold": 50000000, "value": 80300000/"call", "threshold": 0, "value": 0/'

say "a list, the latest last, with what is to be said of each"
run dumps tr
COLUMNS=200 run dumps tr
COLUMNS=200 run dumps tr/web-1
run dumps tr/web-1/dump.A.json

say "values in the unit of their condition; of one that is not known yet, as they are"
mkdir units
for condition in poll lateness blocked queue wakes polls loss call load; do
	manifest units/dump.$condition.json 10 "s/\"poll\"/\"$condition\"/; s/\"stall\"/\"$condition\"/; s/trace.0.bin/trace.4.bin/"
done
"$dial9" dumps units | sed -n 's/.*:10  //; s/  *0 bytes.*//p' | sort

say "no line is longer than a terminal of 80 columns, but for paths"
COLUMNS=80 "$dial9" dumps tr | grep -v '^  tr/' | awk 'length > 80'

say "in JSON"
"$dial9" dumps --json tr/web-2 >json
python3 - json <<'EOF'
import json, sys
listed = json.load(open(sys.argv[1]))
for dump in listed["dumps"]:
	for key in ("id", "path", "trigger", "time", "state", "error", "complete", "bytes", "fired_count", "suppressed_before", "missing", "unlisted", "pairs"):
		print(f"{key}={dump[key]}", end="; ")
	print(dump["fired"][0], dump["segments"])
print(sorted(listed), sorted(listed["dumps"][0]))
EOF

say "nothing to list"
run dumps empty
run dumps empty elsewhere
run dumps --json empty
run dumps
run dumps missing

# events ARGUMENT...: how many, and of which segments.
events() {
	echo "$ dial9 events $*"
	"$dial9" events --no-symbols "$@" | wc -l
	echo "of $("$dial9" info --json "$@" 2>/dev/null | grep -o '"path":"[^"]*"' | tr '\n' ' ')"
}

say "a manifest stands for the segments that it lists, once each"
events tr/web-1/dump.A.json
events tr/web-1/trace.0.bin
events tr/web-1/dump.C.json
events tr/web-1/dump.A.json tr/web-1/dump.C.json
events tr/web-1/dump.A.json tr/web-1
(cd tr/web-1 && events dump.A.json)
ln -s tr/web-1/dump.A.json latest
events latest
sed 's/"trace.2.bin"/"trace.0.bin", "trace.0.bin"/' tr/web-1/dump.A.json >tr/web-1/twice.json
ln tr/web-1/trace.0.bin tr/web-1/trace.6.bin
sed 's/"trace.2.bin"/"trace.6.bin"/' tr/web-1/dump.A.json >tr/web-1/linked.json
events tr/web-1/twice.json
events tr/web-1/linked.json

say "every command that reads"
dump=tr/web-1/dump.A.json
"$dial9" report --color never $dump | sed -n 1,3p
"$dial9" report --json $dump | grep -c '"path": "tr/web-1/trace.*"'
"$dial9" query -f csv $dump "SELECT count(*) FROM polls" | tail -n 1
"$dial9" query -f csv tr/web-1/trace.0.bin "SELECT count(*) FROM polls" | tail -n 1
"$dial9" export -o all.bin $dump && "$dial9" events --no-symbols all.bin | wc -l
"$dial9" symbolize -o named $dump >/dev/null && find named -name 'trace.*' | sort
"$dial9" flamegraph -o flame.svg $dump 2>&1
"$dial9" diagram $dump 2>&1 | head -n 1
"$dial9" report --html -o page.html $dump 2>&1 | sed 's/has .*/has a size/'

say "what is missing comes first"
dump=tr/web-2/dump.B.json
run report --color never $dump | sed -n '1,4p; /^\[/p'
"$dial9" report --color never --finding 1 $dump 2>/dev/null | grep trace
"$dial9" info $dump | sed -n '2,20{/^  tr/p; /not there/p}'
{ "$dial9" events $dump >/dev/null; } 2>&1
"$dial9" export -o all.bin $dump && "$dial9" events --no-symbols all.bin | wc -l
"$dial9" query -f csv $dump "SELECT count(*) > 0 FROM polls" 2>&1
"$dial9" symbolize -o named-2 $dump
rm -r named-2

say "and where nothing is there, why"
run report tr/web-2/dump.D.json
manifest tr/web-2/none.json 10 's/"trace.0.bin"/"trace.4.bin"/'
run report tr/web-2/none.json
sed 's/"failed"/"open"/' tr/web-2/dump.D.json >tr/web-2/open.json
run events tr/web-2/open.json
manifest tr/web-2/more.json 10 's/\["trace.*\]/["trace.0.bin"]/; s/_count": 3/_count": 90/'
{ "$dial9" events tr/web-2/more.json >/dev/null; } 2>&1

# bad NAME SED-SCRIPT: a manifest with something wrong.
bad() {
	manifest "bad/dump.$1.json" 10 "$2"
}

say "each that is none has a line, and the others are listed"
mkdir bad
cp tr/web-1/trace.0.bin bad
bad good 's/, "trace.1.*\]/]/; s/_count": 3/_count": 1/'
: >bad/dump.empty.json
echo "no JSON" >bad/dump.text.json
echo '[]' >bad/dump.array.json
echo '{}' >bad/dump.object.json
echo '{"dump_id": "01KB5B22APD3KS0BM3' >bad/dump.cut.json
echo null >bad/dump.null.json
cp tr/web-1/trace.0.bin bad/dump.trace.json
python3 -c 'print("[" * 100000)' >bad/dump.deep.json
python3 -c 'print("{\"dump_id\": \"" + "A" * 3000000 + "\"}")' >bad/dump.huge.json
bad id 's/"01KB.*"/"..\/..\/etc\/passwd"/'
bad id_number 's/"01KB.*"/12/'
bad trigger 's/"trigger": "stall",$/"trigger": ["stall"],/'
bad time 's/"trigger_time": .*/"trigger_time": "yesterday",/'
bad late 's/"trigger_time": "2020/"trigger_time": "9999/'
bad state 's/"closed"/"eaten"/'
bad complete 's/"complete": true/"complete": "yes"/'
bad segments 's/\["trace.*\]/"trace.0.bin"/'
bad number 's/"trace.1.bin.zst"/7/'
bad up 's|"trace.1.bin.zst"|"../elsewhere/trace.9.bin"|'
bad absolute "s|\"trace.1.bin.zst\"|\"$work/elsewhere/trace.9.bin\"|"
bad below 's|"trace.1.bin.zst"|"sub/trace.1.bin"|'
bad no_segment 's|"trace.1.bin.zst"|"passwd"|'
bad nul 's|"trace.1.bin.zst"|"trace.0.bin\\u0000.bin"|'
bad control 's|"trace.1.bin.zst"|"x\\u001b[31m/trace.bin"|'
bad value 's/"value": [0-9]*/"value": "much"/'
bad negative 's/"value": /"value": -/'
bad fired 's/"fired": \[/"fired": [12,/'
bad pairs 's/{}/{"team": 1}/'
ln -s ../tr/web-1/dump.A.json bad/dump.link.json
ln -s nowhere bad/dump.dangling.json
mkfifo bad/dump.pipe.json
mkdir bad/dump.folder.json
cp bad/dump.good.json bad/dump..json
run dumps bad
"$dial9" dumps --json bad 2>/dev/null | grep -c '"error": "[a-z"]'
for name in object up absolute nul control huge; do
	run report bad/dump.$name.json
done
run info bad | sed -n '/^  bad/p; /^\[/p'

say "texts that order terminals about"
mkdir hostile
cp tr/web-1/trace.0.bin hostile
manifest "hostile/dump.$(printf '\033[31m').json" 10 's/"stall"/"st\\u001b[31mall\\u202e"/; s/, "trace.1.*\]/]/; s/_count": 3/_count": 1/; s/{}/{"a\\u0007": "b\\r"}/'
run dumps hostile
"$dial9" dumps --json hostile | grep -a -c "$(printf '\033')"

say "a link in the place of a segment is none"
mkdir links
ln -s ../elsewhere/trace.9.bin links/trace.0.bin
cp tr/web-1/trace.1.bin.zst links
manifest links/dump.A.json 10 's/, "trace.2.bin"//; s/_count": 3/_count": 2/'
run dumps links
events links/dump.A.json
# Packed by another zstd, the second segment has another size.
finish 's/[0-9.]* KiB/SIZE/'
