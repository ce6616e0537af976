#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A gevent server: Python loads an extension, which brings libev for itself alone, long after start.
# It answers as without us, and each of its callbacks has as many polls as the kernel counts calls.
set -eu
# shellcheck source=tests/real/common.sh
. "$top_srcdir/tests/real/common.sh"

need python3 node
python=/usr/bin/python3
"$python" -c 'import gevent' 2>/dev/null || skip "gevent is not installed (Debian: python3-gevent)"
connections=20 messages=100
echo_server="$top_srcdir/tests/real/gevent_echo.py $connections $messages"

# shellcheck disable=SC2086
"$python" $echo_server >"$dir/alone"

# run TRACE
run() {
	# shellcheck disable=SC2086
	(record "$1" "$python" $echo_server >"$dir/recorded")
	cmp "$dir/alone" "$dir/recorded" || fail "the server's output has changed"
	plain "$1"
}

run_counted run
node "$counts" compare "$dir/uprobes" 0 "$dir/second".plain/*.trc ||
	fail "polls differ from the uprobes"
equal "answers" "answers $((connections * messages)) loop gevent.libev.corecext" "$(cat "$dir/recorded")"
io=$(report "$dir/second" 'r.callbacks.filter((c) => c.kind === "io").reduce((n, c) => n + c.polls, 0)')
[ "$io" -ge $((connections * messages / 4)) ] || fail "$io polls of descriptors"
"$dial9" info "$dir/second" | grep -q "loop.libev.capabilities.*poll=full" || fail "not in full mode"

# One function of gevent's serves all: it takes connections, reads until there is no more, and answers.
(record "$dir/served" "$python" "$top_srcdir/tests/real/gevent_echo.py" 100 400 >"$dir/recorded")
accused=$(report "$dir/served" 'r.findings.filter((f) => f.severity !== "info" &&
	/^(source-time|empty-wakes|spin|works-for-nothing)$/.test(f.check)).map((f) => f.check + " " + f.name).join(", ")')
equal "accused" "" "$accused"
