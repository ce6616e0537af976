/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <dial9/loop.h>

#include "core/loop/loop_events.h"
#include "loop/running.h"
#include "record/open_calls.h"
#include "ring/names.h"
#include "support/d9_test.h"

#define LEFT_OUT 6
#define THREADS	 (D9__OPEN_CALLS_MAX + LEFT_OUT)

static struct d9_loop *loop;
static struct d9__open_calls calls;

/* ---- many at once ---- */

static struct thread {
	pthread_t thread;
	uint32_t tid;
	sem_t turn;
} threads[THREADS];
static sem_t ready;

static void *hang(void *arg)
{
	struct thread *self = arg;
	struct d9_poll poll = { .loop = loop, .task = { .key = 1 + (uint64_t)(self - threads), .fd = -1 } };
	struct d9_loop_run run;

	self->tid = (uint32_t)syscall(SYS_gettid);
	d9_loop_enter(loop, &run);
	sem_post(&ready);
	sem_wait(&self->turn);
	d9_poll_begin(&poll);
	sem_post(&ready);
	sem_wait(&self->turn);
	d9_poll_end(&poll);
	d9_loop_leave(&run);
	return NULL;
}

/* Start all threads, so that the one that was started first begins its call last. */
static void start_all(void)
{
	sem_init(&ready, 0, 0);
	for (size_t i = 0; i < THREADS; i++) {
		sem_init(&threads[i].turn, 0, 0);
		pthread_create(&threads[i].thread, NULL, hang, &threads[i]);
		sem_wait(&ready);
	}
	for (size_t i = THREADS; i--;) {
		sem_post(&threads[i].turn);
		sem_wait(&ready);
	}
}

static void end_all(void)
{
	for (size_t i = 0; i < THREADS; i++) {
		sem_post(&threads[i].turn);
		pthread_join(threads[i].thread, NULL);
		sem_destroy(&threads[i].turn);
	}
	sem_destroy(&ready);
}

static void test_of_more_calls_than_are_kept_the_longest_are(void)
{
	static struct d9__ring_health health;

	start_all();
	d9__open_calls_look(&calls, loop_ns + 2 * D9__OPEN_CALL_NS);
	d9__open_calls_publish(&calls, &health);
	end_all();

	CU_ASSERT_EQUAL(calls.n, D9__OPEN_CALLS_MAX);
	for (size_t i = 0; i < calls.n; i++)
		for (size_t young = 0; young < LEFT_OUT; young++)
			CU_ASSERT_NOT_EQUAL(calls.items[i].tid, threads[young].tid);
	CU_ASSERT_EQUAL(health.open[0].tid, threads[THREADS - 1].tid);
}

/* ---- loops inside them ---- */

static const struct d9__open_call *find_around(void)
{
	d9__open_calls_look(&calls, loop_ns += 2 * D9__OPEN_CALL_NS);
	for (size_t i = 0; i < calls.n; i++)
		if (calls.items[i].around)
			return &calls.items[i];
	return NULL;
}

static void test_a_call_that_runs_a_loop_is_open_while_that_loop_waits(void)
{
	struct d9_poll poll = { .loop = loop, .task = { .key = 1001, .fd = -1 } };
	const struct d9__open_call *around;
	struct d9_loop_run run, inner;

	d9_loop_enter(loop, &run);
	CU_ASSERT_PTR_NULL(find_around());
	d9_poll_begin(&poll);
	d9_loop_enter(loop, &inner);
	d9_loop_park(loop, -1);
	around = find_around();
	CU_ASSERT_PTR_NOT_NULL_FATAL(around);
	CU_ASSERT_EQUAL(around->tid, (uint32_t)syscall(SYS_gettid));
	CU_ASSERT(around->since_ns + 2 * D9__OPEN_CALL_NS <= loop_ns);
	d9_loop_unpark(loop);
	d9_loop_leave(&inner);
	CU_ASSERT_PTR_NULL(find_around());
	d9_poll_end(&poll);
	d9_loop_leave(&run);
}

/* ---- what they are called ---- */

#define FDS (D9__OPEN_CALL_FDS + 40)

static struct {
	int ends[2], fds[FDS];
	uint32_t tid;
} pipes;

static void *read_all(void *arg)
{
	char byte;

	pipes.tid = (uint32_t)syscall(SYS_gettid);
	sem_post(arg);
	for (size_t i = 0; i < FDS; i++)
		if (read(pipes.fds[i], &byte, 1) != 1)
			break;
	return NULL;
}

static void wait_for_read(int fd)
{
	struct d9__stuck stuck;

	do
		usleep(100);
	while (!d9__stuck_look(calls.task_fd, pipes.tid, &stuck) && stuck.fd != fd);
}

static void test_a_program_that_blocks_at_thousands_of_descriptors_does_not_fill_the_names(void)
{
	uint32_t before;
	pthread_t thread;
	sem_t begun;

	sem_init(&begun, 0, 0);
	CU_ASSERT_EQUAL_FATAL(pipe(pipes.ends), 0);
	for (size_t i = 0; i < FDS; i++)
		pipes.fds[i] = dup(pipes.ends[0]);
	pthread_create(&thread, NULL, read_all, &begun);
	sem_wait(&begun);
	before = d9__name_count();
	for (size_t i = 0; i < FDS; i++) {
		wait_for_read(pipes.fds[i]);
		calls.items[0] = (struct d9__open_call){ .tid = pipes.tid, .task = i + 1, .since_ns = loop_ns };
		calls.n = 1;
		d9__open_calls_tell(&calls, d9__slot_self(), loop_ns += D9__OPEN_CALL_NS);
		CU_ASSERT_EQUAL(write(pipes.ends[1], "x", 1), 1);
	}
	pthread_join(thread, NULL);

	/* "read(N)" for each that has a number, "read()", and the kernel's function. */
	CU_ASSERT_EQUAL(calls.n_fds, D9__OPEN_CALL_FDS);
	CU_ASSERT(d9__name_count() - before <= D9__OPEN_CALL_FDS + 4);
	for (size_t i = 0; i < FDS; i++)
		close(pipes.fds[i]);
	close(pipes.ends[0]);
	close(pipes.ends[1]);
	sem_destroy(&begun);
}

int main(void)
{
	static const CU_TestInfo tests[] = {
		{ "of more calls than are kept the longest are",
		  test_of_more_calls_than_are_kept_the_longest_are },
		{ "a call that runs a loop is open while that loop waits",
		  test_a_call_that_runs_a_loop_is_open_while_that_loop_waits },
		{ "a program that blocks at thousands of descriptors does not fill the names",
		  test_a_program_that_blocks_at_thousands_of_descriptors_does_not_fill_the_names },
		CU_TEST_INFO_NULL,
	};

	loop_clock_runs = true;
	loop_events_start();
	loop = loop_events_add(D9_LIBRARY_OWN, &loop);
	d9__running_start();
	d9__open_calls_begin(&calls);
	return d9_test_main("open_calls", tests);
}
