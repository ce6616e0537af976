/* SPDX-License-Identifier: Apache-2.0 */
#include "judged.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static double seconds_of(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

double judged_now(void)
{
	return seconds_of(CLOCK_MONOTONIC);
}

double judged_cpu(void)
{
	return seconds_of(CLOCK_THREAD_CPUTIME_ID);
}

/* Look at the clock now and then only: programs that ask for the time are a problem of their own.
 */
void judged_compute(double ms)
{
	double end = judged_cpu() + ms / 1e3;
	volatile unsigned sum = 0;

	do
		for (unsigned i = 0; i < 20000; i++)
			sum += i;
	while (judged_cpu() < end);
}

void judged_sleep(double ms)
{
	struct timespec time = { (time_t)(ms / 1e3), (long)(ms * 1e6) % 1000000000 };

	nanosleep(&time, NULL);
}

struct sidecar {
	int fd;
	double ms;
};

static void *answer(void *arg)
{
	const struct sidecar *sidecar = arg;
	char byte;

	while (read(sidecar->fd, &byte, 1) == 1) {
		judged_sleep(sidecar->ms);
		if (write(sidecar->fd, &byte, 1) != 1)
			break;
	}
	return NULL;
}

int judged_sidecar(double ms)
{
	static struct sidecar sidecar;
	pthread_t thread;
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends))
		abort();
	sidecar = (struct sidecar) { ends[1], ms };
	if (pthread_create(&thread, NULL, answer, &sidecar))
		abort();
	pthread_detach(thread);
	return ends[0];
}

int judged_main(int argc, char **argv, const struct judged *programs)
{
	bool innocent = argc > 3 && !strcmp(argv[3], "innocent");

	for (; argc > 2 && programs->name; programs++)
		if (!strcmp(programs->name, argv[1])) {
			programs->run(innocent, atof(argv[2]));
			return 0;
		}
	fprintf(stderr, "usage: %s NAME SECONDS [innocent]\n", argv[0]);
	return 2;
}
