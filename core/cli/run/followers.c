/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/proc.h"
#include "cli/run/followers.h"

#define ENVIRONMENT_MAX ((size_t)6 << 20) /* the kernel's limit for arguments and environment */
#define EXEC_TRIES	1000 /* of 1 ms */

/*
 * All of a file of proc, with a zero byte in front and behind; NULL if it may not be read.  In one call: of a process that
 * becomes another program between two calls, the second finds nothing.
 */
static char *read_all(const char *path, size_t *len)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t size = 4096;
	char *text = NULL;
	ssize_t got = 0;

	do {
		free(text);
		size *= 2;
		text = fd < 0 ? NULL : malloc(size);
		if (text)
			got = pread(fd, text + 1, size - 2, 0);
	} while (text && got == (ssize_t)size - 2 && size < ENVIRONMENT_MAX);
	if (fd >= 0)
		close(fd);
	*len = got > 0 ? (size_t)got + 2 : 2;
	if (text)
		text[0] = text[*len - 1] = '\0';
	return text;
}

/*
 * True if an environment that could be read, and was empty, is so only because the process is in
 * the middle of execve(2): then it has memory, and the kernel, which notes where the code begins
 * last of all, has not done so yet.
 */
static bool is_in_exec(pid_t pid)
{
	struct d9__proc_stat stat;

	if (!d9__proc_stat_read(&stat, pid) || !d9__proc_stat_field(&stat, D9__STAT_MEMORY))
		return false;
	/* Begin and end differ: it was, and has come out of it. */
	return !d9__proc_stat_field(&stat, D9__STAT_CODE) ||
	       d9__proc_stat_field(&stat, D9__STAT_ENV_BEGIN) !=
		       d9__proc_stat_field(&stat, D9__STAT_ENV_END);
}

/* As read_all(); of a process that becomes another program, that of the latter. */
static char *read_environment(pid_t pid, size_t *len)
{
	const struct timespec pause = { 0, 1000000 };
	char path[64], *text;

	snprintf(path, sizeof(path), "/proc/%ld/environ", (long)pid);
	text = read_all(path, len);
	for (int tries = 0; text && *len == 2 && tries < EXEC_TRIES && is_in_exec(pid); tries++) {
		free(text);
		nanosleep(&pause, NULL);
		text = read_all(path, len);
	}
	return text;
}

static bool has_variable(pid_t pid, const char *variable)
{
	char *text, *entry;
	size_t len, want = strlen(variable) + 2;
	bool found;

	text = read_environment(pid, &len);
	if (!text)
		return false;
	entry = calloc(1, want);
	if (entry)
		memcpy(entry + 1, variable, want - 2);
	found = entry && memmem(text, len, entry, want);
	free(entry);
	free(text);
	return found;
}

bool d9__followers_any(const char *variable, d9__follower_fn fn, void *arg)
{
	DIR *proc = opendir("/proc");
	bool found = false;

	for (struct dirent *e; !found && proc && (e = readdir(proc));) {
		pid_t pid = (pid_t)atoi(e->d_name);

		if (pid > 0 && pid != getpid() && has_variable(pid, variable))
			found = fn(arg, pid);
	}
	if (proc)
		closedir(proc);
	return found;
}

static bool take_pid(void *arg, pid_t pid)
{
	*(pid_t *)arg = pid;
	return true;
}

pid_t d9__followers_of_dir(const char *dir)
{
	char *absolute = realpath(dir, NULL), *variable = NULL;
	pid_t pid = 0;

	if (absolute && asprintf(&variable, "DIAL9_TRACE_DIR=%s", absolute) >= 0) {
		d9__followers_any(variable, take_pid, &pid);
		free(variable);
	}
	free(absolute);
	return pid;
}

bool d9__followers_remove_dir(const char *dir)
{
	if (d9__followers_of_dir(dir))
		return false;
	rmdir(dir);
	return true;
}

uid_t d9__follower_uid(pid_t pid)
{
	uid_t uid;
	gid_t gid;

	return d9__proc_user(pid, &uid, &gid) ? uid : (uid_t)-1;
}
