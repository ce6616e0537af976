#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What 10 and 200 clients of `dial9 serve` wait for, on a trace recorded for the purpose, the server on one processor and its
# clients on another:
#
#	bench_serve.sh BENCH_FLUSH DIAL9 BENCH_SERVE
set -eu

make=$1 dial9=$2 client=$3
[ "$(nproc)" -gt 1 ] || {
	echo "there is only one processor"
	exit 77
}
scratch=$(mktemp -d)
server=
trap 'kill $server 2>/dev/null; rm -rf "$scratch"' EXIT
mkdir "$scratch/trace"
echo "recorded: $("$make" --make "$scratch/trace" 100000)"
: >"$scratch/address"
taskset -c 0 "$dial9" serve "$scratch/trace" >"$scratch/address" &
server=$!
until url=$(cat "$scratch/address") && [ -n "$url" ]; do
	kill -0 $server || exit 2
	sleep 0.05
done
# As a page asks when it opens; the report is made before.
segment=$(cd "$scratch/trace" && find . -name '*.bin*' | head -n 1 | sed 's|^\./||; s|/|%2F|g')
python3 -c '
import sys, urllib.request
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
for path in "api/report", "api/map":
    opener.open(sys.argv[1] + path).read()' "$url"
taskset -c 1 "$client" "$url" "" viewer/app.js viewer/style.css toolkit/decode.js api/segments "segment/$segment" api/report api/map
