/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that is refused something, and runs as it does alone:
 *
 *	D9_PAGES=refused libev_refused	no page may be made writable; prints what attach returned
 *	libev_refused memory		the recorder gets no more memory when a loop is attached, and at ev_once()
 *	libev_refused CMD...		runs CMD without process_vm_readv(2)
 */

#include "config.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <ev.h>

#include <dial9/libev.h>

#define ONCE_MAX 100000

static int runs;
static struct {
	int refused, asked;
} memory;

/* Constructors of libraries, which patch, run before any code of ours. */
static int pages_refused(void)
{
	return getenv("D9_PAGES") != NULL;
}

__attribute__((visibility("default"))) int mprotect(void *address, size_t len, int protection)
{
	if (pages_refused() && protection & PROT_WRITE) {
		errno = EACCES;
		return -1;
	}
	return (int)syscall(SYS_mprotect, address, len, protection);
}

#if !defined __SANITIZE_ADDRESS__ && !defined __SANITIZE_THREAD__
/* The C library's own calls, for malloc(), do not come here. */
__attribute__((visibility("default"))) void *mmap(void *address, size_t len, int protection, int flags, int fd, off_t offset)
{
	memory.asked += memory.refused;
	if (memory.refused) {
		errno = ENOMEM;
		return MAP_FAILED;
	}
	return (void *)syscall(SYS_mmap, address, len, protection, flags, fd, offset);
}
#endif

static void on_timer(struct ev_loop *loop, ev_timer *w, int events)
{
	(void)w, (void)events;
	if (++runs % 3 == 0)
		ev_break(loop, EVBREAK_ALL);
}

static void on_once(int events, void *arg)
{
	(void)events;
	++*(int *)arg;
}

static int run_timer(struct ev_loop *loop)
{
	ev_timer timer;

	ev_timer_init(&timer, on_timer, 0.001, 0.001);
	ev_timer_start(loop, &timer);
	ev_run(loop, 0);
	ev_timer_stop(loop, &timer);
	return runs % 3;
}

static int attach_without_pages(void)
{
	struct ev_loop *loop = ev_loop_new(EVFLAG_NOENV);
	int result = d9_ev_loop_attach(loop);
	char capabilities[256];

	d9_ev_loop_capabilities(capabilities, sizeof(capabilities));
	printf("%d %s %s\n", result, strstr(capabilities, "wake=off") ? "wake=off" : "",
	       strstr(capabilities, "spawn=off") ? "spawn=off" : "");
	return run_timer(loop);
}

static int attach_without_memory(void)
{
	struct ev_loop *first = ev_loop_new(EVFLAG_NOENV), *loop = ev_loop_new(EVFLAG_NOENV);
	int result, called = 0, made = 0;

	if (d9_ev_loop_attach(first))
		return 1;
	memory.refused = 1;
	result = d9_ev_loop_attach(loop);
	memory.refused = 0;
	if (!memory.asked)
		return 77;
	if (result != -ENOMEM || run_timer(loop) || d9_ev_loop_attach(loop))
		return 1;
	memory.refused = 1;
	memory.asked = 0;
	/* The first calls need no new memory: libev has some left. */
	for (; made < ONCE_MAX && !memory.asked; made++)
		ev_once(first, -1, 0, 0., on_once, &called);
	memory.refused = 0;
	ev_run(first, EVRUN_ONCE);
	return !memory.asked || called != made || run_timer(loop);
}

static int refuse_copies(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(filter) / sizeof(filter[0]), filter };

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

int main(int argc, char **argv)
{
	if (argc == 1 && pages_refused())
		return attach_without_pages();
	if (argc == 2 && !strcmp(argv[1], "memory"))
		return attach_without_memory();
	if (argc < 2 || refuse_copies())
		return 77;
	execv(argv[1], argv + 1);
	return 99;
}
