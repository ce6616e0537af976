#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# memcached from Debian, unmodified, 4 threads, a counted number of requests: the trace's polls and
# parks equal memcached's own counters and an independent count, for every callback.
set -eu
# shellcheck source=tests/real/common.sh
. "$top_srcdir/tests/real/common.sh"

need memcached node ldd
memcached=$(private_copy memcached)
connections=16 requests=500
port=$((22000 + $$ % 2000))
user=''
[ "$(id -u)" != 0 ] || user='-u root'

# run TRACE: memcached, loaded and stopped by SIGTERM; its own counters go to $dir/stats.
run() {
	# shellcheck disable=SC2086
	(record "$1" "$memcached" $user -l 127.0.0.1 -p $port -U 0 -t 4) &
	recorder=$!
	pids="$pids $recorder"
	"$helpers/client" memcached $port $connections $requests >"$dir/stats"
	kill -TERM $recorder
	wait $recorder || true
	plain "$1"
}

own() {
	awk -v name="$1" '$2 == name { print $3 + 0 }' "$dir/stats"
}

run_counted run
# At start memcached calls its clock's handler itself, once.
counted "$dir/second" 1

# Its listening socket counts as a connection.  Each other one is three polls (accepted, first
# read, hung up) beside one for each request, of which `stats` is the last.
equal "requests sent and memcached's cmd_get" $((connections * requests)) "$(own cmd_get)"
handler=$(report "$dir/second" 'r.callbacks.map((c) => c.polls).reduce((a, b) => a > b ? a : b)')
equal "polls of the handler and memcached's own counters" "$handler" \
	$(($(own cmd_get) + 1 + 3 * ($(own total_connections) - 1)))
equal "workers and memcached's threads, and its main loop" \
	"$(report "$dir/second" 'r.workers.length')" $(($(own threads) + 1))
# memcached names its threads after their loops began; that of Debian 11 does not.
worker=mc-worker
grep -q mc-worker "$memcached" || worker=memcached
equal "names of the lanes" "$(report "$dir/second" 'r.workers.map((w) => w.name).sort().join()')" \
	$worker,$worker,$worker,$worker,memcached
