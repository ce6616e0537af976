#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# dial9 dump PID --shipped waits until dial9 ship has stored the dump of a memcached in flight mode, and prints its key.
set -eu
# shellcheck source=tests/toolkit/node.sh
. "$top_srcdir/tests/toolkit/node.sh"
command -v memcached >/dev/null || { echo "memcached is not installed"; exit 77; }
client=$(cd "$top_builddir" && pwd)/tests/real/client
# shellcheck source=tests/ship/store.sh
. "$top_srcdir/tests/ship/store.sh"

port=$((16000 + $$ % 900))
user=''
[ "$(id -u)" != 0 ] || user='-u root'
# shellcheck disable=SC2086
"$dial9" record --quiet --exec --flight -o traces memcached $user -l 127.0.0.1 -p $port -U 0 -t 2 >recorded 2>&1 &
server=$!
trap 'kill $server 2>/dev/null || true; rm -rf "$work"' EXIT
"$client" memcached $port 4 200 >/dev/null
start_store

status=0
"$dial9" dump $server --shipped --timeout 1s >said 2>&1 9>&- || status=$?
equal "status where nobody ships" $status 1
says 'no shipper has stored it in that time; it stays'
equal "segments" "$(find traces -name 'trace.*.bin.zst' | wc -l | tr -d ' ')" 1

"$dial9" dump $server --shipped >receipt 2>dump_said 9>&- &
dump=$!
while [ "$(find traces -name 'trace.*.bin.zst' | wc -l)" -lt 2 ]; do
	kill -0 $dump || fail "$(cat dump_said)"
	sleep 0.05
done
ship traces --once --raw
equal "status of the shipper" $status 0
wait $dump || fail "no receipt: $(cat dump_said)"
key=$(sed -n 2p receipt)
[ -f "$stored/$key" ] || fail "the receipt names what is not stored: $(cat receipt)"
equal "segments left" "$(find traces -name 'trace.*.bin.zst' | wc -l | tr -d ' ')" 0
kill -TERM $server
wait $server || true

# Of a program that writes continuously it waits for each of its segments.
# shellcheck disable=SC2086
"$dial9" record --quiet --exec -o always memcached $user -l 127.0.0.1 -p $port -U 0 -t 2 >recorded 2>&1 &
server=$!
"$client" memcached $port 4 200 >/dev/null
"$dial9" rotate $server >/dev/null 2>&1 9>&-
"$client" memcached $port 4 200 >/dev/null
"$dial9" dump $server --shipped >receipt 2>dump_said 9>&- &
dump=$!
while [ ! -s receipt ]; do
	kill -0 $dump 2>/dev/null || break
	sleep 0.05
done
until ! kill -0 $dump 2>/dev/null; do
	ship always --once --raw
	equal "status of the shipper" $status 0
	sleep 0.1
done
wait $dump || fail "no receipt: $(cat dump_said)"
sed 1d receipt >keys
[ "$(wc -l <keys)" -ge 2 ] || fail "not a key for each segment: $(cat receipt)"
while read -r key; do
	[ -f "$stored/$key" ] || fail "the receipt names what is not stored: $key"
done <keys
kill -TERM $server
wait $server || true
stop_store
