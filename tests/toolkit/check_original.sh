#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The original dial9's own decoder, parser and analysis in JavaScript find in our traces what ours do, event by event and
# wake by wake.  They are no part of this project: D9_TEST_ORIGINAL names a checkout of the original, 0.5.0 or later (tried: 0.5.0-rc0).
# D9_TRACES: more traces, of one process each.
set -eu

# shellcheck source=tests/toolkit/node.sh
. "$top_srcdir/tests/toolkit/node.sh"
original=${D9_TEST_ORIGINAL:-}
skip() {
	echo "$1"
	exit 77
}
[ -n "$original" ] || skip "D9_TEST_ORIGINAL names no checkout of the original dial9"
decoder=$original/dial9-viewer/ui/decode.js
[ -e "$decoder" ] || skip "$original is no checkout of the original dial9: there is no $decoder"
grep -q ANNOTATIONS "$decoder" || skip "$decoder is of before 0.5.0: it stops at the first annotation of a schema"
dial9=$top_builddir/core/dial9
"$dial9" query --schema >/dev/null 2>&1 || skip "dial9 was built without SQLite"
cd "$work"

# recorded NAME VARIABLE=VALUE... PROGRAM...
recorded() {
	name=$1
	shift
	env DIAL9_ENABLED=true DIAL9_TRACE_DIR="$work/$name" "$@" >"$name.out" || {
		echo "$name: status $?"
		exit 1
	}
}

# hung NAME VARIABLE=VALUE... PROGRAM...: in the background, $pid, when it hangs and that is seen.
hung() {
	name=$1
	shift
	env DIAL9_TRACE_DIR="$work/$name" "$@" >"$name.out" &
	pid=$!
	tries=0
	until "$dial9" status --json "$pid" 2>/dev/null | grep -q '"running":\[{'; do
		tries=$((tries + 1))
		[ $tries -lt 1200 ] || {
			echo "$name: it never hung"
			exit 1
		}
		sleep 0.05
	done
}

killed() {
	kill -KILL "$pid"
	wait "$pid" 2>/dev/null || true
	"$dial9" recover "$1" >"$1.recovered"
}

wakes=$top_builddir/tests/cli/tell_wakes calls=$top_builddir/tests/cli/inner_calls examples=$top_builddir/examples
for old in no both; do
	export DIAL9_OLD_EVENTS=$old
	"$wakes" told.$old end >told.out
	DIAL9_MAX_FILE_SIZE_MB=0.0625 "$wakes" rotated.$old end 10000 >rotated.out
	"$calls" inner.$old end >inner.out
	hung killed.$old "$wakes" killed.$old hang 300
	killed killed.$old
	hung killed_inside.$old "$calls" killed_inside.$old hang
	killed killed_inside.$old
	hung flight.$old DIAL9_MODE=flight "$wakes" flight.$old hang 300
	"$dial9" dump "$pid" >dumped
	killed flight.$old
	if [ -x "$examples/thread_per_core" ]; then
		recorded threads.$old "$examples/thread_per_core" 3 500
		recorded workload.$old DIAL9_MEMORY_PROFILE_ENABLED=true DIAL9_MEMORY_SAMPLE_RATE_BYTES=4096 \
			DIAL9_SCHEDULE_PROFILE_ENABLED=true DIAL9_TASK_DUMP_ENABLED=true "$examples/realistic_workload"
		recorded lost.$old DIAL9_RING_MB=1 "$top_builddir/tests/real/flood" 4 20000
	fi
	[ ! -x "$examples/scenario_libev_eager_read" ] || recorded libev.$old "$examples/scenario_libev_eager_read"
	[ ! -x "$examples/scenario_glib_nested_loop" ] || recorded glib.$old "$examples/scenario_glib_nested_loop"
	libraries=$top_builddir/adapters/.libs
	for library in libevent libev glib; do
		program=$top_builddir/tests/adapters/${library}_every_kind
		[ ! -x "$program" ] || recorded every_$library.$old LD_PRELOAD="$libraries/libdial9-preload.so" \
			LD_LIBRARY_PATH="$libraries:$top_builddir/core/.libs" "$program" --out="$work/program.out"
	done
done
# A dump is a trace of its own, and so is what recovery finds behind it.
set -- ./flight.*/*/*.bin.*
for trace in ./*/*/; do
	case $trace in
	./flight.*) ;;
	*) set -- "$@" "${trace%/}" ;;
	esac
done
# shellcheck disable=SC2086 # several
node "$top_srcdir/tests/toolkit/original.mjs" "$dial9" "$original" "$@" ${D9_TRACES:-}
