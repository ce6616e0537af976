/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/followers.h"

#define ENVIRONMENT_MAX ((size_t)6 << 20) /* the kernel's limit for arguments and environment */

/* All of a file of proc, with a zero byte in front and behind; NULL if nothing is in it. */
static char *read_all(const char *path, size_t *len)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t size = 8192, n = 1;
	char *text = fd < 0 ? NULL : malloc(size), *bigger;
	ssize_t got = 0;

	while (text && (got = read(fd, text + n, size - n - 1)) > 0) {
		n += (size_t)got;
		if (size - n > 1)
			continue;
		bigger = size < ENVIRONMENT_MAX ? realloc(text, size *= 2) : NULL;
		if (!bigger)
			break;
		text = bigger;
	}
	if (fd >= 0)
		close(fd);
	if (text && n == 1) {
		free(text);
		return NULL;
	}
	if (text)
		text[0] = text[n] = '\0';
	*len = n + 1;
	return text;
}

static bool has_variable(pid_t pid, const char *variable)
{
	char path[64], *text, *entry;
	size_t len, want = strlen(variable) + 2;
	bool found;

	snprintf(path, sizeof(path), "/proc/%ld/environ", (long)pid);
	text = read_all(path, &len);
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
	char path[64], *text, *line;
	unsigned uid = (unsigned)-1;
	size_t len;

	snprintf(path, sizeof(path), "/proc/%ld/status", (long)pid);
	text = read_all(path, &len);
	line = text ? strstr(text + 1, "\nUid:") : NULL;
	if (!line || sscanf(line, "\nUid: %*u %u", &uid) != 1)
		uid = (unsigned)-1;
	free(text);
	return (uid_t)uid;
}
