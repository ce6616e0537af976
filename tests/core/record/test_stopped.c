/* SPDX-License-Identifier: Apache-2.0 */
/* Programs that stand still: what is told of them, and what is not. */
#include "config.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <dial9/loop.h>

#include "base/time.h"
#include "core/record/again.h"
#include "core/record/fixture.h"
#include "core/record/scratch.h"
#include "record/flush.h"
#include "record/process_state.h"
#include "record/source.h"
#include "record/stopped.h"
#include "ring/slot.h"

#define MS D9__MS_NS

/* ---- the judgement ---- */

/* A wait of 10 ms that ended a second after it was due; no sign came meanwhile. */
static const struct d9__stopped_wait second = {
	.begun_ns = 5000 * MS,
	.due_ns = 5010 * MS,
	.back_ns = 6010 * MS,
	.before_ns = 5004 * MS,
	.after_ns = UINT64_MAX,
	.has_queue = true,
};

static struct d9__stop stop;

static void test_a_wait_that_ends_a_second_late_for_no_reason_is_a_stop(void)
{
	CU_ASSERT_TRUE_FATAL(d9__stopped_judge(&second, &stop));
	CU_ASSERT_EQUAL(stop.from_ns, 5004 * MS);
	CU_ASSERT_EQUAL(stop.to_ns, 6010 * MS);
	CU_ASSERT_EQUAL(stop.least_ns, 1000 * MS);
	CU_ASSERT_EQUAL(stop.suspended_ns, 0);
}

static void test_it_began_with_the_wait_where_threads_were_silent_for_longer(void)
{
	struct d9__stopped_wait wait = second;

	wait.before_ns = 17 * MS;
	CU_ASSERT_TRUE_FATAL(d9__stopped_judge(&wait, &stop));
	CU_ASSERT_EQUAL(stop.from_ns, 5000 * MS);
}

static void test_a_wait_that_ends_a_quarter_of_a_second_late_is_none(void)
{
	struct d9__stopped_wait wait = second;

	wait.back_ns = wait.due_ns + 250 * MS;
	CU_ASSERT_FALSE(d9__stopped_judge(&wait, &stop));
	wait.back_ns++;
	CU_ASSERT_TRUE(d9__stopped_judge(&wait, &stop));
}

static void test_a_busy_machine_is_no_stop(void)
{
	struct d9__stopped_wait wait = second;

	wait.queue_ns = 500 * MS;
	CU_ASSERT_FALSE(d9__stopped_judge(&wait, &stop));
	wait.queue_ns--;
	CU_ASSERT_TRUE(d9__stopped_judge(&wait, &stop));
	wait.has_queue = false;
	CU_ASSERT_FALSE(d9__stopped_judge(&wait, &stop));
}

static void test_a_limit_of_the_cgroup_is_no_stop(void)
{
	struct d9__stopped_wait wait = second;

	wait.throttled_ns = 500 * MS;
	CU_ASSERT_FALSE(d9__stopped_judge(&wait, &stop));
	wait.throttled_ns = wait.queue_ns = 250 * MS;
	CU_ASSERT_FALSE(d9__stopped_judge(&wait, &stop));
	wait.queue_ns--;
	CU_ASSERT_TRUE(d9__stopped_judge(&wait, &stop));
}

static void test_an_event_in_between_divides_it(void)
{
	struct d9__stopped_wait wait = second;

	wait.before_ns = 5900 * MS;
	CU_ASSERT_FALSE(d9__stopped_judge(&wait, &stop));
	wait.before_ns = 5300 * MS;
	CU_ASSERT_TRUE_FATAL(d9__stopped_judge(&wait, &stop));
	CU_ASSERT_EQUAL(stop.from_ns, 5300 * MS);
	CU_ASSERT_EQUAL(stop.least_ns, 710 * MS);
}

static void test_it_ends_with_the_first_thread_that_goes_on(void)
{
	struct d9__stopped_wait wait = second;

	/* The flush thread got a CPU later, as nearly all of its wait for one shows. */
	wait.after_ns = 5400 * MS;
	wait.queue_ns = 600 * MS;
	CU_ASSERT_TRUE_FATAL(d9__stopped_judge(&wait, &stop));
	CU_ASSERT_EQUAL(stop.to_ns, 5400 * MS);
	CU_ASSERT_EQUAL(stop.least_ns, 390 * MS);
	/* Nobody had one before, either. */
	wait.queue_ns = 900 * MS;
	CU_ASSERT_FALSE(d9__stopped_judge(&wait, &stop));
	/* Another went on soon. */
	wait.after_ns = 5200 * MS;
	wait.queue_ns = 0;
	CU_ASSERT_FALSE(d9__stopped_judge(&wait, &stop));
}

