#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Programs that are killed: what they had recorded is in the trace, all of it, once and in order.
set -eu
# shellcheck source=tests/real/common.sh
. "$top_srcdir/tests/real/common.sh"

need node

# What the loops counted themselves.
begun() {
	od -An -v -tu8 "$dir/begun" | awk '{ for (i = 1; i <= NF; i++) n += $i } END { print n + 0 }'
}

# check N TRACE: the trace of killed program N holds every callback that began; one more per loop
# may have been announced when the kill came.
check() {
	rm -rf "$2.plain"
	plain "$2" >/dev/null || fail "kill $1: the producer's rules are broken"
	"$dial9" events --json "$2" >"$dir/events"
	polls=$(grep -c '"PollStartEvent"' "$dir/events") || true
	lost=$(awk 'match($0, /"cause":/) && match($0, /"events":[0-9]+/) {
		n += substr($0, RSTART + 9, RLENGTH - 9) } END { print n + 0 }' "$dir/events")
	began=$(begun)
	if [ "$lost" = 0 ]; then
		[ "$polls" -ge "$began" ] || fail "kill $1: $began callbacks began, $polls are in the trace"
	else
		[ $((polls + lost)) -ge "$began" ] || fail "kill $1: $began began, $polls + $lost lost"
	fi
	[ "$polls" -le $((began + threads)) ] || fail "kill $1: $began began, $polls in the trace"
	all=$((all + polls))
}

all=0 threads=2
DIAL9_SERVICE_NAME=kill-$$
export DIAL9_SERVICE_NAME
for n in $(seq "${KILLS:-20}"); do
	trace=$dir/killed.$n
	rm -f "$dir/begun"
	DIAL9_ENABLED=true DIAL9_TRACE_DIR=$trace \
		"$helpers/begun" $threads "$dir/begun" &
	victim=$!
	for _ in $(seq 500); do
		[ "$(begun 2>/dev/null)" -gt 0 ] && break
		sleep 0.01
	done 2>/dev/null
	# From 50 ms to 1.9 s: before the first segment exists, and behind several writes.
	sleep "$(awk -v n="$n" 'BEGIN { srand(n * 7919 + '$$'); print 0.05 + rand() * rand() * 1.9 }')"
	kill -KILL $victim
	wait $victim 2>/dev/null || true
	"$dial9" recover "$trace" >"$dir/said" || fail "kill $n: recover"
	grep -q 'events recovered' "$dir/said" || fail "kill $n: nothing was recovered"
	[ -z "$("$dial9" recover "$trace")" ] || fail "kill $n: a second recovery found something"
	check "$n" "$trace"
	rm -rf "$trace" "$trace.plain"
done
echo "killed ${KILLS:-20} times: $all polls, none missing"
[ ! -e /dev/shm/dial9-"$(id -u)"/*-$victim ] || fail "a ring is left"
