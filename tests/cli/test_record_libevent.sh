#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# An unmodified libevent program under `dial9 record`: its callbacks, counted by itself.
# shellcheck source=tests/cli/harness.sh
. "$top_srcdir/tests/cli/harness.sh"

cat >prog.c <<'END'
#include <event2/event.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

static struct event *timer;
static int left;

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
	static const struct timeval soon = { 0, 100 };

	(void)fd;
	(void)what;
	if (--left > 0)
		event_add(timer, &soon);
	else if (arg)
		kill(getpid(), atoi(arg));
}

int main(int argc, char **argv)
{
	static const struct timeval soon = { 0, 100 };
	struct event_base *base = event_base_new();

	left = atoi(argv[1]);
	timer = evtimer_new(base, on_timer, argc > 2 ? argv[2] : NULL);
	event_add(timer, &soon);
	event_base_dispatch(base);
	event_free(timer);
	event_base_free(base);
	return 3;
}
END
$CC -g -o prog prog.c -levent 2>errors || skip "no libevent to build with: $(head -n 1 errors)"
hide='s/recorded [0-9]* events/recorded N events/; s/[a-z]\{4\}-[0-9]\{1,\}/BOOT-PID/g'

say "a program that ends by itself"
run record -o ended -- ./prog 100
for event in PollStartEvent PollEndEvent TaskSpawnEvent; do
	echo "$event: $("$dial9" events -e $event ended | wc -l)"
done
"$dial9" events -f text -e PollStartEvent -n 1 ended | sed 's/.*spawn_loc=//; s/:[0-9]*"/:LINE"/'
"$dial9" info --json ended | tr ',' '\n' | grep '"loss"'

say "a program that is killed: all of it"
run record -o early -- ./prog 10 9 2>&1 | grep -v Killed
run record -o killed -- ./prog 600 9 2>&1 | grep -v Killed
[ "$("$dial9" events -e PollStartEvent killed | wc -l)" -gt 100 ] || echo "too little is left"

say "with its report, and the status is CMD's still"
run record --report --rotate 1s --compress gzip -o reported -- ./prog 100 >report 2>&1
grep -v 'dial9\|status' report | grep -q on_timer && echo "the report names on_timer"
grep 'dial9:\|status' report
# The report's pager, and Ctrl-C in it, are as if `dial9 report` were called.
masks='grep "^Sig\(Blk\|Ign\)" /proc/self/status >>masks; cat >/dev/null'
DIAL9_PAGER=$masks script -qec "'$dial9' report reported" /dev/null </dev/null >/dev/null
DIAL9_PAGER=$masks script -qec "'$dial9' record --report -o paged ./prog 100" /dev/null </dev/null >/dev/null
[ "$(grep -c '0$' masks)" = 4 ] || cat masks
# One, or more on a machine on which this takes more than a second.
find reported -type f -name 'trace.*' ! -name '*.gz'
find reported -name '*.gz' | wc -l | sed 's/^[1-9][0-9]*$/all of it/'

say "two processes, two traces, one order of time"
run record -o two -- sh -c './prog 100 & ./prog 100; wait'
echo "PollStartEvent: $("$dial9" events -e PollStartEvent two | wc -l)"

say "without those that it starts"
run record --no-follow -o one -- sh -c './prog 10; env | grep -c "DIAL9\|PRELOAD"'
run record --no-follow -o one -- ./prog 10

say "an earlier recording stays"
run record -q -o one -- ./prog 10
echo "PollStartEvent: $("$dial9" events -e PollStartEvent one | wc -l)"

say "files that may not hold a trace"
# Not into the transcript itself, which is one of them.
(ulimit -f 1 && run record -o limited -- ./prog 100) 2>&1 | cat

say "what is exported is what is read"
"$dial9" export -o ended.trc ended
"$dial9" events ended >a
"$dial9" events ended.trc >b
cmp a b

finish "$hide"