/* ---- signs ---- */

static uint64_t faked_ns;

static uint64_t fake_mono(void)
{
	return faked_ns;
}

/* Seen 20 ms behind the third. */
static struct d9__signs stamps_at(uint64_t first_ms, uint64_t second_ms, uint64_t third_ms,
				  uint64_t since_ms)
{
	const uint64_t all[] = { first_ms, second_ms, third_ms };
	struct d9__signs signs;

	d9__clock_fake(NULL, fake_mono);
	fixture_ring(4);
	for (unsigned i = 0; i < 3; i++) {
		faked_ns = all[i] * MS;
		d9__slot_now(d9__slot_self());
	}
	signs = d9__slot_signs(since_ms * MS, faked_ns + 20 * MS);
	d9__clock_fake(NULL, NULL);
	return signs;
}

static void test_a_silence_has_a_stamp_before_and_one_behind_it(void)
{
	struct d9__signs signs = stamps_at(1000, 1900, 1901, 1100);

	CU_ASSERT_EQUAL(signs.before_ns, 1000 * MS);
	CU_ASSERT_EQUAL(signs.after_ns, 1900 * MS);
	/* One that ended before that moment is not looked for. */
	signs = stamps_at(3000, 3900, 3910, 3905);
	CU_ASSERT_EQUAL(signs.before_ns, 3910 * MS);
	CU_ASSERT_EQUAL(signs.after_ns, UINT64_MAX);
	/* Nor is a shorter one, */
	signs = stamps_at(5000, 5249, 5300, 5100);
	CU_ASSERT_EQUAL(signs.before_ns, 5300 * MS);
	CU_ASSERT_EQUAL(signs.after_ns, UINT64_MAX);
	/* or one that another followed, which goes on. */
	signs = d9__slot_signs(5100 * MS, 5550 * MS);
	CU_ASSERT_EQUAL(signs.before_ns, 5300 * MS);
	signs = stamps_at(6000, 6900, 6901, 6100);
	signs = d9__slot_signs(6100 * MS, 7151 * MS);
	CU_ASSERT_EQUAL(signs.before_ns, 6901 * MS);
	CU_ASSERT_EQUAL(signs.after_ns, UINT64_MAX);
}

/* ---- a program that is recorded ---- */

#define TALK   20 /* the program's descriptor */
#define IDLE   'i'
#define INSIDE 'c'
#define GO_ON  'g'
#define TICKS  't'
#define AWAY   'a'
#define END    'e'

static struct d9_loop *loop;
static bool ending;
static _Atomic(unsigned) n_ticks;
static _Atomic(int64_t) away_ns;

int __wrap_clock_gettime(clockid_t id, struct timespec *ts);
int __real_clock_gettime(clockid_t id, struct timespec *ts);

int __wrap_clock_gettime(clockid_t id, struct timespec *ts)
{
	int err = __real_clock_gettime(id, ts);

	if (id == CLOCK_BOOTTIME)
		ts->tv_sec += (time_t)(away_ns / (int64_t)D9__SECOND_NS);
	return err;
}

static void count_tick(void)
{
	n_ticks++;
}

static void say(char word)
{
	MUST(write(TALK, &word, 1) == 1);
}

static void wait_for_ticks(void)
{
	unsigned seen = n_ticks;

	MUST(AGAIN_WAIT(n_ticks >= seen + 2));
}

/* That clock is asked every 100 ms. */
static void go_away(void)
{
	uint64_t from_ns = d9__mono_ns();

	away_ns = 3600 * (int64_t)D9__SECOND_NS;
	MUST(AGAIN_WAIT(d9__mono_ns() - from_ns > 100 * MS));
	wait_for_ticks();
}

static void obey(void)
{
	char word = END;

	if (read(TALK, &word, 1) != 1)
		word = END;
	if (word == INSIDE) {
		say(word);
		MUST(fcntl(TALK, F_SETFL, O_NONBLOCK) == 0);
		while (read(TALK, &word, 1) != 1)
			; /* computes */
		MUST(fcntl(TALK, F_SETFL, 0) == 0);
	}
	if (word == TICKS)
		wait_for_ticks();
	if (word == AWAY)
		go_away();
	ending = word == END;
}

