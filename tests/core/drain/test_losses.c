/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What was lost is told by cause: in the last segment of a recorder that stops, and else by whoever recovers its
 * ring.  Counts are made up; that each cause counts what it should is tested where it arises.
 */
#include "config.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>

#include "base/test_point.h"
#include "core/record/again.h"
#include "core/record/fixture.h"
#include "core/record/numbered.h"
#include "drain/flight.h"
#include "drain/health.h"
#include "drain/recover.h"
#include "ring/ring_file.h"
#include "ring/slot.h"

#define EVENTS	    50
#define NS	    UINT64_C(5000000000)
#define LOST(cause) (10 + (uint64_t)(cause)) /* of each cause another number */

/* ---- a recorder that loses ---- */

static _Atomic(bool) hold, held;
static _Atomic(bool) disk_is_full;

static void hold_ticks(enum d9__test_point point)
{
	while (point == D9__POINT_TICK && hold) {
		held = true;
		again_pause_ms(1);
	}
}

ssize_t __wrap_pwrite(int fd, const void *bytes, size_t len, off_t at);
ssize_t __real_pwrite(int fd, const void *bytes, size_t len, off_t at);

ssize_t __wrap_pwrite(int fd, const void *bytes, size_t len, off_t at)
{
	if (!disk_is_full)
		return __real_pwrite(fd, bytes, len, at);
	errno = ENOSPC;
	return -1;
}

static struct d9_recorder *start_in(const char *dir)
{
	struct d9_recorder *recorder = NULL;
	struct d9_options *options = NULL;
	char service[32];

	/* Of this process and its children only, so that others leave their rings alone. */
	snprintf(service, sizeof(service), "test-losses-%d", (int)getppid());
	MUST(!d9_options_new(&options));
	d9_options_set_environment(options, false);
	d9_options_set_trace_dir(options, dir);
	d9_options_set_service(options, service);
	d9_options_set_usage_interval_ms(options, 0);
	MUST(!d9_recorder_start(options, &recorder));
	d9_options_free(options);
	return recorder;
}

/* Some of each cause, of this thread or of the process. */
static void lose(void)
{
	uint64_t now_ns = d9__clock_mono_ns();

	for (int cause = 0; cause < D9__LOSS_CAUSES; cause++)
		d9__loss_add(cause % 2 ? -1 : (int)d9__slot_index(d9__slot_self()), (enum d9__loss_cause)cause,
			     LOST(cause), now_ns, now_ns);
}

static void record_and_lose(void)
{
	for (uint64_t i = 0; i < EVENTS; i++)
		number(0, i);
	lose();
}

/* ---- what a trace tells ---- */

struct told {
	uint64_t events[D9__LOSS_CAUSES], numbers;
};

static void note(void *arg, const struct d9_event *event)
{
	struct told *told = arg;
	struct d9_text cause;

	told->numbers += !strcmp(d9_event_name(event), "Numbered");
	if (event->kind != D9_EVENT_RECORDER_LOSS)
		return;
	cause = d9_event_field(event, "cause")->u.text;
	for (int i = 0; i < D9__LOSS_CAUSES; i++)
		if (strlen(d9__loss_names[i]) == cause.len && !memcmp(d9__loss_names[i], cause.data, cause.len))
			told->events[i] += d9_event_u64(event, "events", 0);
}

/* |path| tells of all that lose() lost, once.  While a disk is full, what is overrun is the disk's fault. */
static bool tells_each(const char *path, uint64_t numbers, bool disk)
{
	struct told told = { 0 };
	bool each = true;

	scratch_read(path, true, note, &told);
	if (disk && told.events[D9__LOSS_DISK] == LOST(D9__LOSS_DISK) + LOST(D9__LOSS_OVERRUN)) {
		told.events[D9__LOSS_DISK] -= LOST(D9__LOSS_OVERRUN);
		told.events[D9__LOSS_OVERRUN] += LOST(D9__LOSS_OVERRUN);
	}
	for (int i = 0; i < D9__LOSS_CAUSES; i++) {
		if (told.events[i] != LOST(i))
			printf("%s: %lu told, not %lu\n", d9__loss_names[i], (unsigned long)told.events[i],
			       (unsigned long)LOST(i));
		each = each && told.events[i] == LOST(i);
	}
	if (told.numbers != numbers)
		printf("%lu events, not %lu\n", (unsigned long)told.numbers, (unsigned long)numbers);
	return each && told.numbers == numbers;
}

