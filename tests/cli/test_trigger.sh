#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Triggers: a callback that takes too long, or that hangs, makes the recorder keep what led to it.
# shellcheck source=tests/cli/harness.sh
. "$top_srcdir/tests/cli/harness.sh"

say "mistakes, before anything runs"
for text in 'poll > 50' 'pol > 50ms' 'poll > 50ms; call now' 'slow parse: poll > 50ms' '' ';' 'poll > 50ms where callback parse'; do
	run record --trigger "$text" -- true
done
run record --trigger "$(for i in 1 2 3 4 5 6 7 8 9; do printf 'poll > 1ms pairs a=%0480d\n' $i; done)" -- true | sed '/^[^d]/d'

cat >prog.c <<'END'
#include <event2/event.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int calls, hangs, last;

__attribute__((noinline)) static void stall_here(void)
{
	if (hangs)
		pause();
	usleep(1200000);
	__asm__ volatile("");
}

/* Every 2 ms; the 50th call stalls; afterwards until somebody makes the file "enough". */
static void on_timer(evutil_socket_t fd, short what, void *base)
{
	(void)fd, (void)what;
	if (++calls == 50)
		stall_here();
	if (calls > 50 && !access("enough", F_OK))
		last++;
	if (last == 10)
		event_base_loopbreak(base);
}

int main(int argc, char **argv)
{
	struct event_base *base = event_base_new();
	struct event *timer = event_new(base, -1, EV_PERSIST, on_timer, base);

	alarm(300);
	hangs = argc > 1 && !strcmp(argv[1], "hangs");
	event_add(timer, &(struct timeval){ 0, 2000 });
	event_base_dispatch(base);
	event_free(timer);
	event_base_free(base);
	return 0;
}
END
cc -g -O1 -o prog prog.c -levent || exit 99

# recorded DIR ARGUMENT... : the program in the background, until its dump is closed; $program is its process.
recorded() {
	dir=$1
	shift
	rm -rf enough "$dir"
	"$dial9" record --quiet -o "$dir" "$@" &
	recorder=$!
	until grep -qs '"state": "closed"' "$dir"/*/dump.*.json; do
		kill -0 $recorder || return
		sleep 0.05
	done
}

# What is in DIR, its manifest without what changes from run to run, and the beginning of the report.
shown() {
	echo "$(find "$1" -name 'dump.*.json' | wc -l) manifest, $(find "$1" -name '*.zst' | wc -l) segment"
	sed 's/"[0-9A-HJKMNP-TV-Z]\{26\}"/"ID"/; s/"20[0-9T:.-]*Z"/"TIME"/; s/"value": [0-9]*/"value": N/; s/"bytes": [0-9]*/"bytes": N/' "$1"/*/dump.*.json
	COLUMNS=200 "$dial9" report --color never "$1" | sed '/ awake/d' | sed -n 's/[0-9.]* m\{0,1\}s\>/T/g; s/of [0-9]* calls/of N calls/; s/[0-9]* % of the time/N % of the time/; s/^\(nothing else found\).*/\1/; 2,3p' | sed 's/  *prog\.c.*//'
}

say "a callback that took too long, in flight mode"
recorded tr --flight --trigger 'stall: poll > 1s where loop ~ pro? where thread ~ prog last 10s then 200ms pairs team=web' -- ./prog
: >enough
wait $recorder
shown tr
"$dial9" events -e DumpTriggerEvent tr | sed 's/:[0-9]\{6,\}/:N/g; s/"[0-9A-HJKMNP-TV-Z]\{26\}"/"ID"/; s/"task_id":[0-9]*/"task_id":N/'

say "nothing else was written, and what came before the stall is there"
before=$("$dial9" query -f csv tr "SELECT count(*) FROM polls WHERE start_ns < (SELECT start_ns FROM polls ORDER BY duration_ns DESC LIMIT 1)" | tail -n 1)
echo "$before calls before it"

