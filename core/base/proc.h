/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Proc: /proc/PID/stat and /proc/PID/status, read in one place.  Allocates nothing.  Changes errno.
 *
 *	struct d9__proc_stat stat;
 *
 *	if (d9__proc_stat_read(&stat, pid) && stat.state == 'Z')
 *		... d9__proc_stat_field(&stat, D9__STAT_PARENT) ...
 */

#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Numbers of fields as proc_pid_stat(5) counts them. */
enum {
	D9__STAT_PARENT = 4,
	D9__STAT_START = 22, /* when it started, in clock ticks since the machine did */
	D9__STAT_MEMORY = 23,
	D9__STAT_CODE = 26,
	D9__STAT_ENV_BEGIN = 50,
	D9__STAT_ENV_END = 51,
	D9__STAT_EXIT = 52, /* as wait(2) tells it */
};

struct d9__proc_stat {
	char state; /* R, S, D, T, t, Z, X ... */
	char fields[1024];
};

/* |pid| 0: this process.  False: there is no such process, or /proc does not show it. */
bool d9__proc_stat_read(struct d9__proc_stat *stat, pid_t pid);

/* Field |number|, 4 or more; 0 if the kernel has no such field. */
uint64_t d9__proc_stat_field(const struct d9__proc_stat *stat, int number);

/* When |pid| (0: this process) started: two processes of one boot with one number differ in it.  0: there is none. */
uint64_t d9__proc_start(pid_t pid);

/*
 * Read the numbers of the line |key| ("Uid:", "Threads:") of /proc/PID/status, of |pid| or, 0, this process: at most |n| of
 * them.  Returns how many there were, 0 if there is no such line or process.
 */
int d9__proc_status(pid_t pid, const char *key, unsigned long *numbers, int n);

/* The user and group whose rights |pid| has.  False: there is no such process. */
bool d9__proc_user(pid_t pid, uid_t *uid, gid_t *gid);
