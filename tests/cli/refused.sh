# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
# Sourced by tests of what the kernel does not permit: the tool `refused`, and a loop beside a helper thread, whose callbacks
# compute, or with an argument only sleep.

# refused CALL=HOW... CMD: CMD, for which those system calls fail ("fails") or end the process ("kills").
cat >refused.c <<'END'
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static const struct {
	const char *name;
	unsigned number;
} calls[] = {
	{ "perf_event_open", SYS_perf_event_open },
	{ "timer_create", SYS_timer_create },
	{ "process_vm_readv", SYS_process_vm_readv },
};

static int refuse(const char *name, unsigned result)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, result),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = { sizeof(filter) / sizeof(filter[0]), filter };

	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		if (!strncmp(name, calls[i].name, strlen(calls[i].name)))
			filter[1].k = calls[i].number;
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0);
}

int main(int argc, char **argv)
{
	int i = 1;

	for (; i < argc && strchr(argv[i], '='); i++)
		if (refuse(argv[i], strstr(argv[i], "=kills") ? SECCOMP_RET_KILL_PROCESS : SECCOMP_RET_ERRNO | EPERM))
			return 99;
	execvp(argv[i], argv + i);
	return 99;
}
END
cat >loop.c <<'END'
#include "cpu_work.h"
#include <event2/event.h>
#include <pthread.h>
#include <time.h>

static _Atomic(int) left = 20;
static int sleeps;

__attribute__((noinline)) static void sleep_in_callback(void)
{
	struct timespec t = { 0, 5000000 };

	nanosleep(&t, NULL);
	sink++; /* it has to be in the stack */
}

static void *helper(void *name)
{
	const struct timespec while_ = { 0, 1000000 };

	pthread_setname_np(pthread_self(), name);
	/* The recorder's thread has found it by then, for what attaches to each thread. */
	while (left > 10)
		nanosleep(&while_, NULL);
	compute(0.3);
	return NULL;
}

static void on_timer(evutil_socket_t fd, short what, void *base)
{
	(void)fd, (void)what;
	if (!sleeps)
		compute(0.02);
	sleep_in_callback();
	if (--left == 0)
		event_base_loopbreak(base);
}

int main(int argc, char **argv)
{
	struct event_base *base = event_base_new();
	struct event *timer = event_new(base, -1, EV_PERSIST, on_timer, base);
	pthread_t thread;

	(void)argv;
	if (argc > 1) {
		sleeps = 1;
		left = 100;
	}
	pthread_create(&thread, NULL, helper, "helper");
	event_add(timer, &(struct timeval){ 0, 5000 });
	event_base_dispatch(base);
	pthread_join(thread, NULL);
	puts("done");
	return 3;
}
END
cc -o refused refused.c || exit 99
cc -g -O2 -rdynamic -pthread -I"$top_srcdir/tests/cli" -o loop loop.c -levent || exit 99
