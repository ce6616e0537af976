#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Red flags of the toolkit are the findings of dial9 report: on golden traces, and on programs that do one thing wrong.
set -eu

# shellcheck source=tests/toolkit/node.sh
. "$top_srcdir/tests/toolkit/node.sh"
mkdir "$work/golden" "$work/scenarios"
for kind in small two types many life cut late spans callbacks; do
	"$top_builddir/tests/cli/make_trace" $kind zstd "$work/golden/$kind.bin.zst" 200
done
foreign=${D9_FOREIGN_TRACE:-$top_srcdir/../shared/data/foreign-demo-trace.bin.gz}
[ ! -e "$foreign" ] || cp "$foreign" "$work/golden/foreign.bin.gz"

# run NAME [VARIANT]: linked with the library, they need no preloading.
run() {
	DIAL9_TRACE_DIR=$work/scenarios/$1${2:+.$2} "$top_builddir/examples/scenario_$1" ${2:+"$2"} >/dev/null
}
if [ -x "$top_builddir/examples/scenario_spin" ]; then
	# Those that sleep for the most part go side by side, and one at a time of those that want a CPU.
	DIAL9_TRACE_DIR=$work/scenarios/hang "$top_builddir/examples/scenario_hang" 4 hang >/dev/null 2>&1 &
	hang=$!
	for name in blocked_callback idle_wakes 'many_wakes timers' 'many_wakes pipe' 'growth memory' 'growth descriptors'; do
		# shellcheck disable=SC2086 # two words
		run $name &
	done
	for name in long_callback wake_storm timer_late unfair backlog 'spin read' 'spin write'; do
		# shellcheck disable=SC2086
		run $name
	done
	wait $hang || true # it is killed
	wait
	"$top_builddir/core/dial9" recover "$work/scenarios/hang" >/dev/null
fi
D9_DIAL9=$top_builddir/core/dial9 D9_TRACES=$work/golden D9_SCENARIOS=$work/scenarios node --test "$top_srcdir/tests/toolkit/test_figures.mjs" "$top_srcdir/tests/toolkit/test_flags.mjs"
