/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SIGKILL at random moments and inside every step (recorder.md, 8).  A victim is this program again,
 * recording numbered events on two threads and telling in shared memory how far it is.
 *
 * D9_KILLS=1000 for as many random moments, and a fifth of it in rows of short threads.  If unset 40; with a
 * sanitizer, where each takes seconds on a busy machine and what it saw ends with the victim, 10.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include <dial9/event.h>

#include "base/sanitized.h"
#include "base/test_point.h"
#include "core/record/scratch.h"
#include "core/record/self.h"
#include "drain/recover.h"
#include "ring/emit_inl.h"

#define THREADS   2
#define NEVER     UINT32_MAX
#define SHARED_FD 200
#define SHORT     25 /* numbers of a thread in a row of them */

static struct shared {
	_Atomic(uint64_t) begun[THREADS], done[THREADS];
	/* What the victim is to do. */
	uint32_t armed; /* enum d9__test_point or NEVER */
	_Atomic(int) countdown;
	uint32_t compress;
	_Atomic(bool) held; /* the flush thread does nothing, and the ring is small */
	_Atomic(bool) holds; /* it has seen that */
	_Atomic(uint64_t) ticks;
	bool lossy; /* a small ring, nobody waits; no polls, because losses of them are bridged */
	bool shortly; /* each of the two is a row of threads, which all are the same worker */
	_Atomic(bool) stop;    /* the recording threads are to rest between two numbers */
	_Atomic(int) stopped;
	char dir[PATH_MAX];
	_Atomic(uint64_t) before_write; /* bytes of the segment that is open */
} *shared;

static const char *const point_names[] = {
#define NAME(name) #name,
	D9__TEST_POINTS_EACH(NAME)
#undef NAME
};

static const struct d9_field fields[] = {
	{ "thread", D9_FIELD_VARINT, NULL, NULL },
	{ "number", D9_FIELD_VARINT, NULL, NULL },
	{ "noise", D9_FIELD_BYTES, NULL, NULL },
};
static struct d9_event_type numbered = D9_EVENT_TYPE("Numbered", fields);

static void pause_us(long us)
{
	const struct timespec t = { us / 1000000, us % 1000000 * 1000 };

	nanosleep(&t, NULL);
}

/* ---- the victim ---- */

static uint64_t open_segment_bytes(const char *dir)
{
	DIR *d = opendir(dir);
	uint64_t bytes = 0;

	for (struct dirent *e; d && !bytes && (e = readdir(d));) {
		char path[PATH_MAX];
		struct stat st;

		snprintf(path, sizeof(path), "%.2000s/%s", dir, e->d_name);
		if (e->d_name[0] == '.')
			continue;
		if (e->d_type == DT_DIR)
			bytes = open_segment_bytes(path);
		else if (strstr(e->d_name, ".active") && !stat(path, &st))
			bytes = (uint64_t)st.st_size;
	}
	if (d)
		closedir(d);
	return bytes;
}

static void at_point(enum d9__test_point point)
{
	shared->ticks += point == D9__POINT_TICK;
	while (shared->held && point == D9__POINT_TICK) {
		shared->holds = true;
		pause_us(100000);
	}
	if (point == D9__POINT_WRITE_BEGIN && shared->armed == D9__POINT_WRITE_END)
		shared->before_write = open_segment_bytes(shared->dir);
	if (point != shared->armed || atomic_fetch_sub(&shared->countdown, 1) != 1)
		return;
	/* Inside an overrun a chunk's events are neither there nor counted for some ns. */
	shared->stop = shared->lossy;
	while (shared->lossy && shared->stopped < THREADS)
		pause_us(100);
	kill(getpid(), SIGKILL);
}

static void rest_if_told(void)
{
	if (!shared->stop)
		return;
	shared->stopped++;
	for (;;)
		pause_us(100000);
}

/* So that nothing is lost but where that is wanted. */
static void let_flush_keep_up(void)
{
	while (!shared->held && !shared->lossy && d9__chunk_free_count() < 3)
		pause_us(200);
}

