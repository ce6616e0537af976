/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program whose nth allocation within us fails, for every n until none does, and where all fail from
 * the nth on: it goes on, and what is written is whole.  D9_LONG=1: for every n there, too.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "core/record/again.h"

#if AGAIN_SANITIZED
int main(void)
{
	puts("allocations cannot be made to fail under a sanitizer");
	return 77;
}
#else

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>

#include <dial9/loop.h>
#include <dial9/span.h>

#include "core/record/numbered.h"
#include "loop/adapter.h"

#define ROUNDS 40
#define TASKS  5

void *__libc_malloc(size_t len);
void *__libc_calloc(size_t n, size_t len);
void *__libc_realloc(void *p, size_t len);

/* Allocations until one fails; and whether all do behind it. */
static _Atomic(long) allowed = LONG_MAX;
static bool for_good;

static bool refused(void)
{
	long left = atomic_load(&allowed) == LONG_MAX ? 1 : atomic_fetch_sub(&allowed, 1);

	if (left > 0 || (left < 0 && !for_good))
		return false;
	errno = ENOMEM;
	return true;
}

/* Visible to libc and the other libraries too. */
#pragma GCC visibility push(default)
void *malloc(size_t len)
{
	return refused() ? NULL : __libc_malloc(len);
}

void *calloc(size_t n, size_t len)
{
	return refused() ? NULL : __libc_calloc(n, len);
}

void *realloc(void *p, size_t len)
{
	return refused() ? NULL : __libc_realloc(p, len);
}
#pragma GCC visibility pop

/* ---- the program ---- */

static struct d9_loop *loop;
static const struct d9_callsite *callsite;

static __attribute__((noinline)) void poll_task(uint64_t key, bool once, unsigned depth)
{
	struct d9_poll poll = { .loop = loop,
				.depth = 1,
				.task = { .key = key,
					  .callsite = callsite,
					  .fd = -1,
					  .kind = once ? D9_TASK_ONCE : D9_TASK_TIMER,
					  .flags = once ? D9_TASK_RUNS_ONCE : 0 } };

	if (once)
		d9__poll_begin_once(&poll);
	else
		d9_poll_begin(&poll);
	if (depth)
		poll_task(key + 1000, false, depth - 1);
	if (once)
		d9__poll_end_once(&poll);
	else
		d9_poll_end(&poll);
}

static void run_loop(void)
{
	struct d9_loop_run run;

	d9_loop_enter(loop, &run);
	for (uint64_t i = 0; i < ROUNDS; i++) {
		d9_loop_park(loop, -1);
		d9_loop_unpark(loop);
		d9_wake(loop, i % TASKS + 1, D9_WAKE_ACTIVE, NULL);
		poll_task(i % TASKS + 1, false, i % 8 == 7 ? 2 : 0);
		poll_task(100 + i, true, 0);
		number(0, i);
		if (i % 10 == 9)
			d9_task_end(D9_LIBRARY_OWN, i % TASKS + 1);
	}
	d9_loop_leave(&run);
}

static void *run_beside(void *arg)
{
	(void)arg;
	poll_task(50, false, 0);
	number(1, 0);
	return NULL;
}

static void run_program(struct d9_options *options)
{
	struct d9_recorder *recorder = NULL;
	int err = d9_recorder_start(options, &recorder);
	pthread_t thread;

	if (err && err != -ENOMEM && err != -EAGAIN)
		_exit(2);
	callsite = d9_callsite((void *)run_loop, (void *)poll_task, 0);
	if (d9_loop_register(D9_LIBRARY_OWN, &loop, "trial", &loop))
		loop = NULL;
	if (loop)
		run_loop();
	if (!pthread_create(&thread, NULL, run_beside, NULL))
		pthread_join(thread, NULL);
	if (recorder) {
		d9_recorder_rotate(recorder, 5000);
		run_beside(NULL);
	}
	if (loop)
		d9_loop_unregister(loop);
	/* Another error says that not all could be written. */
	if (recorder && d9_recorder_stop(recorder, 20000) == -ETIMEDOUT)
		_exit(3);
	/* 40: none was asked for that failed. */
	_exit(atomic_load(&allowed) > 0 ? 40 : 0);
}

/* ---- what it wrote ---- */

#define IDS_MAX 4096

struct seen {
	bool spawned[IDS_MAX], ended[IDS_MAX];
	int worker_polls[64];
	uint64_t polls, lost, unannounced, after_end, disorder;
};

