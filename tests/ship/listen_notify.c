/* SPDX-License-Identifier: Apache-2.0 */
/* Stands in for systemd: prints what is told over the socket PATH, a line each, until its standard input ends. */
#include "config.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	struct sockaddr_un own = { .sun_family = AF_UNIX };
	struct pollfd ends[] = { { STDIN_FILENO, POLLIN, 0 }, { socket(AF_UNIX, SOCK_DGRAM, 0), POLLIN, 0 } };
	char text[256];

	if (argc != 2 || strlen(argv[1]) >= sizeof(own.sun_path))
		return 2;
	strcpy(own.sun_path, argv[1]);
	if (bind(ends[1].fd, (struct sockaddr *)&own, sizeof(own)))
		return 1;
	while (poll(ends, 2, -1) > 0 && !ends[0].revents) {
		ssize_t n = recv(ends[1].fd, text, sizeof(text) - 1, 0);

		if (n <= 0)
			break;
		text[n] = '\0';
		puts(text);
		fflush(stdout);
	}
	return 0;
}
