/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One loop per core, each on its own thread; the main loop deals out work round robin.  In the
 * trace each thread is a worker, and each job's wake names the task that sent it.
 *
 *	thread_per_core [THREADS [JOBS]]
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <event2/event.h>
#include <event2/thread.h>

#include <dial9/libevent.h>

struct core {
	pthread_t thread;
	struct event_base *base;
	struct event *job;
	char name[32];
	atomic_long queued, done;
};

static struct core *cores;
static long n_cores = 4, jobs_left = 1000;
static struct event_base *main_base;

/* Run what was dealt, on the thread that owns the loop; each job is some arithmetic. */
static void run_job(evutil_socket_t fd, short what, void *arg)
{
	struct core *core = arg;
	volatile unsigned long sum = 0;

	(void)fd, (void)what;
	for (long jobs = atomic_exchange(&core->queued, 0); jobs > 0; jobs--) {
		for (unsigned long i = 0; i < 20000; i++)
			sum += i * i;
		(void)sum;
		core->done++;
	}
}

static void *run_core(void *arg)
{
	struct core *core = arg;

	event_base_loop(core->base, EVLOOP_NO_EXIT_ON_EMPTY);
	return NULL;
}

/* Every millisecond: hand one job to each core.  event_active() may be called from any thread. */
static void deal_jobs(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what, (void)arg;
	for (long i = 0; i < n_cores && jobs_left > 0; i++, jobs_left--) {
		atomic_fetch_add(&cores[i].queued, 1);
		event_active(cores[i].job, EV_READ, 0);
	}
	if (jobs_left == 0)
		event_base_loopbreak(main_base);
}

static void start_core(struct core *core, long i)
{
	snprintf(core->name, sizeof(core->name), "core-%ld", i);
	core->base = event_base_new();
	/* The name becomes the lane's name in the trace. */
	d9_event_base_attach_named(core->base, core->name);
	core->job = event_new(core->base, -1, EV_PERSIST, run_job, core);
	pthread_create(&core->thread, NULL, run_core, core);
}

int main(int argc, char **argv)
{
	const struct timeval every_millisecond = { .tv_usec = 1000 };
	struct event *dealer;
	long done = 0;

	if (argc > 1)
		n_cores = atol(argv[1]);
	if (argc > 2)
		jobs_left = atol(argv[2]);
	if (n_cores < 1 || jobs_left < 1) {
		fprintf(stderr, "usage: %s [THREADS [JOBS]]\n", argv[0]);
		return 2;
	}
	evthread_use_pthreads();
	cores = calloc((size_t)n_cores, sizeof(*cores));
	for (long i = 0; i < n_cores; i++)
		start_core(&cores[i], i);

	main_base = event_base_new();
	d9_event_base_attach_named(main_base, "main");
	dealer = event_new(main_base, -1, EV_PERSIST, deal_jobs, NULL);
	event_add(dealer, &every_millisecond);
	event_base_dispatch(main_base);

	for (long i = 0; i < n_cores; i++) {
		const struct timeval now = { 0 };

		event_base_loopexit(cores[i].base, &now);
		pthread_join(cores[i].thread, NULL);
		done += cores[i].done;
		event_free(cores[i].job);
		event_base_free(cores[i].base);
	}
	event_free(dealer);
	event_base_free(main_base);
	free(cores);
	printf("%ld jobs run on %ld cores\n", done, n_cores);
	return 0;
}
