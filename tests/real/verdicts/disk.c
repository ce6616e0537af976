/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A journal that waits for the disk with each entry (O_DSYNC).  Twenty clients send an entry each
 * at the same time, and queries of others wait behind all of them.  The innocent twin lets the
 * kernel write when it likes.  Exits with 77 where the disk takes no time.
 *
 *	disk DIRECTORY [innocent]
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "loop.h"

#define CLIENTS 20
#define MOST	((size_t)8 << 20) /* bytes of an entry */
#define ENTRY_S 0.002 /* a write takes at least: from a millisecond on it is told by itself */

static char text[MOST];
static int journal, entries[CLIENTS], queries;
static size_t length = 4096;

static __attribute__((noinline)) void append_to_journal(void)
{
	/* Over the one before, so that the disk keeps its room. */
	if (lseek(journal, 0, SEEK_SET) || write(journal, text, length) < 0)
		exit(1);
}

ON_READ(on_entry, fd, arg)
{
	char byte;

	(void)arg;
	if (read(fd, &byte, 1) == 1)
		append_to_journal();
}

ON_READ(on_query, fd, arg)
{
	char bytes[64];

	(void)arg;
	if (read(fd, bytes, sizeof(bytes)) < 0)
		exit(1);
}

static void *send_all(void *arg)
{
	(void)arg;
	for (unsigned i = 0; i < 600; i++) {
		for (unsigned j = 0; i % 20 == 0 && j < CLIENTS; j++)
			if (write(entries[j], "e", 1) < 0)
				return NULL;
		if (write(queries, "q", 1) < 0)
			break;
		usleep(10000);
	}
	return NULL;
}

static int connect_to(loop_t *loop, bool entry)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair))
		exit(1);
	if (entry)
		loop_read(loop, pair[0], on_entry, NULL);
	else
		loop_read(loop, pair[0], on_query, NULL);
	return pair[1];
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Shortest of several writes, so that a busy machine does not count. */
static double write_takes(void)
{
	double shortest = 1, from;

	for (unsigned i = 0; i < 10; i++) {
		from = now();
		append_to_journal();
		if (now() - from < shortest)
			shortest = now() - from;
	}
	return shortest;
}

int main(int argc, char **argv)
{
	bool innocent = argc > 2;
	loop_t *loop = loop_new();
	pthread_t thread;
	char name[4096];

	snprintf(name, sizeof(name), "%s/journal", argc > 1 ? argv[1] : "/tmp");
	journal = open(name, O_WRONLY | O_CREAT | O_TRUNC | (innocent ? 0 : O_DSYNC), 0600);
	if (journal < 0)
		return 1;
	unlink(name);
	/* A disk that takes no time for the largest is none. */
	while (!innocent && write_takes() < ENTRY_S)
		if ((length *= 2) > MOST)
			return 77;
	for (unsigned i = 0; i < CLIENTS; i++)
		entries[i] = connect_to(loop, true);
	queries = connect_to(loop, false);
	pthread_create(&thread, NULL, send_all, NULL);
	pthread_detach(thread);
	loop_run(loop, 2);
	return 0;
}
