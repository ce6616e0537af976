#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What dial9 ship is to do stands on its command line, in the environment, or in a file, and the earlier wins.  A mistake in the
# file is named by file, line and key; a file that others may look into holds no secret; SIGHUP reads it again.
set -eu
# shellcheck source=tests/toolkit/node.sh
. "$top_srcdir/tests/toolkit/node.sh"
# shellcheck source=tests/ship/store.sh
. "$top_srcdir/tests/ship/store.sh"

# run ARGUMENTS...: dial9 ship, with nothing added.
run() {
	status=0
	"$dial9" ship "$@" >said 2>&1 9>&- || status=$?
}

# wait_for FILE TEXT
wait_for() {
	n=0
	until grep -qF -- "$2" "$1"; do
		n=$((n + 1))
		[ $n -lt 600 ] || fail "no '$2' in $1: $(cat "$1")"
		sleep 0.05
	done
}

# wait_stored N GLOB OTHERWISE
wait_stored() {
	n=0
	until [ "$(objects "$2")" = "$1" ]; do
		n=$((n + 1))
		[ $n -lt 600 ] || fail "$3: $(cat served)"
		sleep 0.05
	done
}

start_store
traces t/abcd-1 1
umask 022

# ---- from where
cat >conf <<END
# what goes where
to = s3://bucket/of_file   # and a comment behind it
endpoint=$address
  raw = yes
once = yes
service = filed
END
run t --config conf
equal "status with a file" $status 0
equal "objects of the file's prefix" "$(objects '*/of_file/*service=filed*')" 1
traces t/abcd-1 1
DIAL9_S3_BUCKET=bucket DIAL9_S3_PREFIX=of_environment run t --config conf
equal "objects of the environment's prefix" "$(objects '*/of_environment/*')" 1
traces t/abcd-1 1
DIAL9_S3_BUCKET=bucket DIAL9_S3_PREFIX=of_environment run t --config conf --to s3://bucket/of_flag --service flagged
equal "objects of the flag's prefix" "$(objects '*/of_flag/*service=flagged*')" 1
equal "objects in all" "$(objects)" 3
traces t/abcd-1 1
DIAL9_S3_BUCKET=bucket DIAL9_S3_ENDPOINT=$address DIAL9_S3_REGION=eu-west-1 run t --once --raw
equal "status with the environment alone" $status 0
equal "objects of the usual prefix" "$(objects '*/dial9-traces/*')" 1
DIAL9_S3_BUCKET='' run t --once
equal "status of an empty variable" $status 2
says 'say where to'

# ---- mistakes
# wrong LINE TEXT...: a file whose second line is LINE.
wrong() {
	printf 'to = s3://bucket/p\n%s\n' "$1" >bad
	shift
	run t --once --config bad
	equal "status of a bad file" $status 2
	says "dial9 ship: bad:2: " "$@"
	equal "lines" "$(wc -l <said | tr -d ' ')" 1
}
wrong 'parallel = 17' --parallel '1 to 16' 17
wrong 'colour = red' "unknown key 'colour'"
wrong 'status = yes' "'status' is for the command line alone"
wrong 'raw = perhaps' 'yes or no'
wrong 'every = soon' 'every' 'soon'
wrong 'endpoint' 'KEY = VALUE'
wrong 'region =' 'has no value'
wrong 'stage = nonsuch-program' 'nonsuch-program'
run t --once --config nonsuch
equal "status of no file" $status 2
says 'nonsuch: '

# ---- secrets, and who may write
printf 'endpoint = https://user:CANARY@localhost\n' >bad
chmod 644 bad
run t --once --config bad
equal "status of a secret that others may read" $status 2
says 'bad:1: ' "'endpoint' holds a secret" 'chmod 600'
! grep -q CANARY said || fail "the secret was told"
printf 'secret-access-key = CANARY\n' >bad
run t --once --config bad
says "'secret-access-key' holds a secret"
chmod 600 bad
run t --once --config bad
says "unknown key 'secret-access-key'"
! grep -q CANARY said || fail "the secret was told"
cp conf bad
chmod 666 bad
run t --once --config bad
equal "status of a file that others may write" $status 2
says 'others may write to it'

