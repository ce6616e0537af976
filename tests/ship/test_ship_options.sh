#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# How segments are stored is what the command line says: keys of the original's 0.4, gzip, encryption, checksums.  And what
# stands in the environment of dial9 ship is nobody else's to read.
set -eu
# shellcheck source=tests/toolkit/node.sh
. "$top_srcdir/tests/toolkit/node.sh"
# shellcheck source=tests/ship/store.sh
. "$top_srcdir/tests/ship/store.sh"
start_store

segment() {
	rm -rf "$1" "$stored"
	mkdir -m 700 "$1" "$1/abcd-1"
	"$make_trace" hour zstd "$1/abcd-1/trace.0.bin.zst" abcd-1 0 5 ''
	cp "$1/abcd-1/trace.0.bin.zst" kept.bin.zst
}

segment t
ship t --once --raw --key-layout original-0.4 --instance host-1
equal "status" $status 0
equal "key of the original's 0.4" "$(cd "$stored" && find p -type f)" p/2026-09-21/1413/demo/host-1/abcd-1/1790000000-0.bin.zst

segment t
ship t --once --raw --compress gzip --instance host-1
equal "status" $status 0
key=$(cd "$stored" && find p -type f)
equal "key of one that is packed by gzip" "${key##*/}" 1790000000-0.bin.gz
"$dial9" events kept.bin.zst >before
"$dial9" events "$stored/$key" >after
cmp before after

segment t
ship t --once --raw --sse aws:kms --sse-key alias/traces --md5 --max-rate 1M
equal "status" $status 0
FOLDER=$work/s3/.s3d/bucket node -e '
	const assert = require("assert"), fs = require("fs"), crypto = require("crypto"), { FOLDER } = process.env;
	const kept = fs.readdirSync(FOLDER).filter((name) => name.endsWith(".json")).map((name) => JSON.parse(fs.readFileSync(`${FOLDER}/${name}`)).headers);
	assert.ok(kept.some((headers) => headers["x-amz-server-side-encryption"] === "aws:kms" &&
		headers["x-amz-server-side-encryption-aws-kms-key-id"] === "alias/traces"));
	fetch(process.argv[1] + "/-/log").then((answer) => answer.json()).then((log) => {
		const md5 = crypto.createHash("md5").update(fs.readFileSync("kept.bin.zst")).digest("base64");
		assert.equal(log.filter(({ method }) => method === "PUT").pop().md5, md5);
	});
' "$address" || fail "it was stored otherwise"

segment t
ship t --once --sse-key alias/traces
equal "status of a key without its kind" $status 2
says '--sse-key is of --sse aws:kms'
ship t --once --max-rate 10
equal "status of a rate that is none" $status 2
ship t --once --raw --stage parquet
equal "status of raw and a stage" $status 2

# ---- the environment
if [ "$(id -u)" = 0 ] && setpriv --reuid 65534 --clear-groups true 2>/dev/null; then
	chmod 755 "$work"
	mkdir nobody
	chown 65534 nobody
	as='setpriv --reuid 65534 --clear-groups'
	AWS_SECRET_ACCESS_KEY=canary-of-a-key $as "$dial9" ship nobody --every 1s --to s3://bucket/q --endpoint "$address" >went 2>&1 9>&- &
	shipper=$!
	# Its child comes after it has hidden.
	until pgrep -P $shipper -x dial9-store >/dev/null; do
		kill -0 $shipper 2>/dev/null || fail "it is not there: $(cat went)"
		sleep 0.05
	done
	for pid in $shipper $(ps -o pid= --ppid $shipper); do
		if $as cat "/proc/$pid/environ" 2>/dev/null | grep -qa canary; then
			fail "another process of its user reads the key of $pid"
		fi
	done
	kill -TERM $shipper
	wait $shipper || fail "status $?"
fi
stop_store
