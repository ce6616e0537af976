#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What goes wrong when segments are sent: one clear line, a status, and no segment lost.
set -eu
# shellcheck source=tests/toolkit/node.sh
. "$top_srcdir/tests/toolkit/node.sh"
# shellcheck source=tests/ship/store.sh
. "$top_srcdir/tests/ship/store.sh"

# left N [DIR]: segments that are still here.
left() {
	equal "segments left" "$(find "${2:-t}" -name 'trace.*' ! -path '*/refused/*' | wc -l | tr -d ' ')" "$1"
}

lines() {
	equal "lines on $1" "$(grep -c "^dial9 ship: " said) $(cat said)" "1 $(cat said)"
}

start_store
traces t/abcd-1 3

# ---- usage
status=0
"$dial9" ship t --once >said 2>&1 || status=$?
equal "status without --to" $status 2
says 'say where to'
for to in bucket s3:// s3:///p 's3://bucket/a//b' 's3://bucket/a b' s3://bucket/../a s3://bucket/a/. s3://bucket/a/../b; do
	status=0
	"$dial9" ship t --once --to "$to" >said 2>&1 || status=$?
	equal "status of --to $to" $status 2
	lines "$to"
done
ship nonsuch --once
equal "status of no directory" $status 2
says 'nonsuch: not found'
ship t t/abcd-1/trace.0.bin.zst --once
equal "status of a directory and a file" $status 2
ship t --once --parallel 17
equal "status of --parallel 17" $status 2

# ---- the store
AWS_ACCESS_KEY_ID='' AWS_SECRET_ACCESS_KEY='' ship t --once
equal "status without credentials" $status 1
says 's3://bucket/p: NoCredentials' '3 left'
lines 'no credentials'
left 3
AWS_SECRET_ACCESS_KEY=CANARY ship t --once
equal "status with a wrong secret" $status 1
says SignatureDoesNotMatch
lines 'a wrong secret'
! grep -q CANARY said || fail "a secret was told"
left 3
status=0
"$dial9" ship t --once --to s3://absent/p --endpoint "$address" >said 2>&1 || status=$?
equal "status without a bucket" $status 1
says 's3://absent/p: NoSuchBucket'
left 3
equal "objects by then" "$(objects)" 0

# ---- down, then back
faults '[{ "kind": "status", "status": 503, "code": "SlowDown", "times": 2 }]'
ship t --once
equal "status of a store that is slow for a moment" $status 0
left 0
equal objects "$(objects)" 3
traces t/abcd-1 2
faults '[{ "kind": "reset", "after": 100, "times": 0 }]'
ship t --once --deadline 1s
equal "status of a store that is down" $status 1
left 2
says '2 left for another time'

faults '[{ "kind": "silence", "times": 0 }]'
ship t --once --deadline 1s
says 'there was no answer in time: see --endpoint' '2 left for another time'

# ---- refused
faults '[{ "kind": "status", "status": 400, "code": "Odd", "key": "-0.bin", "times": 0 }]'
ship t --once --parallel 1
equal "status of one refused" $status 1
says 'trace.0.bin.zst: the store refuses it: Odd' '1 refused'
[ -f t/abcd-1/refused/trace.0.bin.zst ] || fail "it is not in refused/"
left 0
ship t --once
equal "a refused one is not sent again" $status 0
"$dial9" ship t --status >said
says '3 stored' '1 refused' # one of them twice
"$dial9" ship t --status --json >status.json
node -e 'require("assert").equal(JSON.parse(require("fs").readFileSync("status.json")).processes[0].refused, 1)'
rm -r t
traces t/abcd-1 3
faults '[{ "kind": "status", "status": 400, "code": "Odd", "times": 0 }]'
ship t --once --parallel 1
equal "status of all refused" $status 1
left 3
[ ! -e t/abcd-1/refused ] || fail "a store that refuses all keeps some: $(ls t/abcd-1/refused)"

