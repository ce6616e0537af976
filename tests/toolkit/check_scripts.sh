#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The scripts of the toolkit: they tell what dial9 report tells, their lines fit, their errors are one line; and a finding has
# one figure, wherever it is told.
set -eu

# shellcheck source=tests/toolkit/node.sh
. "$top_srcdir/tests/toolkit/node.sh"
for kind in small two types many life cut late spans callbacks; do
	"$top_builddir/tests/cli/make_trace" $kind zstd "$work/$kind.bin.zst" 200
done
foreign=${D9_FOREIGN_TRACE:-$top_srcdir/../shared/data/foreign-demo-trace.bin.gz}
[ ! -e "$foreign" ] || cp "$foreign" "$work/foreign.bin.gz"
# Programs that do one thing wrong, recorded: linked with the library, they need no preloading.
if [ -x "$top_builddir/examples/scenario_blocked_callback" ]; then
	for name in blocked_callback long_callback; do
		DIAL9_TRACE_DIR=$work/$name "$top_builddir/examples/scenario_$name" >/dev/null
	done
fi
D9_DIAL9=$(cd "$top_builddir/core" && pwd)/dial9
export D9_DIAL9
for test in figures scripts; do
	D9_TRACES=$work node --test "$top_srcdir/tests/toolkit/test_$test.mjs"
done
