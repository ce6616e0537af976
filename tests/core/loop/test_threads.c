/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <dial9/loop.h>

#include "core/loop/loop_events.h"
#include "ring/gate.h"
#include "support/d9_test.h"

#define THREADS 8
#define ROUNDS  400

static struct d9_loop *loops[THREADS];

struct share {
	unsigned number;
	unsigned polls;
};

/* A loop whose callbacks wake those of the next thread's loop. */
static void *run_loop(void *arg)
{
	struct share *share = arg;
	struct d9_loop *own = loops[share->number];
	struct d9_loop *next = loops[(share->number + 1) % THREADS];
	struct d9_loop_run run;

	d9_loop_enter(own, &run);
	for (unsigned i = 0; i < ROUNDS; i++) {
		struct d9_poll poll = { .loop = own, .depth = 1, .flags = D9_POLL_BATCHED };

		poll.task = (struct d9_task){ .key = 1000 * share->number + i % 50, .fd = -1,
					      .identity = 1 + i / 100 };
		d9_loop_park(own, i % 3 ? -1 : 0);
		d9_wake(own, poll.task.key, D9_WAKE_UNKNOWN, NULL);
		d9_loop_unpark(own);
		d9_poll_begin(&poll);
		d9_wake(next, 1000 * ((share->number + 1) % THREADS) + i % 50, D9_WAKE_UNKNOWN,
			NULL);
		if (i % 7 == 0)
			d9_task_end(D9_LIBRARY_OWN, poll.task.key);
		share->polls += poll.task_id != 0;
		d9_poll_end(&poll);
	}
	d9_loop_leave(&run);
	return NULL;
}

static unsigned run_all(void)
{
	struct share shares[THREADS];
	pthread_t threads[THREADS];
	unsigned polls = 0;

	for (unsigned i = 0; i < THREADS; i++) {
		shares[i] = (struct share){ i, 0 };
		pthread_create(&threads[i], NULL, run_loop, &shares[i]);
	}
	for (unsigned i = 0; i < THREADS; i++) {
		pthread_join(threads[i], NULL);
		polls += shares[i].polls;
	}
	return polls;
}

static void test_loops_of_many_threads_alternate_each_by_itself(void)
{
	const struct loop_events *events;
	unsigned polls = run_all();

	events = loop_events_collect();
	loop_events_sort();
	CU_ASSERT_EQUAL(polls, THREADS * ROUNDS);
	CU_ASSERT_EQUAL(loop_count(events, LOOP_START), polls);
	CU_ASSERT_EQUAL(loop_count(events, LOOP_END), polls);
	CU_ASSERT_EQUAL(loop_first_violation(events), events->n);
}

static void *switch_often(void *arg)
{
	for (unsigned i = 0; i < 2000; i++)
		d9__gate_set(i % 2 ? D9__GATE_ALL : 0);
	return arg;
}

static void test_switching_while_loops_run_keeps_their_alternation(void)
{
	const struct loop_events *events;
	pthread_t thread;

	pthread_create(&thread, NULL, switch_often, NULL);
	run_all();
	pthread_join(thread, NULL);
	run_all();

	events = loop_events_collect();
	loop_events_sort();
	CU_ASSERT_EQUAL(loop_first_violation(events), events->n);
}

static void *register_often(void *arg)
{
	static char addresses[THREADS][100];
	char *own = addresses[(uintptr_t)arg];

	for (unsigned i = 0; i < 2000; i++) {
		struct d9_loop *loop = loop_events_add(D9_LIBRARY_GLIB, &own[i % 100]);
		struct d9_loop *found;

		found = d9_loop_find(D9_LIBRARY_GLIB, &own[i % 100]);
		if (found != loop)
			return &loops;
		if (!d9_loop_find(D9_LIBRARY_OWN, &loops[0]))
			return &loops;
		d9_loop_unregister(loop);
	}
	return NULL;
}

static void test_loops_are_found_while_others_come_and_go(void)
{
	pthread_t threads[THREADS];
	void *problem;

	for (uintptr_t i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, register_often, (void *)i);
	for (size_t i = 0; i < THREADS; i++) {
		pthread_join(threads[i], &problem);
		CU_ASSERT_PTR_NULL(problem);
	}
}

#define KEY 7777

static _Atomic(bool) ended;

static void *wake_often(void *arg)
{
	while (!ended)
		d9_wake(arg, KEY, D9_WAKE_UNKNOWN, NULL);
	return NULL;
}

/* Between the look at a task and the wake of it, it ends. */
static void test_task_that_ends_while_it_is_woken_is_woken_no_more(void)
{
	struct d9_poll poll = { .loop = loops[0], .task = { .key = KEY, .fd = -1 } };
	const struct loop_events *events;
	unsigned nobody = 0;
	pthread_t thread;

	/* It is this thread's loop from here on. */
	d9_loop_park(loops[0], -1);
	d9_loop_unpark(loops[0]);
	pthread_create(&thread, NULL, wake_often, loops[0]);
	for (unsigned i = 1; i <= 100000; i++) {
		d9_poll_begin(&poll);
		d9_poll_end(&poll);
		d9_task_end(D9_LIBRARY_OWN, KEY);
		/* As much as the ring holds. */
		if (i % 4000)
			continue;
		events = loop_events_collect();
		for (size_t k = 0; k < events->n; k++)
			nobody += events->items[k].kind == LOOP_WAKE && !events->items[k].task;
	}
	ended = true;
	pthread_join(thread, NULL);
	d9_task_end(D9_LIBRARY_OWN, KEY);

	CU_ASSERT_EQUAL(nobody, 0);
}

static void test_child_has_its_parents_loops_but_records_nothing_of_them(void)
{
	struct d9_poll poll = { .loop = loops[0], .task = { .key = 1, .fd = -1 } };
	int status = -1;
	pid_t pid;

	d9_poll_begin(&poll);
	pid = fork();
	if (pid == 0) {
		bool silent = !d9_loop_recording();
		bool known = d9_loop_find(D9_LIBRARY_OWN, &loops[0]) == loops[0];

		d9_poll_end(&poll);
		d9_loop_unregister(loops[1]);
		_exit(silent && known && !d9_loop_find(D9_LIBRARY_OWN, &loops[1]) ? 0 : 1);
	}
	waitpid(pid, &status, 0);
	d9_poll_end(&poll);

	CU_ASSERT_EQUAL(status, 0);
	CU_ASSERT_EQUAL(loop_count(loop_events_collect(), LOOP_END), 1);
}

int main(void)
{
	static const CU_TestInfo tests[] = {
		{ "loops of many threads alternate, each by itself",
		  test_loops_of_many_threads_alternate_each_by_itself },
		{ "switching while loops run keeps their alternation",
		  test_switching_while_loops_run_keeps_their_alternation },
		{ "loops are found while others come and go",
		  test_loops_are_found_while_others_come_and_go },
		{ "task that ends while it is woken is woken no more",
		  test_task_that_ends_while_it_is_woken_is_woken_no_more },
		{ "child has its parent's loops but records nothing of them",
		  test_child_has_its_parents_loops_but_records_nothing_of_them },
		CU_TEST_INFO_NULL,
	};

	loop_clock_runs = true;
	loop_events_start();
	for (unsigned i = 0; i < THREADS; i++)
		loops[i] = loop_events_add(D9_LIBRARY_OWN, &loops[i]);
	return d9_test_main("loop threads", tests);
}
