#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# nghttpd from Debian and its load generator, unmodified, both on libev, both recorded, a counted
# number of requests over HTTP/2: the trace's polls equal an independent count for every callback,
# its parks the waits of the loops.
set -eu
# shellcheck source=tests/real/common.sh
. "$top_srcdir/tests/real/common.sh"

need nghttpd h2load node ldd
nghttpd=$(private_copy nghttpd)
h2load=$(private_copy h2load)
requests=2000
port=$((24000 + $$ % 2000))
echo "counted" >"$dir/index.html"

listens() {
	ss=$(printf ':%04X' $port)
	grep -q "$ss .* 0A " /proc/net/tcp /proc/net/tcp6
}

# run TRACE: nghttpd with two worker threads, one connection, stopped by SIGTERM; h2load is recorded
# into TRACE.client, its own words go to $dir/said.
run() {
	(record "$1" "$nghttpd" --no-tls -n 2 -d "$dir" $port >"$dir/server.out" 2>&1) &
	recorder=$!
	pids="$pids $recorder"
	i=0
	until listens; do
		i=$((i + 1))
		[ $i -lt 400 ] || fail "nghttpd does not listen"
		sleep 0.05
	done
	LD_LIBRARY_PATH=$dir/private "$dial9" record --quiet -o "$1.client" -- "$h2load" \
		-n $requests -c 1 -m 1 "http://127.0.0.1:$port/index.html" >"$dir/said"
	kill -TERM $recorder
	wait $recorder || true
	plain "$1"
	plain "$1.client"
}

run_counted run
node "$counts" compare "$dir/uprobes" 0 "$dir/second".plain/*.trc ||
	fail "polls differ from the uprobes"

equal "requests answered, by h2load" "$requests" \
	"$(sed -n 's/^requests: .* \([0-9]*\) succeeded,.*/\1/p' "$dir/said")"
# Each request is one byte stream's turn: it is read once; the preface and the settings come before.
reads=$(report "$dir/second" 'Math.max(...r.callbacks.filter((c) => c.kind === "io").map((c) => c.polls))')
{ [ "$reads" -ge $requests ] && [ "$reads" -le $((requests + 3)) ]; } ||
	fail "$requests requests and $reads reads"
echo "read once for each of $requests requests: $reads"
most=$(report "$dir/second.client" 'Math.max(...r.callbacks.map((c) => c.polls))')
{ [ "$most" -ge $requests ] && [ "$most" -le $((requests + 3)) ]; } ||
	fail "$requests requests and $most calls of a callback of the client"
echo "and by the client: $most"
set -- $(waits) $(node "$counts" counts "$dir/second".plain/*.trc)
equal "parks and waits that may block" "$4" "$1"
