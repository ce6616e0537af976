/* SPDX-License-Identifier: Apache-2.0 */
/* Self: the program that runs, run once more. */

#ifndef D9_TESTS_RECORD_SELF_H
#define D9_TESTS_RECORD_SELF_H

#include <limits.h>
#include <unistd.h>

/*
 * Returns only if that fails.  By its path, for valgrind lets /proc/self/exe be read as ours, but runs
 * itself.
 */
static inline void self_exec(const char *role, const char *arg)
{
	char path[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);

	if (n < 0)
		return;
	path[n] = '\0';
	execl(path, path, role, arg, (char *)NULL);
}

#endif /* D9_TESTS_RECORD_SELF_H */