static void record_range(uint64_t thread, uint64_t from, uint64_t to)
{
	uint32_t loc = d9__name_intern("here", 4), noise[16] = { 0 };
	uint32_t random = (uint32_t)thread + 1;

	for (uint64_t n = from; n < to; n++) {
		struct d9__slot *slot = d9__slot_self();

		for (int i = 0; i < 16; i++)
			noise[i] = random = random * 1664525 + 1013904223;
		rest_if_told();
		if (n % 50 == 0)
			let_flush_keep_up();
		if (n % 1000 == 999 && !shared->lossy)
			pause_us(1000);
		atomic_store(&shared->begun[thread], n + 1);
		D9_EMIT(&numbered, thread, n, d9_bytes(noise, sizeof(noise)));
		if (!shared->lossy) {
			d9__emit_poll_start(slot, d9__slot_now(slot), (uint32_t)thread, 0, n + 1, loc);
			d9__emit_poll_end(slot, d9__slot_now(slot), (uint32_t)thread);
		}
		atomic_store(&shared->done[thread], n + 1);
	}
}

static void *record_numbers(void *arg)
{
	record_range((uintptr_t)arg, 0, shared->lossy ? 200000000 : 1000000);
	return NULL;
}

struct short_thread {
	uint64_t thread, n;
	struct d9__left left;
};

/* One in three has a slot before it knows which worker it is, and every other one of these keeps it. */
static void *record_shortly(void *arg)
{
	struct short_thread *self = arg;
	uint32_t worker = (uint32_t)self->thread;
	struct d9__slot *slot = self->n % 3 ? NULL : d9__slot_self();

	while (!d9__slot_follow(&self->left, worker, self->n % 2))
		pause_us(10);
	slot = d9__slot_self();
	d9__emit_unpark(slot, d9__slot_now(slot), worker, 0, 0, 0, d9__slot_tid(slot));
	record_range(self->thread, self->n * SHORT, (self->n + 1) * SHORT);
	d9__emit_park(slot, d9__slot_now(slot), worker, 0, 0, d9__slot_tid(slot));
	self->left = d9__slot_leave();
	return NULL;
}

static void *record_in_a_row(void *arg)
{
	struct short_thread next = { .thread = (uintptr_t)arg };
	pthread_t thread;

	for (; next.n < 40000; next.n++)
		if (pthread_create(&thread, NULL, record_shortly, &next) || pthread_join(thread, NULL))
			exit(6);
	return NULL;
}

/* Of each run its own: recorders elsewhere keep two rings of a service and recover the others. */
static const char *own_service(void)
{
	static char name[32];

	snprintf(name, sizeof(name), "test-kill-%d", (int)getppid());
	return name;
}

static int be_victim(void)
{
	struct d9_options *options = NULL;
	pthread_t thread[THREADS];

	if (d9_options_new(&options))
		return 4;
	d9_options_set_environment(options, false);
	d9_options_set_trace_dir(options, shared->dir);
	d9_options_set_ring_mb(options, shared->held || shared->lossy ? 1 : 8);
	d9_options_set_max_file_bytes(options, 256 << 10);
	d9_options_set_compress(options, (enum d9_compress)shared->compress);
	d9_options_set_service(options, own_service());
	d9__test_point_hook = at_point;
	if (d9_recorder_start(options, NULL))
		return 5;
	d9_options_free(options);
	for (uintptr_t i = 0; i < THREADS; i++)
		pthread_create(&thread[i], NULL, shared->shortly ? record_in_a_row : record_numbers, (void *)i);
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	return 3;
}

/* Recover the directory, and be killed in it. */
static int be_rescuer(void)
{
	struct d9__recover walk;

	d9__test_point_hook = at_point;
	if (d9__recover_begin(&walk, shared->dir, D9__RECOVER_WAIT))
		return 4;
	while (d9__recover_next(&walk, NULL) == 1)
		;
	return 3;
}

/* ---- its death ---- */

static void map_shared(bool create)
{
	int fd = create ? memfd_create("shared", 0) : SHARED_FD;

	if (create && (ftruncate(fd, sizeof(*shared)) || dup2(fd, SHARED_FD) < 0))
		exit(99);
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED, SHARED_FD, 0);
	if (shared == MAP_FAILED)
		exit(99);
	if (create)
		close(fd);
}

