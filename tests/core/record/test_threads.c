/* SPDX-License-Identifier: Apache-2.0 */
/* Many threads, threads faster than the flush thread, and signal handlers that record. */
#include "config.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <sys/time.h>

#include "base/sanitized.h"
#include "base/test_point.h"
#include "core/record/again.h"
#include "core/record/numbered.h"
#include "record/recorder.h"
#include "ring/emit_inl.h"
#include "ring/gate.h"
#include "ring/slot.h"
#include "segment/dump_tasks.h"

static struct d9_recorder *recorder;

static void start_with(unsigned ring_mb)
{
	struct d9_options *options = NULL;

	scratch_new();
	MUST(!d9_options_new(&options));
	d9_options_set_environment(options, false);
	d9_options_set_trace_dir(options, scratch_dir);
	d9_options_set_ring_mb(options, ring_mb);
	d9_options_set_usage_interval_ms(options, 0);
	MUST(!d9_recorder_start(options, &recorder));
	d9_options_free(options);
}

/* To be asked after the stop, which may lose what it cannot write. */
static uint64_t lost_in_all(void)
{
	struct d9_counters c = { 0 };
	uint64_t lost = 0;

	d9_recorder_counters(recorder, &c, sizeof(c));
	for (int i = 0; i < D9_LOSS_COUNT; i++)
		lost += c.lost[i];
	return lost;
}

/* ---- short threads ---- */

#define SHORT_THREADS (AGAIN_SANITIZED ? 1000 : 10000)
#define AT_ONCE       100
#define EACH          7
#define VANISHES(n)   (!AGAIN_SANITIZED && (n) % 50 == 49)

static _Atomic(uint64_t) recorded;

static void *live_shortly(void *arg)
{
	uintptr_t n = (uintptr_t)arg;

	for (uint64_t i = 0; i < EACH; i++) {
		number(0, n * EACH + i);
		recorded++;
	}
	if (VANISHES(n))
		syscall(SYS_exit, 0); /* no destructor runs */
	if (n % 3 == 1)
		pthread_exit(NULL);
	while (n % 3 == 2) /* NOLINT(bugprone-infinite-loop): until it is cancelled */
		again_pause_ms(1000);
	return NULL;
}

static void count_found(void *arg, const struct d9_event *event)
{
	uint64_t *found = arg;

	*found += !strcmp(d9_event_name(event), "Numbered");
}

static unsigned long resident_kib(void)
{
	unsigned long pages = 0;
	FILE *file = fopen("/proc/self/statm", "r");

	if (file && fscanf(file, "%*u %lu", &pages) != 1)
		pages = 0;
	if (file)
		fclose(file);
	return pages * (unsigned long)sysconf(_SC_PAGESIZE) / 1024;
}

static int short_threads(void)
{
	pthread_t thread[AT_ONCE];
	unsigned long before;
	uint64_t found = 0, lost;

	if (AGAIN_SANITIZED)
		return again_skip("ASan reports its own end of a thread that is cancelled");
	start_with(8);
	before = resident_kib();
	for (uintptr_t n = 0; n < SHORT_THREADS; n++) {
		uintptr_t old = n - AT_ONCE;

		if (n >= AT_ONCE) {
			if (old % 3 == 2 && !VANISHES(old))
				pthread_cancel(thread[n % AT_ONCE]);
			MUST(!pthread_join(thread[n % AT_ONCE], NULL));
		}
		MUST(!pthread_create(&thread[n % AT_ONCE], NULL, live_shortly, (void *)n));
	}
	for (uintptr_t n = SHORT_THREADS - AT_ONCE; n < SHORT_THREADS; n++) {
		if (n % 3 == 2 && !VANISHES(n))
			pthread_cancel(thread[n % AT_ONCE]);
		MUST(!pthread_join(thread[n % AT_ONCE], NULL));
	}
	/* Slots of threads that vanished stay taken for ten seconds; all others are used again. */
	MUST(d9__slot_high() <= AT_ONCE + SHORT_THREADS / 50 + 8);
	MUST(atomic_load(&d9__ring.header->chunk_count) <= 128);
	MUST(resident_kib() < before + (64u << 10) || AGAIN_SANITIZED);
	MUST(!d9_recorder_stop(recorder, 20000));
	lost = lost_in_all();
	scratch_read(scratch_dir, true, count_found, &found);
	if (found + lost != recorded)
		fprintf(stderr, "%lu recorded, %lu found, %lu lost\n", (unsigned long)recorded,
			(unsigned long)found, (unsigned long)lost);
	MUST(found + lost == recorded);
	return 0;
}

