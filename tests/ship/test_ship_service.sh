#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# dial9 ship as a service: it sends what is sealed at once, tells systemd how it is, shares a tree with others, cleans up after
# dead processes, and says so before recorders lose what it could not send.
set -eu
# shellcheck source=tests/toolkit/node.sh
. "$top_srcdir/tests/toolkit/node.sh"
# shellcheck source=tests/ship/store.sh
. "$top_srcdir/tests/ship/store.sh"

listen=$top/tests/ship/listen_notify
pid='' other=''
trap 'kill $pid $other 2>/dev/null || :; rm -rf "$work"' EXIT

# serve DIR ARGUMENTS...: a service, $pid, that looks at all once an hour; what it says is in the file `served`.
serve() {
	"$dial9" ship --raw --every 1h --to s3://bucket/p --endpoint "$address" "$@" >served 2>&1 9>&- &
	pid=$!
}

# wait_until WHAT COMMAND...
wait_until() {
	what=$1 n=0
	shift
	until "$@"; do
		n=$((n + 1))
		[ $n -lt 600 ] || fail "$what: $(cat served)"
		sleep 0.05
	done
}

is_stored() {
	[ "$(objects "$2")" = "$1" ]
}

has() {
	grep -qF -- "$2" "$1"
}

is_gone() {
	[ ! -e "$1" ]
}

# stop: ends it, and looks at how.
stop() {
	kill -TERM $pid
	status=0
	wait $pid || status=$?
	pid=''
	equal "status after SIGTERM" $status 0
}

# seal DIR N: one more segment, as a recorder seals it.
seal() {
	traces made 1
	mkdir -p "$1"
	chmod 700 "$1"
	mv made/trace.0.bin.zst "$1/trace.$2.bin.zst"
}

start_store

# ---- at once, and told to systemd
mkdir -m 700 t
seal t/abcd-1 0
mkfifo held
"$listen" "$work/socket" <held >told 9>&- &
exec 8>held
wait_until 'no socket' test -S socket
NOTIFY_SOCKET=$work/socket WATCHDOG_USEC=2000000 serve t
wait_until 'the first is not stored' is_stored 1 '*boot=abcd-1/*-0.bin*'
wait_until 'it is not ready' has told READY=1
seal t/abcd-1 1
wait_until 'a seal is not seen' is_stored 1 '*boot=abcd-1/*-1.bin*'
seal t/efgh-2 0
wait_until 'a new process is not seen' is_stored 1 '*boot=efgh-2/*-0.bin*'
wait_until 'the watchdog is not fed' has told WATCHDOG=1
equal "what was told first" "$(head -n 1 told)" READY=1

# ---- it holds the directory, with others
! flock -n t/.ship true || fail ".ship is not locked"
flock -n -s t/.ship true || fail ".ship lets nobody else in"
first=$pid
mv served served_first
serve t
other=$first
wait_until 'two do not get on' sh -c 'flock -n t/.ship true; [ $? = 1 ]'
for k in 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21; do
	seal t/abcd-1 $k
done
wait_until 'not all are stored' is_stored 22 '*boot=abcd-1/*'
stop
! flock -n t/.ship true || fail "one left, and .ship is free"
pid=$other other=''
stop
has told STOPPING=1 || fail "it did not tell its end"
flock -n t/.ship true || fail ".ship is locked, and nobody is there"
equal "lines of the list" "$(sort -u t/abcd-1/.shipped | wc -l | tr -d ' ')" 22
exec 8>&-

# ---- what goes on being wrong is told once, and keeps nothing else waiting
mkdir -m 700 w w/abcd-1
printf 'no trace' >w/abcd-1/trace.7.bin
cat >w/abcd-1/dump.01ARZ3NDEKTSV4RRFFQ69G5FAV.json <<-END
	{ "dump_id": "01ARZ3NDEKTSV4RRFFQ69G5FAV", "trigger": "slow", "trigger_time": "2026-11-28T15:19:51.123456789Z",
	  "state": "closed", "from": "2026-11-28T15:19:21.123456789Z", "to": "2026-11-28T15:20:01.123456789Z", "mode": "continuous",
	  "complete": true, "segments": [], "segment_count": 0, "bytes": 0, "fired": [], "fired_count": 0, "suppressed_before": 0 }
END
faults '[{ "kind": "status", "status": 400, "code": "Odd", "key": "dumps/", "times": 0 }]'
serve w --every 50ms
wait_until 'a refused dump is not told' has served 'dump.01ARZ3NDEKTSV4RRFFQ69G5FAV.json: the store refuses what is told of it: Odd'
for k in 0 1 2; do
	seal w/abcd-1 $k
	wait_until 'a refused dump keeps segments waiting' is_stored 1 "*boot=abcd-1/*-$k.bin*"
