#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The first screens of recorded traces, tests/cli/screens/NAME.bin.zst, are those of NAME.WIDTH.expected: each says wholly what
# is worst and what to do, and fits the screen.  UPDATE_EXPECTED=1 writes these files instead.
set -eu

dial9=$(cd "$top_builddir" && pwd)/core/dial9
screens=$(cd "$top_srcdir" && pwd)/tests/cli/screens
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# Names are those that the traces have: their programs are not here.
LC_ALL=C XDG_CACHE_HOME=$work
export LC_ALL XDG_CACHE_HOME
failed=0

fail() {
	echo "$*"
	failed=1
}

# screen NAME WIDTH: its first screen; commands on it name the trace alone.
screen() {
	(cd "$screens" && "$dial9" report --no-pager --color never --width "$2" "$1.bin.zst") >"$work/screen" ||
		fail "$1: dial9 report exited with $?"
	[ -z "${UPDATE_EXPECTED:-}" ] || cp "$work/screen" "$screens/$1.$2.expected"
	diff -u "$screens/$1.$2.expected" "$work/screen" || fail "$1: another first screen at $2 columns"
	awk -v width="$2" '!/dial9 / && length > width { exit 1 }' "$work/screen" || fail "$1: wider than $2 columns"
	[ "$2" -lt 80 ] || [ "$(wc -l <"$work/screen")" -le 23 ] || fail "$1: more than a screen at $2 columns"
	! grep -q '^!' "$work/screen" || grep -q '^  do: ' "$work/screen" || fail "$1: without what to do at $2 columns"
}

# same NAME: its report is the same each time, wherever the kernel puts what the report remembers.
same() {
	for _ in 1 2 3; do
		(cd "$screens" && "$dial9" report --json "$1.bin.zst") | cksum
	done | sort -u | wc -l | grep -qx ' *1' || fail "$1: another report each time"
}

for trace in "$screens"/*.bin.zst; do
	name=$(basename "$trace" .bin.zst)
	[ "$(wc -c <"$trace")" -le 20480 ] || fail "$name: larger than 20 KiB"
	screen "$name" 80
	same "$name"
	case $name in
	blocked | hang_lock | idle_workers | nghttpd | page_faults | unfair)
		screen "$name" 40
		screen "$name" 200
		;;
	esac
done
exit $failed
