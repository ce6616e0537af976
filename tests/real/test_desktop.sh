#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# i3 and picom from Debian, a window manager and a compositor on libev, under an X server without a
# screen: they answer and end as without us, and their traces have what they did.
set -eu
# shellcheck source=tests/real/common.sh
. "$top_srcdir/tests/real/common.sh"

need Xvfb i3 i3-msg picom node
unset WAYLAND_DISPLAY I3SOCK
export HOME="$dir" XDG_RUNTIME_DIR="$dir" XDG_CONFIG_HOME="$dir"

# wait_for WHAT COMMAND...
wait_for() {
	what=$1 i=0
	shift
	until "$@" >"$dir/waited" 2>&1; do
		i=$((i + 1))
		[ $i -lt 400 ] || {
			cat "$dir/waited"
			fail "$what"
		}
		sleep 0.05
	done
}

Xvfb -displayfd 5 -screen 0 640x480x24 5>"$dir/display" >"$dir/xvfb.out" 2>&1 &
pids="$pids $!"
wait_for "no X server" test -s "$dir/display"
DISPLAY=:$(cat "$dir/display")
export DISPLAY

printf 'font pango:monospace 8\nipc-socket %s/i3.sock\n' "$dir" >"$dir/config"
"$dial9" record --quiet -o "$dir/i3" -- i3 -c "$dir/config" >"$dir/i3.out" 2>&1 &
recorder=$!
pids="$pids $recorder"
i3() {
	i3-msg -s "$dir/i3.sock" "$@"
}
wait_for "i3 does not answer" i3 -t get_version
i=0
while [ $i -lt 50 ]; do
	i3 -t get_workspaces >"$dir/said"
	i=$((i + 1))
done
grep -q '"name"' "$dir/said" || fail "i3 answers otherwise"

"$dial9" record --quiet -o "$dir/picom" -- picom --config /dev/null --backend xrender \
	>"$dir/picom.out" 2>&1 &
compositor=$!
pids="$pids $compositor"
# It waits in its loop: before that SIGTERM would end it without a poll.
waits_in_loop() {
	"$dial9" status -j -d "$dir/picom" >"$dir/status" || true
	grep '"workers":\[{"id":0' "$dir/status"
}
wait_for "picom is not recorded" waits_in_loop
kill -TERM $compositor
wait $compositor || true

i3 exit >"$dir/said" 2>&1 || true
wait $recorder || true

# polls TRACE
polls() {
	"$dial9" info "$dir/$1" | awk '$1 == "PollStartEvent" { n += $2 } END { print n + 0 }'
}
# A connection and a question each, and its end.
[ "$(polls i3)" -ge 100 ] || fail "$(polls i3) polls of i3"
[ "$(polls picom)" -ge 1 ] || fail "$(polls picom) polls of picom"
echo "i3: $(polls i3) polls; picom: $(polls picom)"
for program in i3 picom; do
	"$dial9" info "$dir/$program" | grep -q "loop.libev.capabilities.*poll=full" ||
		fail "$program: not in full mode"
done
