#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Programs that use every kind of GLib source and count for themselves, recorded in every way there
# is: each callback must have as many polls in the trace as the program counted, and the program must
# run as it does alone.
set -u

skip() {
	echo "$1"
	exit 77
}

[ "$SANITIZER" = no ] || skip "preloading comes before the sanitizer's runtime"

here=$top_builddir/tests/adapters
libraries=$top_builddir/adapters/.libs
preload=$libraries/libdial9-preload.so
adapter=$libraries/libdial9-glib.so
export LD_LIBRARY_PATH="$libraries:$top_builddir/core/.libs${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0 passed=0

fail() {
	echo "FAILED: $scenario: $1"
	failed=$((failed + 1))
}

# What the counters at $1 say, held against the trace of the process that wrote them.
compare() {
	counters=$1
	shift
	pid=$(sed -n 's/^pid //p' "$counters")
	if "$here/compare_counts" "$work"/trace/*-"$pid" "$counters" --library glib "$@" \
		>"$work/out"; then
		passed=$((passed + 1))
	else
		cat "$work/out"
		fail "the trace differs from the program's own counters"
	fi
}

# record "SCENARIO" "VARIABLES" "COMPARE OPTIONS" PROGRAM ARGUMENTS...
record() {
	scenario=$1 variables=$2 options=$3
	shift 3
	rm -rf "$work/trace" "$work"/counters*
	# The lists are lists of words.
	# shellcheck disable=SC2086
	env DIAL9_TRACE_DIR="$work/trace" $variables timeout 60 "$@" --out="$work/counters" \
		>"$work/stdout" 2>"$work/stderr"
	status=$?
	if [ $status -eq 77 ]; then
		echo "skipped: $scenario"
		return
	fi
	[ $status -eq 0 ] || fail "status $status"
	if [ -s "$work/stdout" ] || [ -s "$work/stderr" ]; then
		cat "$work/stdout" "$work/stderr"
		fail "the program's output has changed"
	fi
	for file in "$work"/counters*; do
		# shellcheck disable=SC2086
		compare "$file" $options
	done
}

# The order of callbacks and their arguments, as logged alone and recorded.
same_log() {
	grep -vE '^(poll|tasks|pid) ' "$work/alone" >"$work/log1"
	grep -vE '^(poll|tasks|pid) ' "$work/counters" >"$work/log2"
	cmp -s "$work/log1" "$work/log2" || {
		diff "$work/log1" "$work/log2" | head -n 5
		fail "callbacks ran in another order or with other arguments"
	}
}

every_kind=$here/glib_every_kind
by_preload="LD_PRELOAD=$preload"
full="--has poll=full --has park=all --has wakefd=eventfd --has depth=exact --has scan=complete
	--others --seen"

"$every_kind" --out="$work/alone" || exit 99
record "preloaded" "$by_preload" "--wakes $full" "$every_kind"
same_log
record "preloaded, bound at once" "$by_preload LD_BIND_NOW=1" "--wakes $full" "$every_kind"
record "preloaded and attached" "$by_preload" "$full" "$every_kind" --attach
record "adapter loaded RTLD_LOCAL" "" "$full" "$every_kind" --adapter="$adapter"
for order in before behind noplt; do
	record "linked $order" "" "$full" "$here/glib_linked_$order" --attach
done
record "GLib loaded RTLD_LOCAL" "$by_preload" "$full" "$here/loader" \
	"$here/.libs/glib_every_kind_module.so"
record "both loaded RTLD_LOCAL" "" "$full" "$here/loader" \
	"$here/.libs/glib_every_kind_module.so" --adapter="$adapter"

cases=$here/glib_cases
for name in recursion invokes late external contexts poll_function handle fork spawn storm longjmp \
	cancel errno daemon threads ends destroy_self inline; do
	record "$name" "$by_preload" "" "$cases" $name
done
for name in recursion invokes late external contexts errno inline; do
	record "$name, nothing unseen" "$by_preload" "--seen" "$cases" $name
done
record "older than attach" "" "--has scan=complete --seen" "$cases" older --adapter="$adapter"
record "poll function older than attach" "" "--seen" "$cases" poll_function --adapter="$adapter"
record "attach while others make sources" "" "--others" "$cases" elsewhere --adapter="$adapter"
record "exceptions" "$by_preload" "" "$here/glib_throw"
record "more contexts than there is room for" "$by_preload" "--others" "$cases" too_many

record "600 dispatch functions" "$by_preload" "--has poll=partial --others" "$cases" many
record "no eventfd" "$by_preload" "--has wakefd=pipe --has park=all --others --seen" \
	"$here/glib_refused" eventfd "$every_kind"
record "no process_vm_readv" "$by_preload" "--has depth=lower-bound --others" \
	"$here/glib_refused" copy "$every_kind"

"$here/glib_host" "$here/.libs/glib_plugin.so" || exit 99
record "plug-ins" "$by_preload" "" "$here/glib_host" "$here/.libs/glib_plugin.so"

# Work for helper threads: what was pushed has run.
record "thread pool" "$by_preload" "" "$cases" pool
for event in HelperQueuedEvent HelperRunEvent; do
	n=$("$top_builddir/core/dial9" info "$work"/trace | sed -n "s/^ *$event  *//p")
	[ "$n" = 70 ] || fail "$n of 70 $event"
done

# Where nothing can be recorded the program runs on, and attach says why.
scenario="no GLib in the process"
"$here/glib_absent" || fail "attach did not say so"
scenario="pages refused"
said=$("$here/glib_refused" pages) || fail "the program did not run as alone"
[ "$said" = "-EPERM" ] || fail "attach said $said"

# Nothing of GLib is linked or wanted by name.
scenario="imports"
! $NM -D --undefined-only "$adapter" | grep -q ' g_' || fail "the adapter imports functions of GLib"

echo "$passed traces equal to the program's own counters, $failed failures"
[ $failed -eq 0 ]
