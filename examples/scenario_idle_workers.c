/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Four threads with a loop each share the work, and whoever deals it out takes a number that is always the same:
 * one does everything, three do nothing.  The innocent twin deals in turn.
 *
 *	scenario_idle_workers [innocent]
 */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <event2/event.h>

#include <dial9/libevent.h>

#define WORKERS 4
#define JOBS	400
#define JOB_US	3000

struct worker {
	pthread_t thread;
	struct event_base *base;
	struct event *event;
	int ends[2];
	unsigned done;
};

static struct worker workers[WORKERS];

/* Of CPU time, so that a busy machine does not make it less. */
static void compute(long us)
{
	struct timespec begin, now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
	do
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	while ((now.tv_sec - begin.tv_sec) * 1000000 + (now.tv_nsec - begin.tv_nsec) / 1000 < us);
}

static void do_job(evutil_socket_t fd, short what, void *arg)
{
	struct worker *worker = arg;
	char job;

	(void)what;
	if (read(fd, &job, 1) != 1 || job == 'q') {
		event_base_loopbreak(worker->base);
		return;
	}
	compute(JOB_US);
	worker->done++;
}

static void *work(void *arg)
{
	struct worker *worker = arg;

	d9_event_base_attach(worker->base);
	event_base_dispatch(worker->base);
	return NULL;
}

static int begin(struct worker *worker)
{
	worker->base = event_base_new();
	if (pipe(worker->ends))
		return -1;
	worker->event = event_new(worker->base, worker->ends[0], EV_READ | EV_PERSIST, do_job, worker);
	event_add(worker->event, NULL);
	return pthread_create(&worker->thread, NULL, work, worker);
}

static int deal(unsigned job, int innocent)
{
	const struct timespec pause = { .tv_nsec = 4000000 };

	nanosleep(&pause, NULL);
	return write(workers[innocent ? job % WORKERS : 0].ends[1], "j", 1) == 1 ? 0 : -1;
}

int main(int argc, char **argv)
{
	int innocent = argc > 1 && !strcmp(argv[1], "innocent"), err = 0;

	for (unsigned i = 0; i < WORKERS && !err; i++)
		err = begin(&workers[i]);
	for (unsigned i = 0; i < JOBS && !err; i++)
		err = deal(i, innocent);
	for (unsigned i = 0; i < WORKERS && !err; i++) {
		err = write(workers[i].ends[1], "q", 1) != 1;
		pthread_join(workers[i].thread, NULL);
		event_free(workers[i].event);
		event_base_free(workers[i].base);
		printf("worker %u: %u jobs\n", i, workers[i].done);
	}
	return err ? 1 : 0;
}
