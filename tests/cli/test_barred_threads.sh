#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Threads that may not read the processor's counter, and with it the time, any more, or make hardly a system call: they run
# as alone, what was recorded of them before is there, and the other threads go on being recorded.
# shellcheck source=tests/cli/harness.sh
. "$top_srcdir/tests/cli/harness.sh"

[ "$(uname -m)" = x86_64 ] || skip "only x86 can forbid a thread to read its counter"

cat >barred.c <<'END'
#define _GNU_SOURCE
#include <errno.h>
#include <event2/event.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const char *how, *then;
static volatile unsigned long sink;
static int left = 60, in_thread;

static int is(const char *name)
{
	return !strcmp(how, name);
}

static void compute(void)
{
	for (int i = 0; i < 6000000; i++)
		sink += i;
}

static void enter(void)
{
	if (is("tsc"))
		prctl(PR_SET_TSC, PR_TSC_SIGSEGV);
	else if (is("number"))
		syscall(SYS_prctl, PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0);
	else if (is("seccomp"))
		syscall(SYS_seccomp, SECCOMP_SET_MODE_STRICT, 0, NULL);
	else
		prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
}

/* Nothing but what strict mode allows, and memory. */
static void work(void)
{
	static char line[] = "within\n";
	void *blocks[200];

	for (int i = 0; i < 200; i++)
		blocks[i] = malloc(100);
	compute();
	for (int i = 0; i < 200; i++)
		free(blocks[i]);
	write(1, line, sizeof(line) - 1);
}

static void leave(void)
{
	__asm__ volatile("syscall" : : "a"(SYS_exit), "D"(0) : "rcx", "r11", "memory");
}

/* Memory that work() asks for is there: an allocator could not get any. */
static void prepare(void)
{
	void *blocks[200];

	for (int i = 0; i < 200; i++)
		blocks[i] = malloc(100);
	for (int i = 0; i < 200; i++)
		free(blocks[i]);
}

static void *jailed(void *base)
{
	(void)base;
	prepare();
	enter();
	work();
	leave();
	return NULL;
}

static void start_child(void)
{
	pid_t child = fork();
	int status;

	if (!child) {
		prepare();
		enter();
		work();
		leave();
	}
	waitpid(child, &status, 0);
	printf("child %d\n", status);
}

static void on_timer(evutil_socket_t fd, short what, void *base)
{
	static pthread_t thread;

	(void)fd, (void)what;
	if (left == 30)
		prepare();
	if (left == 30 && !strcmp(then, "leaves")) {
		enter();
		work();
		leave();
	}
	if (left == 30 && !strcmp(then, "killed")) {
		enter();
		work();
		getppid();
	}
	if (left == 30 && !strcmp(then, "child"))
		start_child();
	if (left == 30 && !strcmp(then, "thread")) {
		pthread_create(&thread, NULL, jailed, base);
		compute();
	}
	if (left == 30 && !strcmp(then, "goes-on")) {
		enter();
		work();
	}
	if (left == 10 && !strcmp(then, "again")) {
		prctl(PR_SET_TSC, PR_TSC_ENABLE);
		printf("%d\n", time(NULL) > 0);
	} else if (left == 30 && !strcmp(then, "again")) {
		enter();
		work();
	}
	if (left == 30 && !strcmp(then, "refused"))
		printf("%d\n", prctl(PR_SET_TSC, 77) < 0 && errno == EINVAL);
	if (left % 10 == 0)
		compute();
	if (--left == 0 && !strcmp(then, "thread"))
		pthread_join(thread, NULL);
	if (left == 0)
		event_base_loopbreak(base);
}

int main(int argc, char **argv)
{
	struct event_base *base = event_base_new();
	struct event *timer = event_new(base, -1, EV_PERSIST, on_timer, base);

	how = argc > 1 ? argv[1] : "";
	then = argc > 2 ? argv[2] : "";
	setvbuf(stdout, NULL, _IONBF, 0);
	event_add(timer, &(struct timeval){ 0, 1000 });
	event_base_dispatch(base);
	puts("end");
	if (!strcmp(then, "goes-on") || !strcmp(then, "thread"))
		_exit(5);
	return 5;
}
END
cc -g -O1 -w -pthread -o barred barred.c -levent || exit 99
./barred tsc goes-on >alone 2>&1
[ $? = 5 ] || skip "alone it does not run: PR_SET_TSC is refused"

polls() {
	"$dial9" info "$1" 2>&1 | awk '$1 == "PollEndEvent" { n = $2 } END { print n + 0 " callbacks in the trace" }'
}

# same ARGUMENT...: as alone.
same() {
	{ ./barred "$@"; echo "status $?"; } >alone 2>&1
	rm -rf tr
	# One word per option is meant.
	# shellcheck disable=SC2086
	{ "$dial9" record --quiet ${options-} -o tr -- ./barred "$@"; echo "status $?"; } >recorded 2>&1
	sort alone -o alone
	sort recorded -o recorded
	if cmp -s alone recorded; then
		echo "$*: as alone"
	else
		echo "$*:"
		diff alone recorded
	fi
}

for options in "" "--cpu 999 --cpu-threads all --memory=1"; do
	say "recorded with ${options:-no options}"
	for how in strict seccomp tsc number; do
		for then in leaves child thread; do
			same $how $then
		done
	done
	same strict killed
	same tsc goes-on
	same tsc again
	same tsc refused
done

say "what was before is there, and the others go on"
options=
same strict leaves
polls tr
"$dial9" info tr | sed -n 's/^ *\(recorder.sandboxed .*\)/\1/p'
same strict thread
polls tr
same tsc child
polls tr
same tsc goes-on
polls tr
same tsc refused
polls tr
same tsc again
polls tr
finish 's/  */ /g'