/* ---- the flush thread is held ---- */

#define FAST 4

static _Atomic(bool) hold, held;
static uint64_t each; /* numbers of each thread while the flush thread is held */
static bool polls;
static pthread_barrier_t over;

static void hold_ticks(enum d9__test_point point)
{
	while (point == D9__POINT_TICK && hold) {
		held = true;
		again_pause_ms(1);
	}
}

static void *record_fast(void *arg)
{
	struct d9__slot *slot = d9__slot_self();
	uint32_t loc = d9__name_intern("fast", 4), who = (uint32_t)(uintptr_t)arg;

	for (uint64_t i = 0; i < each + 1000; i++) {
		if (i == each)
			pthread_barrier_wait(&over);
		if (polls)
			d9__emit_poll_start(slot, d9__slot_now(slot), who, 0, i + 1, loc);
		else
			number(who, i);
		if (polls)
			d9__emit_poll_end(slot, d9__slot_now(slot), who);
	}
	return NULL;
}

static struct numbers record_while_held(void)
{
	pthread_t thread[FAST];
	pid_t pid = getpid();

	d9__test_point_hook = hold_ticks;
	hold = true;
	start_with(4);
	pthread_barrier_init(&over, NULL, FAST + 1);
	for (uintptr_t i = 0; i < FAST; i++)
		pthread_create(&thread[i], NULL, record_fast, (void *)i);
	pthread_barrier_wait(&over);
	hold = false;
	for (int i = 0; i < FAST; i++)
		pthread_join(thread[i], NULL);
	MUST(!d9_recorder_stop(recorder, 20000));
	return numbers_of(scratch_dir, pid);
}

/* 3 million events a second for two seconds. */
static int held_flush(void)
{
	struct numbers n;
	uint64_t missing = 0;

	each = AGAIN_SANITIZED ? 500000 : 1500000;
	n = record_while_held();
	MUST(!n.disorder && !n.foreign && !n.unnamed && n.lost);
	for (int i = 0; i < FAST; i++) {
		MUST(n.next[i] == each + 1000); /* the newest are there */
		MUST(n.found[i] + n.missing[i] == each + 1000);
		missing += n.missing[i];
	}
	MUST(missing == n.lost);
	return 0;
}

static int held_flush_of_polls(void)
{
	struct numbers n;

	each = 500000;
	polls = true;
	n = record_while_held();
	if (n.disorder || !n.lost)
		fprintf(stderr, "disorder %lu lost %lu\n", (unsigned long)n.disorder, (unsigned long)n.lost);
	MUST(!n.disorder && n.lost);
	for (int i = 0; i < FAST; i++)
		MUST(n.polls[i] >= 1000 && n.polls[i] < each);
	return 0;
}

/* A mebibyte of events before the first tick. */
static int burst_at_start(void)
{
	d9__test_point_hook = hold_ticks;
	hold = true;
	start_with(8);
	while (!held)
		again_pause_ms(1);
	for (uint64_t i = 0; d9__chunk_sealed_count() < 16; i++)
		number(0, i);
	MUST(!lost_in_all());
	hold = false;
	MUST(!d9_recorder_stop(recorder, 20000));
	return 0;
}

/* One task lives, whose beginning may be among what was lost. */
static void tell_task(d9__dump_task_fn fn, void *arg)
{
	struct d9__task_spawn task = { .task = 77, .loc = d9__name_intern("a+0x1 @ a+0x2", 13),
				       .kind = d9__name_intern("listener", 8),
				       .name = D9__NAME_EMPTY, .fd = 5 };

	fn(arg, &task, d9__clock_mono_ns());
}

static void count_announcements(void *arg, const struct d9_event *event)
{
	if (event->kind == D9_EVENT_TASK_SPAWN && d9_event_u64(event, "task_id", 0) == 77)
		++*(uint64_t *)arg;
}

static int announced_after_loss(void)
{
	uint64_t announced = 0;

	d9__dump_tasks_provide(tell_task);
	each = 500000;
	polls = true;
	MUST(record_while_held().lost);
	scratch_read(scratch_dir, true, count_announcements, &announced);
	MUST(announced > 0);
	return 0;
}

