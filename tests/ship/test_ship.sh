#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A recorded memcached, whose segments dial9 ship stores under keys that tell what they are, and removes; what is in the
# store reads as what was recorded.
set -eu
# shellcheck source=tests/toolkit/node.sh
. "$top_srcdir/tests/toolkit/node.sh"
command -v memcached >/dev/null || { echo "memcached is not installed"; exit 77; }
client=$(cd "$top_builddir" && pwd)/tests/real/client
# shellcheck source=tests/ship/store.sh
. "$top_srcdir/tests/ship/store.sh"

port=$((17000 + $$ % 900))
user=''
[ "$(id -u)" != 0 ] || user='-u root'
# shellcheck disable=SC2086
"$dial9" record -o traces memcached $user -l 127.0.0.1 -p $port -U 0 -t 2 >recorded 2>&1 &
recorder=$!
"$client" memcached $port 4 200 >/dev/null
kill -TERM $recorder
wait $recorder || true
cp -R traces kept
start_store

ship traces --once --dry-run
equal "status of a dry run" $status 0
cp said keys
[ -s keys ] || fail "no key was printed: $(cat recorded)"
ship traces --once --service 'cache/"one"' --raw
equal "status" $status 0
says ' stored, '
equal "segments left" "$(find traces -name 'trace.*' | wc -l)" 0
key=$(cd "$stored" && find p/version=1 -type f)
expr "$key" : 'p/version=1/date=20[0-9-]*/service=cache__one_/time=[0-9]*/instance=[A-Za-z0-9._-]*/boot=[a-z]*-[0-9]*/[0-9]*-0.bin.zst$' \
	>/dev/null || fail "key $key"
cmp "$stored/$key" "$(find kept -name 'trace.0.bin.zst')" || fail "other bytes"
grep -q "^stored 0 $(wc -c <"$stored/$key" | tr -d ' ') [0-9]* [0-9]* [0-9]* [0-9]* $key\$" traces/*/.shipped ||
	fail "$(cat traces/*/.shipped)"

# The same, with symbols: the default.
cp -R kept again
rm -r "$work/s3/bucket"/p
ship again --once
equal "status" $status 0
key=$(cd "$stored" && find p/version=1 -type f)
"$dial9" info "$stored/$key" >is_there
grep -q SymbolTable is_there || fail "no symbols in what is stored: $(cat is_there)"
equal "keys of a dry run" "$(cat keys)" "$key"
META=$(ls "$work"/s3/.s3d/bucket/*.json) node -e '
	const fs = require("fs");
	const metas = process.env.META.split("\n").map((file) => JSON.parse(fs.readFileSync(file, "utf8")).headers);
	const meta = metas.find((headers) => headers["x-amz-meta-events"]);
	const get = (name) => meta[`x-amz-meta-${name}`];
	const all = Object.entries(meta).filter(([name]) => name.startsWith("x-amz-meta-"));
	const assert = require("assert");
	assert.equal(meta["content-type"], "application/zstd");
	assert.equal(get("format"), "trc1");
	assert.equal(get("segment-index"), "0");
	assert.equal(get("lost"), "0");
	assert.ok(Number(get("events")) > 1000);
	assert.ok(BigInt(get("first-ns")) < BigInt(get("last-ns")));
	assert.ok(Math.abs(Number(get("start-time")) - Number(BigInt(get("first-ns")) / 1000000000n)) <= 60);
	assert.match(get("boot-id"), /^[a-z]{4}-[0-9]+$/);
	assert.ok(all.reduce((sum, [name, value]) => sum + name.length + value.length, 0) < 2048);
'

# What a killed program had not written is stored, too.
"$dial9" record -q -o killed --exec -- memcached $user -l 127.0.0.1 -p $port -U 0 -t 2 &
program=$!
"$client" memcached $port 4 200 >/dev/null
kill -KILL $program
wait $program || true
rm -r "$work/s3/bucket"/p
ship killed --once
equal "status" $status 0
equal "segments of the killed one" "$(cd "$stored" && find p/version=1 -type f | grep -c -- '-0.bin.zst$')" 1

# An address for one object is enough to fetch it.
key=$(cd "$stored" && find p/version=1 -type f | head -n 1)
ship --link "$key" --expires 60s
equal "status of a link" $status 0
URL=$(cat said) node -e 'fetch(process.env.URL).then(async (answer) => {
	if (answer.status !== 200) throw new Error(`status ${answer.status}`);
	process.stdout.write(Buffer.from(await answer.arrayBuffer()));
})' >fetched || fail "the address does not work: $(cat said)"
cmp fetched "$stored/$key"
stop_store
