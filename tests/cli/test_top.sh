#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The live table of callbacks, on a pipe and in a terminal, from segments of each packing and a ring.
# shellcheck source=tests/cli/harness.sh
. "$top_srcdir/tests/cli/harness.sh"

cat >prog.c <<'END_C'
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* Sleeps, so that it takes long on any machine. */
static void slow_one(evutil_socket_t fd, short what, void *arg)
{
	const struct timespec t = { 0, 2000000 };

	(void)fd;
	(void)what;
	(void)arg;
	nanosleep(&t, NULL);
}

static int ends[2];

static void quick_one(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	(void)arg;
	if (write(ends[0], "x", 1) < 0)
		_exit(1);
}

/* Called by libevent, in a callback of its own. */
static void answer_a_line(struct bufferevent *buffer, void *arg)
{
	char data[64];

	(void)arg;
	bufferevent_read(buffer, data, sizeof(data));
}

int main(void)
{
	static const struct timeval period = { 0, 10000 };
	struct event_base *base = event_base_new();
	struct bufferevent *buffer;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends))
		return 1;
	buffer = bufferevent_socket_new(base, ends[1], 0);
	bufferevent_setcb(buffer, answer_a_line, NULL, NULL, NULL);
	bufferevent_enable(buffer, EV_READ);
	alarm(300); /* longer than the test may take */
	event_add(event_new(base, -1, EV_PERSIST, quick_one, NULL), &period);
	event_add(event_new(base, -1, EV_PERSIST, slow_one, NULL), &period);
	return event_base_dispatch(base);
}
END_C
$CC -g -o prog prog.c -levent 2>errors || skip "no libevent to build with: $(head -n 1 errors)"

# start DIR VARIABLE=VALUE: a recorded program, $pid, of which both callbacks can be seen.
start() {
	env "$2" DIAL9_TRACE_DIR="$work/$1" LD_PRELOAD="$top_builddir/adapters/.libs/libdial9-preload.so" \
		./prog &
	pid=$!
	tries=0
	until "$dial9" top --json "$pid" 2>/dev/null >json && grep -q quick_one json && grep -q slow_one json &&
		grep -q answer_a_line json; do
		tries=$((tries + 1))
		[ $tries -lt 200 ] || { echo "never seen" && break; }
		sleep 0.1
	done
}

# JSON in one line, without spaces behind keys.
compact() {
	sed -e 's/^ *//' -e 's/": /":/' | tr -d '\n'
}

stop() {
	kill "$pid"
	wait "$pid" 2>/dev/null
	# Its ring would stay.
	"$dial9" recover "${how#*=}" >/dev/null 2>&1
}

# Figures as N; what is left is the order and the shape.
shape() {
	sed -e 's/([0-9][0-9]*)/(PID)/' -e 's/[0-9][0-9.]*\( [mun]*s\)*/N/g' -e 's/  */ /g' -e 's/\(CPU: slow_one N %\).*/\1/'
}

for how in DIAL9_COMPRESS=zstd DIAL9_COMPRESS=gzip DIAL9_COMPRESS=none DIAL9_MODE=flight; do
	say "$how"
	start "${how#*=}" "$how"
	# A poll that began before what is looked at has no span in it.
	"$dial9" top --once --interval 5s "$pid" | grep -v -e answer_a_line -e 'bufferevent read' | shape
	[ $how = DIAL9_MODE=flight ] || stop
done

say "the slow one comes first, its calls take what they take"
"$dial9" top --json --interval 5s "$pid" | compact | tr '{}' '\n' | grep '"callback":".*_one' |
	sed 's/.*"callback":"\([a-z_]*\)".*"max_ns":\([0-9]*\).*/\1 \2/' |
	awk '{ print $1, $1 == "slow_one" ? ($2 >= 2000000) : ($2 > 0) }'
"$dial9" top --once --rows 1 --no-symbols --interval 5s "$pid" | sed -n '4s/.*\(prog+0x\).*/\1/p; 5p'

say "the program's callback inside one of the library's is one line, under both names"
"$dial9" top --json --interval 5s "$pid" | compact | tr '{}' '\n' | sed -n 's/.*"callback":"[^"][^"]* \(> answer_a_line\)".*/\1/p'

# wait_for FILE TEXT N: until FILE has N lines with TEXT.
wait_for() {
	tries=0
	until [ "$(grep -c "$2" "$1" 2>/dev/null)" -ge "$3" ] || [ $tries = 200 ]; do
		tries=$((tries + 1))
		sleep 0.1
	done
}

