#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The shipper is killed at random moments, and two of them work on one tree: each segment is stored, with the bytes that it
# had, and none is here any more.
set -eu
# shellcheck source=tests/toolkit/node.sh
. "$top_srcdir/tests/toolkit/node.sh"
# shellcheck source=tests/ship/store.sh
. "$top_srcdir/tests/ship/store.sh"

rounds=${D9_KILLS:-20}
start_store
traces many/abcd-1 20
traces many/efgh-2 10

# same TREE: each of the segments of many/ is in the store.
same() {
	find many -name 'trace.*' | while read -r path; do
		name=$(basename "$path")
		index=${name#trace.}
		index=${index%%.*}
		boot=$(basename "$(dirname "$path")")
		found=$(find "$stored" -path "*/boot=$boot/*-$index.bin.zst")
		[ -n "$found" ] || fail "$path is not stored"
		cmp "$path" "$found" || fail "$path is stored with other bytes"
	done
	equal "segments left of $1" "$(find "$1" -name 'trace.*' | wc -l | tr -d ' ')" 0
	rm -r "$stored/p" "$1"
}

# Seeded: a failure can be looked at again.
moments=$(awk -v n="$rounds" 'BEGIN { srand(27); for (i = 0; i < n; i++) printf "%.3f\n", rand() * 0.15 }')
cp -R many killed
killed=0
for moment in $moments; do
	if [ -z "$(find killed -name 'trace.*' | head -n 1)" ]; then
		same killed
		cp -R many killed
	fi
	"$dial9" ship killed --raw --once --to s3://bucket/p --endpoint "$address" >said 2>&1 9>&- &
	pid=$!
	sleep "$moment"
	kill -KILL $pid 2>/dev/null && killed=$((killed + 1))
	wait $pid || true
done
ship killed --raw --once
equal "status in the end" $status 0
same killed
[ $killed -gt 0 ] || fail "none was killed"

cp -R many shared
"$dial9" ship shared --raw --once --to s3://bucket/p --endpoint "$address" >other 2>&1 9>&- &
pid=$!
ship shared --raw --once
wait $pid || fail "the other one: $(cat other)"
equal "status of one of two" $status 0
equal "lines of both lists" "$(cat shared/*/.shipped | sort -u | wc -l | tr -d ' ')" 30
same shared
stop_store
