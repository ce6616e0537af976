/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One of many: one client of a thousand is slow ("client"), one loop of four is ("thread").  In the
 *innocent twin none is.
 *
 *	one client|thread [innocent]
 */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "loop.h"

#define CLIENTS 1000

static int requests[CLIENTS];
static bool innocent;

static void compute_for(double s)
{
	struct timespec t;
	double end = -1, at;

	do {
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
		at = (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
		end = end < 0 ? at + s : end;
	} while (at < end);
}

/* Long for a large query. */
static __attribute__((noinline)) void run_query(const char *query)
{
	compute_for(*query == 'l' ? 0.03 : 0.0001);
}

ON_READ(on_client, fd, arg)
{
	char query[16] = "";

	(void)arg;
	if (read(fd, query, sizeof(query)) > 0)
		run_query(query);
}

/* Each client asks for something about once in two seconds, one of them for a large thing. */
static void *ask(void *arg)
{
	(void)arg;
	for (int i = 0; i < 2 * CLIENTS; i++) {
		int client = i % CLIENTS;

		if (client % 100 == 0 && !innocent && write(requests[777], "large", 5) < 0)
			break;
		if (client != 777 && write(requests[client], "small", 5) < 0)
			break;
		usleep(1500);
	}
	return NULL;
}

static void clients(void)
{
	struct rlimit limit = { 4096, 4096 };
	loop_t *loop = loop_new();
	pthread_t thread;

	if (setrlimit(RLIMIT_NOFILE, &limit))
		exit(77);
	for (int i = 0; i < CLIENTS; i++) {
		int pair[2];

		if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair))
			exit(77);
		requests[i] = pair[1];
		loop_read(loop, pair[0], on_client, NULL);
	}
	pthread_create(&thread, NULL, ask, NULL);
	loop_run(loop, 4);
	pthread_join(thread, NULL);
}

/* ---- threads ---- */

ON_TIMER(on_job, arg)
{
	int number = *(int *)arg;

	compute_for(number == 2 && !innocent ? 0.04 : 0.0002);
}

static void *serve(void *arg)
{
	loop_t *loop = loop_new();
	char name[16];

	snprintf(name, sizeof(name), "shard-%d", *(int *)arg);
	pthread_setname_np(pthread_self(), name);
	loop_every(loop, 0.1, on_job, arg);
	loop_run(loop, 4);
	return NULL;
}

static void shards(void)
{
	static int numbers[4] = { 0, 1, 2, 3 };
	pthread_t threads[4];

	for (int i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, serve, &numbers[i]);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
}

int main(int argc, char **argv)
{
	innocent = argc > 2;
	if (argc > 1 && !strcmp(argv[1], "thread"))
		shards();
	else
		clients();
	return 0;
}
