#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# pgbouncer from Debian before a PostgreSQL of its own, alone and recorded with samples: its clients get the same answers,
# its own counters (SHOW STATS) are the same, and no fewer reads are recorded than they say there were.
set -eu
# shellcheck source=tests/real/common.sh
. "$top_srcdir/tests/real/common.sh"

PATH=$PATH:/usr/sbin
for programs in /usr/lib/postgresql/*/bin; do :; done
need pgbouncer psql node setpriv
[ -x "$programs/initdb" ] || skip "PostgreSQL is not installed"
clients=4 queries=250

# Neither of them runs as root; pgbouncer gives its rights up itself, for others may not see what was built here.
as_nobody='' user=''
if [ "$(id -u)" = 0 ]; then
	as_nobody="setpriv --reuid=65534 --regid=65534 --clear-groups" user="-u nobody"
	$as_nobody true 2>/dev/null || skip "no other users here"
	chown 65534:65534 "$dir"
fi
cd "$dir"
# shellcheck disable=SC2086 # words
$as_nobody "$programs/initdb" -D "$dir/data" -A trust -U bench --no-sync >initdb.log 2>&1 ||
	fail "initdb: $(tail -n 1 initdb.log)"
# Sockets in $dir alone.
# shellcheck disable=SC2086
$as_nobody "$programs/postgres" -D "$dir/data" -k "$dir" -h '' -p 5432 -F >postgres.log 2>&1 &
postgres=$!
pids="$pids $postgres"
cat >pgbouncer.ini <<END
[databases]
postgres = host=$dir port=5432 user=bench
[pgbouncer]
listen_addr =
unix_socket_dir = $dir
listen_port = 6432
auth_type = any
admin_users = bench
stats_users = bench
pool_mode = transaction
logfile = $dir/pgbouncer.log
END

# ask PORT DATABASE: psql.
ask() {
	psql -X -q -A -t -h "$dir" -p "$1" -U bench "$2"
}

until_it_answers() {
	i=0
	until echo 'SELECT 1;' | ask "$1" postgres >/dev/null 2>&1; do
		i=$((i + 1))
		[ $i -lt 400 ] || fail "nobody answers at $1"
		sleep 0.05
	done
}

i=0
while [ $i -lt $queries ]; do
	i=$((i + 1))
	echo "SELECT $i, sum(n), md5('$i') FROM generate_series(1, $i) n;"
done >queries.sql

# run NAME COMMAND...: pgbouncer under COMMAND, asked by $clients clients at once; answers and counters go to $dir/NAME.*.
run() {
	name=$1
	shift
	# shellcheck disable=SC2086
	"$@" pgbouncer $user -q pgbouncer.ini 2>"$name.err" &
	pooler=$!
	pids="$pids $pooler"
	until_it_answers 6432
	before=$(own)
	asking=
	for client in $(seq $clients); do
		ask 6432 postgres <queries.sql >"$name.answers.$client" &
		asking="$asking $!"
	done
	for client in $asking; do
		wait "$client" || fail "$name: a query failed"
	done
	cat "$name".answers.* | cksum >"$name.answers"
	after=$(own)
	echo $((${after% *} - ${before% *})) $((${after#* } - ${before#* })) >"$name.counters"
	# "SHUTDOWN" closes the connection that asks.
	echo 'SHUTDOWN;' | ask 6432 pgbouncer >/dev/null 2>&1 || true
	wait $pooler || true
}

# Transactions and queries of all clients so far, as pgbouncer counts them.
own() {
	echo 'SHOW STATS;' | ask 6432 pgbouncer | awk -F'|' '$1 == "postgres" { print $2, $3 }'
}

until_it_answers 5432
run plain env
run recorded "$dial9" record --quiet -o "$dir/trace" --cpu 99 --
kill -INT $postgres
wait $postgres || true

equal "answers, alone and recorded" "$(cat plain.answers)" "$(cat recorded.answers)"
equal "transactions and queries by SHOW STATS, alone and recorded" "$(cat plain.counters)" "$(cat recorded.counters)"
equal "queries by SHOW STATS, and asked" "$(cut -d' ' -f2 recorded.counters)" $((clients * queries))
plain "$dir/trace"
"$dial9" info trace | grep -q 'source.cpu  *on' || fail "it was not sampled"
reads=$(report "$dir/trace" 'Math.max(...r.callbacks.filter((c) => c.kind === "io").map((c) => c.polls))')
[ "$reads" -ge $((2 * clients * queries)) ] || fail "$reads reads for $((clients * queries)) queries, each from a client and a server"
echo "reads of both sides for $((clients * queries)) queries: $reads"
