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
	"$dial9" info "$2" >"$dir/info"
	polls=$(awk '$1 == "PollStartEvent" { print $2 }' "$dir/info")
	lost=$(awk '/^[a-z]/ { on = /^lost events/ } on && NF == 2 { n += $2 } END { print n + 0 }' \
		"$dir/info")
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
	until [ "$(begun 2>/dev/null)" -gt 0 ]; do
		kill -0 $victim || fail "kill $n: it ended by itself"
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
set -- /dev/shm/dial9-"$(id -u)"/*-"$victim"
[ ! -e "$1" ] || fail "a ring is left"

# memcached under `dial9 record`, killed.  Each connection was accepted and read once beside each
# request; nobody saw the end.
need memcached
memcached=$(private_copy memcached)
connections=8 requests=200 port=$((20000 + $$ % 2000)) user=''
[ "$(id -u)" != 0 ] || user='-u root'
rm -rf "$dir"/waits.*
# shellcheck disable=SC2086
env "LD_LIBRARY_PATH=$dir/private" "$dial9" record -o "$dir/m" -- \
	sh -c 'echo $$ >"$0"; exec "$@"' "$dir/pid" \
	"$memcached" $user -l 127.0.0.1 -p $port -U 0 -t 4 2>"$dir/said" &
recorder=$!
"$helpers/client" memcached $port $connections $requests >"$dir/stats"
kill -KILL "$(cat "$dir/pid")"
wait $recorder 2>/dev/null || true
grep -q recovered "$dir/said" || fail "record does not say that it recovered: $(cat "$dir/said")"
own() {
	awk -v name="$1" '$2 == name { print $3 + 0 }' "$dir/stats"
}
plain "$dir/m"
handler=$(report "$dir/m" 'r.callbacks.map((c) => c.polls).reduce((a, b) => a > b ? a : b)')
# The client saw its connections closed before the kill.
equal "polls of the killed memcached's handler and its own counters" "$handler" \
	$(($(own cmd_get) + 1 + 3 * ($(own total_connections) - 1)))
