#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Threads that run no loop, sampled beside a loop or in a program that has none: which of them, with which names, under
# which worker, and what the report, the flame graph and the exports make of it.
# shellcheck source=tests/cli/harness.sh
. "$top_srcdir/tests/cli/harness.sh"

cat >work.h <<'END'
#include "cpu_work.h"
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>

static void *helper(void *name)
{
	pthread_setname_np(pthread_self(), name);
	await_sampling();
	compute(0.4);
	return NULL;
}

static void run_helpers(void)
{
	pthread_t a, b;

	pthread_create(&a, NULL, helper, "first");
	pthread_create(&b, NULL, helper, "second");
	pthread_join(a, NULL);
	pthread_join(b, NULL);
}
END
cat >plain.c <<'END'
#include "work.h"

int main(int argc, char **argv)
{
	run_helpers();
	if (argc > 1 && !strcmp(argv[1], "forks") && !fork()) {
		pthread_setname_np(pthread_self(), "child");
		await_sampling();
		compute(0.4);
		exit(0);
	}
	wait(NULL);
	return argc > 1 ? 3 : 0;
}
END
cat >loop.c <<'END'
#include "work.h"
#include <event2/event.h>

static void on_timer(evutil_socket_t fd, short what, void *base)
{
	(void)fd, (void)what;
	await_sampling();
	compute(0.4);
	run_helpers();
	event_base_loopbreak(base);
}

int main(void)
{
	struct event_base *base = event_base_new();

	pthread_setname_np(pthread_self(), "looper");
	event_add(event_new(base, -1, 0, on_timer, base), &(struct timeval){ 0, 1000 });
	event_base_dispatch(base);
	return 0;
}
END
# Of short threads, one after the other: the folder of threads has as many links before and after.
cat >short.c <<'END'
#include "work.h"

static void *live_shortly(void *unused)
{
	compute(0.2);
	return unused;
}

static void run_short_threads(void)
{
	pthread_t thread;

	for (int i = 0; i < 12; i++) {
		pthread_create(&thread, NULL, live_shortly, NULL);
		pthread_join(thread, NULL);
	}
}

#ifdef WITH_LOOP
#include <event2/event.h>

static void on_timer(evutil_socket_t fd, short what, void *base)
{
	(void)fd, (void)what;
	await_sampling();
	compute(0.1);
	run_short_threads();
	event_base_loopbreak(base);
}

int main(void)
{
	struct event_base *base = event_base_new();

	event_add(event_new(base, -1, 0, on_timer, base), &(struct timeval){ 0, 1000 });
	event_base_dispatch(base);
}
#else
int main(void)
{
	run_short_threads();
}
#endif
END
cc -g -O2 -pthread -I"$top_srcdir/tests/cli" -o short short.c || exit 99
cc -g -O2 -pthread -I"$top_srcdir/tests/cli" -DWITH_LOOP -o short-loop short.c -levent || exit 99
cc -g -O2 -pthread -I"$top_srcdir/tests/cli" -o plain plain.c || exit 99
cc -g -O2 -pthread -I"$top_srcdir/tests/cli" -o loop loop.c -levent || exit 99

# samples TRACE: of each thread, that it has about as many as 0.4 s of CPU time make, which is 39; fewer than seven are
# those of a thread before it gave itself its name.
samples() {
	for process in "$1"/*; do
		"$dial9" events -e CpuSampleEvent "$process" |
			sed -n 's/.*"worker_id":\([0-9]*\),.*"source":0,"thread_name":"\([a-z]*\)".*/\2, worker \1/p' | LC_ALL=C sort |
			uniq -c
	done | while read -r n what; do
		[ "$n" -le 6 ] && continue
		if [ "$n" -ge 30 ] && [ "$n" -le 46 ]; then
			echo "as many as are due: $what"
		else
			echo "$n: $what"
		fi
	done | LC_ALL=C sort
}

# recorded TRACE ARGUMENT...: its samples; again where the machine kept some away.
recorded() {
	trace=$1
	shift
	for _ in 1 2 3 4; do
		rm -rf "$trace"
		"$dial9" record --quiet -o "$trace" "$@"
		status=$?
		samples "$trace" >counted
		grep -q '^[0-9]' counted || break
	done
	[ $status = 0 ] || echo "status $status"
	cat counted
}

say "any program"
recorded any --profile-only -- ./plain
"$dial9" report any | grep -o 'nothing wrong found\|s on the CPU in [0-9] threads\|first [0-9]* *compute cpu_work.h\|second [0-9]* *compute cpu_work.h' |
	sed 's/ [0-9][0-9]* / N /' | sort
say "the exports"
"$dial9" export --format folded -o - any | grep -o 'helper;compute' | sort -u
"$dial9" flamegraph -o any.svg any
grep -c 'compute' any.svg | sed 's/^[1-9][0-9]*$/compute is in the flame graph/'
"$dial9" report --json any |
	sed -n 's/^ *"name": "\(first\|second\)",*$/thread \1/p; s/^ *"function": "compute",$/in compute/p' | sort

say "a child made by fork"
recorded forks --profile-only -- ./plain forks

say "beside a loop"
recorded loop.tr -- ./loop
recorded all.tr --cpu-threads all -- ./loop

# share TRACE: of the process's CPU time, that samples stand for.
share() {
	"$dial9" report --json "$1" | sed -n 's/^ *"cpu_share": \(0\.9[5-9].*\|1\(\.0.*\)\{0,1\}\),$/95 % or more/p; s/^ *"cpu_share": \([0-9.]*\),$/\1/p'
}

# covered TRACE ARGUMENT...: the share of what is recorded so; again, where a busy machine was late with timers of threads that had ended.
covered() {
	trace=$1
	shift
	for _ in 1 2 3; do
		rm -rf "$trace"
		"$dial9" record --quiet -o "$trace" "$@"
		covered=$(share "$trace")
		[ "$covered" != "95 % or more" ] || break
	done
	echo "$covered"
}

say "threads that live for 200 ms each: samples stand for what they use"
covered short.tr --profile-only -- ./short
covered short-loop.tr --cpu-threads all -- ./short-loop

say "where they are not sampled, the report, flame graphs and exports say so first"
"$dial9" record --quiet -o outside.tr -- ./short-loop
covers() { sed 's/cover 0 %/cover few %/; s/cover [0-9.]* %/cover few %/' | grep -o "samples cover few % of the.* CPU time"; }
"$dial9" report outside.tr | sed 1q | covers
"$dial9" flamegraph -o - outside.tr 2>said | covers
covers <said
"$dial9" export --format folded -o - outside.tr 2>&1 >/dev/null | covers
echo "where they are: $("$dial9" report short-loop.tr | grep -c 'samples cover')"

say "too short for a sample"
"$dial9" record --profile-only -o none -- true
say "wrong"
run record --cpu-threads some true
run record --cpu-backend sampler true
run record --profile-only --cpu off true
run record --profile-only --cpu-threads loop true
finish 's/  */ /g'
