#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Recorders seen from outside: at work, stopped, killed; and rings that are none.
# shellcheck source=tests/cli/harness.sh
. "$top_srcdir/tests/cli/harness.sh"

build_timer

# start DIR [VARIABLE=VALUE...]: a recorded program in the background; $pid once it has a loop.
start() {
	dir=$1
	shift
	# Of the rings of one service recorders keep but two: not those of tests that run beside.
	env "$@" DIAL9_SERVICE_NAME="$test_name-$$" DIAL9_TRACE_DIR="$work/$dir" DIAL9_ENABLED=true LD_PRELOAD="$top_builddir/adapters/.libs/libdial9-preload.so" \
		./prog 1000 &
	pid=$!
	tries=0
	until "$dial9" status -j "$pid" 2>/dev/null | grep -q '"workers":\[{"id":0'; do
		tries=$((tries + 1))
		[ $tries -lt 50 ] || break
	done
}

# forget: remove the ring of the recorder in ./json.
forget() {
	ring=$(sed -n 's/.*"ring":{"path":"\([^"]*\)".*/\1/p' json)
	case $ring in /dev/shm/dial9-*/ring) rm "$ring" && rmdir "${ring%/ring}" ;; esac
}

# value KEY: its first value in ./json.
value() {
	grep -o "\"$1\":[^,}]*" json | head -n 1
}

# show ARGUMENTS...: dial9 status, with what changes from run to run as N, and without processes of other tests that
# have too much to look at.
pid=none-yet
show() {
	printf '$ dial9 status %s\n' "$*" | sed "s/\<$pid\>/PID/g"
	"$dial9" status "$@" >shown 2>&1
	status=$?
	sed -e '/^left out: [0-9]* process/d' -e 's/"processes":[0-9]*/"processes":N/' \
		-e "s/\<$pid\>/PID/g" -e 's/^ *PID prog .*/PID prog STATE/' -e 's/ended with [0-9.]*k* events/ended with N events/' shown
	[ $status = 0 ] || echo "[exit status $status]"
}

say "no recorder below a directory"
mkdir none
show -d none
show --json -d none

say "one at work"
start at-work
show -d at-work
"$dial9" status --json -d at-work >json
echo "[exit status $?]"
for key in program state healthy problems total kind error; do value "$key"; done
grep -o '"loop.libevent.degraded":"[^"]*"' json
grep -o '"workers":\[{"id":0,"tid":' json
# About 2600 events a second, and much fewer on a busy machine.  Of what it recorded in the 200 ms or more
# between two looks, which is no more than from the status before.
recorded() {
	sed -n 's/.*"events":{"recorded":\([0-9]*\).*/\1/p' "$1"
}
"$dial9" status --json -d at-work >later
rate=$(sed -n 's/.*"per_second":\([0-9]*\).*/\1/p' later)
[ "$rate" -gt 10 ] && [ $((rate / 5)) -le $(($(recorded later) - $(recorded json))) ] && echo "a plausible rate"
sed -n 's/.*"tick_age_ns":\([0-9]*\).*/\1/p' json | awk '{ print ($1 < 3e9) ? "it lives" : $0 }'
"$dial9" status "$pid" >details
echo "[exit status $?]"
sed -n '1p; s/^  \([a-z]\{1,\}\( error\)*\)  .*/\1/p' details | sed "s/\<$pid\>/PID/"
grep -o 'recorded, \|lost  *none\|last error  *none\|worker 0, thread' details
grep -o '; [0-9]* % awake, [0-9]* % CPU' details | sed 's/[0-9][0-9]*/N/g'
grep -o '"awake":[0-9.]*,"cpu":[0-9.]*,"inside_library":[0-9.]*' json | sed 's/[0-9.][0-9.]*/N/g'
awk 'length > 200' details

say "stopped"
# With events that are not written yet: a dead program's ring without goes with the next recovery anywhere.
while kill -STOP "$pid" && ! "$dial9" status -j "$pid" | grep -q '"waiting":[1-9]'; do
	kill -CONT "$pid"
	sleep 0.02
done
show -d at-work

say "killed"
kill -KILL "$pid"
wait "$pid" 2>/dev/null
show -d at-work
"$dial9" status "$pid" | sed -n '2s/with [0-9]* events/with N events/p'
"$dial9" status --json -d at-work >json
for key in state healthy problems; do value "$key"; done
forget
show -d at-work
run status 2147483647

say "it became another program, which has no recorder, and another, which has"
cat >becomes.c <<'END'
#include <event2/event.h>
#include <unistd.h>

static char **next;

static void on_timer(evutil_socket_t fd, short what, void *base)
{
	static int left = 20;

	(void)fd;
	(void)what;
	if (!--left)
		execvp(next[0], next);
	(void)base;
}

