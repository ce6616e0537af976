/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "cli/ship/notify.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "tool/args.h"

void d9__notify(const char *state)
{
	const char *path = getenv("NOTIFY_SOCKET");
	size_t len = path ? strlen(path) : 0;
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	int fd;

	if (!len || len >= sizeof(to.sun_path) || (path[0] != '/' && path[0] != '@'))
		return;
	memcpy(to.sun_path, path, len);
	if (path[0] == '@') /* the abstract kind */
		to.sun_path[0] = '\0';
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return;
	(void)sendto(fd, state, strlen(state), MSG_NOSIGNAL, (struct sockaddr *)&to,
		     (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len));
	close(fd);
}

uint64_t d9__notify_watchdog_ns(void)
{
	const char *us = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");
	uint64_t n = 0, whose = 0;

	if (!us || !d9__parse_u64(us, &n) || n > UINT64_MAX / 1000)
		return 0;
	if (pid && (!d9__parse_u64(pid, &whose) || whose != (uint64_t)getpid()))
		return 0;
	return n * 1000;
}
