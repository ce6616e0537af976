#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The readers in JavaScript and the one in C agree on traces of every kind, and on changed ones (D9_LONG=1: ten
# thousand of them; N of one's own: D9_CHANGES=N).
set -eu

# shellcheck source=tests/toolkit/node.sh
. "$top_srcdir/tests/toolkit/node.sh"
n=0
for kind in small two types odd many life cut wild timeless spans repeats late newest; do
	n=$((n + 1))
	packing=$(echo plain gzip zstd raw | cut -d ' ' -f $((n % 4 + 1)))
	"$top_builddir/tests/cli/make_trace" $kind "$packing" "$work/$kind" 200
done
"$top_builddir/tests/cli/make_trace" callbacks zstd "$work/callbacks" 1000
foreign=${D9_FOREIGN_TRACE:-$top_srcdir/../shared/data/foreign-demo-trace.bin.gz}
[ -e "$foreign" ] || foreign=
cross() {
	node "$top_srcdir/tests/toolkit/cross_readers.mjs" "$top_builddir/core/dial9" "$@"
}
# shellcheck disable=SC2086 # none, or one
cross "$work"/* "$top_srcdir"/tests/fuzz/corpus/*.bin* $foreign
# shellcheck disable=SC2086
node "$top_srcdir/tests/toolkit/cross_tables.mjs" "$top_builddir/core/dial9" "$work"/* \
	"$top_srcdir"/tests/fuzz/corpus/*.bin $foreign
# Programs that were recorded: spans inside of callbacks, a call that never ends.
for set in "$top_srcdir"/core/demo/*/; do
	node "$top_srcdir/tests/toolkit/cross_tables.mjs" "$top_builddir/core/dial9" --set "$set"
done
# Every field of every known event with every type, with values that make no sense, null and left out.
mkdir "$work/strange"
node "$top_srcdir/tests/toolkit/cross_types.mjs" --each
node "$top_srcdir/tests/toolkit/cross_types.mjs" "$work/strange"
node "$top_srcdir/tests/toolkit/cross_tables.mjs" "$top_builddir/core/dial9" --counts "$work/strange"/*
for file in "$work/strange"/*; do
	"$top_builddir/core/dial9" info "$file" >/dev/null
done
changes=${D9_CHANGES:-40}
[ "${D9_LONG:-0}" = 0 ] || changes=10000
cd "$work"
cross --mutate "$changes" small two types many wild spans "$top_srcdir/tests/fuzz/corpus/polls_and_types.bin" \
	"$top_srcdir/tests/fuzz/corpus/worked_two_batches.bin"