static pid_t start(const char *role)
{
	pid_t pid = fork();

	if (!pid) {
		self_exec(role, NULL);
		_exit(99);
	}
	return pid;
}

static void new_victim(uint32_t armed, int countdown, enum d9_compress compress)
{
	memset(shared, 0, sizeof(*shared));
	shared->armed = armed;
	shared->countdown = countdown;
	shared->compress = compress;
	shared->held = armed == D9__POINT_OVERRUN;
	snprintf(shared->dir, sizeof(shared->dir), "%s", scratch_new());
}

/* True if it was killed; else it is a failure that is told. */
static bool was_killed(pid_t pid)
{
	int status = 0;

	CU_ASSERT_EQUAL(waitpid(pid, &status, 0), pid);
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
		return true;
	printf("%s ended with status %x\n",
	       shared->armed < D9__TEST_POINT_COUNT ? point_names[shared->armed] : "victim", status);
	CU_FAIL("was not killed");
	return false;
}

/* ---- what is left ---- */

static unsigned recover_all(struct d9__recovered *last)
{
	struct d9__recover walk;
	unsigned n = 0;

	CU_ASSERT_EQUAL_FATAL(d9__recover_begin(&walk, shared->dir, D9__RECOVER_WAIT), 0);
	while (d9__recover_next(&walk, last) == 1) {
		n++;
		CU_ASSERT_EQUAL(last->err, 0);
		CU_ASSERT_EQUAL(last->bad, 0);
	}
	d9__recover_end(&walk);
	return n;
}

struct found {
	uint64_t next[THREADS], missing[THREADS], lost;
	uint64_t polls[THREADS];
	bool polling[THREADS];
	unsigned wrong;
};

static uint64_t number_of(const struct d9_event *event, const char *field)
{
	const struct d9_value *value = d9_event_field(event, field);

	return value ? value->u.u64 : UINT64_MAX;
}

static void look_at(void *arg, const struct d9_event *event)
{
	struct found *found = arg;
	const char *name = d9_event_name(event);
	bool starts = !strcmp(name, "PollStartEvent"), ends = !strcmp(name, "PollEndEvent");

	if (!strcmp(name, "RecorderLossEvent"))
		found->lost += number_of(event, "events");
	if (!strcmp(name, "Numbered")) {
		uint64_t thread = number_of(event, "thread"), n = number_of(event, "number");

		if (thread >= THREADS || n < found->next[thread]) {
			found->wrong++;
			return;
		}
		found->missing[thread] += n - found->next[thread];
		found->next[thread] = n + 1;
	}
	if (starts || ends) {
		uint64_t worker = number_of(event, "worker_id");

		if (worker >= THREADS || found->polling[worker] == starts) {
			found->wrong++;
			return;
		}
		found->polling[worker] = starts;
		found->polls[worker] += starts;
	}
}

/* All that was published is there, once and in order; nothing is torn. */
static bool is_complete(const struct found *found)
{
	bool good = !found->wrong;

	for (int i = 0; i < THREADS; i++) {
		uint64_t begun = shared->begun[i], done = shared->done[i];

		good = good && found->next[i] >= done && found->next[i] <= begun;
		good = good && (found->lost || (!found->missing[i] && found->polls[i] >= done &&
						found->polls[i] <= begun));
	}
	/* Three events to a number; one thread may have been anywhere between two of them. */
	good = good && !found->lost == !(found->missing[0] + found->missing[1]);
	return good && (!found->lost || shared->held);
}

static void note_first(void *arg, const struct d9_event *event)
{
	uint64_t *first_ns = arg;

	if (!*first_ns)
		*first_ns = event->timestamp_ns;
}

