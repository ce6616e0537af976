#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Kills shipper, traced program and store at random moments, 1,000 times by hand, and looks whether every segment that was ever
# sealed is in the store, each copy the same, or in a gap that somebody has written down:
#
#	top_srcdir=SOURCE top_builddir=BUILD tests/ship/kill_1000.sh [TIMES [SEED]]
set -eu
# shellcheck source=tests/toolkit/node.sh
. "$top_srcdir/tests/toolkit/node.sh"
# shellcheck source=tests/ship/store.sh
. "$top_srcdir/tests/ship/store.sh"
# shellcheck source=tests/ship/timer.sh
. "$top_srcdir/tests/ship/timer.sh"

times=${1:-1000}
seed=${2:-27}
witness_script=$(cd "$top_srcdir" && pwd)/tests/ship/kill_witness.mjs
mkdir -m 700 tree witness copies
mkfifo pipe
port=0

# The pids of those that run are in $store, $shipper, $program, where kill_one() looks.
# shellcheck disable=SC2034
start_one() {
	case $1 in
	store)
		rm -f address
		node "$script" --dir s3 --copies copies --port $port --limit 7200 <pipe >address 2>>store.log 9>&- 8>&- &
		store=$!
		;;
	shipper)
		"$dial9" ship tree --raw --every 50ms --to s3://bucket/p --endpoint "$address" >>shipper.log 2>&1 9>&- 8>&- </dev/null &
		shipper=$!
		;;
	program)
		DIAL9_TRACE_DIR=$work/tree DIAL9_ROTATION_SECS=1 LD_PRELOAD=$preload ./timer 0 9>&- 8>&- </dev/null &
		program=$!
		;;
	esac
}

# kill_one NAME: that one, at once, and it is gone when this returns.
kill_one() {
	eval "victim=\$$1"
	kill -KILL "$victim"
	wait "$victim" 2>/dev/null || true
}

start_one store
exec 9>pipe
await test -s address
address=$(cat address)
port=${address##*:}
mkfifo watching
node "$witness_script" watch tree witness <watching &
witness=$!
exec 8>watching
start_one shipper
start_one program
await has_active tree

awk -v n="$times" -v seed="$seed" 'BEGIN {
	srand(seed)
	split("store shipper program", who)
	for (i = 0; i < n; i++)
		printf "%s %.3f\n", who[1 + int(3 * rand())], 0.25 * rand() * rand()
}' >moments
while read -r who moment <&3; do
	sleep "$moment"
	kill_one "$who"
	start_one "$who"
done 3<moments

# All end; what is left is recovered, and sent to a store that nobody kills.
kill_one program
kill_one shipper
await test -s address
rounds=0
until "$dial9" ship tree --raw --once --to s3://bucket/p --endpoint "$address" >last 2>&1 9>&- 8>&-; do
	rounds=$((rounds + 1))
	[ $rounds -lt 20 ] || fail "what is left cannot be sent: $(cat last)"
	sleep 0.2
done
exec 8>&-
wait $witness
echo "$times kills: $(grep -c store moments) of the store, $(grep -c shipper moments) of the shipper, $(grep -c program moments) of the program"
node "$witness_script" judge witness s3 copies tree "$dial9"
status=$?
exec 9>&-
wait $store || true
exit $status
