#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A callback takes its time in six ways: it writes to the disk, waits for a lock, computes, computes beside others,
# in a limited cgroup, in new memory.  The report tells them apart, and its parts are what the program found itself.
set -eu
# shellcheck source=tests/real/common.sh
. "$top_srcdir/tests/real/common.sh"

[ "$SANITIZER" = no ] || skip "a sanitizer changes what is quick and what is slow"
command -v python3 >/dev/null || skip "python3 is not installed"
[ -r /proc/thread-self/schedstat ] || skip "the kernel does not tell of waits for a CPU"
program=$helpers/where_time_goes

# look WAY: the trace and what the program printed are in $dir.
look() {
	way=$1
	"$dial9" report --json "$dir/$way" >"$dir/$way.json"
	python3 "$top_srcdir/tests/cli/check_time_parts.py" "$dir/$way.json" >/dev/null
	python3 "$top_srcdir/tests/real/check_where_time_goes.py" "$way" "$dir/$way.json" "$dir/$way.out" ||
		fail "$way"
}

# Who had the CPU is sampled once a second: it takes longer than two.
for way in fsync lock compute neighbour faults; do
	calls=8
	[ "$way" != neighbour ] || calls=24
	DIAL9_TRACE_DIR=$dir/$way "$program" "$way" "$dir/file" $calls >"$dir/$way.out"
	look "$way"
done

# Loops in calls and spans over several calls add up, too.
"$top_builddir/examples/spans" "$dir/spans"
DIAL9_TRACE_DIR=$dir/nested "$top_builddir/examples/scenario_nested_loop" >/dev/null
for trace in spans nested; do
	"$dial9" report --json "$dir/$trace" >"$dir/$trace.json"
	python3 "$top_srcdir/tests/cli/check_time_parts.py" "$dir/$trace.json"
done

# A cgroup of our own with a fifth of a CPU, where one can be made.
limit() {
	if [ -w /sys/fs/cgroup/cgroup.subtree_control ]; then
		cgroup=/sys/fs/cgroup/d9-$$
		mkdir "$cgroup" && echo '20000 100000' >"$cgroup/cpu.max"
	else
		cgroup=/sys/fs/cgroup/cpu/d9-$$
		mkdir "$cgroup" && echo 20000 >"$cgroup/cpu.cfs_quota_us"
	fi
}

if limit 2>/dev/null; then
	# shellcheck disable=SC2016 # the inner shell's
	DIAL9_TRACE_DIR=$dir/throttled sh -c 'echo $$ >"$1/cgroup.procs" && exec "$2" compute "$3" 24' sh "$cgroup" \
		"$program" "$dir/file" >"$dir/throttled.out" || fail "where_time_goes in $cgroup"
	rmdir "$cgroup"
	look throttled
else
	rmdir "$cgroup" 2>/dev/null || true
	echo "throttled: left out: no cgroup with a CPU limit can be made here (core/analyze/test_findings_machine has a" \
		"trace of one)"
fi