/* ---- roles ---- */

static int stops(void)
{
	struct d9_recorder *recorder = start_in(scratch_new());
	char path[PATH_MAX];
	int len = d9_recorder_dir(recorder, path, sizeof(path) - 32);

	MUST(len > 0);
	number(0, 0);
	MUST(!d9_recorder_rotate(recorder, 10000));
	lose();
	MUST(!d9_recorder_stop(recorder, 20000));
	snprintf(path + len, 32, "/trace.1.bin.zst");
	MUST(tells_each(path, 0, false));
	return 0;
}

static int has_a_full_disk_for_a_while(void)
{
	struct d9_recorder *recorder = start_in(scratch_new());

	disk_is_full = true;
	record_and_lose();
	MUST(AGAIN_WAIT(d9_recorder_state(recorder) == D9_RECORDER_PAUSED));
	/* Overrun events are counted as the disk's, because it could not be written, and once. */
	MUST(AGAIN_WAIT(!d9__health_lost_by(D9__LOSS_OVERRUN)));
	MUST(d9__health_lost_by(D9__LOSS_DISK) == LOST(D9__LOSS_DISK) + LOST(D9__LOSS_OVERRUN));
	disk_is_full = false;
	MUST(AGAIN_WAIT(d9_recorder_state(recorder) == D9_RECORDER_RECORDING));
	MUST(!d9_recorder_stop(recorder, 20000));
	MUST(tells_each(scratch_dir, EVENTS, true));
	return 0;
}

static int ends_with_a_full_disk(void)
{
	start_in(again_arg);
	disk_is_full = true;
	record_and_lose();
	return 0;
}

/* What was written since the last whole zstd frame goes with the segment's end. */
static int cannot_seal(void)
{
	struct d9_recorder *recorder = start_in(again_arg);
	struct d9_counters c = { 0 };

	for (uint64_t i = 0; i < EVENTS; i++)
		number(0, i);
	MUST(AGAIN_WAIT(!d9_recorder_counters(recorder, &c, sizeof(c)) && c.events_written >= EVENTS));
	disk_is_full = true;
	return 0;
}

static int is_killed(void)
{
	d9__test_point_hook = hold_ticks;
	hold = true;
	start_in(again_arg);
	while (!held)
		again_pause_ms(1);
	record_and_lose();
	kill(getpid(), SIGKILL);
	return 1;
}

/* The child's recorder knows nothing of its parent's losses, and the parent's tells them once. */
static int forks(void)
{
	struct d9_recorder *recorder;
	struct numbers child;
	char path[PATH_MAX];
	int status = 1;
	pid_t pid;

	if (AGAIN_SANITIZED)
		return again_skip("a sanitizer ends a child that starts a thread");
	recorder = start_in(scratch_new());
	MUST(d9_recorder_dir(recorder, path, sizeof(path)) > 0);
	record_and_lose();
	pid = fork();
	if (!pid) {
		number(1, 0);
		_exit(d9_recorder_stop(d9_recorder_running(), 20000) != 0);
	}
	MUST(waitpid(pid, &status, 0) == pid && !status);
	MUST(!d9_recorder_stop(recorder, 20000));
	child = numbers_of(scratch_dir, pid);
	MUST(child.found[1] == 1 && !child.found[0] && !child.lost);
	MUST(tells_each(path, EVENTS, false));
	return 0;
}

/* ---- tests ---- */

static void test_losses_are_told_in_the_last_segment_at_the_stop(void)
{
	again_check("stops", NULL);
}