say "one that hangs is dumped while it does"
recorded tr --flight --trigger 'hang: blocked > 300ms then 0s' -- ./prog hangs
kill -0 $recorder && echo "it still runs"
# The recorder's own process waits for the program, its only child.
kill -KILL "$(sed 's/ .*//' /proc/$recorder/task/$recorder/children)"
wait $recorder 2>/dev/null
# What the ring held beside it was recovered.
find tr -name '*.zst' | sort | tail -n +2 | xargs rm
shown tr

say "one that is killed inside of its window is what was recovered of it"
for mode in --flight --quiet; do
	rm -rf tr
	"$dial9" record --quiet $mode -o tr --trigger 'hang: blocked > 300ms then 1h' -- ./prog hangs &
	recorder=$!
	until grep -qs '"state": "open"' tr/*/dump.*.json; do
		kill -0 $recorder || break
		sleep 0.05
	done
	"$dial9" dumps --json tr | sed -n 's/^ *\("state": .*\)/\1/p'
	kill -KILL "$(sed 's/ .*//' /proc/$recorder/task/$recorder/children)"
	wait $recorder 2>/dev/null
	"$dial9" dumps --json tr | sed -n 's/^ *\("state": .*\)/\1/p; s/^ *\("error": .*\)/\1/p; s/^ *\("missing": [0-9].*\)/\1/p'
	"$dial9" report --color never tr/*/dump.*.json | sed -n '/^trigger/s/[0-9.]* m\{0,1\}s\>/T/gp'
done

say "a recorder that writes continuously lists the segments"
recorded tr --trigger 'stall: poll > 1s last 10s then 0s' -- ./prog
: >enough
wait $recorder
grep -c '"segments": \["trace.0.bin.zst"\]' tr/*/dump.*.json

say "triggers of a running program"
rm -f enough
"$dial9" record --quiet --flight -o tr3 -- ./prog hangs &
recorder=$!
until "$dial9" trigger "$(sed 's/ .*//' /proc/$recorder/task/$recorder/children)" >shown 2>&1; do
	kill -0 $recorder || break
	sleep 0.05
done
program=$(sed 's/ .*//' /proc/$recorder/task/$recorder/children)
sed "s/$program/PID/" shown
for change in "set" "zap slow" "remove slow" "fire slow" "set slow:pol>5ms"; do
	# shellcheck disable=SC2086 # words
	"$dial9" trigger "$program" ${change%% *} ${change#"${change%% *}"} 2>&1 | sed "s/$program/PID/g"
done
for glob in on_time event_base_loo malloc; do
	"$dial9" trigger "$program" set "g: poll > 7m where callback ~ $glob" 2>&1 | sed "s|$work|WORK|"
done
"$dial9" trigger "$program" set "not: call" "g: poll > 7m where callback ~ on_time" 2>/dev/null
"$dial9" trigger "$program" set 'slow: poll > 5m' 'mine: call last 10s then 0s' 'slow: poll > 7m where callback ~ on_timer' &&
	"$dial9" trigger "$program"
"$dial9" trigger "$program" remove slow && "$dial9" trigger "$program" fire mine
until grep -qs '"state": "closed"' tr3/*/dump.*.json; do
	kill -0 $recorder || break
	sleep 0.05
done
"$dial9" trigger "$program"
kill -KILL "$program"
wait $recorder 2>/dev/null
run trigger "$program" 2>&1 | sed "s/$program/PID/g"
run trigger one

say "the environment's mistakes are in the recorder's log"
DIAL9_TRIGGERS='pol > 1s; fine: poll > 100s' "$dial9" record --quiet -o tr2 -- sh -c ': >enough; exec ./prog'
"$dial9" info tr2 | sed -n 's/^ *\(trigger[_.][a-z1.]*\) */\1 /p'
"$dial9" events -e RecorderLogEvent tr2 | sed -n 's/.*"text":"\(trigger [^"]*\)".*/\1/p'
COLUMNS=200 "$dial9" report --color never tr2 | sed '/ awake/d' | sed -n 2p
finish ''