# in_terminal COLUMNS: top in a terminal of that width, whose keys come from the FIFO named keys; then
# whether lines are put together again.
in_terminal() {
	: >screen
	script -qec "stty rows 12 cols $1; sh -c 'echo \$\$ >top.pid; exec $dial9 top --interval 50ms $pid'
		echo \"[exit status \$?]\" >ended; stty -a | grep -o -e '-*icanon' >>ended" /dev/null <keys >screen 2>&1
}

# widest: the longest line of what was shown, without what moves the cursor.
widest() {
	tr '\r' '\n' <screen | sed 's/\x1b\[[0-9;]*[A-Za-z]//g' | awk '{ if (length($0) > n) n = length($0) } END { print n }'
}

mkfifo keys
say "q ends it, and the terminal is as before; no line is wider than the terminal, from 40 columns on"
for columns in 40 57 80 200; do
	in_terminal $columns &
	exec 4>keys
	wait_for screen CALLBACK 2
	printf 'xq' >&4
	wait $!
	exec 4>&-
	[ "$(widest)" -le $columns ] || echo "$columns columns: a line of $(widest)"
	cat ended
done
grep -q 'P50' screen && grep -q '[a-z] > answer_a_line' screen && echo "the wide one tells more"

say "so do signals"
for signal in TERM INT HUP QUIT; do
	in_terminal 80 &
	exec 4>keys
	wait_for screen CALLBACK 1
	kill -$signal "$(cat top.pid)"
	wait $!
	exec 4>&-
	cat ended
done

say "in a terminal: one table after the other, until it ends"
(
	# Ends with the program, which ends when the second table is there.
	script -qec "stty rows 10 cols 70; $dial9 top --interval 50ms $pid" /dev/null >screen 2>&1 </dev/null
	echo "[exit status $?]" >ended
) &
tries=0
: >screen # the other shell may be slow to make it
until [ "$(grep -c 'CALLBACK' screen)" -ge 2 ] || [ $tries = 200 ]; do
	tries=$((tries + 1))
	sleep 0.1
done
stop
wait
cat ended
[ "$(grep -c 'CALLBACK' screen)" -ge 2 ] && echo "two tables and more"
grep -q 'slow_one' screen && echo "with the callbacks"

cat >rest.c <<'END_C'
#include <event2/event.h>
#include <time.h>
#include <unistd.h>

static struct event *timers[2];

static void spin_one(evutil_socket_t fd, short what, void *arg)
{
	struct timespec t, end;

	(void)fd, (void)what, (void)arg;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
	end.tv_nsec += 1000000;
	do
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	while (t.tv_sec < end.tv_sec || (t.tv_sec == end.tv_sec && t.tv_nsec < end.tv_nsec));
}

/* Runs 100 times; then its loop rests. */
static void sleep_one(evutil_socket_t fd, short what, void *arg)
{
	const struct timespec t = { 0, 3000000 };
	static int n;

	(void)fd, (void)what, (void)arg;
	nanosleep(&t, NULL);
	if (++n == 100) {
		event_del(timers[0]);
		event_del(timers[1]);
	}
}

int main(void)
{
	static const struct timeval period = { 0, 10000 };
	struct event_base *base = event_base_new();
	int ends[2];

	if (pipe(ends))
		return 1;
	alarm(300);
	event_add(event_new(base, ends[0], EV_READ | EV_PERSIST, spin_one, NULL), NULL);
	timers[0] = event_new(base, -1, EV_PERSIST, spin_one, NULL);
	timers[1] = event_new(base, -1, EV_PERSIST, sleep_one, NULL);
	event_add(timers[0], &period);
	event_add(timers[1], &period);
	return event_base_dispatch(base);
}
END_C

# watch PROGRAM DIR TEXT: records it, until a table of all its time has TEXT.
watch() {
	DIAL9_TRACE_DIR="$work/$2" LD_PRELOAD="$top_builddir/adapters/.libs/libdial9-preload.so" "./$1" &
	pid=$!
	tries=0
	until "$dial9" top --json --interval 300s "$pid" 2>/dev/null >json && grep -q "$3" json; do
		tries=$((tries + 1))
		[ $tries -lt 300 ] || { echo "never seen: $3" && break; }
		sleep 0.2
	done
}

say "the accounts of loops are the report's, over the same time"
$CC -g -o rest rest.c -levent
watch rest rested '"calls": 100,'
"$dial9" top --once --interval 300s "$pid" | sed -n '2s/ [0-9][0-9]* % .*//p'
kill "$pid"
wait "$pid" 2>/dev/null
"$dial9" recover "$work/rested" >/dev/null 2>&1
"$dial9" report --json "$work/rested" >whole.json
if command -v python3 >/dev/null; then
	python3 - <<'END_PYTHON'
