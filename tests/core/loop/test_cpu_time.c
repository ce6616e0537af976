/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "loop/cpu_time.h"
#include "support/d9_test.h"

#define MS UINT64_C(1000000)

/* A thread that the test runs. */
static struct {
	uint64_t now_ns, run_ns, wait_ns, arrivals;
	struct d9__cpu_usage usage;
	unsigned reads;
} machine;

static struct d9__cpu_time cpu;
static uint64_t wait_ns;

static bool fake(struct d9__cpu_reading *out)
{
	machine.reads++;
	*out = (struct d9__cpu_reading){ machine.run_ns, machine.wait_ns, machine.arrivals, true };
	return true;
}

static void fake_usage(struct d9__cpu_usage *out)
{
	*out = machine.usage;
}

static void run(uint64_t ns)
{
	machine.now_ns += ns;
	machine.run_ns += ns;
	machine.usage.user_ns += ns;
}

static void block(uint64_t ns)
{
	machine.arrivals++;
	machine.usage.voluntary++;
	machine.now_ns += ns;
}

/* The thread has a CPU, and the CPU does something else. */
static void steal(uint64_t ns)
{
	machine.now_ns += ns;
}

static void queue(uint64_t ns)
{
	machine.arrivals++;
	machine.usage.involuntary++;
	machine.now_ns += ns;
	machine.wait_ns += ns;
}

static uint64_t park(void)
{
	return d9__cpu_time_park(&cpu, machine.now_ns);
}

static uint64_t unpark(void)
{
	return d9__cpu_time_unpark(&cpu, machine.now_ns, &wait_ns);
}

/* A worker behind its first unpark. */
static void start(void)
{
	machine.now_ns = 1000 * MS;
	machine.run_ns = 50 * MS;
	machine.wait_ns = 3 * MS;
	machine.reads = 0;
	d9__cpu_time_init(&cpu, 1);
	unpark();
}

static uint64_t step_down(uint64_t ns)
{
	return ns / D9__CPU_STEP_NS * D9__CPU_STEP_NS;
}

static uint64_t step_up(uint64_t ns)
{
	return step_down(ns + D9__CPU_STEP_NS - 1);
}

static void test_first_values_are_measured(void)
{
	uint64_t first;

	start();
	run(2 * MS);
	first = park();

	CU_ASSERT_EQUAL(first, step_up(52 * MS));
	CU_ASSERT_EQUAL(machine.reads, 2);
}

static void test_values_are_steps_down_at_unparks_and_up_at_parks(void)
{
	start();
	run(5000);
	CU_ASSERT_EQUAL(park() % D9__CPU_STEP_NS, 0);
	block(5000);
	CU_ASSERT_EQUAL(unpark(), step_down(machine.run_ns));
}

/* A thread that others keep from the CPU: what is not measured is taken to have run, until it is measured. */
static void test_guesses_do_not_add_up(void)
{
	uint64_t last = 0;

	start();
	for (int i = 0; i < 1000; i++) {
		run(20000);
		queue(180000);
		park();
		block(100000);
		last = unpark();
	}
	/* One interval between two readings at most. */
	CU_ASSERT(last >= step_down(machine.run_ns));
	CU_ASSERT(last - machine.run_ns < 3 * MS);
}

static void test_one_pair_in_ten_is_measured(void)
{
	unsigned before;

	start();
	park();
	unpark();
	before = machine.reads;
	for (int i = 0; i < 1000; i++) {
		run(200000);
		park();
		block(100000);
		unpark();
	}

	/* A measured pair reads twice. */
	CU_ASSERT_EQUAL(machine.reads - before, 200);
}

static void test_pairs_are_measured_at_most_once_a_millisecond(void)
{
	unsigned before;

	start();
	park();
	unpark();
	before = machine.reads;
	for (int i = 0; i < 10000; i++) {
		run(1000);
		park();
		block(1000);
		unpark();
	}

	/* 20 ms */
	CU_ASSERT(machine.reads - before <= 2 * 20);
	CU_ASSERT(machine.reads - before >= 2 * 18);
}

static void test_rare_pairs_are_all_measured(void)
{
	unsigned before;

	start();
	park();
	unpark();
	before = machine.reads;
	for (int i = 0; i < 100; i++) {
		run(1000);
		park();
		block(10 * MS);
		unpark();
	}

	CU_ASSERT_EQUAL(machine.reads - before, 2 * 99);
}