static void look_at(void *arg, const struct d9_event *event)
{
	struct seen *seen = arg;
	const char *name = d9_event_name(event);
	uint64_t id = numbered_field(event, "task_id") % IDS_MAX;

	if (!strcmp(name, "RecorderLossEvent"))
		seen->lost += numbered_field(event, "events");
	if (!strcmp(name, "TaskSpawnEvent"))
		seen->spawned[id] = true;
	if (!strcmp(name, "TaskTerminateEvent"))
		seen->ended[id] = true;
	if (!strcmp(name, "PollStartEvent")) {
		seen->polls++;
		seen->unannounced += !seen->spawned[id];
		seen->after_end += seen->ended[id];
		seen->disorder += seen->worker_polls[numbered_field(event, "worker_id") % 64]++ != 0;
	}
	if (!strcmp(name, "PollEndEvent"))
		seen->disorder += seen->worker_polls[numbered_field(event, "worker_id") % 64]-- != 1;
}

static void check_trace(long n)
{
	static struct seen seen;

	memset(&seen, 0, sizeof(seen));
	scratch_read(scratch_dir, false, look_at, &seen);
	if (seen.disorder || seen.after_end || (seen.unannounced && !seen.lost)) {
		printf("allocation %ld: %d in disorder, %d behind an end, %d unannounced, %d lost\n", n,
		       (int)seen.disorder, (int)seen.after_end, (int)seen.unannounced, (int)seen.lost);
		CU_FAIL("the trace is not whole");
	}
}

/*
 * Remove the ring that |pid| left: recorders list those of dead processes, so that each try would ask for more
 * memory than the one before, and the number of allocations would never be reached.
 */
static void remove_ring(pid_t pid)
{
	char path[64], end[16];
	struct dirent *entry;
	DIR *dir;

	snprintf(path, sizeof(path), "/dev/shm/dial9-%u", (unsigned)geteuid());
	snprintf(end, sizeof(end), "-%d", (int)pid);
	dir = opendir(path);
	while (dir && (entry = readdir(dir))) {
		char ring[sizeof(path) + 256];
		size_t len = strlen(entry->d_name), n = strlen(end);

		if (len <= n || strcmp(entry->d_name + len - n, end))
			continue;
		snprintf(ring, sizeof(ring), "%s/%s", path, entry->d_name);
		nftw(ring, scratch_remove_entry, 16, FTW_DEPTH | FTW_PHYS);
	}
	if (dir)
		closedir(dir);
}

/* False: there were not so many allocations. */
static bool try(long n)
{
	struct d9_options *options = scratch_options();
	int status = -1;
	pid_t pid;

	/* That of the loop's own start, if the program's fails. */
	setenv("DIAL9_TRACE_DIR", scratch_dir, 1);
	pid = fork();
	if (!pid) {
		atomic_store(&allowed, n);
		run_program(options);
	}
	waitpid(pid, &status, 0);
	d9_options_free(options);
	if (!WIFEXITED(status) || (WEXITSTATUS(status) != 0 && WEXITSTATUS(status) != 40)) {
		printf("allocation %ld: status %#x\n", n, (unsigned)status);
		CU_FAIL("the program did not go on");
	}
	check_trace(n);
	remove_ring(pid);
	return !WIFEXITED(status) || WEXITSTATUS(status) != 40;
}

static void try_all(bool all_behind_it)
{
	long n = 0, step = all_behind_it && !getenv("D9_LONG") ? 5 : 1;

	for_good = all_behind_it;
	while (n < 10000 && try(n))
		n += step;
	CU_ASSERT(n > 20);
	CU_ASSERT(n < 10000);
	printf("%ld allocations\n", n);
	scratch_remove();
}

static void test_program_goes_on_when_an_allocation_of_ours_fails(void)
{
	try_all(false);
}

static void test_program_goes_on_when_there_is_no_memory_any_more(void)
{
	try_all(true);
}

int main(void)
{
	static const CU_TestInfo tests[] = {
		{ "program goes on when an allocation of ours fails",
		  test_program_goes_on_when_an_allocation_of_ours_fails },
		{ "program goes on when there is no memory any more",
		  test_program_goes_on_when_there_is_no_memory_any_more },
		CU_TEST_INFO_NULL,
	};

	return d9_test_main("out_of_memory", tests);
}

#endif
