#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The stage parquet stores a segment as tables, too, before the segment itself, under names that are the segment's alone.
set -eu
# shellcheck source=tests/toolkit/node.sh
. "$top_srcdir/tests/toolkit/node.sh"
# shellcheck source=tests/ship/store.sh
. "$top_srcdir/tests/ship/store.sh"
start_store

tables() {
	(cd "$stored/p/parquet/v1/incoming" 2>/dev/null && find . -type f | sort)
}

segment() {
	[ -d t/abcd-1 ] || mkdir -m 700 t t/abcd-1
	"$make_trace" hour zstd t/abcd-1/trace.0.bin.zst abcd-1 0 5 ''
}

segment
ship t --once --stage parquet --instance host-1
equal "status" $status 0
equal "tables" "$(tables)" "$(for table in callbacks loops samples segments slow_polls stacks; do
	echo ./$table/date=2026-09-21/service=demo/1413-host-1-abcd-1-0.parquet
done)"
key=$(cd "$stored" && find p/version=1 -type f)
"$dial9" info "$stored/$key" | grep -q SymbolTable || fail "symbols are the default, beside tables, too"
"$dial9" export --format parquet --partitions --segment-key "$key" -o alone "$stored/$key"
for table in $(tables); do
	cmp "alone/$table" "$stored/p/parquet/v1/incoming/$table"
done
equal "folders that are left" "$(find "${TMPDIR:-/tmp}" -maxdepth 1 -name 'dial9-tables-*' -newer t | wc -l | tr -d ' ')" 0

# ---- tables come first: a segment that is there has them
rm -r "$stored/p"
segment
faults '[{ "kind": "status", "status": 503, "code": "SlowDown", "key": "loops/", "times": 0 }]'
ship t --once --stage parquet --instance host-1
equal "status" $status 1
left=$(find t -name 'trace.*')
[ -n "$left" ] || fail "the segment is gone"
equal "segments stored" "$(objects '*/version=1/*')" 0
faults '[]'
ship t --once --stage parquet --instance host-1
equal "status" $status 0
equal "tables, again" "$(tables | wc -l | tr -d ' ')" 6
equal "segments stored" "$(objects '*/version=1/*')" 1

# ---- what has no time of day has no rows: that is told, and the segment goes
rm -r "$stored/p"
mkdir -m 700 t/efgh-2
"$make_trace" process zstd t/efgh-2/trace.0.bin.zst efgh-2 5
ship t --once --stage parquet
equal "status" $status 0
says "t/efgh-2/trace.0.bin.zst: stage 'parquet': " 'no clock anchor'
equal "segments stored" "$(objects '*/version=1/*')" 1
equal "tables" "$(tables)" ''

# ---- of a damaged segment they have what could be read, and that is told
rm -r "$stored/p"
mkdir -m 700 t/ghij-3
"$make_trace" hour plain t/ghij-3/trace.0.bin ghij-3 0 5 ''
dd if=/dev/zero of=t/ghij-3/trace.0.bin bs=1 seek=1000 count=30 conv=notrunc 2>/dev/null
ship t --once --stage parquet
equal "status" $status 0
says "t/ghij-3/trace.0.bin: stage 'parquet': " 'unknown frame tag' 'everything before it was used'
equal "segments stored" "$(objects '*/version=1/*')" 1
equal "tables" "$(tables | wc -l | tr -d ' ')" 6

# ---- it is the shipper's
status=0
"$dial9" process t --stage parquet >said 2>&1 || status=$?
equal "status of dial9 process" $status 2
says 'parquet is a stage of dial9 ship'
stop_store