static void test_pair_behind_a_long_active_period_is_measured(void)
{
	start();
	park();
	unpark();
	block(400 * MS);
	run(2 * MS);
	CU_ASSERT_EQUAL(park(), step_up(52 * MS));
	queue(30000);
	unpark();
	CU_ASSERT_EQUAL(wait_ns, 30000);
}

static void test_unmeasured_pairs_say_no_wait_and_take_the_thread_as_running(void)
{
	uint64_t at;

	start();
	park();
	at = unpark();
	run(300000);
	CU_ASSERT_EQUAL(park(), step_up(at + 300000));
	queue(30000);
	CU_ASSERT_EQUAL(unpark(), step_down(at + 300000));
	CU_ASSERT_EQUAL(wait_ns, 0);
}

/* Rounds of 1.1 ms, of which the thread is put aside for 1 ms in a wait. */
static void wait_for_the_cpu(unsigned rounds)
{
	for (unsigned i = 0; i < rounds; i++) {
		run(50000);
		park();
		run(50000);
		queue(MS);
		unpark();
	}
}

static void test_waits_for_the_cpu_that_no_unpark_tells_are_told_in_a_sum(void)
{
	uint64_t from_ns = 0, told_ns = 0, sum_ns = 0, began_ns;

	start();
	park();
	unpark();
	began_ns = machine.now_ns;
	CU_ASSERT_EQUAL(d9__cpu_time_take_untold(&cpu, &from_ns), 0);
	for (unsigned i = 0; i < 100; i++) {
		uint64_t ns;

		wait_for_the_cpu(1);
		told_ns += wait_ns;
		ns = d9__cpu_time_take_untold(&cpu, &from_ns);
		if (ns && !sum_ns)
			CU_ASSERT_EQUAL(from_ns, began_ns);
		sum_ns += ns;
		CU_ASSERT_EQUAL(d9__cpu_time_take_untold(&cpu, &from_ns), 0);
	}
	CU_ASSERT(sum_ns > 0);
	/* All but those behind the latest reading. */
	CU_ASSERT(told_ns + sum_ns <= 100 * MS);
	CU_ASSERT(told_ns + sum_ns >= 90 * MS);
}

static void test_little_that_was_waited_for_the_cpu_is_told_with_more(void)
{
	uint64_t from_ns = 0;

	start();
	park();
	unpark();
	run(30000);
	queue(60000);
	run(2 * MS);
	park();
	CU_ASSERT_EQUAL(d9__cpu_time_take_untold(&cpu, &from_ns), 0);
	unpark();
	run(30000);
	queue(60000);
	run(2 * MS);
	park();
	CU_ASSERT_EQUAL(d9__cpu_time_take_untold(&cpu, &from_ns), 120000);
	CU_ASSERT_EQUAL(from_ns, 1000 * MS);
}

static void test_wait_for_the_cpu_that_a_long_poll_tells_is_told_once(void)
{
	struct d9__cpu_off off;
	uint64_t from_ns = 0;

	start();
	park();
	unpark();
	run(100000);
	park();
	queue(3 * MS); /* in a wait that is not measured */
	unpark();
	run(MS);
	queue(2 * MS);
	CU_ASSERT(d9__cpu_time_long_poll(&cpu, machine.now_ns, 3 * MS, &off));
	CU_ASSERT_EQUAL(off.run_queue_ns, 2 * MS);
	CU_ASSERT_EQUAL(d9__cpu_time_take_untold(&cpu, &from_ns), 3 * MS);
}

/* A program without descriptors to spare has none for the kernel's figure. */
static bool fake_clock(struct d9__cpu_reading *out)
{
	*out = (struct d9__cpu_reading){ .run_ns = machine.run_ns };
	return true;
}

static void test_where_the_kernel_does_not_tell_a_thread_that_gave_nothing_away_waited(void)
{
	uint64_t from_ns = 0;

	d9__cpu_time_fake(fake_clock, fake_usage);
	start();
	park();
	unpark();
	for (unsigned i = 0; i < 2; i++) {
		run(100000);
		park();
		if (i == 0)
			queue(3 * MS);
		else
			block(3 * MS);
		unpark();
		run(2 * MS);
		park();
		CU_ASSERT_EQUAL(d9__cpu_time_take_untold(&cpu, &from_ns), i == 0 ? 3 * MS : 0);
		unpark();
	}
	d9__cpu_time_fake(fake, fake_usage);
}