# dump DIR ID
dump() {
	cat >"$1/dump.$2.json" <<-END
		{ "dump_id": "$2", "trigger": "slow", "trigger_time": "2026-11-28T15:19:51.123456789Z",
		  "state": "closed", "from": "2026-11-28T15:19:21.123456789Z", "to": "2026-11-28T15:20:01.123456789Z", "mode": "continuous",
		  "complete": true, "segments": [], "segment_count": 0, "bytes": 0, "fired": [], "fired_count": 0, "suppressed_before": 0 }
	END
}

# asked TEXT: how the store has answered to what is asked for a key with that text; 0: not yet.
asked() {
	node -e 'fetch(process.argv[1] + "/-/log").then((log) => log.json()).then((log) =>
		console.log(...log.filter(({ key }) => key?.includes(process.argv[2])).map(({ status }) => status ?? 0)))' "$address" "$1"
}

# ---- read again
sed '/^once/d' conf >live
traces t/abcd-2 1
"$dial9" ship t --config live >served 2>&1 9>&- &
pid=$!
trap 'kill $pid 2>/dev/null || :; rm -rf "$work"' EXIT
wait_stored 1 '*boot=abcd-2/*' 'not stored'
sed 's/of_file/of_file_2/' live >new
mv new live
kill -HUP $pid
wait_for served 'the configuration was read again'
mkdir -m 700 t/abcd-3
traces made 1
mv made/trace.0.bin.zst t/abcd-3/
wait_stored 1 '*/of_file_2/*boot=abcd-3/*' 'not stored where the new file says'
echo 'parallel = none' >>live
kill -HUP $pid
wait_for served 'the configuration stays as it was'
wait_for served 'live:6: --parallel'
traces made 1
mv made/trace.0.bin.zst t/abcd-3/trace.1.bin.zst
wait_stored 2 '*/of_file_2/*boot=abcd-3/*' 'a mistake in the file has ended it'

# An answer that is late is one to what was asked then, and to nothing that is asked now.
faults '[{ "kind": "delay", "ms": 1300, "key": "dumps/01ZZ" }, { "kind": "silence", "key": "dumps/01AA", "times": 0 }]'
dump t/abcd-3 01ZZZZZZZZZZZZZZZZZZZZZZZZ
until [ "$(asked dumps/01ZZ)" = 0 ]; do
	kill -0 $pid || fail "it ended: $(cat served)"
	sleep 0.05
done
dump t/abcd-3 01AAAAAAAAAAAAAAAAAAAAAAAA
kill -HUP $pid
until [ "$(asked dumps/01ZZ)" = 200 ] && [ "$(asked dumps/01AA)" = 0 ]; do
	kill -0 $pid || fail "it ended: $(cat served)"
	sleep 0.05
done
kill -TERM $pid
status=0
wait $pid || status=$?
trap 'rm -rf "$work"' EXIT
[ -e t/abcd-3/dump.01AAAAAAAAAAAAAAAAAAAAAAAA.json ] || fail "it takes another's answer for its own"
equal "status after SIGTERM" $status 0
# ---- what would leave, by name, and nothing does
mkdir -m 700 e e/abcd-1
"$make_trace" hour zstd e/abcd-1/trace.0.bin.zst abcd-1 0 5 7-8
before=$(objects)
ship e --dry-run --explain --stage 'redact:SpanEnter*,SegmentMetadataEvent.entries.pid'
equal "status" $status 0
says 'PollStartEvent: local_queue, spawn_loc, task_id, worker_id' 'metadata of segments: boot_id, segment.evicted, service' \
	'beside objects: boot-id, format, host, missing, segment-index, service, start-time'
! grep -q 'SpanEnter\|pid' said || fail "a stage takes that out: $(cat said)"
ship e --dry-run --explain
says 'SpanEnter:demo: ' 'pid'
equal "objects" "$(objects)" "$before"
[ -f e/abcd-1/trace.0.bin.zst ] || fail "it was removed"
ship e --once --explain
equal "status of one that is no dry run" $status 2
stop_store