# Each goes back to its own process, and what was refused for itself before stays where it is.
traces refused/abcd-1 1
traces refused/bcde-2 1
mkdir -m 700 refused/bcde-2/refused
mv refused/bcde-2/trace.0.bin.zst refused/bcde-2/refused/trace.7.bin.zst
traces refused/bcde-2 1
ship refused --once --parallel 1
equal "status of all refused, of two processes" $status 1
left 2 refused
equal "what was refused before" "$(find refused -path '*/refused/*')" refused/bcde-2/refused/trace.7.bin.zst

# What makes room there is in no store: that is written down.
i=8
while [ $i -lt 23 ]; do
	cp refused/bcde-2/refused/trace.7.bin.zst refused/bcde-2/refused/trace.$i.bin.zst
	i=$((i + 1))
done
faults '[{ "kind": "status", "status": 400, "code": "Odd", "key": "boot=bcde-2", "times": 0 }]'
ship refused --once --parallel 1
equal "status of a 17th that is refused" $status 1
equal "what was refused" "$(find refused -path '*/refused/*' | wc -l | tr -d ' ')" 16
grep -q '^missing 7 ' refused/bcde-2/.shipped || fail "it is gone, and nobody tells: $(cat refused/bcde-2/.shipped)"
"$dial9" ship refused --status >said
says '1 missing (7)'
faults '[]'

# ---- an answer that is lost: the object is there, and is sent again
faults '[{ "kind": "swallow", "times": 1 }, { "kind": "wrong-etag", "times": 1 }, { "kind": "error-in-200", "code": "InternalError", "times": 1 }]'
ship t --once --parallel 1
equal "status after answers that were lost" $status 0
left 0

# ---- files
printf 'no trace' >t/abcd-1/trace.7.bin
ln -s /etc/passwd t/abcd-1/trace.8.bin
: >t/abcd-1/trace.9.bin
before=$(objects)
ship t --once
equal "status with files that are no segments" $status 1
says 'trace.7.bin: it is no segment of a trace' 'trace.8.bin: '
equal "objects" "$(objects)" "$before"
[ -f t/abcd-1/trace.7.bin ] || fail "what is no segment was removed"
rm t/abcd-1/trace.*
mkdir t/efgh-2
chmod 777 t/efgh-2
ship t --once
equal "status with a directory that others may write to" $status 1
says "t/efgh-2: it is not this user's alone"
rmdir t/efgh-2

# ---- depth, files by hand
mkdir deep
traces deep/cache/ijkl-3 1
traces deep/web/mnop-4 2
ship deep --once
equal "status of a directory of trace directories" $status 0
left 0 deep
equal "objects of one process" "$(objects '*/boot=mnop-4/*')" 2
cp "$(find "$stored" -path '*boot=ijkl-3*' -type f)" alone.bin.zst
traces hand/qrst-5 1
ship hand/qrst-5/trace.0.bin.zst alone.bin.zst
equal "status of files by hand" $status 0
left 1 hand
if [ ! -f alone.bin.zst ] || [ -e hand/qrst-5/.shipped ]; then fail "what was sent by hand has changed"; fi

# ---- stages
traces staged/abcd-6 1
"$make_trace" held zstd out.bin.zst 7
ship staged --once --stage 'false'
equal "a stage that fails sends the segment as it was" "$status$(objects '*/boot=abcd-6/*')" 01
traces staged/abcd-6 1
ship staged --once --stage 'redact:PollStart*' --dry-run
left 1 staged

# ---- gaps: what the recorder evicted, and what was shipped before it did
mkdir -m 700 gaps gaps/efgh-7
printf 'stored 41 1 0 0 0 1 p/k\nstored 42 1 0 0' >gaps/efgh-7/.shipped
"$make_trace" held zstd gaps/efgh-7/trace.50.bin.zst 5
ship gaps --once
equal "status after a list that was cut" $status 0
grep -q '^stored 50 ' gaps/efgh-7/.shipped || fail "$(cat gaps/efgh-7/.shipped)"

mkdir -m 700 cut cut/ghij-8
"$make_trace" hour zstd cut/ghij-8/trace.9.bin.zst ghij-8 0 9 7-8
printf 'missing 4' >cut/ghij-8/.shipped # -5 1764000000
ship cut --once
"$dial9" ship cut --status >said
says ': 2 missing (7-8), ' '1 stored'

