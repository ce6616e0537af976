/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "base/artefact.h"
#include "cli/run/record_began.h"

#include <limits.h>
#include <stddef.h>
#include <sys/inotify.h>
#include <unistd.h>

int d9__record_began_watch(const char *dir)
{
	int watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);

	if (watch >= 0 && inotify_add_watch(watch, dir, IN_CREATE | IN_ONLYDIR) < 0) {
		close(watch);
		watch = -1;
	}
	return watch;
}

bool d9__record_began(int watch)
{
	_Alignas(struct inotify_event) char bytes[16 * (sizeof(struct inotify_event) + NAME_MAX + 1)];
	bool began = false;
	ssize_t n;

	if (watch < 0)
		return false;
	while (!began && (n = read(watch, bytes, sizeof(bytes))) > 0)
		for (ssize_t at = 0; at < n;) {
			const struct inotify_event *event = (const struct inotify_event *)(const void *)(bytes + at);

			began |= event->len && d9__boot_id_valid(event->name);
			at += (ssize_t)(sizeof(*event) + event->len);
		}
	close(watch);
	return began;
}
