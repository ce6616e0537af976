#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Programs that end themselves at a system call that they did not foresee, and one that enters another mount
# namespace: they run as alone, and what can be recorded of them is.
# shellcheck source=tests/cli/harness.sh
. "$top_srcdir/tests/cli/harness.sh"

cat >filter.c <<'END'
#define _GNU_SOURCE
#include <event2/event.h>
#include <execinfo.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* What libevent and this program need themselves.  Older and newer ones of the C library differ a little. */
static const unsigned allowed[] = {
	SYS_read, SYS_write, SYS_close, SYS_brk, SYS_exit_group, SYS_fcntl, SYS_getrandom,
	SYS_getuid, SYS_geteuid, SYS_getgid, SYS_getegid, SYS_clock_gettime,
	SYS_epoll_create1, SYS_epoll_ctl, SYS_epoll_pwait, SYS_eventfd2, SYS_pipe2, SYS_timerfd_create,
#ifdef SYS_epoll_wait
	SYS_epoll_wait, SYS_epoll_create,
#endif
#ifdef SYS_newfstatat
	SYS_newfstatat,
#endif
	SYS_fstat, SYS_socketpair, SYS_seccomp,
	/* For a fork, which waits for the allocator's locks, and for the end of a thread. */
	SYS_clone, SYS_set_robust_list, SYS_rt_sigprocmask, SYS_futex, SYS_wait4, SYS_exit,
};

#define ALLOWED (sizeof(allowed) / sizeof(allowed[0]))

static int left = 50, all, by_number, forbidden;
static const char *when, *then;

/* What libseccomp asks when it is loaded, and before it makes its first filter. */
static void ask(void)
{
	prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, NULL, 0, 0);
	syscall(SYS_seccomp, SECCOMP_SET_MODE_STRICT, 1, NULL);
	syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, NULL);
}

static void forbid(void)
{
	struct sock_filter code[ALLOWED + 3] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))
	};
	struct sock_fprog program = { ALLOWED + 3, code };
	long err;

	for (unsigned i = 0; i < ALLOWED; i++)
		code[1 + i] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, allowed[i],
							   (unsigned char)(ALLOWED - i), 0);
	code[1 + ALLOWED] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
	code[2 + ALLOWED] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	if (!forbidden)
		ask();
	err = forbidden++ ? 0 : prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (!err && by_number)
		err = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, all ? SECCOMP_FILTER_FLAG_TSYNC : 0, &program);
	else if (!err)
		err = prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0);
	if (err)
		_exit(77);
}

static void on_timer(evutil_socket_t fd, short what, void *base)
{
	(void)fd;
	(void)what;
	if (left == 30 && !strcmp(when, "inside"))
		forbid();
	if (left == 20 && by_number && !all && !strcmp(when, "inside"))
		forbid(); /* a second one, behind the first */
	/* Long enough for the recorder to want to know where the time went. */
	for (volatile long i = 0; left % 10 == 0 && i < 5000000; i++)
		;
	if (left == 20 && !strcmp(then, "fork") && !fork()) {
		puts("a child");
		left = 10;
	}
	if (left == 20 && !strcmp(then, "leave"))
		pthread_exit(NULL);
	if (left == 20 && !strcmp(then, "all")) {
		by_number = all = 1;
		forbid();
	}
	if (--left == 0)
		event_base_loopbreak(base);
}

int main(int argc, char **argv)
{
	static const struct timeval soon = { 0, 1000 };
	struct event_base *base;
	struct event *timer;

	ask();
	when = argc > 1 ? argv[1] : "never";
	by_number = argc > 2;
	all = argc > 2 && !strcmp(argv[2], "all");
	then = argc > 3 ? argv[3] : "";
	if (!strcmp(then, "leave"))
		backtrace((void *[4]){ 0 }, 4); /* pthread_exit() opens a library, too */
	if (!strcmp(when, "before"))
		forbid();
	base = event_base_new();
	timer = event_new(base, -1, EV_PERSIST, on_timer, base);
	event_add(timer, &soon);
	/* What no kernel knows. */
	if (!strcmp(when, "refused") &&
	    !syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC | 1ul << 30, timer))
		return 1;
	if (!strcmp(when, "between"))
		forbid();
	event_base_dispatch(base);
	event_free(timer);
	event_base_free(base);
	printf("50 callbacks\n");
	if (!strcmp(then, "fork"))
		wait(NULL); /* in the child for nobody */
	return 0;
}
END
$CC -o filter filter.c -levent 2>errors || skip "no libevent to build with: $(head -n 1 errors)"
./filter before >alone 2>&1 || skip "the filter is refused, or leaves out a call of this C library"

hide='s/[0-9]* events/N events/'
# polls TRACE: how many callbacks the trace has.
polls() {
	"$dial9" info "$1" 2>&1 | awk '$1 == "PollEndEvent" { n = $2 } END { print n + 0 " callbacks in the trace" }'
}

say "a kernel that is only asked whether it has filters"
run record -q -o never ./filter never
polls never

say "before the loop is made: it runs as alone"
run record -o before ./filter before 2>&1 | sed "$hide"
run record -q -o before ./filter before number 2>&1

# same ARGUMENT...: record the program with them; what it says is what it says alone.
same() {
	{ ./filter "$@" || echo "[exit status $?]"; } 2>&1 | sort >alone
	run record -q -o "$name" ./filter "$@" >recorded 2>&1
	head -n 1 recorded
	sed 1d recorded | sort | diff alone - && echo "as alone"
}

for way in "" number; do
	say "between making the loop and running it, and inside a callback${way:+, by seccomp()}"
	run record -o "between$way" ./filter between $way 2>&1 | sed "$hide"
	polls "between$way"
	run record -q -o "inside$way" ./filter inside $way
	polls "inside$way"
done

say "for all threads: what was recorded before is written"
run record -o all ./filter inside all
polls all
"$dial9" info all | grep -o 'recorder.ended .*'

"$dial9" report all | grep -i 'recording ended'
run record --profile-only -o all-profile ./filter before all 2>&1 | sed 's/recorded N.* in/recorded N events in/'

say "one that the kernel refuses: recording goes on"
name=refused same refused
polls refused

say "a child that is made behind it, and a main thread that leaves behind it"
for when in before inside; do
	name="fork-$when" same "$when" number fork
	name="leave-$when" same "$when" number leave
done
polls fork-inside
polls leave-inside

say "for this thread, and then for all"
name=later same inside number all
polls later
"$dial9" info later | grep -o 'recorder.ended .*'

cat >namespace.c <<'END'
#define _GNU_SOURCE
#include <event2/event.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>

static void on_timer(evutil_socket_t fd, short what, void *base)
{
	int own = open("/proc/self/ns/mnt", O_RDONLY);

	(void)fd;
	(void)what;
	if (setns(own, CLONE_NEWNS))
		perror("setns");
	else
		puts("in another mount namespace");
	event_base_loopbreak(base);
}

int main(void)
{
	static const struct timeval soon = { 0, 20000 };
	struct event_base *base = event_base_new();
	struct event *timer = event_new(base, -1, 0, on_timer, base);

	event_add(timer, &soon);
	event_base_dispatch(base);
	event_free(timer);
	event_base_free(base);
	return 0;
}
END
$CC -o namespace namespace.c -levent
say "another mount namespace"
if ./namespace | grep -q in; then
	run record -q -o other ./namespace
else
	echo '$ dial9 record -q -o other ./namespace'
	echo "in another mount namespace"
fi

# Beside another finding, as a busy machine makes one, names are padded.
finish "$hide;s/^! data  */! data  /"
