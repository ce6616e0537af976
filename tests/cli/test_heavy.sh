#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Small files that claim much: every command stays below 256 MiB and four times the file, and tells what it
# left out.  Time is bound by what may be kept, not measured.
set -u
top_builddir=$(cd "$top_builddir" && pwd)
dial9=$top_builddir/core/dial9
make_heavy=$top_builddir/tests/cli/make_heavy
peak_memory=$top_builddir/tests/cli/peak_memory
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 99' HUP INT TERM
cd "$work" || exit 99
failed=0

fail() {
	echo "$*"
	failed=1
}

# bounded SAYS ARGUMENTS...: memory stays in bounds, and the errors say SAYS; "" if nothing is to be left out.
bounded() {
	says=$1
	shift
	size=$(stat -c %s heavy.zst)
	"$peak_memory" $((256 + 4 * size / 1048576)) "$dial9" "$@" heavy.zst >out 2>err
	status=$?
	[ $status -lt 3 ] || fail "$kind: dial9 $*: status $status: $(tail -n 1 err)"
	if [ -n "$says" ]; then
		grep 'left out' err | grep -q "$says" || fail "$kind: dial9 $*: does not say: $says"
	elif grep -q 'left out' err; then
		fail "$kind: dial9 $*: $(cat err)"
	fi
}

make() {
	kind=$1
	"$make_heavy" "$1" "$2" heavy.zst ${3:+"$3"} || exit 99
}

make ends-of-time 1
bounded '' diagram --task 1
[ "$(wc -c <out)" -lt 10000 ] || fail "the axis of a diagram does not end"
bounded '' report
bounded '' events --life --task 1

make polls 3000000
bounded 'moments of the life' diagram --task 1
grep -q 'more lie too close to others to be drawn' out || fail "a diagram does not say what it does not draw"
[ "$(wc -c <out)" -lt 2000000 ] || fail "a diagram has $(wc -c <out) bytes"
bounded 'moments of the life' events --life --task 1
bounded '' report
make wakes 3000000
bounded 'moments of the life' diagram --task 1

make tasks 1000000
bounded 'events of further tasks' report
bounded 'events of further tasks' report -j
grep -q '"left_out": {' out || fail "the JSON does not say that something was left out"
grep -q '^    "tasks": [1-9]' out || fail "the JSON does not say what was left out"
make names 4000
bounded 'ends of long names' report
bounded 'ends of long names' report -j
bounded '' events -f text
make short-names 400000
bounded '[0-9] names' report
make span-types 300000
bounded '[0-9] names' report
make spans 1000000
bounded '[0-9] spans' report
bounded '[0-9] spans' events
bounded '[0-9] spans' events -f text
make symbols 1500000
bounded '[0-9] symbols' report
bounded '[0-9] symbols' events -f text
bounded '[0-9] symbols' symbolize -o named.zst
make stacks 400000
bounded 'samples of further stacks' report
bounded 'samples of further stacks' export -f folded -o folded
bounded 'samples of further stacks' export -f pprof -o pb.gz
bounded 'samples of further stacks' flamegraph -o svg
bounded '' symbolize -o named.zst
make metadata 200000
bounded '[0-9] metadata' report
bounded '[0-9] metadata' info -j
grep -q '"left_out":{"metadata":' out || fail "the JSON of info does not say what was left out"
bounded '[0-9] metadata' info

# Rows of a fleet's tables: "minutes" are as many as there are calls.
for kind in 'minutes 300000' 'polls 1000000' 'tasks 300000' 'stacks 100000' 'short-names 400000'; do
	# Words are meant.
	# shellcheck disable=SC2086
	make $kind anchored
	case $kind in
	minutes) says='additions to further rows' ;;
	polls) says= ;;
	tasks) says='events of further tasks' ;;
	stacks) says='samples of further stacks' ;;
	*) says='names' ;;
	esac
	bounded "$says" export --format parquet --partitions -o fleet
