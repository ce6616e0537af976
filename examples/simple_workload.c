/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The simplest thing to look at: tasks of ten steps each on one loop, of which some wait and most
 * compute.  The only line about dial9 is the attach.
 *
 *	DIAL9_TRACE_DIR=traces simple_workload [TASKS]
 *	dial9 report traces
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <event2/event.h>

#include <dial9/libevent.h>

#define STEPS 10

struct task {
	struct event *next; /* runs the next step */
	unsigned steps;
};

static unsigned tasks_done, steps_done;

static void compute(void)
{
	volatile uint64_t sum = 0;

	for (uint64_t i = 0; i < 20000; i++)
		sum += i * i;
	(void)sum;
}

/* A step ends by saying when the next one is due, so that all others have their turn meanwhile. */
static void take_step(evutil_socket_t fd, short what, void *arg)
{
	const struct timeval at_once = { 0, 0 }, later = { 0, 10000 };
	struct task *task = arg;

	(void)fd, (void)what;
	steps_done++;
	if (++task->steps == STEPS) {
		tasks_done++;
		event_free(task->next);
		free(task);
		return;
	}
	if (task->steps % 3 == 0) {
		event_add(task->next, &later); /* as if it waited for an answer */
	} else {
		compute();
		event_add(task->next, &at_once);
	}
}

static void start_task(struct event_base *base)
{
	const struct timeval at_once = { 0, 0 };
	struct task *task = calloc(1, sizeof(*task));

	if (!task)
		return;
	task->next = evtimer_new(base, take_step, task);
	event_add(task->next, &at_once);
}

int main(int argc, char **argv)
{
	long tasks = argc > 1 ? atol(argv[1]) : 200;
	struct event_base *base = event_base_new();
	int err = d9_event_base_attach(base);

	if (err)
		fprintf(stderr, "not recorded: %s\n", d9_strerror(err));
	for (long i = 0; i < tasks; i++)
		start_task(base);
	event_base_dispatch(base); /* until no task is left */
	event_base_free(base);
	printf("%u tasks, %u steps\n", tasks_done, steps_done);
	return 0;
}