done
[ -e w/abcd-1/dump.01ARZ3NDEKTSV4RRFFQ69G5FAV.json ] || fail "a refused dump is gone"
faults '[]'
wait_until 'a dump is not sent again' is_gone w/abcd-1/dump.01ARZ3NDEKTSV4RRFFQ69G5FAV.json
stop
equal "lines: $(cat served)" "$(grep -c '^dial9 ship: ' served)" 2

# ---- what dead processes leave
mkdir -m 700 d
for boot in aaaa-1 bbbb-2 cccc-3; do
	seal d/$boot 0
	: >d/$boot/.lock
done
: >d/aaaa-1/perf-1.map
: >d/aaaa-1/dump.01ARZ3NDEKTSV4RRFFQ69G5FAV.done
: >d/bbbb-2/notes.txt
exec 7>>d/cccc-3/.lock
flock 7
serve d --every 50ms 7>&-
wait_until 'an empty directory stays' is_gone d/aaaa-1
equal "objects of the dead" "$(objects '*boot=aaaa-1/*')" 1
wait_until 'that of others is not sent' is_stored 1 '*boot=bbbb-2/*'
wait_until 'that of a living one is not sent' is_stored 1 '*boot=cccc-3/*'
seal d/dddd-4 0
: >d/dddd-4/.lock
wait_until 'the last of the dead stays' is_gone d/dddd-4
[ -e d/bbbb-2/notes.txt ] || fail "it removed what it does not know"
[ -e d/cccc-3/.shipped ] || fail "it removed what a living process has"
exec 7>&-
wait_until 'its end is not seen' is_gone d/cccc-3
stop

# ---- and how much of it
mkdir -m 700 m
for k in 0 1 2 3; do
	seal m/aaaa-1 $k
	touch -d "2026-01-01 00:00:0$k" m/aaaa-1/trace.$k.bin.zst
done
: >m/aaaa-1/.lock
size=$(wc -c <m/aaaa-1/trace.0.bin.zst)
faults '[{ "kind": "status", "status": 503, "code": "SlowDown", "times": 0 }]'
serve m --every 50ms --max-disk $((2 * size + size / 2))
wait_until 'there is no bound' is_gone m/aaaa-1/trace.1.bin.zst
wait_until 'it is not told' has served 'segments of dead processes'
has served 'removed unsent: --max-disk is' || fail "$(cat served)"
equal "what is left" "$(find m -name 'trace.*' | sort | tr '\n' ' ')" "m/aaaa-1/trace.2.bin.zst m/aaaa-1/trace.3.bin.zst "
equal "what the list says" "$(cut -d ' ' -f 1,2 m/aaaa-1/.shipped | tr '\n' ' ')" "missing 0 missing 1 "
faults '[]'
wait_until 'the rest is not stored' is_stored 2 '*boot=aaaa-1/*-[23].bin*'
stop
has served '2 of dead processes removed unsent' || fail "$(cat served)"
equal "what no marker tells stays in the list" "$(grep -c ^missing m/aaaa-1/.shipped)" 2

# ---- a backlog
mkdir -m 700 b
printf '#!/bin/sh\ntouch "%s/ran"\ncat\n' "$work" >mark
chmod +x mark
mkdir -m 700 b/abcd-1
truncate -s 600K b/abcd-1/trace.0.bin.zst
DIAL9_MAX_DISK_USAGE_MB=1 serve b --every 50ms
wait_until 'a backlog is not told' has served 'b/abcd-1: 600 KiB wait, 58 %'
stop
truncate -s 900K b/abcd-1/trace.0.bin.zst
seal b/abcd-1 1
DIAL9_MAX_DISK_USAGE_MB=1 "$dial9" ship b --stage "$work/mark" --stage 'redact:*.task_id' --every 50ms --to s3://bucket/b \
	--endpoint "$address" >served 2>&1 9>&- &
pid=$!
wait_until 'a large backlog is not told' has served '87 % of what a recorder keeps before it removes the oldest; they go without stages'
wait_until 'with a backlog nothing is sent' is_stored 1 '*/b/*-1.bin*'
[ ! -e ran ] || fail "a stage was run although much waits"
"$dial9" events "$(find "$stored/b" -name '*-1.bin*')" >listed
! grep -q 'task_id=[1-9]' listed || fail "redact was left out"
rm b/abcd-1/trace.0.bin.zst
k=2
has_run() {
	seal b/abcd-1 $k
	k=$((k + 1))
	[ -e ran ]
}
wait_until 'it does not see that less waits' has_run
equal "times that it was told" "$(grep -c 'of what a recorder keeps' served)" 1
stop
stop_store