done

# Batches that last from the first moment to the last, a megabyte of texts each; and more than anybody packs so well.
make overlaps 200
bounded '' info
"$peak_memory" 256 "$dial9" report heavy.zst >out 2>err
grep -q 'batches that overlap in time need more memory' err || fail "overlaps: not said: $(cat err)"
make overlaps 300
bounded 'unpacks to far more than its size' info
bounded 'unpacks to far more than its size' report -j
bounded 'unpacks to far more than its size' events
make types 40000
"$peak_memory" 256 "$dial9" events heavy.zst >out 2>err
grep -q 'the schemas need more than' err || fail "types: not said: $(cat err)"

# A binary that is a hole; modules by the ten thousand.
make elf 1000000000
bounded '' report
bounded '' events -f text
grep -q 'its contents would take far more memory than the file' err || fail "elf: not said: $(cat err)"
make modules 80000
bounded '[0-9] modules' symbolize -o named.zst
bounded '[0-9] modules' report
bounded '[0-9] modules' events --life --task 1

# Files that are each of a process of its own.
mkdir processes
"$make_heavy" processes 4000 processes || exit 99
for command in report "report -j" info; do
	# shellcheck disable=SC2086
	"$peak_memory" 256 "$dial9" $command processes >out 2>err || fail "processes: $command: $? $(tail -n 1 err)"
done
"$dial9" report processes 2>&1 | grep -q 'left out: .* processes' || fail "processes: not said"
rm -r processes

# Files that are all cut: not a line for each.
mkdir cut
for i in $(seq 300); do : >"cut/trace.$i.bin"; done
for command in info report events "export -o cut.trc"; do
	# shellcheck disable=SC2086
	"$dial9" $command cut >out 2>err
	[ "$(grep -c 'cut before its first event; nothing' err)" = 100 ] || fail "cut: $command: $(wc -l <err) lines"
	grep -q 'and 200 more segments' err || fail "cut: $command: $(tail -n 1 err)"
done

# Where a ring names a directory, anybody may have put anything.
mkdir -p live/live
mkfifo end
"$top_builddir/tests/cli/make_hostile" live "$work/live/ring" "$work/live" 0 <end >ready &
pid=$!
exec 4>end
until [ -s ready ]; do kill -0 $pid || exit 99; done
for kind in "names 4000" "overlaps 300" "short-names 300000"; do
	# shellcheck disable=SC2086
	"$make_heavy" $kind live/live/trace.0.bin.zst.active recent || exit 99
	"$peak_memory" 256 "$dial9" top --json $pid >out 2>err || fail "top $kind: $? $(cat err)"
done
# leaves_out FILE: whether the JSON in FILE says that tasks were left out.
leaves_out() {
	sed -n '/^  "left_out":/,$p' "$1" | grep -q '"tasks":'
}

# On a busy machine what was recent is of an interval before when top looks.
for _ in 1 2 3 4 5 6 7 8 9; do
	! leaves_out out || break
	"$make_heavy" short-names 300000 live/live/trace.0.bin.zst.active recent || exit 99
	"$dial9" top --json $pid >out 2>err
done
leaves_out out || fail "top: not said: $(tail -c 300 out)"
exec 4>&-
wait $pid

# A process may have any number of areas that look like a ring.
mkfifo end2
"$make_heavy" areas 5000 - <end2 >ready2 &
pid=$!
exec 4>end2
until [ -s ready2 ]; do kill -0 $pid || exit 99; done
"$dial9" status $pid >out 2>err
grep -q 'too much in it that may be a ring' err || fail "areas: not said: $(cat out err)"
exec 4>&-
wait $pid

# What is real is left out nowhere: ten thousand tasks alive, five thousand callbacks and modules.
make tasks 10000
bounded '' report
bounded '' diagram --task 1
make short-names 5000
bounded '' report
make modules 5000
bounded '' report

[ $failed = 0 ]