static void go_round(void)
{
	struct d9_poll poll_ = { .loop = loop, .task = { .key = 1, .fd = -1 } };
	struct pollfd talk = { .fd = TALK, .events = POLLIN };
	int n;

	d9_loop_park(loop, 5 * (int64_t)MS);
	n = poll(&talk, 1, 5);
	d9_loop_unpark(loop);
	d9_poll_begin(&poll_);
	if (n > 0)
		obey();
	d9_poll_end(&poll_);
	if (n > 0)
		say(GO_ON);
}

static int program(void)
{
	struct d9_options *options = NULL;
	struct d9_loop_run run;
	int tid;

	MUST(!d9_options_new(&options));
	d9_options_set_environment(options, false);
	d9_options_set_trace_dir(options, again_arg);
	MUST(!d9_recorder_start(options, NULL));
	d9_options_free(options);
	MUST(!d9_loop_register(D9_LIBRARY_OWN, &loop, "loop", &loop));
	d9__tick_add(count_tick);
	wait_for_ticks(); /* it waits otherwise before the first one */
	tid = d9__flush.tid;
	MUST(write(TALK, &tid, sizeof(tid)) == sizeof(tid));
	d9_loop_enter(loop, &run);
	while (!ending)
		go_round();
	d9_loop_leave(&run);
	MUST(!d9_recorder_stop(d9_recorder_running(), 20000));
	return 0;
}

/* ---- and stopped ---- */

static struct {
	pid_t pid;
	int fd, flush; /* to it; its flush thread */
} child;

/* The child's trace tells so much. */
static struct {
	unsigned n;
	uint64_t from_ns, to_ns, least_ns, suspended_ns;
} told;

static uint64_t field(const struct d9_event *event, unsigned k)
{
	return d9_event_known_u64(event, k, UINT64_MAX);
}

static void note_stop(void *arg, const struct d9_event *event)
{
	(void)arg;
	if (event->kind != D9_EVENT_PROCESS_STOPPED)
		return;
	told.n++;
	told.from_ns = field(event, D9_PROCESS_STOPPED_FROM_NS);
	told.to_ns = field(event, D9_PROCESS_STOPPED_TO_NS);
	told.least_ns = field(event, D9_PROCESS_STOPPED_LEAST_NS);
	told.suspended_ns = field(event, D9_PROCESS_STOPPED_SUSPENDED_NS);
}

