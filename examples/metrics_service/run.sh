#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
usage() {
	cat <<'END'
usage: run.sh [OPTIONS] [REGRESSION...]

Runs the metrics service under `dial9 record` with a PostgreSQL of its own, loads it, and prints what
`dial9 report` says; once as it should be, and once with each mistake that is planted.  Everything is
on this machine, and has ended when this ends.

REGRESSION: none, blocking, growing, lock.  Without one: all of them.

  -b, --build DIR      where dial9 was built (the current folder, or that of these sources)
  -o, --output DIR     the traces, one folder for each REGRESSION (a new one in $TMPDIR); must be new
  -s, --seconds N      of load, each time (5)
  -c, --clients N      that load it (8)
      --to URL         then ship a copy of the traces to this store, s3://BUCKET[/PREFIX]
      --endpoint URL   of a store that is not AWS
      --serve          then show the traces in the browser, until ^C
  -h, --help

Needs PostgreSQL's server programs and psql (Debian: postgresql), and a build that found libpq
(libpq-dev) and libevent; as root, setpriv, because PostgreSQL does not run as root.
END
}
set -eu

here=$(cd "$(dirname "$0")" && pwd)
build='' output='' seconds=5 clients=8 to='' endpoint='' serve=no

refuse() {
	echo "run.sh: $1" >&2
	exit 2
}

while [ $# -gt 0 ]; do
	case $1 in
	-h | --help) usage && exit 0 ;;
	--serve) serve=yes ;;
	-b | --build | -o | --output | -s | --seconds | -c | --clients | --to | --endpoint)
		[ $# -gt 1 ] || refuse "$1 needs a value"
		case $1 in
		-b | --build) build=$2 ;;
		-o | --output) output=$2 ;;
		-s | --seconds) seconds=$2 ;;
		-c | --clients) clients=$2 ;;
		--to) to=$2 ;;
		--endpoint) endpoint=$2 ;;
		esac
		shift
		;;
	-*) refuse "unknown option $1; --help tells them" ;;
	*) break ;;
	esac
	shift
done
[ $# -gt 0 ] || set -- none blocking growing lock
for regression; do
	case $regression in
	none | blocking | growing | lock) ;;
	*) refuse "there is no regression '$regression': none, blocking, growing, lock" ;;
	esac
done

if [ -z "$build" ]; then
	build=$here/../..
	[ ! -x core/dial9 ] || build=.
fi
[ -x "$build/core/dial9" ] || refuse "$build has no core/dial9; --build tells where it was built"
build=$(cd "$build" && pwd)
dial9=$build/core/dial9
programs=$build/examples/metrics_service
if [ ! -x "$programs/service" ] || [ ! -x "$programs/load" ]; then
	refuse "not built: make examples/metrics_service/service examples/metrics_service/load (with libpq)"
fi
for postgresql in /usr/lib/postgresql/*/bin; do :; done
[ -x "$postgresql/initdb" ] || postgresql=$(dirname "$(command -v initdb || echo .)")
if [ ! -x "$postgresql/initdb" ] || ! command -v psql >/dev/null; then
	refuse "PostgreSQL is not installed (Debian: postgresql)"
fi

# What is started here is ended here, whatever happens.
postgres='' service='' load=''
work=$(mktemp -d "${TMPDIR:-/tmp}/metrics_service.XXXXXX")
finish() {
	status=$?
	trap '' EXIT HUP INT TERM
	[ -z "$load" ] || kill "$load" 2>/dev/null || :
	if [ -n "$service" ]; then
		kill "$service" 2>/dev/null || :
		wait "$service" || :
	fi
	[ -z "$postgres" ] || kill -INT "$postgres" 2>/dev/null || :
	wait
	rm -rf "$work"
	exit $status
}
trap finish EXIT
trap 'exit 130' HUP INT TERM

fail() {
	echo "run.sh: $1" >&2
	exit 1
}

[ -n "$output" ] || output=$(mktemp -d "${TMPDIR:-/tmp}/metrics_traces.XXXXXX")
mkdir -p "$output"
[ -z "$(ls -A "$output")" ] || refuse "$output is not empty"
output=$(cd "$output" && pwd)

# ---- PostgreSQL, which listens in $database alone ----

database=$work/database as_nobody=''
mkdir -m 700 "$database"
if [ "$(id -u)" = 0 ]; then
	as_nobody='setpriv --reuid=65534 --regid=65534 --clear-groups'
	$as_nobody true || fail "PostgreSQL does not run as root, and setpriv cannot make us somebody else"
	chmod 711 "$work"
	chown 65534:65534 "$database"
fi
cd "$database"
$as_nobody "$postgresql/initdb" -D "$database/data" -A trust -U metrics --no-sync >"$work/initdb.log" 2>&1 ||
	fail "initdb: $(tail -n 1 "$work/initdb.log")"
$as_nobody "$postgresql/postgres" -D "$database/data" -k "$database" -h '' -p 5432 -F >"$work/postgres.log" 2>&1 &
postgres=$!
address="host=$database port=5432 user=metrics dbname=postgres"
until psql -X -q -c 'SELECT 1' "$address" >/dev/null 2>&1; do
	kill -0 $postgres 2>/dev/null || fail "PostgreSQL: $(tail -n 1 "$work/postgres.log")"
	sleep 0.1
done

# ---- one run of the service ----

# run REGRESSION: its trace is in $output/REGRESSION.
run() {
	psql -X -q -f "$here/schema.sql" "$address" >"$work/schema.log" 2>&1 || fail "$(cat "$work/schema.log")"
	: >"$work/service.out"
	"$dial9" record --quiet --cpu 99 --name metrics -o "$output/$1" -- \
		"$programs/service" --database "$address" --regression "$1" >"$work/service.out" &
	service=$!
	until port=$(sed -n 's/^listening on //p' "$work/service.out") && [ -n "$port" ]; do
		kill -0 $service 2>/dev/null || fail "the service did not start"
		sleep 0.05
	done
	"$programs/load" --seconds "$seconds" --clients "$clients" "$port" &
	load=$!
	wait $load || fail "some requests were not answered"
	load=''
	kill -TERM $service
	wait $service || fail "the service ended with $?"
	service=''
	sed 1d "$work/service.out"
}

for regression; do
	echo "==== regression: $regression ===="
	run "$regression"
	"$dial9" report "$output/$regression"
	echo
done

# ---- the runs beside each other, and away from here ----

case " $* " in
*" none "*)
	[ $# -lt 2 ] || {
		echo "==== each beside none ===="
		"$dial9" query "$output" <"$here/compare.sql"
		echo
	}
	;;
esac
if [ -n "$to" ]; then
	echo "==== shipped ===="
	cp -R "$output" "$work/shipped" # what is confirmed is removed, and the traces shall stay
	for regression; do
		"$dial9" ship "$work/shipped/$regression" --once --service "metrics-$regression" --to "$to" \
			${endpoint:+--endpoint "$endpoint"} || fail "not all of $regression is stored"
	done
	echo
fi
echo "The traces are in $output; see one in the browser: $dial9 serve $output/$1"
if [ $serve = yes ]; then
	"$dial9" serve "$output"
fi
