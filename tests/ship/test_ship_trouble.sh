#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What people meet on the first days: credentials that have expired, a clock that is wrong, another region, a store that is
# away for long, no room, somebody else's traces.  Each is told in one line, with what to do, and no segment is lost.
set -eu
# shellcheck source=tests/toolkit/node.sh
. "$top_srcdir/tests/toolkit/node.sh"
# shellcheck source=tests/ship/store.sh
. "$top_srcdir/tests/ship/store.sh"

# kept STATUS N WHAT: that was the status, N segments are still here, none in refused/.
kept() {
	equal "status: $3" $status "$1"
	equal "segments left: $3" "$(find t -path '*/refused/*' -name 'trace.*' | wc -l | tr -d ' ') $(find t -name 'trace.*' | wc -l | tr -d ' ')" "0 $2"
}
# told TEXT: the one line that was said beside the sum.
told() {
	equal "lines: $(cat said)" "$(grep -c '^dial9 ship: ' said)" 1
	says "$1"
}
always() {
	faults "[{ $1, \"times\": 0 }]"
}

start_store
traces t/abcd-1 2

# ---- credentials
always '"kind": "expired"'
ship t --once
kept 1 2 "expired credentials"
told 's3://bucket/p: ExpiredToken: The provided token has expired.; their source gives no newer ones: renew the credentials'
faults '[]'
AWS_ACCESS_KEY_ID=NOBODY ship t --once
kept 1 2 "an unknown key"
told '; check the access key, and that it is of this store'
AWS_SECRET_ACCESS_KEY=wrong ship t --once
kept 1 2 "a wrong secret"
told '; check the secret key'
always '"kind": "status", "status": 403, "code": "AccessDenied", "message": "no"'
ship t --once
kept 1 2 "no right"
told 's3://bucket/p: AccessDenied: no; check the policy'

# ---- region, bucket
faults '[]'
AWS_REGION=us-east-1 ship t --once
kept 0 0 "another region, which the store names"
equal "lines" "$(grep -c '^dial9 ship: ' said || :)" 0
traces t/abcd-1 2
always '"kind": "redirect", "region": "eu-central-1"'
ship t --once
kept 1 2 "a region that is wrong for ever"
told '; set the region to the bucket'"'"'s'
faults '[]'
status=0
"$dial9" ship t --once --to s3://absent/p --endpoint "$address" >said 2>&1 9>&- || status=$?
kept 1 2 "no bucket"
told 's3://absent/p: NoSuchBucket: The specified bucket does not exist; check the bucket'"'"'s name, and the endpoint'

# ---- a header that the store does not know is left out; told once, and objects are there
always '"kind": "dislike", "header": "x-amz-checksum-sha256"'
ship t --once
kept 0 0 "a header that the store does not know"
told 'the store takes no checksum headers: objects are stored without them'
equal objects "$(objects '*')" 2
stop_store

# ---- a clock that is an hour off, here or there
store_options=--clock-offset=3600
start_store
traces t/abcd-1 2
ship t --once
kept 0 0 "a clock that is off, corrected by the store's"
traces t/abcd-1 2
always '"kind": "status", "status": 403, "code": "RequestTimeTooSkewed", "message": "too far"'
ship t --once
kept 1 2 "a clock that is off for ever"
told 'RequestTimeTooSkewed: too far; set the clock of this machine'
stop_store

# ---- nobody there: with --once it gives up; without it, it is asked again and again, and stored as soon as it is back
port=${address##*:}
ship t --once --deadline 1s
kept 1 2 "nobody there"
told "NoConnection: Failed to connect to 127.0.0.1 port $port"
says '; check the endpoint, and that it can be reached from here'
: >went
"$dial9" ship t --to s3://bucket/p --endpoint "$address" --every 100ms --raw >went 2>&1 &
shipper=$!
until grep -q NoConnection went; do
	kill -0 $shipper || fail "it ended: $(cat went)"
	sleep 0.05
done
rm -r s3
store_options="--port $port"
start_store
while [ "$(find t -name 'trace.*' | wc -l)" -gt 0 ]; do
	kill -0 $shipper || fail "it ended: $(cat went)"
	sleep 0.05
done
kill -TERM $shipper
wait $shipper || fail "status after SIGTERM: $?"
equal "lines of an outage: $(cat went)" "$(grep -c 'NoConnection' went)" 1
equal "objects after an outage" "$(objects '*')" 2

# ---- no room for what a stage makes, nor for the list of what is stored: nothing goes past a redact, else as it was
if [ "$(id -u)" = 0 ] && mkdir full && unshare -m mount -t tmpfs -o size=64k none full 2>/dev/null; then
	traces kept/abcd-2 1
	"$make_trace" many plain kept/abcd-2/trace.0.bin 400 && rm kept/abcd-2/trace.0.bin.zst
	DIAL9=$dial9 ADDRESS=$address unshare -m sh -euc '
		mount -t tmpfs -o size=64k,mode=700 none full
		cp -R kept/abcd-2 full/
		dd if=/dev/zero of=full/filler bs=4k 2>/dev/null || :
		status=0
		"$DIAL9" ship full --once --stage "redact:NoSuchField" --to s3://bucket/redacted --endpoint "$ADDRESS" >said 2>&1 || status=$?
		echo "status $status, left $(find full -name "trace.*" | wc -l)" >>said
		"$DIAL9" ship full --once --to s3://bucket/plain --endpoint "$ADDRESS" >plain 2>&1 || echo "status $?" >>plain
		[ ! -e full/abcd-2/trace.0.bin ] || echo "it is still there" >>plain
		grep "^stored 0 " full/abcd-2/.shipped || echo "it is not written down" >>plain
	' 9>&-
	told "full/abcd-2/trace.0.bin: stage 'redact:NoSuchField': no space left; left as it is"
	says '1 failed' 'status 1, left 1'
	equal "what was sent past a redact" "$(objects '*/redacted/*')" 0
	# What is stored makes room, also for the line that says so.
	equal "where there is no room" "$(grep -v "^1 segment stored, .* 1 hour\$\|stage 'symbolize': .*no space left" plain || :)" ''
	equal "what was sent where there is no room" "$(objects '*/plain/*')" 1
fi

# ---- traces of another user, seen by root
if [ "$(id -u)" = 0 ]; then
	rm -rf t
	traces t/abcd-3 1
	chown -R daemon t
	ship t --once
	kept 1 1 "traces of another user"
	told "t/abcd-3: it is not this user's alone; run dial9 ship as the user that records"
fi
stop_store
