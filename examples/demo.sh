#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# See dial9 at work: install what is missing, build, record two real programs under load, print the
# reports.
#
#	examples/demo.sh [DIR]
#
# DIR keeps build and traces [a temporary folder; the traces stay].  The first program is the evhttp
# service of examples/http_service.c, which attaches itself; one of its handlers is slow on purpose,
# and the report names it.  The second knows nothing of dial9: examples/plain_http.c, under `dial9 record`.
set -eu

top=$(cd "$(dirname "$0")/.." && pwd)
dir=${1:-$(mktemp -d "${TMPDIR:-/tmp}/dial9-demo.XXXXXX")}
"$top/tests/support/install_packages.sh" build demo
mkdir -p "$dir"
dir=$(cd "$dir" && pwd)

# quietly WHAT COMMAND...: says WHAT; shows the output only if it failed.
quietly() {
	echo "$1"
	shift
	"$@" >"$dir/log" 2>&1 || {
		tail -n 40 "$dir/log"
		echo "demo.sh: failed, the whole output is in $dir/log" >&2
		exit 1
	}
}

build() {
	[ -x "$top/configure" ] || autoreconf -fi "$top"
	mkdir -p "$dir/build"
	cd "$dir/build"
	[ -f config.status ] || "$top/configure"
	make -j"$(nproc)"
	make -j"$(nproc)" examples/http_service examples/plain_http
}
quietly "building ..." build

requests=20000
dial9=$dir/build/core/dial9
rm -rf "$dir/http" "$dir/plain"

# Port 0 lets the kernel choose; the service prints what it got.
DIAL9_TRACE_DIR=$dir/http "$dir/build/examples/http_service" 0 >"$dir/http.out" &
service=$!
trap 'kill $service 2>/dev/null || true' EXIT
until port=$(sed -n 's/^listening on //p' "$dir/http.out") && [ -n "$port" ]; do
	kill -0 $service || exit 1
	sleep 0.05
done
load_http() {
	ab -q -k -n $requests -c 20 "http://127.0.0.1:$port/hello" &&
		ab -q -k -n 100 -c 4 "http://127.0.0.1:$port/report" &&
		ab -q -k -n $requests -c 20 "http://127.0.0.1:$port/hello"
}
quietly "recording the evhttp service under ab ($((2 * requests + 100)) requests) ..." load_http
kill -INT $service
wait $service || true
trap - EXIT

load_plain() {
	"$dial9" record -o "$dir/plain" -- "$dir/build/examples/plain_http" >"$dir/plain.out" &
	recorder=$!
	trap 'kill $recorder 2>/dev/null || true' EXIT
	until port=$(sed -n 's/^listening on //p' "$dir/plain.out") && [ -n "$port" ]; do
		kill -0 $recorder || exit 1
		sleep 0.05
	done
	ab -q -k -n $requests -c 20 "http://127.0.0.1:$port/" &
	ab -q -k -n 20 -c 1 "http://127.0.0.1:$port/primes"
	wait $!
	kill -TERM $recorder
	wait $recorder || true
	trap - EXIT
}
quietly "recording a server that knows nothing of dial9 ($((requests + 20)) requests) ..." load_plain

for name in plain http; do
	echo
	echo "==== dial9 report: $name ===="
	"$dial9" report --top 8 "$dir/$name"
done
echo
echo "The traces are in $dir/http and $dir/plain; look closer with, for example,"
echo "    $dial9 events --format text $dir/http | less"
echo "or see them in the browser:"
echo "    $dial9 serve $dir/http"
