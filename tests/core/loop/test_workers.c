/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <dial9/loop.h>

#include "core/loop/loop_events.h"
#include "drain/health.h"
#include "loop/workers.h"
#include "ring/chunk.h"
#include "ring/ring_file.h"
#include "segment/metadata.h"
#include "support/d9_test.h"

#define ALIVE   40
#define THREADS 10000
#define MANY    300 /* more than a wake's byte can tell apart */

static struct d9_loop *loop;

/* ---- the table ---- */

static void release_all(void)
{
	for (unsigned i = 0; i < D9__WORKERS_MAX; i++)
		d9__workers_release(i, (struct d9__left){ 0, 0 });
}

static void test_ids_are_dense_and_start_at_zero(void)
{
	for (int i = 0; i < 10; i++)
		CU_ASSERT_EQUAL(d9__workers_take(100, "a", false), i);
	release_all();
}

static void test_freed_id_goes_to_the_same_name_first(void)
{
	CU_ASSERT_EQUAL(d9__workers_take(1, "b", false), 10);
	d9__workers_release(10, (struct d9__left){ 0, 0 });

	CU_ASSERT_EQUAL(d9__workers_take(2, "b", false), 10);
	CU_ASSERT_EQUAL(d9__workers_take(3, "b", false), 11);
	d9__workers_release(10, (struct d9__left){ 0, 0 });
	d9__workers_release(11, (struct d9__left){ 0, 0 });
}

static void test_never_used_ids_go_before_those_of_other_names(void)
{
	for (unsigned i = 12; i < D9__WORKERS_USUAL; i++)
		CU_ASSERT_EQUAL(d9__workers_take(4, "c", false), (int)i);
	/* All ids that other readers expect are used: take the one that is free for longest. */
	CU_ASSERT_EQUAL(d9__workers_take(5, "d", false), 0);
	CU_ASSERT_EQUAL(d9__workers_take(5, "e", false), 1);
}

static void test_ids_beyond_the_usual_leave_out_what_a_wake_means_by_254_and_255(void)
{
	int id, before = -1;
	unsigned n = 0;

	while ((id = d9__workers_take(6, "f", false)) >= 0) {
		CU_ASSERT(id > before);
		CU_ASSERT(D9__WORKER_IS_ID((unsigned)id));
		before = id;
		n++;
	}
	CU_ASSERT_EQUAL(before, D9__WORKERS_MAX - 1);
	/* The test above still holds those from 12 to 63 and two more; two are none. */
	CU_ASSERT_EQUAL(n, D9__WORKERS_MAX - (D9__WORKERS_USUAL - 12) - 2 - 2);
	release_all();
}

/* ---- their groups ---- */

/* The ids that the metadata tells of group |name|; "none" if it has no such group. */
static const char *group(const char *name)
{
	static char facts[16384];
	char key[80], *found;

	d9__workers_publish();
	d9__metadata_facts(facts, sizeof(facts));
	snprintf(key, sizeof(key), "runtime.%s=", name);
	found = strstr(facts, key);
	if (!found)
		return "none";
	found += strlen(key);
	found[strcspn(found, "\n")] = '\0';
	return found;
}

static void test_a_group_is_told_with_its_ids_and_goes_with_the_last_one(void)
{
	d9__workers_take(1, "db", false);
	d9__workers_take(1, "web", false);
	d9__workers_take(1, "db", false);
	CU_ASSERT_STRING_EQUAL(group("db"), "0,2");
	CU_ASSERT_STRING_EQUAL(group("web"), "1");

	d9__workers_release(1, (struct d9__left){ 0, 0 });
	CU_ASSERT_STRING_EQUAL(group("web"), "1");
	while (d9__workers_take(1, "rest", false) != 1)
		;
	CU_ASSERT_STRING_EQUAL(group("web"), "none");
	CU_ASSERT_STRING_EQUAL(group("db"), "0,2");
}

/* On the table that the test before has left. */
static void test_a_forked_child_tells_of_no_group_that_only_its_parent_has(void)
{
	int status;
	pid_t pid = fork();

	if (!pid) {
		d9__workers_take(2, "db", false);
		_exit(strcmp(group("db"), "0") || strcmp(group("rest"), "none"));
	}
	CU_ASSERT_EQUAL(waitpid(pid, &status, 0), pid);
	CU_ASSERT_EQUAL(status, 0);
	CU_ASSERT_STRING_EQUAL(group("db"), "0,2");
	release_all();
}

/* ---- threads ---- */

static pthread_barrier_t together;

static void *work(void *arg)
{
	struct d9_loop_run run;
	struct d9_poll poll = { .loop = loop, .task = { .key = 1, .fd = -1 } };

	d9_loop_enter(loop, &run);
	d9_poll_begin(&poll);
	d9_poll_end(&poll);
	if (arg)
		pthread_barrier_wait(arg);
	d9_loop_leave(&run);
	return NULL;
}

static void run_threads(unsigned n, void *arg)
{
	pthread_t threads[MANY];

	for (unsigned i = 0; i < n; i++)
		pthread_create(&threads[i], NULL, work, arg);
	for (unsigned i = 0; i < n; i++)
		pthread_join(threads[i], NULL);
}