/* The order of segments by their first events, as export uses it, is that of their numbers. */
static bool is_in_order(const char *dir)
{
	struct dirent **entries;
	int n = scandir(dir, &entries, NULL, versionsort);
	uint64_t before_ns = 0, first_ns;
	bool good = true;

	for (int i = 0; i < n; i++) {
		char path[PATH_MAX];

		snprintf(path, sizeof(path), "%.2000s/%s", dir, entries[i]->d_name);
		if (entries[i]->d_name[0] != '.' && entries[i]->d_type == DT_DIR) {
			good = good && is_in_order(path);
		} else if (entries[i]->d_name[0] != '.') {
			first_ns = 0;
			scratch_read(path, true, note_first, &first_ns);
			good = good && first_ns >= before_ns;
			before_ns = first_ns;
		}
		free(entries[i]);
	}
	free(entries);
	return good;
}

static void check_recovered(const char *what)
{
	struct d9__recovered last = { 0 };
	struct found found = { .wrong = 0 };

	CU_ASSERT(recover_all(&last) <= 1);
	scratch_read(shared->dir, true, look_at, &found);
	if (!is_complete(&found)) {
		printf("%s: wrong %u, lost %lu\n", what, found.wrong, (unsigned long)found.lost);
		for (int i = 0; i < THREADS; i++)
			printf("  %d: begun %lu done %lu seen %lu missing %lu polls %lu\n", i,
			       (unsigned long)shared->begun[i], (unsigned long)shared->done[i],
			       (unsigned long)found.next[i], (unsigned long)found.missing[i],
			       (unsigned long)found.polls[i]);
		CU_FAIL("the trace is not what was published");
		if (getenv("D9_KEEP"))
			exit(1);
	}
	if (!is_in_order(shared->dir)) {
		printf("%s: segments begin before the one before them\n", what);
		CU_FAIL("the segments are not in order");
	}
	CU_ASSERT_EQUAL(scratch_files(shared->dir, ".active"), 0);
	CU_ASSERT_EQUAL(recover_all(&last), 0);
}

/* ---- tests ---- */

static uint32_t next_random(void)
{
	static uint32_t state;

	if (!state)
		state = (uint32_t)getpid();
	return (state = state * 1664525 + 1013904223) >> 8;
}

static void kill_at_random_moments(int n, bool shortly)
{
	for (int i = 0; i < n; i++) {
		char what[64];
		pid_t pid;
		long us;

		new_victim(NEVER, 0, (enum d9_compress)(i % 3));
		shared->shortly = shortly;
		pid = start("victim");
		while (!shared->done[0])
			pause_us(200);
		us = (long)(next_random() % 120000);
		pause_us(us);
		kill(pid, SIGKILL);
		if (!was_killed(pid))
			continue;
		snprintf(what, sizeof(what), "kill %d after %ld us", i, us);
		check_recovered(what);
	}
}

static int kills(void)
{
	const char *text = getenv("D9_KILLS");

	return text ? atoi(text) : D9__SANITIZED ? 10 : 40;
}

static void test_kill_at_a_random_moment_loses_nothing(void)
{
	kill_at_random_moments(kills(), false);
}

static void test_kill_in_rows_of_short_threads_loses_nothing(void)
{
	kill_at_random_moments(kills() / 5, true);
}

/* From one step to the next: of three one, if few kills are wanted. */
static uint32_t stride(void)
{
	return kills() < 10 ? 3 : 1;
}

static void kill_at(enum d9__test_point point, int countdown, enum d9_compress compress)
{
	new_victim(point, countdown, compress);
	if (was_killed(start("victim")))
		check_recovered(point_names[point]);
}

static void test_kill_inside_each_step_loses_nothing(void)
{
	for (uint32_t p = (uint32_t)next_random() % stride(); p < D9__POINT_RESCUE_SEALED; p += stride()) {
		bool once = p == D9__POINT_RING_CREATED || p == D9__POINT_GROW_MAPPED ||
			    p == D9__POINT_GROW_COUNTED;

		kill_at((enum d9__test_point)p, 1, D9_COMPRESS_ZSTD);
		/* What TSan saw of a victim ends with it. */
		for (int i = 0; i < 2 && !once && D9__SANITIZED != 2; i++)
			kill_at((enum d9__test_point)p,
				p == D9__POINT_GROW_ALLOCATED ? 2 : 2 + (int)(next_random() % 6),
				i ? D9_COMPRESS_NONE : D9_COMPRESS_ZSTD);
	}
}