static void child_start(void)
{
	int ends[2];

	scratch_new();
	CU_ASSERT_EQUAL_FATAL(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	child.fd = ends[0];
	child.pid = fork();
	if (!child.pid) {
		close(ends[0]);
		dup2(ends[1], TALK);
		self_exec("program", scratch_dir);
		_exit(99);
	}
	close(ends[1]);
	CU_ASSERT_EQUAL_FATAL(read(child.fd, &child.flush, sizeof(int)), sizeof(int));
}

static void child_tell(char word)
{
	CU_ASSERT_EQUAL_FATAL(write(child.fd, &word, 1), 1);
}

static void child_hear(void)
{
	char word;

	CU_ASSERT_EQUAL_FATAL(read(child.fd, &word, 1), 1);
}

static void child_do(char word)
{
	child_tell(word);
	child_hear();
}

static void child_end(void)
{
	int status = -1;

	child_do(END);
	CU_ASSERT_EQUAL(waitpid(child.pid, &status, 0), child.pid);
	CU_ASSERT_EQUAL(status, 0);
	close(child.fd);
	memset(&told, 0, sizeof(told));
	scratch_read(scratch_dir, true, note_stop, NULL);
}

/* Number |at| of what the kernel says of the child's flush thread in |file|; LONG_MAX: nothing. */
static long flush_figure(const char *file, unsigned at)
{
	char path[96];
	long figure = LONG_MAX;
	FILE *in;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/%s", (int)child.pid, child.flush, file);
	in = fopen(path, "r");
	for (unsigned i = 0; in && i <= at; i++)
		if (fscanf(in, "%ld", &figure) != 1)
			figure = LONG_MAX;
	if (in)
		fclose(in);
	return figure;
}

/* When the test did what, by its own clock. */
static struct {
	uint64_t before_ns, stopped_ns, continued_ns, behind_ns;
} when;

/* Stop the program for a second.  Whether its flush thread was stopped in its wait. */
static bool stop_for_a_second(char where)
{
	int status = 0;
	bool waits;

	when.before_ns = d9__mono_ns();
	child_do(where);
	kill(child.pid, SIGSTOP);
	CU_ASSERT_EQUAL_FATAL(waitpid(child.pid, &status, WUNTRACED), child.pid);
	CU_ASSERT_TRUE_FATAL(WIFSTOPPED(status));
	when.stopped_ns = d9__mono_ns();
	waits = flush_figure("syscall", 0) == SYS_futex;
	again_pause_ms(1000);
	when.continued_ns = d9__mono_ns();
	kill(child.pid, SIGCONT);
	if (where == INSIDE)
		child_do(GO_ON);
	else
		child_do(IDLE);
	when.behind_ns = d9__mono_ns();
	child_do(TICKS);
	return waits;
}

/* False: the machine had too little for the program, which is not to be told from a stop then. */
static bool try_stop(char where)
{
	struct d9__process_state state;
	long queue_ns;
	bool waits;

	d9__process_state_begin(&state);
	child_start();
	waits = stop_for_a_second(where);
	queue_ns = flush_figure("schedstat", 1);
	child_end();
	waits &= queue_ns < (long)(200 * MS) && !d9__process_state_throttled(&state);
	d9__process_state_end(&state);
	return waits;
}

static void check_stop(char where)
{
	unsigned tries = again_in_valgrind() ? 0 : 20;
	bool was_fair = false, fair = false;

	/* On a busy machine the flush thread may be late for another reason at the same time. */
	for (; tries && (!fair || told.n != 1); tries--) {
		fair = try_stop(where);
		was_fair |= fair;
	}
	if (!was_fair) {
		printf("skipped: the recorder is not found in its wait here, or waits for a CPU\n");
		return;
	}
	CU_ASSERT_EQUAL_FATAL(told.n, 1);
	CU_ASSERT(told.from_ns >= when.before_ns && told.from_ns <= when.stopped_ns);
	CU_ASSERT(told.to_ns >= when.continued_ns && told.to_ns <= when.behind_ns);
	CU_ASSERT(told.least_ns > D9__STOPPED_NS && told.least_ns <= told.to_ns - told.from_ns);
	CU_ASSERT_EQUAL(told.suspended_ns, 0);
}

static void test_a_program_that_is_stopped_while_it_waits_is_told_so(void)
{
	check_stop(IDLE);
}

static void test_a_program_that_is_stopped_in_a_callback_is_told_so(void)
{
	check_stop(INSIDE);
}

static void test_a_suspended_machine_is_told_apart(void)
{
	child_start();
	child_do(AWAY);
	child_end();
	CU_ASSERT_EQUAL_FATAL(told.n, 1);
	CU_ASSERT_EQUAL(told.from_ns, told.to_ns);
	CU_ASSERT_EQUAL(told.least_ns, 0);
	/* A thread may lose its CPU between two clocks. */
	CU_ASSERT(told.suspended_ns > 3599 * D9__SECOND_NS);
	CU_ASSERT(told.suspended_ns <= 3600 * D9__SECOND_NS);
}

static const CU_TestInfo tests[] = {
	{ "a wait that ends a second late for no reason is a stop",
	  test_a_wait_that_ends_a_second_late_for_no_reason_is_a_stop },
	{ "it began with the wait where threads were silent for longer",
	  test_it_began_with_the_wait_where_threads_were_silent_for_longer },
	{ "a wait that ends a quarter of a second late is none",
	  test_a_wait_that_ends_a_quarter_of_a_second_late_is_none },
	{ "a busy machine is no stop", test_a_busy_machine_is_no_stop },
	{ "a limit of the cgroup is no stop", test_a_limit_of_the_cgroup_is_no_stop },
	{ "an event in between divides it", test_an_event_in_between_divides_it },
	{ "it ends with the first thread that goes on",
	  test_it_ends_with_the_first_thread_that_goes_on },
	{ "a silence has a stamp before and one behind it",
	  test_a_silence_has_a_stamp_before_and_one_behind_it },
	{ "a program that is stopped while it waits is told so",
	  test_a_program_that_is_stopped_while_it_waits_is_told_so },
	{ "a program that is stopped in a callback is told so",
	  test_a_program_that_is_stopped_in_a_callback_is_told_so },
	{ "a suspended machine is told apart", test_a_suspended_machine_is_told_apart },
	CU_TEST_INFO_NULL,
};

static const struct again_role roles[] = { { "program", program }, { NULL, NULL } };

int main(int argc, char **argv)
{
	int status = again_main(argc, argv, roles);

	if (status < 0)
		status = d9_test_main("stopped", tests);
	scratch_remove();
	return status;
}
