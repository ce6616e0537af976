#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A callback takes its time in six ways: it writes to the disk, waits for a lock, computes, computes beside others,
# in a limited cgroup, in new memory.  The report tells them apart, and its parts are what the program found itself.
set -eu
# shellcheck source=tests/real/common.sh
. "$top_srcdir/tests/real/common.sh"

command -v python3 >/dev/null || skip "python3 is not installed"
[ -r /proc/thread-self/schedstat ] || skip "the kernel does not tell of waits for a CPU"
program=$helpers/where_time_goes

# look WAY: the trace and what the program printed are in $dir.
look() {
	"$dial9" report --json "$dir/$1" >"$dir/$1.json"
	python3 "$top_srcdir/tests/cli/check_time_parts.py" "$dir/$1.json" >/dev/null || fail "$1"
	python3 "$top_srcdir/tests/real/check_where_time_goes.py" "$1" "$dir/$1.json" "$dir/$1.out"
}

# try WAY CALLS: again, where the kernel ran something else between our look at the figures and the program's own.
try() {
	for _ in 1 2 3; do
		rm -rf "${dir:?}/$1"
		DIAL9_TRACE_DIR=$dir/$1 run "$@" >"$dir/$1.out" || fail "where_time_goes $1"
		! look "$1" || return 0
	done
	fail "$1"
}

run() {
	"$program" "$1" "$dir/file" "$2"
}

# Who had the CPU is sampled once a second: it takes longer than two.
for way in fsync lock compute neighbour faults; do
	calls=8
	[ "$way" != neighbour ] || calls=20
	try "$way" $calls
done

# Loops in calls and spans over several calls add up, too.
"$top_builddir/examples/spans" "$dir/spans"
DIAL9_TRACE_DIR=$dir/nested "$top_builddir/examples/scenario_nested_loop" >/dev/null
for trace in spans nested; do
	"$dial9" report --json "$dir/$trace" >"$dir/$trace.json"
	python3 "$top_srcdir/tests/cli/check_time_parts.py" "$dir/$trace.json"
done

cgroup=''
trap '[ -z "$cgroup" ] || rmdir "$cgroup" 2>/dev/null || true; stop_all; rm -rf "$dir"' EXIT

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
	run() {
		# shellcheck disable=SC2016 # the inner shell's
		sh -c 'echo $$ >"$1/cgroup.procs" && exec "$2" compute "$3" "$4"' sh "$cgroup" "$program" "$dir/file" "$2"
	}
	try throttled 24
	rmdir "$cgroup"
	cgroup=''
else
	rmdir "$cgroup" 2>/dev/null || true
	echo "throttled: left out: no cgroup with a CPU limit can be made here (core/findings/test_check_machine has a" \
		"trace of one)"
fi