static void test_ten_thousand_threads_share_64_ids(void)
{
	for (unsigned done = 0; done < THREADS; done += ALIVE) {
		const struct loop_events *events;

		run_threads(ALIVE, NULL);
		if (done % 400)
			continue;
		events = loop_events_collect();
		loop_events_sort();
		CU_ASSERT_EQUAL(loop_first_violation(events), events->n);
		for (size_t i = 0; i < events->n; i++) {
			if (events->items[i].kind == LOOP_UNPARK)
				CU_ASSERT(events->items[i].worker < D9__WORKERS_USUAL);
		}
	}
	loop_events_collect();
}

static void test_threads_in_a_row_share_a_chunk(void)
{
	uint32_t sealed = d9__chunk_sealed_count();
	const struct loop_events *events;

	for (unsigned i = 0; i < 100; i++)
		run_threads(1, NULL);

	CU_ASSERT(d9__chunk_sealed_count() <= sealed + 1);
	events = loop_events_collect();
	CU_ASSERT_EQUAL(loop_count(events, LOOP_START), 100);
	CU_ASSERT_EQUAL(loop_first_violation(events), events->n);
}

static uint64_t lost(void)
{
	return d9__health_lost_by(D9__LOSS_NO_SLOT) + d9__health_lost_by(D9__LOSS_NO_CHUNK) +
	       d9__health_lost_by(D9__LOSS_OVERRUN);
}

static void test_three_hundred_threads_at_once_are_recorded(void)
{
	const struct loop_events *events;
	uint64_t before = lost();
	size_t wide = 0;

	/* Here is no flush thread that adds chunks. */
	while (d9__ring_grow_to(MANY) == 1)
		;
	pthread_barrier_init(&together, NULL, MANY);
	run_threads(MANY, &together);
	pthread_barrier_destroy(&together);

	CU_ASSERT_EQUAL(lost(), before);
	events = loop_events_collect();
	CU_ASSERT_EQUAL(loop_count(events, LOOP_START), MANY);
	CU_ASSERT_EQUAL(loop_count(events, LOOP_END), MANY);
	loop_events_sort();
	CU_ASSERT_EQUAL(loop_first_violation(events), events->n);
	for (size_t i = 0; i < events->n; i++)
		wide += events->items[i].kind == LOOP_UNPARK && events->items[i].worker >= 256;
	CU_ASSERT(wide >= MANY - 256);
}

/* ---- who is about to tell ---- */

static _Atomic(int) telling, settling, has_settled;

static void *tell(void *unused)
{
	telling = gettid();
	d9__workers_publish();
	return unused;
}

static void *settle(void *unused)
{
	settling = gettid();
	d9__workers_settle();
	has_settled = 1;
	return unused;
}

static bool is_asleep(int tid)
{
	char path[64], line[512] = "", *end;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", tid);
	file = fopen(path, "r");
	if (!file)
		return false;
	end = fgets(line, sizeof(line), file) ? strrchr(line, ')') : NULL;
	fclose(file);
	return end && end[2] == 'S';
}

/* Until the thread waits for a lock: a hundred looks in a row find it so. */
static void await_sleep(_Atomic(int) *tid)
{
	for (int n = 0; n < 100 && !has_settled; usleep(100))
		n = *tid && is_asleep(*tid) ? n + 1 : 0;
}

/* Ours is the metadata's lock, for which the first waits in the middle of its telling. */
static void test_a_segment_is_not_sealed_before_a_worker_that_is_about_to_be_told(void)
{
	pthread_t teller, settler;

	release_all();
	CU_ASSERT(d9__workers_take(1, "new", false) >= 0);
	d9__metadata_fork_prepare();
	pthread_create(&teller, NULL, tell, NULL);
	await_sleep(&telling);
	pthread_create(&settler, NULL, settle, NULL);
	await_sleep(&settling);
	CU_ASSERT_FALSE(has_settled);
	d9__metadata_fork_done();
	pthread_join(teller, NULL);
	pthread_join(settler, NULL);
	CU_ASSERT(has_settled);
}

int main(void)
{
	static const CU_TestInfo tests[] = {
		{ "ids are dense and start at zero", test_ids_are_dense_and_start_at_zero },
		{ "freed id goes to the same name first", test_freed_id_goes_to_the_same_name_first },
		{ "never used ids go before those of other names",
		  test_never_used_ids_go_before_those_of_other_names },
		{ "ids beyond the usual leave out what a wake means by 254 and 255",
		  test_ids_beyond_the_usual_leave_out_what_a_wake_means_by_254_and_255 },
		{ "a group is told with its ids and goes with the last one",
		  test_a_group_is_told_with_its_ids_and_goes_with_the_last_one },
		{ "a forked child tells of no group that only its parent has",
		  test_a_forked_child_tells_of_no_group_that_only_its_parent_has },
		{ "ten thousand threads share 64 ids", test_ten_thousand_threads_share_64_ids },
		{ "threads in a row share a chunk", test_threads_in_a_row_share_a_chunk },
		{ "three hundred threads at once are recorded",
		  test_three_hundred_threads_at_once_are_recorded },
		{ "a segment is not sealed before a worker that is about to be told",
		  test_a_segment_is_not_sealed_before_a_worker_that_is_about_to_be_told },
		CU_TEST_INFO_NULL,
	};

	loop_clock_runs = true;
	loop_events_start();
	loop = loop_events_add(D9_LIBRARY_OWN, &loop);
	return d9_test_main("workers", tests);
}
