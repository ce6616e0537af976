#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The wakes that polls tell are those that events told: each program is recorded with both, and each reader finds for
# every wake of a poll an event that equals it, stamp by stamp.  Recorded as usual, it is reported with the same figures
# when all wakes are events again.
set -eu
export ASAN_OPTIONS="${ASAN_OPTIONS-}:verify_asan_link_order=0"

# shellcheck source=tests/toolkit/node.sh
. "$top_srcdir/tests/toolkit/node.sh"
here=$top_builddir/tests/adapters
libraries=$top_builddir/adapters/.libs
export LD_LIBRARY_PATH="$libraries:$top_builddir/core/.libs${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"

# check LIBRARY VALUES: these kinds of values have to be among those that were told.
check() {
	program=$here/$1_every_kind
	[ -x "$program" ] || {
		echo "$1: not built"
		return
	}
	env LD_PRELOAD="$libraries/libdial9-preload.so" DIAL9_OLD_EVENTS=both DIAL9_TRACE_DIR="$work/$1" \
		"$program" --out="$work/$1.out"
	"$top_builddir/core/dial9" recover "$work/$1" >/dev/null
	node "$top_srcdir/tests/toolkit/told_wakes.mjs" "$top_builddir/core/dial9" "$work/$1"/*/trace.*.zst \
		>"$work/told" || {
		cat "$work/told"
		exit 1
	}
	echo "$1: $(cat "$work/told")"
	env LD_PRELOAD="$libraries/libdial9-preload.so" DIAL9_TRACE_DIR="$work/$1.usual" "$program" --out="$work/$1.out"
	"$top_builddir/core/dial9" recover "$work/$1.usual" >/dev/null
	"$top_builddir/core/dial9" export -f trc -o "$work/$1.trc" "$work/$1.usual"
	"$top_builddir/core/dial9" report --json "$work/$1.usual" >"$work/told.json"
	"$top_builddir/core/dial9" report --json "$work/$1.trc" >"$work/events.json"
	python3 "$top_srcdir/tests/adapters/same_report.py" "$work/told.json" "$work/events.json"
	for value in $2; do
		grep -q "\b$value [1-9]" "$work/told" || {
			echo "$1: no wake was told as: $value"
			exit 1
		}
	done
}

check libevent "unpark fd active deferred"
check libev "unpark fd active"
check glib "unpark deferred signal"