int main(int argc, char **argv)
{
	struct event_base *base = event_base_new();
	struct event *timer = event_new(base, -1, EV_PERSIST, on_timer, base);
	const struct timeval ms = { 0, 1000 };

	(void)argc;
	next = argv + 1;
	event_add(timer, &ms);
	return event_base_dispatch(base);
}
END
$CC -o becomes becomes.c -levent
# becomes DIR COMMAND...: $pid, which becomes it in the end.
becomes() {
	dir=$1
	shift
	DIAL9_SERVICE_NAME="$test_name-$$" DIAL9_TRACE_DIR="$work/$dir" DIAL9_ENABLED=true \
		LD_PRELOAD="$top_builddir/adapters/.libs/libdial9-preload.so" ./becomes "$@" &
	pid=$!
}
show_chain() {
	show -d chain | sed -e 's/with [0-9]* events/with N events/' -e 's/^ *PID \(becomes *dead\) .*/PID \1/'
}
becomes chain ./becomes sleep 300
until [ "$(cat /proc/$pid/comm)" = sleep ]; do sleep 0.02; done
show_chain
kill "$pid"
wait "$pid" 2>/dev/null
"$dial9" recover chain >/dev/null 2>&1
show_chain
becomes chain ./becomes ./prog 1000
until [ "$(cat /proc/$pid/comm)" = prog ] && "$dial9" status -j "$pid" 2>/dev/null | grep -q '"workers":\[{"id":0'; do sleep 0.02; done
show_chain
kill "$pid"
wait "$pid" 2>/dev/null
"$dial9" recover chain >/dev/null 2>&1

say "a ring without a name"
for kind in memfd memory; do
	start "$kind" DIAL9_RING=$kind
	"$dial9" status --json -d "$kind" >json
	value kind
	value state
	kill -KILL "$pid"
	wait "$pid" 2>/dev/null
	show -d "$kind"
done

say "cannot write"
mkdir -p full
touch full/not-a-folder
start full/not-a-folder/x
"$dial9" status -j "$pid" >json
echo "[exit status $?]"
for key in state problems message; do value "$key"; done
kill -KILL "$pid"
wait "$pid" 2>/dev/null
forget
mkdir wide
chmod 777 wide
start wide
"$dial9" status -j "$pid" >json
"$dial9" status "$pid" | sed -n 's/^ *paused: //p' | sed 's/, .* in all/, N times/'
kill -KILL "$pid"
wait "$pid" 2>/dev/null
forget

say "a recorder that stands still, and one that lost events: their words in a copy of a ring"
mkdir edited
start edited DIAL9_RING=disk
cp edited/*.ring copy
printf '\1\0\0\0\0\0\0\0' | dd of=copy bs=1 seek=$((0x2010)) conv=notrunc 2>errors
printf '\5' | dd of=copy bs=1 seek=$((0x30000)) conv=notrunc 2>errors
mv copy edited/copy.ring
# Somebody holds its lock, as its process would.
flock edited/copy.ring "$dial9" status -d edited >shown
echo "[exit status $?]"
sed -n -e 's/for [0-9.]* [a-z]*$/for TIME/' -e '/^ *\(hung\|lossy\): /p' shown
kill -KILL "$pid"
wait "$pid" 2>/dev/null

say "files that are no ring"
mkdir disk
start disk DIAL9_RING=disk
kill -KILL "$pid"
wait "$pid" 2>/dev/null
"$dial9" status -j -d disk >json
value state
mkdir bad
mv disk/*.ring whole
dd if=whole of=bad/short.ring bs=4096 count=2 2>errors
dd if=whole of=bad/cut.ring bs=65536 count=12 2>errors
head -c 600000 /dev/zero | tr '\0' x >bad/text.ring
: >bad/empty.ring
mkfifo bad/fifo.ring
mkdir bad/folder.ring
ln -s ../whole bad/link.ring
cp whole bad/layout.ring
printf '\377' | dd of=bad/layout.ring bs=1 seek=8 conv=notrunc 2>errors
cp whole bad/size.ring
printf '\377' | dd of=bad/size.ring bs=1 seek=17 conv=notrunc 2>errors
"$dial9" status -d bad >shown 2>&1
echo "[exit status $?]"
sort shown | sed "s|, [0-9.]* [KM]iB, left|, SIZE, left|"
# Every field of every page turned to all ones: an answer or an error, never a crash.
mkdir mad
for at in 40 64 8192 8200 8300 65536 65600 196608 196700; do
	cp whole mad/r.ring
	head -c 64 /dev/zero | tr '\0' '\377' | dd of=mad/r.ring bs=1 seek=$at conv=notrunc 2>errors
	cp mad/r.ring disk/r.ring
	"$dial9" status --json -d disk >json 2>errors
	status=$?
	[ $status -le 2 ] || echo "exit status $status with ones at $at"
	"$dial9" status -d disk >shown 2>&1
	status=$?
	[ $status -le 2 ] || echo "exit status $status with ones at $at"
done
rm -f disk/r.ring

say "usage"
run status x
run status 0
run status 1 2
run status -d missing

finish ''
