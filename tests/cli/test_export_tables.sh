#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Parquet: which files, under which names, and what is refused.  What engines read in them: tests/fleet.
# shellcheck source=tests/cli/harness.sh
. "$top_srcdir/tests/cli/harness.sh"

"$dial9" query --schema >schema || skip "dial9 was built without SQLite"
"$make_trace" two zstd trace.17.bin.zst
"$make_trace" types plain types.bin
"$make_trace" small plain small.bin

# ends FILE...: that each begins and ends as Parquet does.
ends() {
	for file; do
		[ "$(head -c 4 "$file")" = PAR1 ] && [ "$(tail -c 4 "$file")" = PAR1 ] || echo "$file is no Parquet"
	done
}

# names DIR: of the files in it.
names() {
	(cd "$1" && printf '%s\n' *)
}

say "a file for each table of dial9 query, and no other; twice the same bytes"
run export --format parquet -o tables trace.17.bin.zst
names tables >files
sed -n 's/^CREATE TABLE \([a-z]*\) .*/\1.parquet/p' schema | sort | diff - files
ends tables/*
run export -o by_name.parquet trace.17.bin.zst
diff -r tables by_name.parquet
stat -c %a tables/polls.parquet

say "no clock anchor: all but the time of day"
run export --format parquet -o no_clock types.bin
names no_clock | diff - files
run export --format parquet --partitions -o fleet types.bin
[ ! -e fleet ] || ls fleet

say "a segment's place is a function of the segment, or of its key in a store"
run export --format parquet --partitions -o fleet trace.17.bin.zst
(cd fleet && find . -type f | sort)
# shellcheck disable=SC2046 # no blanks
ends $(find fleet -type f)
run export --format parquet --partitions -o fleet trace.17.bin.zst
find fleet -type f | wc -l
key='p/version=1/date=2027-01-15/service=we_b/time=0759/instance=host-1/boot=abcd-1/1799999995-230.bin.zst'
run export --format parquet --partitions --segment-key "$key" -o keyed trace.17.bin.zst
(cd keyed && find . -type f | sort)
run export --format parquet --partitions --segment-key '../../service=..//instance=../x y.bin' -o odd trace.17.bin.zst
(cd odd && find . -type f | sort)

say "nothing is left of a table that could not be written"
mkdir full && : >full/callbacks
run export --format parquet --partitions -o full trace.17.bin.zst
find full -type f
: >file
run export --format parquet -o file trace.17.bin.zst
run export --format parquet -o file/in trace.17.bin.zst

say "refused"
run export --format parquet -o - trace.17.bin.zst
run export --format parquet trace.17.bin.zst
run export --format parquet -o x
run export --format parquet --partitions -o x
run export --format parquet -o x nowhere
run export --format parquet --partitions -o x nowhere
run export --format parquet --partitions -o x trace.17.bin.zst small.bin
{ run export --format parquet --partitions -o x -; } <trace.17.bin.zst
run export --format trc --partitions -o x trace.17.bin.zst
run export --format parquet --segment-key k -o x trace.17.bin.zst
run export --format parquet --slow 1ms -o x trace.17.bin.zst
run export --format parquet --partitions --slow soon -o x trace.17.bin.zst
run export --format parquet --kind cpu -o x trace.17.bin.zst
ls x 2>/dev/null

say "numbers that no signed one holds, which only damaged and foreign traces have"
"$top_builddir/tests/cli/make_samples" plain large.bin <<'END_S'
poll 10000 1 0xffffffffffffffff 0x1010 0
end 12000 1
END_S
run export --format parquet -o large large.bin
run export --format parquet --partitions -o large_fleet large.bin

say "a pipe is read once, for the tables of dial9 query"
{ run export --format parquet -o piped -; } <trace.17.bin.zst
names piped | diff - files

say "of a damaged segment what is before the damage, and the status says so"
"$make_trace" unknown-tag plain damaged.bin
run export --format parquet -o damaged damaged.bin
names damaged | diff - files
run export --format parquet --partitions -o damaged_fleet damaged.bin
find damaged_fleet -type f | wc -l

finish ''
