#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Programs with DIAL9_S3_BUCKET send nothing themselves; dial9 status says what waits, and dial9 ship --from-rings stores it
# where each ring says, of its own user alone, also of a program that was killed.
set -eu
# shellcheck source=tests/toolkit/node.sh
. "$top_srcdir/tests/toolkit/node.sh"
# shellcheck source=tests/ship/store.sh
. "$top_srcdir/tests/ship/store.sh"
# shellcheck source=tests/ship/timer.sh
. "$top_srcdir/tests/ship/timer.sh"
start_store
AWS_ENDPOINT_URL_S3=$address
export AWS_ENDPOINT_URL_S3
chmod 755 "$work"

# attached DIR VARIABLE=VALUE...: a program that records into DIR; its process in $pid.
attached() {
	dir=$1
	shift
	env "$@" DIAL9_TRACE_DIR="$work/$dir" DIAL9_ROTATION_SECS=1 LD_PRELOAD="$preload" ./timer 0 9>&- &
	pid=$!
	await has_sealed "$dir"
}

# rings ARGUMENTS...: what the shipper says is in the file `said`, its status in $status.
rings() {
	status=0
	"$dial9" ship --from-rings --raw "$@" >said 2>&1 9>&- || status=$?
}

attached one DIAL9_S3_BUCKET=bucket DIAL9_S3_PREFIX=team/one/ DIAL9_SERVICE_NAME=shop
one=$pid
attached two DIAL9_S3_BUCKET=bucket
two=$pid
attached three DIAL9_S3_PREFIX=no/bucket
three=$pid
attached four DIAL9_S3_BUCKET=../bucket
four=$pid
equal "objects before there is a shipper" "$(objects 2>/dev/null || true)" 0

"$dial9" status $one >said
grep -q '^  store *s3://bucket/team/one/, waits for a shipper: [0-9]* segments\{0,1\}; dial9 ship --from-rings$' said ||
	fail "$(cat said)"
"$dial9" status >said 2>&1 || true
says 'store: s3://bucket/team/one/, waits for a shipper' 'store: s3://bucket/dial9-traces, waits for a shipper'
"$dial9" status --json >said 2>&1 || true
DIR=$work node -e '
	const assert = require("assert");
	const text = require("fs").readFileSync("said", "utf8");
	const seen = JSON.parse(text.slice(text.indexOf("{"))).recorders.filter((one) => one.trace_dir.startsWith(process.env.DIR + "/"));
	const stores = Object.fromEntries(seen.map((one) => [one.trace_dir.split("/").pop(), one.store]));
	assert.equal(stores.one.bucket, "bucket");
	assert.equal(stores.one.prefix, "team/one/");
	assert.ok(stores.one.segments_waiting >= 1);
	assert.equal(stores.two.prefix, "dial9-traces");
	assert.equal(stores.three, null);
	assert.equal(stores.four, null);
'

rings --once --dry-run "$work"
equal "status of a dry run" $status 0
says 'team/one/version=1/date=' '/service=shop/' 'dial9-traces/version=1/'
equal "objects behind a dry run" "$(objects 2>/dev/null || true)" 0

# Only what is asked for; then all of them, each to its place.
rings --once "$work/one"
equal "status" $status 0
[ "$(objects '*/team/one/version=1/*/service=shop/*')" -ge 1 ] || fail "nothing of one is stored: $(cat said)"
equal "objects of two" "$(objects '*/dial9-traces/*')" 0
rings --once "$work"
equal "status" $status 0
[ "$(objects '*/dial9-traces/version=1/*')" -ge 1 ] || fail "nothing of two is stored: $(cat said)"
[ "$(segments three)" -ge 1 ] || fail "what names no bucket was sent"
[ "$(segments four)" -ge 1 ] || fail "a hostile name was taken"
equal "lists of three and four" "$(find three four -name .shipped | wc -l | tr -d ' ')" 0

# Neither an address nor a key comes from a ring; what does not fit together is refused in a line.
for wrong in '--to s3://bucket' '--status'; do
	# shellcheck disable=SC2086
	rings $wrong "$work"
	equal "status with $wrong" $status 2
	says 'exclude each other'
done

# Killed, with events in its ring alone: they become a segment and are stored.
"$dial9" ship --from-rings --raw --every 100ms "$work" >served 2>&1 9>&- &
shipper=$!
kill -KILL $one
wait $one 2>/dev/null || true
nothing_left() {
	[ -z "$(find one/*/ -name 'trace.*')" ] && [ ! -e "/dev/shm/dial9-$(id -u)/$(basename one/*)/ring" ]
}
await nothing_left
# A ring goes with its program, and what was sealed last is sent all the same.
kill -TERM $two
wait $two 2>/dev/null || true
none_of_two() {
	[ -z "$(find two/*/ -name 'trace.*')" ]
}
await none_of_two
kill -TERM $shipper
status=0
wait $shipper || status=$?
equal "status of the one that was ended" $status 0
! grep -v ' stored, ' served || fail "$(cat served)"

# Of another user's rings, root's shipper takes none.
if [ "$(id -u)" = 0 ] && setpriv --reuid 65533 --regid 65533 --clear-groups true 2>/dev/null; then
	mkdir other
	chown 65533:65533 other
	env DIAL9_S3_BUCKET=bucket DIAL9_S3_PREFIX=other DIAL9_TRACE_DIR="$work/other" DIAL9_ROTATION_SECS=1 \
		setpriv --reuid 65533 --regid 65533 --clear-groups env LD_PRELOAD="$preload" ./timer 0 9>&- &
	other=$!
	await has_sealed other
	rings --once "$work"
	equal "objects of another user" "$(objects '*/other/*')" 0
	[ "$(segments other)" -ge 1 ] || fail "another user's were taken"
	kill -KILL $other
	wait $other 2>/dev/null || true
	rm -rf /dev/shm/dial9-65533
fi
kill -KILL $three $four
wait $three $four 2>/dev/null || true
"$dial9" recover three four >said 2>&1 || true
stop_store