static void truncate_open_segment(const char *dir, uint64_t bytes)
{
	DIR *d = opendir(dir);

	for (struct dirent *e; d && (e = readdir(d));) {
		char path[PATH_MAX];

		snprintf(path, sizeof(path), "%.2000s/%s", dir, e->d_name);
		if (e->d_name[0] == '.')
			continue;
		if (e->d_type == DT_DIR)
			truncate_open_segment(path, bytes);
		else if (strstr(e->d_name, ".active"))
			CU_ASSERT_EQUAL(truncate(path, (off_t)bytes), 0);
	}
	if (d)
		closedir(d);
}

/* The kernel stops a write where it likes. */
static void test_kill_inside_a_write_loses_nothing(void)
{
	for (int i = 0; i < 12 / (int)stride(); i++) {
		uint64_t before, after, cut;
		char what[128];

		new_victim(D9__POINT_WRITE_END, 1 + (int)(next_random() % 12),
			   (enum d9_compress)(i % 3));
		if (!was_killed(start("victim")))
			continue;
		before = shared->before_write;
		after = open_segment_bytes(shared->dir);
		CU_ASSERT(after > before);
		cut = before + next_random() % (after - before);
		truncate_open_segment(shared->dir, cut);
		snprintf(what, sizeof(what), "write %d torn at %lu of [%lu, %lu)", i,
			 (unsigned long)cut, (unsigned long)before, (unsigned long)after);
		check_recovered(what);
	}
}

struct sum {
	uint64_t numbers, lost;
};

static void add_up(void *arg, const struct d9_event *event)
{
	struct sum *sum = arg;

	if (!strcmp(d9_event_name(event), "RecorderLossEvent"))
		sum->lost += number_of(event, "events");
	sum->numbers += !strcmp(d9_event_name(event), "Numbered");
}

/*
 * A loss that the ring knows to be told is not told again, one that is not told yet is told then.  Between a
 * write and the ring's knowing of it lie some us in which both may be.
 */
static void test_kill_while_events_are_lost_hides_none_of_them(void)
{
	static const enum d9__test_point points[] = { D9__POINT_FLUSH_POPPED, D9__POINT_FLUSH_ADDED,
						      D9__POINT_FLUSH_REMEMBERED,
						      D9__POINT_WRITE_BEGIN, D9__POINT_WRITE_END,
						      D9__POINT_SEGMENT_RENAMED };
	const size_t exact = 3;

	for (size_t i = 0; i < 2 * sizeof(points) / sizeof(points[0]); i++) {
		struct d9__recovered last = { 0 };
		struct sum sum = { 0 };
		uint64_t n;

		new_victim(points[i / 2], 2 + (int)(next_random() % 8),
			   i % 2 ? D9_COMPRESS_GZIP : D9_COMPRESS_ZSTD);
		shared->lossy = true;
		if (!was_killed(start("victim")))
			continue;
		CU_ASSERT_EQUAL(recover_all(&last), 1);
		scratch_read(shared->dir, true, add_up, &sum);
		n = shared->done[0] + shared->done[1];
		if (i / 2 < exact ? sum.numbers + sum.lost != n : sum.numbers + sum.lost < n)
			printf("%s: %lu recorded, %lu found, %lu lost\n", point_names[points[i / 2]],
			       (unsigned long)n, (unsigned long)sum.numbers, (unsigned long)sum.lost);
		CU_ASSERT(i / 2 < exact ? sum.numbers + sum.lost == n : sum.numbers + sum.lost >= n);
		CU_ASSERT_EQUAL(recover_all(&last), 0);
	}
}

static _Atomic(uint64_t) handled;

static void record_in_handler(int sig)
{
	(void)sig;
	/* NOLINTNEXTLINE(bugprone-signal-handler): made for that */
	D9_EMIT(&numbered, 0, handled, d9_bytes("handler", 7));
	handled++;
	shared->done[0] = handled;
}

