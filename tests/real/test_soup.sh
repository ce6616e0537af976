#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A libsoup 3 server, unmodified under `dial9 record`, loaded by ab: requests, dispatches and parks
# equal ab's count, the server's own and an independent one.
set -eu
# shellcheck source=tests/real/common.sh
. "$top_srcdir/tests/real/common.sh"

need ab node objdump
[ -x "$helpers/soup_server" ] || skip "libsoup 3 is not installed"
private_glib
requests=2000

: >"$dir/out"
(record "$dir/trace" "$helpers/soup_server" >"$dir/out") &
recorder=$!
pids="$pids $recorder"
i=0
until port=$(sed -n 's/^listening on //p' "$dir/out") && [ -n "$port" ]; do
	i=$((i + 1))
	[ $i -lt 200 ] || fail "the server does not listen"
	sleep 0.05
done
ab -q -n $requests -c 8 "http://127.0.0.1:$port/" >"$dir/ab"
kill -TERM $recorder
wait $recorder || fail "the server failed"
plain "$dir/trace"

dispatched "$dir/trace"
equal "requests: ab and the server" "$requests requests" "$(sed 1d "$dir/out")"
# GLib's own thread for signals waits in a context that it shows to nobody.
unbound=$("$dial9" info "$dir/trace" | sed -n 's/^ *loop.glib.polls_unbound *//p')
# shellcheck disable=SC2046 # words are meant
set -- $(waits) $(node "$counts" counts "$dir/trace".plain/*.trc)
equal "parks and waits that may block" $(($1 - ${unbound:-0})) "$4"
