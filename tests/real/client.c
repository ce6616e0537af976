/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A closed loop of counted requests against a server on loopback:
 *
 *	client memcached|echo PORT CONNECTIONS REQUESTS
 *
 * Each connection sends REQUESTS requests, one at a time, all connections in turn.  memcached: gets,
 * and at the end its own counters are printed (`stats`, one `STAT name value` a line).  echo: lines
 * of 21 bytes that must come back as they are.  When it ends the server has closed all of its connections.
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

static int request(int fd, int echo)
{
	static char answer[256];
	const char *line = "twenty-one bytes long";

	if (echo)
		return ask(fd, line, line, answer, sizeof(answer));
	return ask(fd, "get key\r\n", "END\r\n", answer, sizeof(answer));
}

/* Say that nothing more comes, and wait until the server has done the same. */
static int finish(int fd)
{
	char rest;

	if (shutdown(fd, SHUT_WR) || read(fd, &rest, 1) != 0)
		return -1;
	return close(fd);
}

int main(int argc, char **argv)
{
	static char answer[1 << 16];
	static int *fds;
	int echo, port, n;
	long requests;

	if (argc != 5) {
		fputs("usage: client memcached|echo PORT CONNECTIONS REQUESTS\n", stderr);
		return 2;
	}
	echo = strcmp(argv[1], "echo") == 0;
	port = atoi(argv[2]);
	n = atoi(argv[3]);
	requests = atol(argv[4]);
	fds = calloc((size_t)n, sizeof(*fds));
	if (!fds)
		return 1;
	for (int i = 0; i < n; i++)
		if ((fds[i] = connect_to(port)) < 0)
			return 1;
	for (long r = 0; r < requests; r++)
		for (int i = 0; i < n; i++)
			if (request(fds[i], echo) < 0)
				return 1;
	if (!echo) {
		if (ask(fds[0], "stats\r\n", "END\r\n", answer, sizeof(answer)) < 0)
			return 1;
		fputs(answer, stdout);
	}
	for (int i = 0; i < n; i++)
		if (finish(fds[i]))
			return 1;
	free(fds);
	return 0;
}
