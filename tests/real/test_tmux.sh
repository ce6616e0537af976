#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tmux from Debian: a server that daemonises, and its clients, each a process with a trace of its
# own.  Polls and parks of all of them equal an independent count, and tmux works as always.
set -eu
# shellcheck source=tests/real/common.sh
. "$top_srcdir/tests/real/common.sh"

need tmux node ldd
tmux=$(private_copy tmux)
socket=$dir/socket

# session TRACE: start a server with a shell in it, type into it, read the screen, end it.
session() {
	cat >"$dir/session" <<-END
		set -e
		"$tmux" -S "$socket" -f /dev/null new-session -d -x 80 -y 24 'PS1="> " sh'
		"$tmux" -S "$socket" send-keys 'echo answer-\$((6 * 7))' Enter
		i=0
		until "$tmux" -S "$socket" capture-pane -p | grep -q answer-42 || [ \$i = 200 ]; do
			i=\$((i + 1))
			sleep 0.05
		done
		"$tmux" -S "$socket" capture-pane -p | sed '/^$/d' >"$dir/screen"
		"$tmux" -S "$socket" kill-server
		i=0
		while "$tmux" -S "$socket" list-sessions 2>/dev/null && [ \$i -lt 200 ]; do
			i=\$((i + 1))
			sleep 0.05
		done
	END
	(record "$1" sh "$dir/session") || fail "the session failed"
	plain "$1"
}

run_counted session
grep -q answer-42 "$dir/screen" || fail "the pane does not show what was typed"
counted "$dir/second"