static void test_readings_correct_guesses_but_never_downwards(void)
{
	uint64_t guess, corrected;

	start();
	park();
	unpark();
	block(900000); /* taken for running */
	guess = park();
	unpark();
	run(2 * MS);
	corrected = park();

	CU_ASSERT(corrected >= guess);
	CU_ASSERT_EQUAL(corrected, step_up(52 * MS));
}

static void test_long_poll_tells_what_it_lost(void)
{
	struct d9__cpu_off off = { .blocked_ns = 0 };

	start();
	park();
	unpark();
	run(MS);
	block(4 * MS);
	queue(MS);

	CU_ASSERT_TRUE(d9__cpu_time_long_poll(&cpu, machine.now_ns, 6 * MS, &off));
	CU_ASSERT_EQUAL(off.blocked_ns, 4 * MS);
	CU_ASSERT_EQUAL(off.run_queue_ns, MS);
}

static void test_long_poll_that_did_not_sleep_lost_the_cpu_itself(void)
{
	struct d9__cpu_off off = { .blocked_ns = 0 };

	start();
	park();
	unpark();
	/* Too early to be measured. */
	run(500000);
	park();
	block(300000);
	unpark();
	run(MS);
	steal(4 * MS);

	CU_ASSERT_TRUE(d9__cpu_time_long_poll(&cpu, machine.now_ns, 5 * MS, &off));
	CU_ASSERT_EQUAL(off.blocked_ns, 0);
	CU_ASSERT_EQUAL(off.run_queue_ns, 4 * MS);
}

static void test_long_poll_on_the_cpu_lost_nothing(void)
{
	struct d9__cpu_off off;

	start();
	park();
	block(100 * MS);
	unpark();
	run(5 * MS);

	CU_ASSERT_TRUE(d9__cpu_time_long_poll(&cpu, machine.now_ns, 5 * MS, &off));
	CU_ASSERT_EQUAL(off.blocked_ns, 0);
	CU_ASSERT_EQUAL(off.run_queue_ns, 0);
}

static void test_long_poll_that_was_preempted_did_not_sleep(void)
{
	struct d9__cpu_off off;

	start();
	park();
	block(100 * MS);
	unpark();
	run(MS);
	/* Arrivals grow with each turn; the wait that the kernel tells is that of the latest tick. */
	machine.arrivals += 3;
	machine.usage.involuntary += 3;
	steal(6 * MS);

	CU_ASSERT_TRUE(d9__cpu_time_long_poll(&cpu, machine.now_ns, 7 * MS, &off));
	CU_ASSERT_EQUAL(off.blocked_ns, 0);
	CU_ASSERT_EQUAL(off.run_queue_ns, 6 * MS);
	CU_ASSERT_EQUAL(off.grown.involuntary, 3);
	CU_ASSERT_EQUAL(off.grown.voluntary, 0);
}

static void test_long_poll_tells_what_it_used(void)
{
	struct d9__cpu_off off;

	start();
	park();
	unpark();
	run(5 * MS);
	machine.usage.minor += 16000;
	machine.usage.major += 2;
	machine.usage.system_ns += 3 * MS;

	CU_ASSERT_TRUE(d9__cpu_time_long_poll(&cpu, machine.now_ns, 5 * MS, &off));
	CU_ASSERT_EQUAL(off.grown.minor, 16000);
	CU_ASSERT_EQUAL(off.grown.major, 2);
	CU_ASSERT_EQUAL(off.grown.system_ns, 3 * MS);
	CU_ASSERT_EQUAL(off.grown.user_ns, 5 * MS);
	run(5 * MS);
	CU_ASSERT_TRUE(d9__cpu_time_long_poll(&cpu, machine.now_ns, 5 * MS, &off));
	CU_ASSERT_EQUAL(off.grown.minor, 0);
}

static void test_park_behind_a_long_poll_uses_its_reading(void)
{
	struct d9__cpu_off off;
	unsigned reads;

	start();
	park();
	unpark();
	block(50 * MS);
	d9__cpu_time_long_poll(&cpu, machine.now_ns, 50 * MS, &off);
	reads = machine.reads;
	run(1000);

	CU_ASSERT_EQUAL(park(), step_up(50 * MS + 1000));
	CU_ASSERT_EQUAL(machine.reads, reads);
	queue(7000);
	unpark();
	CU_ASSERT_EQUAL(wait_ns, 7000);
}

/* ---- the kernel's ---- */

static void start_real(void)
{
	d9__cpu_time_fake(NULL, NULL);
	machine.now_ns = 1000 * MS;
	d9__cpu_time_init(&cpu, (uint32_t)syscall(SYS_gettid));
}

