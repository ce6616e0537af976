/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "base/artefact.h"
#include "base/time.h"
#include "ship/watch.h"

#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <time.h>
#include <unistd.h>

void d9__ship_watch_open(struct d9__ship_watch *watch)
{
	watch->fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
}

void d9__ship_watch_directory(const struct d9__ship_watch *watch, const char *path)
{
	if (watch->fd >= 0)
		inotify_add_watch(watch->fd, path, IN_CREATE | IN_MOVED_TO | IN_ONLYDIR | IN_DONT_FOLLOW);
}

void d9__ship_watch_add(const struct d9__ship_watch *watch, const struct d9__ship_tree *tree)
{
	for (size_t i = 0; watch->fd >= 0 && i < tree->n; i++) {
		const char *path = tree->processes[i].path, *slash = strrchr(path, '/');
		char *above = slash ? strndup(path, slash > path ? (size_t)(slash - path) : 1) : NULL;

		/* A seal is a rename. */
		inotify_add_watch(watch->fd, path, IN_MOVED_TO | IN_ONLYDIR | IN_DONT_FOLLOW);
		if (above)
			d9__ship_watch_directory(watch, above);
		free(above);
	}
}

static bool matters(const struct inotify_event *event)
{
	uint64_t index;
	enum d9__artefact what;

	if (event->mask & IN_Q_OVERFLOW)
		return true;
	if (!event->len)
		return false;
	if (event->mask & IN_ISDIR) /* of a process, or of a service that has some */
		return event->name[0] != '.' && strcmp(event->name, "refused") != 0;
	what = d9__artefact_of(event->name, &index);
	return event->mask & IN_MOVED_TO && (what == D9__ARTEFACT_SEGMENT || what == D9__ARTEFACT_MANIFEST);
}

/* Read the notices; true if one of them matters. */
static bool take(int fd)
{
	char buf[4096] __attribute__((aligned(__alignof__(struct inotify_event))));
	bool any = false;
	ssize_t n;

	while ((n = read(fd, buf, sizeof(buf))) > 0)
		for (ssize_t at = 0; at < n;) {
			const struct inotify_event *event = (const struct inotify_event *)(buf + at);

			any |= matters(event);
			at += (ssize_t)(sizeof(*event) + event->len);
		}
	return any;
}

void d9__ship_watch_wait(const struct d9__ship_watch *watch, uint64_t until_ns, const sigset_t *mask)
{
	struct pollfd fd = { watch->fd, POLLIN, 0 };

	for (uint64_t now = d9__mono_ns(); now < until_ns; now = d9__mono_ns()) {
		struct timespec left = { .tv_sec = (time_t)((until_ns - now) / D9__SECOND_NS),
					 .tv_nsec = (long)((until_ns - now) % D9__SECOND_NS) };

		if (ppoll(&fd, 1, &left, mask) <= 0 || take(watch->fd))
			return;
	}
}

void d9__ship_watch_close(struct d9__ship_watch *watch)
{
	if (watch->fd >= 0)
		close(watch->fd);
	watch->fd = -1;
}
