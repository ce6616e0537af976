#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Programs that become another user with capabilities kept, or enter a user namespace, do under `dial9 record` what they do
# alone, and what their loops did before and after is recorded.
# shellcheck source=tests/cli/harness.sh
. "$top_srcdir/tests/cli/harness.sh"

[ "$(id -u)" = 0 ] || skip "takes root"

# become WAY: 20 calls of a timer, the way, 20 more.  Prints what the way made of the process.
cat >become.c <<'END'
#define _GNU_SOURCE
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

static struct event_base *base;
static struct event *timer;
static int calls;
static void (*inside)(void);

static void call(evutil_socket_t fd, short what, void *arg)
{
	struct timeval next = { 0, 1000 };

	(void)fd, (void)what, (void)arg;
	if (inside && calls % 20 == 10)
		inside();
	if (++calls % 20)
		event_add(timer, &next);
	else
		event_base_loopbreak(base);
}

static void run_loop(void)
{
	struct timeval now = { 0, 0 };

	base = event_base_new();
	timer = evtimer_new(base, call, NULL);
	event_add(timer, &now);
	event_base_dispatch(base);
	event_free(timer);
	event_base_free(base);
}

static void raise_kept(void)
{
	struct { unsigned version; int pid; } head = { 0x20080522, 0 };
	struct { unsigned effective, permitted, inheritable; } data[2];

	syscall(SYS_capget, &head, data);
	data[0].effective = data[0].permitted;
	data[1].effective = data[1].permitted;
	syscall(SYS_capset, &head, data);
}

static void say(const char *what, int result)
{
	printf("%s %d\n", what, result);
}

/* As setpriv(1) does. */
static void keep(void)
{
	say("keep", prctl(PR_SET_KEEPCAPS, 1));
	say("setresuid", setresuid(65534, 65534, 65534));
	raise_kept();
	say("setresgid", setresgid(65534, 65534, 65534));
	say("setgroups", setgroups(0, NULL));
}

/* As daemons do that bind a low port later: by another order and other calls. */
static void keep_otherwise(void)
{
	say("securebits", prctl(PR_SET_SECUREBITS, 1 << 4));
	say("setgroups", setgroups(0, NULL));
	say("setregid", setregid(65534, 65534));
	say("setreuid", setreuid(65534, 65534));
	raise_kept();
	say("initgroups", initgroups("nobody", 65534));
	say("setgid", setgid(65534));
	say("seteuid", seteuid(65534));
}

static void enter_namespace(void)
{
	say("unshare", unshare(CLONE_NEWUSER));
}

static void enter_network(void)
{
	say("unshare", unshare(CLONE_NEWUSER | CLONE_NEWNET));
}

static void unshare_memory(void)
{
	say("unshare", unshare(CLONE_SIGHAND | CLONE_VM));
}

/* The children's own: a process may not enter its own again. */
static void join_namespace(void)
{
	int ready[2], fd;
	char path[64], byte;
	pid_t child;

	if (pipe(ready) || (child = fork()) < 0)
		return;
	if (!child) {
		byte = (char)unshare(CLONE_NEWUSER);
		if (write(ready[1], &byte, 1) == 1)
			pause();
		_exit(0);
	}
	if (read(ready[0], &byte, 1) != 1)
		return;
	snprintf(path, sizeof(path), "/proc/%d/ns/user", (int)child);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	say("setns", setns(fd, 0));
	close(fd);
	kill(child, SIGKILL);
}

/* As daemons do before they serve. */
static void close_all(void)
{
	say("setgid", setgid(65534));
	say("close", close_range(3, ~0u, 0));
}

/* One in a row finds errno as it was, ten thousand go as they go alone. */
static void many(void)
{
	int wrong = 0;

	errno = EDOM;
	for (int i = 0; i < 10000; i++)
		wrong += setegid(i % 2 ? 65534 : 0) != 0 || errno != EDOM;
	say("many", wrong);
}

