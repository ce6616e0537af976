#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A program behaves the same with and without `dial9 record`: output, exit status, the descriptors it
# sees and hands to its children, and what libevent says when asked to talk.
set -eu
# shellcheck source=tests/real/common.sh
. "$top_srcdir/tests/real/common.sh"

need sh
unnoticed=$helpers/unnoticed

# same NAME ARG...: run alone and recorded; stdout, stderr and status are equal.
same() {
	name=$1
	shift
	status=0
	"$unnoticed" "$@" >"$dir/alone.out" 2>"$dir/alone.err" </dev/null || status=$?
	echo "exit status $status" >>"$dir/alone.out"
	status=0
	"$dial9" record --quiet --require -o "$dir/trace.$name" -- "$unnoticed" "$@" \
		>"$dir/recorded.out" 2>"$dir/recorded.err" </dev/null || status=$?
	echo "exit status $status" >>"$dir/recorded.out"
	diff "$dir/alone.out" "$dir/recorded.out" || fail "$name: output differs"
	diff "$dir/alone.err" "$dir/recorded.err" || fail "$name: standard error differs"
	echo "same: $name"
}

same plain
DIAL9_CPU_PROFILE_ENABLED=false same silent
EVENT_SHOW_METHOD=1 same talking
EVENT_NOEPOLL=1 EVENT_SHOW_METHOD=1 same poll
same status 7
grep -q 'exit status 7' "$dir/recorded.out" || fail "the status is not the program's"
polls=$(report "$dir/trace.plain" 'r.callbacks.reduce((n, c) => n + c.polls, 0)')
[ "$polls" -gt 0 ] || fail "nothing was recorded, so nothing was tested"