# ---- what could not be written down is not sent
traces unwritten/abcd-1 1
mkdir unwritten/abcd-1/.shipped
before=$(objects)
ship unwritten --once
equal "status where the list is no file" $status 1
says 'unwritten/abcd-1/trace.0.bin.zst: not sent: that it is stored cannot be written to .shipped beside it: '
left 1 unwritten
equal "objects where the list is no file" "$(objects)" "$before"

# ---- dumps: segments first, then the manifest, and the one here is called otherwise
id=01KB5E0Q7W8N2M4T6V9XYZABCD
manifest() {
	cat >"$1/dump.$id.json" <<-END
		{
		  "dump_id": "$id", "trigger": "slow", "trigger_time": "2026-11-28T15:19:51.123456789Z", "state": "$2",
		  "from": "2026-11-28T15:19:21.123456789Z", "to": "2026-11-28T15:20:01.123456789Z", "mode": "continuous",
		  "complete": true, "segments": ["trace.0.bin.zst", "trace.1.bin.zst", "trace.5.bin.zst"], "segment_count": 3,
		  "bytes": 1, "fired": [{"trigger": "slow", "condition": "poll", "threshold": 1, "value": 2,
		  "time": "2026-11-28T15:19:51.123456789Z"}], "fired_count": 1, "suppressed_before": 0, "pairs": {"who": "me"}
		}
	END
}
traces dumps/abcd-8 3
manifest dumps/abcd-8 open
ship dumps --once
equal "status with an open dump" $status 0
[ -f "dumps/abcd-8/dump.$id.json" ] || fail "an open dump was shipped"
traces dumps/abcd-8 3
manifest dumps/abcd-8 closed
faults '[{ "kind": "status", "status": 403, "code": "AccessDenied", "key": "dumps/", "times": 1 }]'
ship dumps --once
equal "status of a manifest that was refused" $status 1
[ -f "dumps/abcd-8/dump.$id.json" ] || fail "the manifest is gone"
ship dumps --once
equal "status of a dump" $status 0
says '1 dump'
if [ ! -f "dumps/abcd-8/dump.$id.done" ] || [ -e "dumps/abcd-8/dump.$id.json" ]; then fail "$(ls dumps/abcd-8)"; fi
ID=$id node -e '
	const assert = require("assert"), fs = require("fs");
	const all = fs.readdirSync("s3/.s3d/bucket").filter((name) => name.endsWith(".json")).map((name) => JSON.parse(fs.readFileSync(`s3/.s3d/bucket/${name}`)));
	const dump = JSON.parse(fs.readFileSync(`s3/bucket/p/dumps/${process.env.ID}.json`));
	assert.equal(dump.keys.length, 2);
	assert.deepEqual(dump.missing, ["trace.5.bin.zst"]);
	for (const key of dump.keys) {
		const object = all.find((one) => one.key === key);
		assert.equal(object.headers["x-amz-meta-dump-id"], process.env.ID);
		assert.equal(object.headers["x-amz-meta-who"], "me");
	}
'

# ---- without --once: goes on, also where the store is away, until it is told to end
faults '[{ "kind": "status", "status": 503, "code": "SlowDown", "times": 2 }]'
traces service/abcd-9 1
"$dial9" ship service --to s3://bucket/p --endpoint "$address" --every 100ms --raw >went 2>&1 9>&- &
pid=$!
await_objects() {
	while [ "$(objects '*/boot=abcd-9/*')" -lt "$1" ]; do
		kill -0 $pid || fail "it ended: $(cat went)"
		sleep 0.05
	done
}
await_objects 1
"$make_trace" held zstd service/abcd-9/trace.1.bin.zst 1000009
await_objects 2
kill -TERM $pid
wait $pid || fail "status after SIGTERM: $?"
left 0 service

"$dial9" dumps dumps >said 2>&1 || true
! grep -q "done" said || fail "$(cat said)"
stop_store