static void each_call(void)
{
	static int n;

	if (setegid(n++ % 2 ? 65534 : 0))
		puts("setegid failed");
}

static void in_calls(void)
{
	for (int i = 0; i < 20; i++)
		run_loop();
}

static sigjmp_buf back;
static volatile sig_atomic_t handled;

static void on_alarm(int signal)
{
	(void)signal;
	handled++;
	siglongjmp(back, 1);
}

/*
 * A handler leaves such a call wherever it is, one that takes no lock of libc's as set*id() do; the loop runs in between, that
 * there is a thread again.
 */
static void leave(void)
{
	struct itimerval often = { { 0, 300 }, { 0, 300 } };
	volatile int made = 0;
	sigset_t alarms;

	sigemptyset(&alarms);
	sigaddset(&alarms, SIGALRM);
	signal(SIGALRM, on_alarm);
	while (handled < 200) {
		sigprocmask(SIG_BLOCK, &alarms, NULL);
		if (handled % 50 == 0)
			run_loop();
		if (!sigsetjmp(back, 1)) {
			setitimer(ITIMER_REAL, &often, NULL);
			sigprocmask(SIG_UNBLOCK, &alarms, NULL);
			for (;;)
				prctl(PR_SET_KEEPCAPS, made++ % 2);
		}
	}
	puts("left");
}

static const struct {
	const char *name;
	void (*fn)(void);
} ways[] = {
	{ "keep", keep }, { "keep_otherwise", keep_otherwise }, { "namespace", enter_namespace }, { "network", enter_network },
	{ "memory", unshare_memory }, { "join", join_namespace }, { "close", close_all }, { "many", many }, { "calls", in_calls },
	{ "leave", leave },
};

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc < 3)
		run_loop();
	inside = !strcmp(argv[1], "calls") ? each_call : NULL;
	for (unsigned i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
		if (!strcmp(argv[1], ways[i].name))
			ways[i].fn();
	inside = NULL;
	run_loop();
	say("calls", calls);
	return 0;
}
END
$CC -O1 -g -o become become.c -levent 2>errors || skip "no libevent to build with: $(head -n 1 errors)"
./become namespace none >/dev/null || skip "no program ran"
./become namespace none | grep -q "unshare 0" || skip "no user namespaces here"

ways="keep keep_otherwise namespace network memory join close many calls leave"
# same WAY FLAGS...: whether it has the same output and status as alone, with all its calls in a whole trace.
same() {
	way=$1
	shift
	rm -rf t
	timeout -k 1 60 "$dial9" record -q "$@" -o t -- ./become "$way" >recorded 2>&1
	[ $? = $status ] && cmp -s alone recorded || return 1
	case "$*" in
	*profile-only*) return 0 ;;
	esac
	polls=$("$dial9" info t | sed -n 's/^  PollStartEvent *//p' | tr -d ,)
	[ "$polls" = "$(sed -n 's/^calls //p' alone)" ] && ! "$dial9" info t | grep 'segment.complete' | grep -v true
}

# as_alone NAME FLAGS...: each way.  Where the machine held our thread up for over 50 ms it stays: tried again.
as_alone() {
	name=$1
	shift
	for way in $ways; do
		./become "$way" >alone 2>&1
		status=$?
		tries=1
		until same "$way" "$@" || [ $tries = 20 ]; do tries=$((tries + 1)); done
		[ $tries -lt 20 ] || { echo "$name, $way: another status, output or trace" && diff alone recorded; }
	done
	echo "$name: as alone"
}

say "with loops"
as_alone default
as_alone all --cpu 999 --memory=4K
as_alone profile --profile-only
DIAL9_STEP_ASIDE_ENABLED=no "$dial9" record -q -o off -- ./become namespace >off.out
grep unshare off.out

say "a ring under the name of a user that is none"
unshare -U "$dial9" record -q -o unmapped -- ./become none >/dev/null
echo "status $?"
"$dial9" info unmapped | sed -n 's/^ *\(ring\.[a-z]*\|ring\) *\(.*\)/\1 \2/p'
finish ''
