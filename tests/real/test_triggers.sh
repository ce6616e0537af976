#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# memcached, nghttpd and a libsoup server in flight mode, with a trigger, under load: one call that takes 800 ms is planted.
# Its dump is all that is on disk; the report begins with it, names it, and tells who waited.
set -eu
# shellcheck source=tests/real/common.sh
. "$top_srcdir/tests/real/common.sh"

need memcached node
user=''
[ "$(id -u)" != 0 ] || user='-u root'

# flies NAME SERVER...: in the background; $recorder.
flies() {
	trace=$dir/$1
	shift
	STALL=$dir/stall LD_PRELOAD=$helpers/.libs/stall.so "$dial9" record --quiet --flight \
		--trigger 'poll > 500ms last 10s then 1s' -o "$trace" -- "$@" >"$dir/out" 2>&1 &
	recorder=$!
	pids="$pids $recorder"
}

# dumped NAME: the planted call has come; waits for its dump and ends the server.
dumped() {
	i=0
	until grep -qs '"state": "closed"' "$dir/$1"/*/dump.*.json; do
		i=$((i + 1))
		[ $i -lt 600 ] || fail "$1: there is no dump; $(ls "$dir")"
		kill -0 $recorder || fail "$1 ended"
		sleep 0.05
	done
	equal "$1: dumps" "$(find "$dir/$1" -name 'dump.*.json' | wc -l)" 1
	equal "$1: segments" "$(find "$dir/$1" -name '*.zst*' | wc -l)" 1
	# Before one that does not catch the signal is recovered, which holds the same once more.
	dump=$(find "$dir/$1" -name '*.zst')
	kill -TERM $recorder
	wait $recorder || true
	equal "$1: the call that fired took its 800 ms" "$(report "$dump" 'r.trace.fired.length === 1 && r.trace.fired[0].value >= 8e8')" true
	"$dial9" report --color never "$dump" | sed -n 1,6p
	equal "$1: a finding is of that call" "$(report "$dump" 'r.findings.some((f) => f.evidence.some((e) => e.duration_ns >= 8e8))')" true
}

port=$((30000 + $$ % 2000))
# shellcheck disable=SC2086
flies memcached "$(command -v memcached)" $user -l 127.0.0.1 -p $port -U 0 -t 2
"$helpers/client" memcached $port 8 500 >/dev/null
: >"$dir/stall"
"$helpers/client" memcached $port 8 500 >/dev/null
dumped memcached

if [ -x "$helpers/soup_server" ] && command -v ab >/dev/null; then
	flies soup "$helpers/soup_server"
	until port=$(sed -n 's/^listening on //p' "$dir/out") && [ -n "$port" ]; do
		kill -0 $recorder || fail "the server does not listen"
		sleep 0.05
	done
	ab -q -n 1000 -c 8 "http://127.0.0.1:$port/" >/dev/null
	: >"$dir/stall"
	ab -q -n 1000 -c 8 "http://127.0.0.1:$port/" >/dev/null
	dumped soup
fi

if command -v nghttpd >/dev/null && command -v h2load >/dev/null; then
	port=$((30000 + ($$ + 1000) % 2000))
	flies nghttpd "$(command -v nghttpd)" --no-tls -n 1 -d "$dir" $port
	until h2load -n 1 "http://127.0.0.1:$port/out" 2>/dev/null | grep -q '1 succeeded'; do
		kill -0 $recorder || fail "nghttpd does not listen"
		sleep 0.05
	done
	h2load -n 1000 -c 8 "http://127.0.0.1:$port/out" >/dev/null
	: >"$dir/stall"
	h2load -n 1000 -c 8 "http://127.0.0.1:$port/out" >/dev/null
	dumped nghttpd
fi
