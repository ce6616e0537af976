#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A trace of several processes: their workers and tasks have the same ids and are never mixed.
# shellcheck source=tests/cli/harness.sh
. "$top_srcdir/tests/cli/harness.sh"

mkdir -p dir/abcd-11 dir/efgh-22 flat
"$make_trace" process zstd dir/abcd-11/trace.0.bin.zst abcd-11 3
"$make_trace" process zstd dir/efgh-22/trace.0.bin.zst efgh-22 30
"$make_trace" process plain flat/a.trc abcd-11 3
"$make_trace" process plain flat/b.trc efgh-22 30

say "the first screen: whose each finding is, and the processes, the worst first"
run report dir

say "report -v: all findings, then the processes, the worst first"
run report -v dir

say "report --json: side by side, summed up, and each one's own"
"$dial9" report --json dir >all.json
cat >look.py <<'END'
import json
r = json.load(open("all.json"))
print(*r)
print([(p["number"], p["boot_id"], p["folder"]) for p in r["trace"]["processes"]])
print(r["trace"]["segments"], r["trace"]["total_events"], r["trace"]["events"]["PollStartEvent"])
print(r["trace"]["metadata"])
print([(c["process"], c["name"], c["polls"], c["total_ns"]) for c in r["callbacks"]])
print([(w["process"], w["id"], w["polls"], w["busy_ns"]) for w in r["workers"]])
print([(f["process"], f["check"], f["severity"]) for f in r["findings"]])
print([(p["number"], p["trace"]["total_events"], p["polls"]["max_ns"]) for p in r["processes"]])
END
if command -v python3 >/dev/null; then
	python3 look.py
else
	sed '1,/^# report --json/d; /^$/,$d' "$expected"
fi

say "boot ids tell processes apart in one folder, too"
run report -v flat | sed -n '/^Processes/,/^$/p'

say "of one process, the report is as ever"
"$dial9" report --json dir/abcd-11 | grep -c '"processes"'

say "events: each line says whose it is, and --task follows each process on its own"
run events -e PollStartEvent dir
run events --format text --no-symbols --task 5 dir
run events -e PollStartEvent dir/abcd-11

say "info"
run info dir | sed -n '/^process/,/from/p'

say "export: one file is one process"
run export -o out.trc dir
[ ! -e out.trc ] || echo "out.trc was written"
run export -o out.trc dir/efgh-22

finish ''