static uint64_t real_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000 * MS + (uint64_t)ts.tv_nsec;
}

static void test_thread_that_computes_between_two_ticks_does_not_seem_to_be_off_the_cpu(void)
{
	uint64_t begin, end, ran, told_ns = 0, lost_ns = 0, total_ns = 0;

	start_real();
	for (int i = 0; i < 20; i++) {
		struct d9__cpu_off off = { .blocked_ns = 0 };

		d9__cpu_time_park(&cpu, real_ns(CLOCK_MONOTONIC));
		usleep(1000);
		d9__cpu_time_unpark(&cpu, real_ns(CLOCK_MONOTONIC), &wait_ns);
		ran = real_ns(CLOCK_THREAD_CPUTIME_ID);
		/* By a clock that does not have the kernel look. */
		begin = end = real_ns(CLOCK_MONOTONIC);
		while (end < begin + 2 * MS)
			end = real_ns(CLOCK_MONOTONIC);
		d9__cpu_time_long_poll(&cpu, end, end - begin, &off);
		ran = real_ns(CLOCK_THREAD_CPUTIME_ID) - ran;
		told_ns += off.blocked_ns + off.run_queue_ns;
		lost_ns += end - begin > ran ? end - begin - ran : 0;
		total_ns += end - begin;
	}
	CU_ASSERT(told_ns <= lost_ns + total_ns / 5);
	d9__cpu_time_release(&cpu);
}

static void test_descriptor_is_high_and_closed_on_exec(void)
{
	start_real();
	CU_ASSERT(unpark() > 0);

	CU_ASSERT(cpu.fd >= 200);
	CU_ASSERT(fcntl(cpu.fd, F_GETFD) & FD_CLOEXEC);
	d9__cpu_time_release(&cpu);
	CU_ASSERT_EQUAL(cpu.fd, -1);
}

