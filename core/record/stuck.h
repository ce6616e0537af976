/* SPDX-License-Identifier: Apache-2.0 */
/* Stuck: where a thread of this process is now, as the kernel tells without stopping it. */

#pragma once

#include <stdbool.h>
#include <stdint.h>

#define D9__STUCK_SYSCALL 48
#define D9__STUCK_WCHAN	  32

struct d9__stuck {
	/* "fdatasync(7)", "pause()", "futex: a lock", "syscall 999"; "" if it is in none, or that is not told. */
	char syscall[D9__STUCK_SYSCALL];
	char wchan[D9__STUCK_WCHAN]; /* the kernel's function that it sleeps in; "" if unknown */
	bool running;                /* on a processor, or ready for one */
	int fd;                      /* the system call's first argument, if that is a descriptor; else -1 */
};

/*
 * Look at thread |tid| by |task_fd|, a descriptor of /proc/self/task.  Sends no signal, takes some us.
 * 0, or the -errno of reading both files: neither is told here.
 */
int d9__stuck_look(int task_fd, uint32_t tid, struct d9__stuck *out);

/* Parse |line|, the text of /proc/PID/syscall.  False: it is not such a text. */
bool d9__stuck_parse(const char *line, struct d9__stuck *out);
