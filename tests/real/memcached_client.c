/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A closed loop of counted requests against memcached:
 *
 *	memcached_client PORT CONNECTIONS REQUESTS
 *
 * Each connection sends REQUESTS gets, one at a time, all connections in turn; then everything is
 * closed, and memcached's own counters are printed (`stats`, one `STAT name value` a line).
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int connect_to(int port)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
	int fd = -1;

	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	for (int tries = 0; tries < 500; tries++) {
		fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof(to)) == 0)
			return fd;
		close(fd);
		usleep(10000);
	}
	return -1;
}

/* Send |request| and read until |end| ends the answer.  0, or -1. */
static int ask(int fd, const char *request, const char *end, char *answer, size_t size)
{
	size_t len = 0, tail = strlen(end);

	if (write(fd, request, strlen(request)) != (ssize_t)strlen(request))
		return -1;
	for (;;) {
		ssize_t n = read(fd, answer + len, size - 1 - len);

		if (n <= 0)
			return -1;
		len += (size_t)n;
		answer[len] = '\0';
		if (len >= tail && strcmp(answer + len - tail, end) == 0)
			return 0;
	}
}

int main(int argc, char **argv)
{
	static char answer[1 << 16];
	int port, n, *fds;
	long requests;

	if (argc != 4)
		return 2;
	port = atoi(argv[1]);
	n = atoi(argv[2]);
	requests = atol(argv[3]);
	fds = calloc((size_t)n, sizeof(*fds));
	if (!fds)
		return 1;
	for (int i = 0; i < n; i++)
		if ((fds[i] = connect_to(port)) < 0)
			return 1;
	for (long r = 0; r < requests; r++)
		for (int i = 0; i < n; i++)
			if (ask(fds[i], "get key\r\n", "END\r\n", answer, sizeof(answer)) < 0)
				return 1;
	if (ask(fds[0], "stats\r\n", "END\r\n", answer, sizeof(answer)) < 0)
		return 1;
	fputs(answer, stdout);
	for (int i = 0; i < n; i++)
		close(fds[i]);
	return 0;
}
