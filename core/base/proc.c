/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "base/proc.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/lines.h"

#define FIRST_FIELD 3 /* the state, behind the program's name */

static const char *path_of(char path[40], pid_t pid, const char *name)
{
	if (pid)
		snprintf(path, 40, "/proc/%d/%s", (int)pid, name);
	else
		snprintf(path, 40, "/proc/self/%s", name);
	return path;
}

bool d9__proc_stat_read(struct d9__proc_stat *stat, pid_t pid)
{
	char path[40], text[sizeof(stat->fields)], *behind;
	int fd = open(path_of(path, pid, "stat"), O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return false;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[n > 0 ? n : 0] = '\0';
	/* The program's name stands in parentheses and may hold blanks and parentheses of its own. */
	behind = strrchr(text, ')');
	if (!behind || behind[1] != ' ' || !behind[2])
		return false;
	stat->state = behind[2];
	strcpy(stat->fields, behind + 2);
	return true;
}

uint64_t d9__proc_stat_field(const struct d9__proc_stat *stat, int number)
{
	const char *p = stat->fields;

	for (int field = FIRST_FIELD; p && field < number; field++) {
		p = strchr(p, ' ');
		p = p ? p + 1 : NULL;
	}
	return p ? strtoull(p, NULL, 10) : 0;
}

uint64_t d9__proc_start(pid_t pid)
{
	struct d9__proc_stat stat;

	return d9__proc_stat_read(&stat, pid) ? d9__proc_stat_field(&stat, D9__STAT_START) : 0;
}

/* At most |n| numbers of |text|. */
static int numbers_of(const char *text, unsigned long *numbers, int n)
{
	int found = 0;
	char *end;

	for (; found < n; text = end) {
		numbers[found] = strtoul(text, &end, 10);
		if (end == text)
			break;
		found++;
	}
	return found;
}

int d9__proc_status(pid_t pid, const char *key, unsigned long *numbers, int n)
{
	struct d9__lines lines;
	char path[40];
	int found = 0;

	if (!d9__lines_open(&lines, path_of(path, pid, "status")))
		return 0;
	while (!found && d9__lines_next(&lines))
		if (!strncmp(lines.text, key, strlen(key)))
			found = numbers_of(lines.text + strlen(key), numbers, n);
	d9__lines_close(&lines);
	return found;
}

bool d9__proc_user(pid_t pid, uid_t *uid, gid_t *gid)
{
	unsigned long users[2], groups[2]; /* real, effective */

	if (d9__proc_status(pid, "Uid:", users, 2) != 2 || d9__proc_status(pid, "Gid:", groups, 2) != 2)
		return false;
	*uid = (uid_t)users[1];
	*gid = (gid_t)groups[1];
	return true;
}
