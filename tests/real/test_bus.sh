#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A D-Bus server and a client with hundreds of synchronous calls, each of which makes a context that
# lives for the call: counts equal an independent one, and no worker id is used up.
set -eu
# shellcheck source=tests/real/common.sh
. "$top_srcdir/tests/real/common.sh"

need node objdump
private_glib
calls=300

: >"$dir/out"
(record "$dir/server" "$helpers/bus_peers" serve "$dir" >"$dir/out") &
server=$!
pids="$pids $server"
i=0
until address=$(sed -n 1p "$dir/out") && [ -n "$address" ]; do
	i=$((i + 1))
	[ $i -lt 200 ] || fail "the server does not listen"
	sleep 0.05
done
kept=$offsets offsets=''
sum=$(record "$dir/client" "$helpers/bus_peers" call "$address" $calls) || fail "the client failed"
offsets=$kept
wait $server || fail "the server failed"
plain "$dir/server"
plain "$dir/client"

equal "what the client read" $((calls * (calls - 1) / 2)) "$sum"
equal "calls: client and server" "$calls calls" "$(sed 1d "$dir/out")"
# The uprobes saw the client, too: its own self-test and its polls.
# shellcheck disable=SC2046 # words are meant
set -- $(node "$counts" counts "$dir/client".plain/*.trc) \
	$(node "$counts" counts "$dir/server".plain/*.trc) \
	"$(awk '{ sum += $3 } END { print sum }' "$dir/uprobes")"
equal "dispatches of both, uprobes and traces" $(($5 - 6)) $(($1 + $3))
workers=$(report "$dir/client" 'r.workers.length')
[ "$workers" -le 4 ] || fail "$workers workers in the client"
echo "workers in the client: $workers"
