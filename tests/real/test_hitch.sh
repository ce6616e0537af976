#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# hitch from Debian, a TLS proxy on libev with two workers that it forks, unmodified, before a server
# of this test: each process has a trace of its own with its own polls, and every request is served.
set -eu
# shellcheck source=tests/real/common.sh
. "$top_srcdir/tests/real/common.sh"

need hitch openssl nghttpd h2load node
port=$((26000 + 2 * ($$ % 1000)))
backend=$((port + 1))
requests=200

openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -keyout "$dir/key.pem" \
	-out "$dir/cert.pem" 2>/dev/null
cat "$dir/key.pem" "$dir/cert.pem" >"$dir/both.pem"
echo "counted" >"$dir/index.html"
user=''
[ "$(id -u)" != 0 ] || user='--user=root --group=root'

nghttpd --no-tls -d "$dir" $backend >/dev/null 2>&1 &
pids="$pids $!"
# shellcheck disable=SC2086
"$dial9" record --quiet -o "$dir/trace" -- hitch $user --workers=2 --frontend="[127.0.0.1]:$port" \
	--backend="[127.0.0.1]:$backend" --alpn-protos=h2 --quiet "$dir/both.pem" \
	>"$dir/hitch.out" 2>&1 &
recorder=$!
pids="$pids $recorder"

# load N: so many requests, each over a connection of its own.
load() {
	h2load -n "$1" -c "$1" -m 1 "https://127.0.0.1:$port/index.html" >"$dir/said" 2>&1
	sed -n 's/^requests: .* \([0-9]*\) succeeded,.*/\1/p' "$dir/said"
}

i=0
until [ "$(load 1)" = 1 ]; do
	i=$((i + 1))
	[ $i -lt 200 ] || {
		cat "$dir/hitch.out"
		fail "hitch does not answer"
	}
	sleep 0.05
done
equal "requests served" $requests "$(load $requests)"
kill -TERM $recorder
wait $recorder || true

processes=0 polls=0
for process in "$dir"/trace/*/; do
	parks=$("$dial9" info "$process" | awk '$1 == "WorkerParkEvent" { print $2 }' | tr -d ,)
	[ "${parks:-0}" -gt 0 ] || continue
	n=$("$dial9" info "$process" | awk '$1 == "PollStartEvent" { print $2 }' | tr -d ,)
	processes=$((processes + 1)) polls=$((polls + ${n:-0}))
	echo "$(basename "$process"): ${n:-0} polls, $parks parks"
done
# Who takes a connection is the kernel's choice, but each process waits in a loop of its own.  A
# handshake, the request and its answer are some polls each.
[ $processes -ge 2 ] || fail "traces of $processes processes"
[ $polls -ge $((4 * requests)) ] || fail "$polls polls for $requests connections"
