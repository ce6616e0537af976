#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# dial9 serve --bucket against a store on loopback: serve_bucket.mjs, and a recorded program that dial9 ship --once has stored.
set -eu
# shellcheck source=tests/toolkit/node.sh
. "$top_srcdir/tests/toolkit/node.sh"
if "$top_builddir/core/dial9" serve /nonexistent 2>&1 | grep -q 'built without libevent'; then
	echo "built without libevent"
	exit 77
fi
tests=$(cd "$top_srcdir" && pwd)/tests/ship/serve_bucket.mjs
# shellcheck source=tests/ship/store.sh
. "$top_srcdir/tests/ship/store.sh"

unset XDG_CACHE_HOME
WORK=$work DIAL9=$dial9 node --test "$tests" >said 2>&1 || fail "$(grep -A 30 '^not ok' said | head -n 60)"

# What a program has recorded and the shipper has stored is listed, and a segment of it comes back as it was.
if [ "$SANITIZER" != no ] || ! command -v memcached >/dev/null; then
	echo "nothing is recorded: a sanitizer, or no memcached"
	exit 0
fi
client=$(cd "$top_builddir" && pwd)/tests/real/client
port=$((15000 + $$ % 900))
user=''
[ "$(id -u)" != 0 ] || user='-u root'
# shellcheck disable=SC2086
"$dial9" record --quiet --exec -o recorded -- memcached $user -l 127.0.0.1 -p $port -U 0 -t 2 &
program=$!
"$client" memcached $port 4 200 >/dev/null
kill -TERM $program
wait $program || true
start_store
ship recorded --once --raw
equal "status of the shipper" $status 0
"$dial9" serve --bucket bucket --prefix p --endpoint "$address" >url 2>warned 9>&- &
server=$!
trap 'kill $server 2>/dev/null || true; rm -rf "$work"' EXIT
while [ ! -s url ]; do
	kill -0 $server || fail "no server: $(cat warned)"
	sleep 0.05
done
URL=$(cat url) STORED=$stored node -e '
	const { readFileSync, readdirSync } = require("fs");
	const ask = async (path) => (await fetch(process.env.URL + path));
	const keys = readdirSync(process.env.STORED, { recursive: true }).filter((name) => /\.bin\.zst$/.test(name));
	(async () => {
		let map;
		do map = await (await ask("api/map")).json(); while (map.place.listing || map.place.lists < 2);
		if (!keys.length || map.segments.length !== keys.length) throw new Error(`${map.segments.length} of ${keys.length} segments are listed`);
		const bytes = Buffer.from(await (await ask(`segment/${map.segments[0].path}`)).arrayBuffer());
		if (!keys.some((key) => readFileSync(`${process.env.STORED}/${key}`).equals(bytes))) throw new Error("other bytes");
	})();
' || fail "what was stored is not shown"
kill -INT $server
wait $server
stop_store
