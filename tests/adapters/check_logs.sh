#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Programs that log in every way that libevent, libev and GLib have.  Each says on stdout what it
# logged, in lines "! LEVEL TARGET: TEXT": with the bridge the trace has exactly those, and what the
# program prints is what it prints alone; without it the trace has none.
set -u

skip() {
	echo "$1"
	exit 77
}

"$top_srcdir/tests/support/has_node.sh" || skip "there is no node, or one older than 18"
here=$top_builddir/tests/adapters
dial9=$top_builddir/core/dial9
libraries=$top_builddir/adapters/.libs
export LD_LIBRARY_PATH="$libraries:$top_builddir/core/.libs${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
export LC_ALL=C
unset G_MESSAGES_DEBUG DIAL9_LOG_BRIDGE
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

fail() {
	echo "FAILED: $1"
	failed=$((failed + 1))
}

# What GLib puts in front of a line: the process and the time.
plain() {
	sed -E 's/\(process:[0-9]+\)/(process)/; s/[0-9:]{8}\.[0-9]{3}/TIME/' "$1"
}

# run NAME "OPTIONS OF record" PROGRAM: alone and recorded, to $work/NAME.*
run() {
	timeout 60 "$3" >"$work/$1.alone" 2>"$work/$1.alone.err"
	# The options are words.
	# shellcheck disable=SC2086
	timeout 60 "$dial9" record --quiet $2 -o "$work/$1.trace" -- "$3" >"$work/$1.out" \
		2>"$work/$1.err" || fail "$1: status $?"
	cmp "$work/$1.alone" "$work/$1.out" || fail "$1: stdout has changed"
	plain "$work/$1.alone.err" >"$work/$1.err1"
	plain "$work/$1.err" >"$work/$1.err2"
	diff "$work/$1.err1" "$work/$1.err2" || fail "$1: stderr has changed"
	"$dial9" events -e LogEvent "$work/$1.trace" >"$work/$1.json"
	node -e 'for (const line of require("fs").readFileSync(0, "utf8").split("\n"))
		if (line) ((e) => console.log(`! ${e.level} ${e.target ?? "-"}: ${e.message}`))(
			JSON.parse(line));' <"$work/$1.json" >"$work/$1.lines"
}

# said NAME FILE LEVEL...: the trace has the lines of these levels that FILE has, and no others.
said() {
	name=$1 file=$2
	shift 2
	grep -E "^! ($(echo "$*" | tr ' ' '|')) " "$file" >"$work/$name.said"
	[ -s "$work/$name.said" ] || fail "$name: the program has said nothing"
	diff "$work/$name.said" "$work/$name.lines" || fail "$name: other lines are in the trace"
}

all="error critical warning message info debug"

if [ -x "$here/glib_logs" ]; then
	run glib "--log-bridge debug" "$here/glib_logs"
	# shellcheck disable=SC2086
	said glib "$work/glib.out" $all
	grep -q '"worker_id":0,"task_id":[1-9].*"message":"in a callback"' "$work/glib.json" ||
		fail "the line of a callback does not name its task"
	task=$(sed -n 's/.*"task_id":\([1-9][0-9]*\).*"message":"in a callback".*/\1/p' "$work/glib.json")
	"$dial9" events --life --task "$task" "$work/glib.trace" | grep -q "message: in a callback" ||
		fail "the life of a task does not tell what it logged"
	"$dial9" info "$work/glib.trace" | grep -q "log=all" || fail "GLib's handlers were not all seen"
	run warnings "--log-bridge warning" "$here/glib_logs"
	said warnings "$work/warnings.out" error critical warning
	run off "" "$here/glib_logs"
	[ ! -s "$work/off.lines" ] || fail "lines are recorded that nobody asked for"

	# A flood: so many lines a second, the rest counted.
	timeout 60 "$dial9" record --quiet --log-bridge info -o "$work/flood" -- \
		"$here/glib_logs" flood >/dev/null 2>&1
	kept=$("$dial9" events -e LogEvent "$work/flood" | grep -c '"target":"flood"')
	left=$("$dial9" info "$work/flood" | sed -n 's/^ *log\.dropped  *//p')
	[ "$kept" -ge 900 ] || fail "only $kept lines of a flood were kept"
	[ $((kept + ${left:-0})) -eq 10000 ] || fail "a flood of 10000: $kept kept, ${left:-0} left out"
fi

if [ -x "$here/libevent_logs" ]; then
	run libevent "--log-bridge debug" "$here/libevent_logs"
	# Without a callback of the program's the lines are on stderr.
	sed -n 's/^\[warn\] /! warning -: /p' "$work/libevent.err" >"$work/on_stderr"
	head -n $(($(wc -l <"$work/on_stderr") / 2)) "$work/on_stderr" >"$work/expected"
	grep '^!' "$work/libevent.out" >>"$work/expected"
	tail -n $(($(wc -l <"$work/on_stderr") / 2)) "$work/on_stderr" >>"$work/expected"
	# shellcheck disable=SC2086
	said libevent "$work/expected" $all
	[ "$(wc -l <"$work/expected")" -eq 8 ] || fail "libevent has not complained eight times"
fi

if [ -x "$here/libev_logs" ]; then
	run libev "--log-bridge error" "$here/libev_logs"
	said libev "$work/libev.out" error
fi

[ $failed -eq 0 ] && echo "what was logged is in the traces, and where it was without them"