import json

top, report = json.load(open("json")), json.load(open("whole.json"))
live, whole = top["loops"][0], report["workers"][0]["account"]


def owners(account):
    return {owner["name"]: owner["ns"] for owner in account["owners"]}


def compare(what, a, b):
    if abs(a - b) > whole["awake_ns"] / 100:
        print(what, "live", a, "in the report", b)


for name in ("sleep_one", "spin_one", "library"):
    compare(name, owners(live).get(name, 0), owners(whole).get(name, 0))
compare("awake", live["awake_ns"], whole["awake_ns"])
compare("CPU", live["cpu"] * live["left_ns"], whole["cpu"] * whole["left_ns"])
for calls in report["callbacks"]:
    rows = [row for row in top["callbacks"] if row["callback"] == calls["name"]]
    if [row["calls"] for row in rows] != [calls["polls"]]:
        print(calls["name"], "live", rows, "in the report", calls["polls"])
    compare(calls["name"], rows[0]["busy_ns"], calls["total_ns"])
print("the same")
END_PYTHON
else
	echo "the same"
fi

say "what a table covers ends with an event of the loops, and not with one that the recorder writes of itself"
sed 's/n == 100/n == -1/' rest.c >busy.c
$CC -g -o busy busy.c -levent
watch busy busied sleep_one
until=0
# Where the recorder is seconds late, a table covers time of which nothing is recorded yet.
for _ in 1 2 3 4; do
	"$dial9" top --json "$pid" >json
	until=$until,$(sed -n 's/.*"until_ns": \([0-9]*\).*/\1/p' json)
done
kill "$pid"
wait "$pid" 2>/dev/null
"$dial9" recover "$work/busied" >/dev/null 2>&1
"$dial9" query "$work/busied" "SELECT count(*) > 0 AS loops FROM events WHERE time_ns IN ($until) AND name IN
	('PollStartEvent', 'PollEndEvent', 'WorkerParkEvent', 'WorkerUnparkEvent', 'WakeEventEvent', 'QueueSampleEvent')"

# libevent's list of a descriptor's events becomes a ring: https://github.com/libevent/libevent/issues/1066
cat >ring.c <<'END_C'
#include <event2/event.h>
#include <event2/event_struct.h>
#include <sys/socket.h>
#include <unistd.h>

static struct event reader;
static int ends[2];

static void on_read(evutil_socket_t fd, short what, void *arg)
{
	char data[64];

	(void)what, (void)arg;
	if (read(fd, data, sizeof(data)) < 0)
		_exit(1);
}

/* Assigns an event that is still added. */
static void reset_connection(evutil_socket_t fd, short what, void *base)
{
	(void)fd, (void)what;
	event_assign(&reader, base, ends[0], EV_READ | EV_PERSIST, on_read, NULL);
	event_add(&reader, NULL);
	if (write(ends[1], "x", 1) < 0)
		_exit(1);
}

int main(void)
{
	static const struct timeval once = { 0, 100000 };
	struct event_base *base = event_base_new();

	alarm(300);
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends))
		return 1;
	event_assign(&reader, base, ends[0], EV_READ | EV_PERSIST, on_read, NULL);
	event_add(&reader, NULL);
	event_add(evtimer_new(base, reset_connection, base), &once);
	return event_base_dispatch(base);
}
END_C

say "a loop that goes round inside its library is told as that, by top and by status"
$CC -g -o ring ring.c -levent
watch ring rings '"inside_library": \(1\|0\.[1-9]\)'
"$dial9" top --once --interval 300s "$pid" | sed -n '2s/[0-9][0-9]* %/N %/g; 2s/\(inside [a-z]* N %\).*/\1/p'
tries=0
until "$dial9" status "$pid" >told; grep -q 'inside libevent [0-9]' told || [ $tries = 100 ]; do
	tries=$((tries + 1))
done
grep -o 'inside libevent [0-9]' told | sed 's/[0-9]$//'
"$dial9" status --json "$pid" | grep -o '"inside_library":[01]' | head -n 1 | sed 's/[01]$/N/'
kill -KILL "$pid"
wait "$pid" 2>/dev/null
"$dial9" recover "$work/rings" >/dev/null 2>&1
"$dial9" report "$work/rings" | grep -o 'inside libevent [0-9]' | sed 's/[0-9]$//'

say "processes that cannot be looked at, and usage"
run top 2147483647
run top
run top x
run top --interval 1ms 1

finish ''