/* Interrupts itself inside events, until the side ring holds some; nothing of it is flushed. */
static int be_interrupted(void)
{
	struct d9_options *options = NULL;
	struct d9__slot *slot;

	signal(SIGUSR1, record_in_handler);
	shared->held = false;
	d9__test_point_hook = at_point;
	if (d9_options_new(&options))
		return 4;
	d9_options_set_environment(options, false);
	d9_options_set_trace_dir(options, shared->dir);
	d9_options_set_service(options, own_service());
	if (d9_event_type_register(&numbered) || d9_recorder_start(options, NULL))
		return 5;
	slot = d9__slot_self();
	/* One tick that began behind the registration has ended. */
	for (uint64_t ticks = shared->ticks; shared->ticks < ticks + 2;)
		pause_us(1000);
	shared->held = true;
	while (!shared->holds)
		pause_us(1000);
	for (int i = 0; i < 100; i++) {
		atomic_store(&slot->busy, 1); /* as inside an event */
		raise(SIGUSR1);
		atomic_store(&slot->busy, 0);
	}
	kill(getpid(), SIGKILL);
	return 3;
}

static void test_kill_leaves_what_handlers_recorded_of_the_programs_own_types(void)
{
	struct d9__recovered last = { 0 };

	new_victim(NEVER, 0, D9_COMPRESS_ZSTD);
	if (!was_killed(start("interrupted")))
		return;
	CU_ASSERT_EQUAL(recover_all(&last), 1);
	CU_ASSERT_EQUAL(last.lost, 0);
	CU_ASSERT_EQUAL(shared->done[0], 100);
	CU_ASSERT_EQUAL(scratch_count("Numbered"), 100);
}

static void test_kill_inside_recovery_loses_nothing(void)
{
	for (uint32_t p = D9__POINT_RESCUE_SEALED; p <= D9__POINT_RESCUE_WRITTEN; p += stride()) {
		new_victim(D9__POINT_WRITE_END, 3, D9_COMPRESS_ZSTD);
		if (!was_killed(start("victim")))
			continue;
		shared->armed = p;
		shared->countdown = 1;
		if (was_killed(start("rescuer")))
			check_recovered(point_names[p]);
	}
	for (uint32_t p = D9__POINT_WRITE_BEGIN; p <= D9__POINT_SEGMENT_RENAMED; p += stride()) {
		if (p == D9__POINT_FLUSH_REMEMBERED || p == D9__POINT_FLUSH_RELEASED ||
		    p == D9__POINT_SEGMENT_LED_IN)
			continue;
		new_victim(D9__POINT_SEAL_CLOSED, 9, D9_COMPRESS_ZSTD);
		if (!was_killed(start("victim")))
			continue;
		shared->armed = p;
		shared->countdown = 1;
		if (was_killed(start("rescuer")))
			check_recovered(point_names[p]);
	}
}

int main(int argc, char **argv)
{
	static const CU_TestInfo tests[] = {
		{ "kill inside each step loses nothing", test_kill_inside_each_step_loses_nothing },
		{ "kill inside a write loses nothing", test_kill_inside_a_write_loses_nothing },
		{ "kill while events are lost hides none of them",
		  test_kill_while_events_are_lost_hides_none_of_them },
		{ "kill leaves what handlers recorded of the program's own types",
		  test_kill_leaves_what_handlers_recorded_of_the_programs_own_types },
		{ "kill inside recovery loses nothing", test_kill_inside_recovery_loses_nothing },
		{ "kill at a random moment loses nothing",
		  test_kill_at_a_random_moment_loses_nothing },
		{ "kill in rows of short threads loses nothing",
		  test_kill_in_rows_of_short_threads_loses_nothing },
		CU_TEST_INFO_NULL,
	};
	int status;

	map_shared(argc < 2);
	if (argc > 1)
		return !strcmp(argv[1], "victim")      ? be_victim() :
		       !strcmp(argv[1], "interrupted") ? be_interrupted() : be_rescuer();
	status = d9_test_main("kill", tests);
	if (!getenv("D9_KEEP"))
		scratch_remove();
	return status;
}