static int announced_without_loss(void)
{
	uint64_t announced = 0;

	d9__dump_tasks_provide(tell_task);
	start_with(8);
	number(0, 1);
	MUST(!d9_recorder_stop(recorder, 20000));
	scratch_read(scratch_dir, true, count_announcements, &announced);
	MUST(!announced);
	return 0;
}

/* ---- handlers ---- */

/* TSan keeps a signal back until the thread calls something. */
#define HANDLED (D9__SANITIZED == 2 ? 200 : 5000)

static _Atomic(uint64_t) handled, nested;

/* Runs inside the other. */
static void on_usr1(int sig)
{
	(void)sig;
	number(2, nested++);
}

static void on_alarm(int sig)
{
	int saved = errno;

	(void)sig;
	number(1, handled++);
	raise(SIGUSR1);
	errno = saved;
}

static int handlers(void)
{
	struct sigaction action = { .sa_handler = on_alarm };
	struct itimerval often = { { 0, 100 }, { 0, 100 } }, never = { 0 };
	uint64_t n = 0, found = 0, lost;

	start_with(16);
	number(0, n++); /* this thread has its slot */
	sigaction(SIGALRM, &action, NULL);
	action.sa_handler = on_usr1;
	sigaction(SIGUSR1, &action, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	while (handled < HANDLED && n < 50000000) {
		number(0, n++);
		if (D9__SANITIZED == 2 && n % 1000 == 0)
			usleep(1);
	}
	setitimer(ITIMER_REAL, &never, NULL);
	/* TSan runs handlers when it likes, and one for two that it was to run. */
	for (int i = 0; handled != nested && i < 5000; i++)
		usleep(1000);
	MUST(!d9_recorder_stop(recorder, 20000));
	lost = lost_in_all();
	scratch_read(scratch_dir, true, count_found, &found);
	MUST(handled == nested || AGAIN_SANITIZED);
	if (found + lost != n + handled + nested)
		fprintf(stderr, "%lu + %lu + %lu recorded, %lu found, %lu lost\n", (unsigned long)n,
			(unsigned long)handled, (unsigned long)nested, (unsigned long)found,
			(unsigned long)lost);
	MUST(found + lost == n + handled + nested);
	return 0;
}

/* ---- a stop at a bad moment ---- */

static void hold_until_shut(enum d9__test_point point)
{
	while (point == D9__POINT_TICK && d9__gate_bits())
		again_pause_ms(1);
}

/* The flush thread has no slot yet, into which it would move what handlers recorded. */
static int stopped_before_a_tick(void)
{
	struct d9__slot *slot;
	struct numbers n;

	d9__test_point_hook = hold_until_shut;
	start_with(8);
	number(0, 0);
	slot = d9__slot_self();
	atomic_store(&slot->busy, 1); /* as inside an event */
	for (uint64_t i = 0; i < 100; i++)
		number(1, i);
	atomic_store(&slot->busy, 0);
	MUST(!d9_recorder_stop(recorder, 20000));
	n = numbers_of(scratch_dir, getpid());
	MUST(n.found[0] == 1 && n.found[1] == 100 && !n.lost);
	return 0;
}

static __thread bool hands_over;
static _Atomic(bool) in_hand;

/* Until the stop has been at work for a while. */
static void hold_chunk(enum d9__test_point point)
{
	if (point != D9__POINT_SEAL_CLOSED || !hands_over || in_hand)
		return;
	in_hand = true;
	while (d9_recorder_state(recorder) != D9_RECORDER_STOPPING)
		again_pause_ms(1);
	again_pause_ms(20);
}

static void *fill_a_chunk(void *arg)
{
	uint64_t *n = arg;

	hands_over = true;
	while (!in_hand)
		number(0, (*n)++);
	return NULL;
}

static int stopped_while_a_chunk_is_handed_over(void)
{
	struct numbers found;
	pthread_t thread;
	uint64_t n = 0;

	d9__test_point_hook = hold_chunk;
	start_with(8);
	MUST(!pthread_create(&thread, NULL, fill_a_chunk, &n));
	MUST(AGAIN_WAIT(in_hand));
	MUST(!d9_recorder_stop(recorder, 20000));
	pthread_join(thread, NULL);
	found = numbers_of(scratch_dir, getpid());
	/* The last one began before the stop and ended behind it. */
	MUST(found.found[0] >= n - 1 && !found.lost);
	return 0;
}

/* ---- quiet threads ---- */

static _Atomic(bool) quiet_over;

static void *be_loud(void *arg)
{
	uint64_t *n = arg;

	while (!quiet_over) {
		number(1, (*n)++);
		if (*n % 1000 == 0)
			again_pause_ms(1);
	}
	return NULL;
}

/* One event now and then, a segment between each two. */
static int quiet_thread(void)
{
	pid_t pid = getpid();
	struct numbers own;
	pthread_t loud;
	uint64_t n = 0;

	start_with(16);
	pthread_create(&loud, NULL, be_loud, &n);
	for (uint64_t i = 0; i < 20; i++) {
		number(0, i);
		again_pause_ms(20);
		MUST(!d9_recorder_rotate(recorder, 10000));
	}
	quiet_over = true;
	pthread_join(loud, NULL);
	MUST(!d9_recorder_stop(recorder, 20000));
	own = numbers_of(scratch_dir, pid);
	MUST(own.found[0] == 20 && own.found[1] == n && !own.disorder && !own.lost);
	MUST(scratch_files(scratch_dir, ".bin.zst") >= 20);
	return 0;
}

/* ---- tests ---- */

static void test_threads_in_thousands_take_no_more_room_than_ran_at_once(void)
{
	again_check("short_threads", NULL);
}

static void test_threads_faster_than_a_held_flush_thread_lose_what_is_told(void)
{
	again_check("held_flush", NULL);
}

static void test_burst_before_the_first_tick_finds_room(void)
{
	again_check("burst_at_start", NULL);
}

static void test_threads_whose_polls_are_lost_alternate_all_the_same(void)
{
	again_check("held_flush_of_polls", NULL);
}

static void test_tasks_are_announced_again_where_their_beginning_may_be_lost(void)
{
	again_check("announced_after_loss", NULL);
	again_check("announced_without_loss", NULL);
}

static void test_thread_interrupted_by_handlers_records_all_or_tells(void)
{
	again_check("handlers", NULL);
}

static void test_stop_writes_what_side_rings_and_threads_have_in_their_hands(void)
{
	again_check("stopped_before_a_tick", NULL);
	again_check("stopped_while_a_chunk_is_handed_over", NULL);
}

static void test_thread_that_is_quiet_is_in_every_segment_beside_a_loud_one(void)
{
	again_check("quiet_thread", NULL);
}

int main(int argc, char **argv)
{
	static const struct again_role roles[] = {
		{ "short_threads", short_threads },
		{ "held_flush", held_flush },
		{ "burst_at_start", burst_at_start },
		{ "held_flush_of_polls", held_flush_of_polls },
		{ "announced_after_loss", announced_after_loss },
		{ "announced_without_loss", announced_without_loss },
		{ "handlers", handlers },
		{ "stopped_before_a_tick", stopped_before_a_tick },
		{ "stopped_while_a_chunk_is_handed_over", stopped_while_a_chunk_is_handed_over },
		{ "quiet_thread", quiet_thread },
		{ NULL, NULL },
	};
	static const CU_TestInfo tests[] = {
		{ "threads in thousands take no more room than ran at once",
		  test_threads_in_thousands_take_no_more_room_than_ran_at_once },
		{ "tasks are announced again where their beginning may be lost",
		  test_tasks_are_announced_again_where_their_beginning_may_be_lost },
		{ "threads faster than a held flush thread lose what is told",
		  test_threads_faster_than_a_held_flush_thread_lose_what_is_told },
		{ "burst before the first tick finds room", test_burst_before_the_first_tick_finds_room },
		{ "threads whose polls are lost alternate all the same",
		  test_threads_whose_polls_are_lost_alternate_all_the_same },
		{ "thread interrupted by handlers records all or tells",
		  test_thread_interrupted_by_handlers_records_all_or_tells },
		{ "stop writes what side rings and threads have in their hands",
		  test_stop_writes_what_side_rings_and_threads_have_in_their_hands },
		{ "thread that is quiet is in every segment beside a loud one",
		  test_thread_that_is_quiet_is_in_every_segment_beside_a_loud_one },
		CU_TEST_INFO_NULL,
	};
	int role = again_main(argc, argv, roles);

	if (role >= 0) {
		scratch_remove();
		return role;
	}
	return d9_test_main("threads", tests);
}