static void test_descriptor_opened_early_outlives_the_others(void)
{
	struct rlimit before, none;
	struct d9__cpu_off off;

	start_real();
	d9__cpu_time_open(&cpu, machine.now_ns);
	CU_ASSERT(cpu.fd >= 200);
	CU_ASSERT_EQUAL_FATAL(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = (struct rlimit){ 3, before.rlim_max };
	CU_ASSERT_EQUAL_FATAL(setrlimit(RLIMIT_NOFILE, &none), 0);
	unpark();
	CU_ASSERT_TRUE(cpu.last.has_wait);
	machine.now_ns = real_ns(CLOCK_MONOTONIC);
	CU_ASSERT_TRUE(d9__cpu_time_long_poll(&cpu, machine.now_ns, MS, &off));
	CU_ASSERT_TRUE(cpu.last.has_wait);
	setrlimit(RLIMIT_NOFILE, &before);
	d9__cpu_time_release(&cpu);
}

static void test_low_limit_is_the_programs_alone(void)
{
	struct rlimit before, low;

	start_real();
	CU_ASSERT_EQUAL_FATAL(getrlimit(RLIMIT_NOFILE, &before), 0);
	low = (struct rlimit){ 256, before.rlim_max };
	CU_ASSERT_EQUAL_FATAL(setrlimit(RLIMIT_NOFILE, &low), 0);
	d9__cpu_time_open(&cpu, machine.now_ns);
	CU_ASSERT_EQUAL(cpu.fd, -1);
	unpark();
	CU_ASSERT_FALSE(cpu.last.has_wait);
	setrlimit(RLIMIT_NOFILE, &before);
	d9__cpu_time_release(&cpu);
}

static void test_descriptor_closed_by_the_program_is_opened_again(void)
{
	start_real();
	unpark();
	close(cpu.fd);
	machine.now_ns += 2 * MS;
	park();
	CU_ASSERT_EQUAL(cpu.fd, -1);
	machine.now_ns += 2000 * MS;
	unpark();
	CU_ASSERT(cpu.fd >= 200);
	d9__cpu_time_release(&cpu);
}

/* The number of the descriptor names |other| from here on, which has bytes to read. */
static void replace_descriptor(int other)
{
	char bytes[8] = { 0 };
	int fd;

	start_real();
	unpark();
	fd = cpu.fd;
	CU_ASSERT_EQUAL_FATAL(dup2(other, fd), fd);
	close(other);
	machine.now_ns += 2 * MS;
	park();
	CU_ASSERT_TRUE(cpu.schedstat_off);
	CU_ASSERT_EQUAL(cpu.fd, -1);

	machine.now_ns += 2000 * MS;
	CU_ASSERT(unpark() > 0);
	CU_ASSERT_EQUAL(cpu.fd, -1);
	d9__cpu_time_release(&cpu);
	CU_ASSERT_EQUAL(read(fd, bytes, sizeof(bytes)), 5);
	CU_ASSERT_STRING_EQUAL(bytes, "bytes");
	CU_ASSERT_EQUAL(close(fd), 0);
}

static void test_descriptor_that_names_something_of_the_program_s_is_left_alone(void)
{
	FILE *file = tmpfile();
	int pair[2];

	CU_ASSERT_EQUAL_FATAL(pipe(pair), 0);
	CU_ASSERT_EQUAL(write(pair[1], "bytes", 5), 5);
	replace_descriptor(pair[0]);
	close(pair[1]);

	CU_ASSERT_EQUAL_FATAL(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	CU_ASSERT_EQUAL(write(pair[1], "bytes", 5), 5);
	replace_descriptor(pair[0]);
	close(pair[1]);

	/* Its position stays, too. */
	CU_ASSERT_PTR_NOT_NULL_FATAL(file);
	CU_ASSERT_EQUAL(write(fileno(file), "bytes", 5), 5);
	CU_ASSERT_EQUAL(lseek(fileno(file), 0, SEEK_SET), 0);
	replace_descriptor(dup(fileno(file)));
	fclose(file);
}

int main(void)
{
	static const CU_TestInfo tests[] = {
		{ "first values are measured", test_first_values_are_measured },
		{ "values are steps, down at unparks and up at parks",
		  test_values_are_steps_down_at_unparks_and_up_at_parks },
		{ "guesses do not add up", test_guesses_do_not_add_up },
	{ "one pair in ten is measured", test_one_pair_in_ten_is_measured },
		{ "pairs are measured at most once a millisecond",
		  test_pairs_are_measured_at_most_once_a_millisecond },
		{ "rare pairs are all measured", test_rare_pairs_are_all_measured },
		{ "pair behind a long active period is measured",
		  test_pair_behind_a_long_active_period_is_measured },
		{ "unmeasured pairs say no wait and take the thread as running",
		  test_unmeasured_pairs_say_no_wait_and_take_the_thread_as_running },
		{ "waits for the CPU that no unpark tells are told in a sum",
		  test_waits_for_the_cpu_that_no_unpark_tells_are_told_in_a_sum },
		{ "little that was waited for the CPU is told with more",
		  test_little_that_was_waited_for_the_cpu_is_told_with_more },
		{ "wait for the CPU that a long poll tells is told once",
		  test_wait_for_the_cpu_that_a_long_poll_tells_is_told_once },
		{ "where the kernel does not tell a thread that gave nothing away waited",
		  test_where_the_kernel_does_not_tell_a_thread_that_gave_nothing_away_waited },
		{ "readings correct guesses but never downwards",
		  test_readings_correct_guesses_but_never_downwards },
		{ "long poll tells what it lost", test_long_poll_tells_what_it_lost },
		{ "long poll that did not sleep lost the CPU itself",
		  test_long_poll_that_did_not_sleep_lost_the_cpu_itself },
		{ "long poll on the CPU lost nothing", test_long_poll_on_the_cpu_lost_nothing },
		{ "long poll that was preempted did not sleep", test_long_poll_that_was_preempted_did_not_sleep },
		{ "long poll tells what it used", test_long_poll_tells_what_it_used },
		{ "park behind a long poll uses its reading",
		  test_park_behind_a_long_poll_uses_its_reading },
		{ "thread that computes between two ticks does not seem to be off the CPU",
		  test_thread_that_computes_between_two_ticks_does_not_seem_to_be_off_the_cpu },
		{ "descriptor is high and closed on exec",
		  test_descriptor_is_high_and_closed_on_exec },
		{ "descriptor opened early outlives the others", test_descriptor_opened_early_outlives_the_others },
		{ "low limit", test_low_limit_is_the_programs_alone },
		{ "descriptor closed by the program is opened again",
		  test_descriptor_closed_by_the_program_is_opened_again },
		{ "descriptor that names something of the program's is left alone",
		  test_descriptor_that_names_something_of_the_program_s_is_left_alone },
		CU_TEST_INFO_NULL,
	};

	d9__cpu_time_fake(fake, fake_usage);
	return d9_test_main("cpu_time", tests);
}