static void test_losses_are_told_when_a_full_disk_has_room_again(void)
{
	again_check("has_a_full_disk_for_a_while", NULL);
}

static void recover(void)
{
	struct d9__recovered last = { 0 };
	struct d9__recover walk;
	int n = 0;

	CU_ASSERT_EQUAL_FATAL(d9__recover_begin(&walk, scratch_dir, D9__RECOVER_WAIT), 0);
	while (d9__recover_next(&walk, &last) == 1) {
		n++;
		CU_ASSERT_EQUAL(last.err, 0);
	}
	d9__recover_end(&walk);
	CU_ASSERT_EQUAL(n, 1);
}

static void test_losses_are_told_by_recovery_of_who_ended_with_a_full_disk(void)
{
	struct told told = { 0 };

	again_check("ends_with_a_full_disk", scratch_new());
	recover();
	CU_ASSERT(tells_each(scratch_dir, EVENTS, true));
	again_check("cannot_seal", scratch_new());
	recover();
	scratch_read(scratch_dir, true, note, &told);
	CU_ASSERT_EQUAL(told.numbers + told.events[D9__LOSS_DISK], EVENTS);
}

static void test_losses_are_told_by_recovery_of_who_was_killed(void)
{
	int status = again("is_killed", scratch_new());

	CU_ASSERT(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	recover();
	CU_ASSERT(tells_each(scratch_dir, EVENTS, false));
}

static void test_losses_of_a_process_that_forks_are_its_own(void)
{
	again_check("forks", NULL);
}

static void add_events(const struct walk_event *event, void *arg)
{
	if (walk_is(event, "RecorderLossEvent") && walk_value(event, "events")->number == LOST(D9__LOSS_TOO_BIG))
		++*(unsigned *)arg;
}

static void test_losses_for_which_flight_mode_has_no_room_are_told_later(void)
{
	static struct d9__writer writer;
	static struct d9__drain drain;
	struct fixture_taken taken = { 0 };
	struct d9__slot *own;
	unsigned told = 0;

	fixture_ring(8);
	own = d9__slot_self();
	CU_ASSERT_EQUAL_FATAL(d9__drain_init(&drain, &writer), 0);
	d9__loss_add(0, D9__LOSS_TOO_BIG, LOST(D9__LOSS_TOO_BIG), NS, NS);
	atomic_store(&own->busy, 1); /* nothing can be written */
	d9__flight_losses(&drain, own, NS);
	atomic_store(&own->busy, 0);
	for (int i = 0; i < 2; i++)
		d9__flight_losses(&drain, own, NS);
	fixture_drain_all(&taken, add_events, &told);
	CU_ASSERT_EQUAL(told, 1);
	d9__drain_release(&drain);
}

int main(int argc, char **argv)
{
	static const struct again_role roles[] = {
		{ "stops", stops },
		{ "has_a_full_disk_for_a_while", has_a_full_disk_for_a_while },
		{ "ends_with_a_full_disk", ends_with_a_full_disk },
		{ "cannot_seal", cannot_seal },
		{ "is_killed", is_killed },
		{ "forks", forks },
		{ NULL, NULL },
	};
	static const CU_TestInfo tests[] = {
		{ "are told in the last segment at the stop", test_losses_are_told_in_the_last_segment_at_the_stop },
		{ "are told when a full disk has room again", test_losses_are_told_when_a_full_disk_has_room_again },
		{ "are told by recovery of who ended with a full disk",
		  test_losses_are_told_by_recovery_of_who_ended_with_a_full_disk },
		{ "are told by recovery of who was killed", test_losses_are_told_by_recovery_of_who_was_killed },
		{ "for which flight mode has no room are told later",
		  test_losses_for_which_flight_mode_has_no_room_are_told_later },
		{ "of a process that forks are its own", test_losses_of_a_process_that_forks_are_its_own },
		CU_TEST_INFO_NULL,
	};
	int role = again_main(argc, argv, roles);

	if (role < 0)
		role = d9_test_main("losses", tests);
	scratch_remove();
	return role;
}
