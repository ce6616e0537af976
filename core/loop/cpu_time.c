/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "loop/cpu_time.h"
#include "base/hot.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/time.h"
#include "record/sandbox.h"

#define FIRST_FD      200 /* out of the way of programs that count on low numbers */
#define ROOM_MIN      512 /* the least limit of descriptors at which one more is not missing */
#define REOPEN_NS     D9__SECOND_NS
#define DEFAULT_RATE  10u
#define FRESH_NS      20000u
#define PAIR_MAX_NS   (10 * D9__MS_NS) /* a measured pair for each such time, if pairs are rare */
#define SLEEP_NS      20000u             /* a park of this length slept, once */
#define UNTOLD_NS     (100 * D9__US_NS)  /* of a wait for a processor, what is worth an event */

static _Atomic(uint32_t) rate = DEFAULT_RATE;
static bool (*fake_read)(struct d9__cpu_reading *out);
static void (*fake_usage)(struct d9__cpu_usage *out);

void d9__cpu_time_init(struct d9__cpu_time *cpu, uint32_t tid)
{
	*cpu = (struct d9__cpu_time){ .fd = -1, .tid = tid };
}

void d9__cpu_time_set_rate(uint32_t n)
{
	atomic_store_explicit(&rate, n ? n : 1, memory_order_relaxed);
}

void d9__cpu_time_fake(bool (*read)(struct d9__cpu_reading *out), void (*usage)(struct d9__cpu_usage *out))
{
	fake_read = read;
	fake_usage = usage;
}

/* ---- reading ---- */

/* A program whose limit is small may need all that it allows; there the wait for a processor is not known. */
static bool has_room(void)
{
	struct rlimit limit;

	return !getrlimit(RLIMIT_NOFILE, &limit) && limit.rlim_cur >= ROOM_MIN;
}

static int open_schedstat(uint32_t tid)
{
	char path[64];
	int low, fd;

	if (!has_room())
		return -1;
	snprintf(path, sizeof(path), "/proc/self/task/%u/schedstat", tid);
	low = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (low < 0)
		return -1;
	fd = fcntl(low, F_DUPFD_CLOEXEC, FIRST_FD);
	close(low);
	return fd;
}

static const char *parse_number(const char *at, uint64_t *value)
{
	*value = 0;
	if (*at < '0' || *at > '9')
		return NULL;
	for (; *at >= '0' && *at <= '9'; at++)
		*value = *value * 10 + (uint64_t)(*at - '0');
	return at;
}

/* "run wait arrivals\n" and nothing else: another text means that the number names another file. */
static bool parse_schedstat(const char *text, struct d9__cpu_reading *out)
{
	uint64_t numbers[3];

	for (size_t i = 0; i < 3; i++) {
		text = parse_number(text, &numbers[i]);
		if (!text || *text != (i < 2 ? ' ' : '\n'))
			return false;
		text++;
	}
	if (*text != '\0')
		return false;
	out->wait_ns = numbers[1];
	out->arrivals = numbers[2];
	/* Whoever runs arrived: a kernel that does not count says "0 0 0". */
	out->has_wait = numbers[2] > 0;
	return true;
}

bool d9__cpu_time_ready(uint32_t tid, uint64_t *wait_ns)
{
	struct d9__cpu_reading reading = { .has_wait = false };
	int saved = errno, cancel, fd;
	ssize_t n = 0;
	char text[96];

	/* The call around it may be no place where a thread can be cancelled. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	fd = open_schedstat(tid);
	if (fd >= 0) {
		n = read(fd, text, sizeof(text) - 1);
		close(fd);
	}
	pthread_setcancelstate(cancel, NULL);
	errno = saved;
	if (n <= 0)
		return false;
	text[n] = '\0';
	if (!parse_schedstat(text, &reading) || !reading.has_wait)
		return false;
	*wait_ns = reading.wait_ns;
	return true;
}

static bool pread_schedstat(struct d9__cpu_time *cpu, struct d9__cpu_reading *out)
{
	char text[96];
	ssize_t n = pread(cpu->fd, text, sizeof(text) - 1, 0);

	if (n > 0) {
		text[n] = '\0';
		if (parse_schedstat(text, out))
			return true;
	}
	/* Closed by the program: may be opened again.  Anything else: not ours, never closed. */
	if (n >= 0 || errno != EBADF)
		cpu->schedstat_off = true;
	cpu->fd = -1;
	return false;
}

static void read_wait(struct d9__cpu_time *cpu, uint64_t now_ns, struct d9__cpu_reading *out)
{
	if (cpu->schedstat_off)
		return;
	if (cpu->fd < 0) {
		if (cpu->opened_ns && now_ns - cpu->opened_ns < REOPEN_NS)
			return;
		cpu->opened_ns = now_ns;
		cpu->fd = open_schedstat(cpu->tid);
	}
	if (cpu->fd >= 0)
		pread_schedstat(cpu, out);
}

void d9__cpu_time_open(struct d9__cpu_time *cpu, uint64_t now_ns)
{
	int saved = errno;

	if (!cpu->schedstat_off && cpu->fd < 0 && !fake_read) {
		cpu->opened_ns = now_ns;
		cpu->fd = open_schedstat(cpu->tid);
	}
	errno = saved;
}

static uint64_t ns_of(struct timeval tv)
{
	return (uint64_t)tv.tv_sec * D9__SECOND_NS + (uint64_t)tv.tv_usec * D9__US_NS;
}

/* Of this thread.  It cannot fail: the kernel knows RUSAGE_THREAD since 2.6.26. */
static void read_usage(struct d9__cpu_usage *out)
{
	struct rusage ru = { .ru_nvcsw = 0 };

	if (fake_read) {
		if (fake_usage)
			fake_usage(out);
		return;
	}
	getrusage(RUSAGE_THREAD, &ru);
	*out = (struct d9__cpu_usage){
		.voluntary = (uint64_t)ru.ru_nvcsw,
		.involuntary = (uint64_t)ru.ru_nivcsw,
		.minor = (uint64_t)ru.ru_minflt,
		.major = (uint64_t)ru.ru_majflt,
		.user_ns = ns_of(ru.ru_utime),
		.system_ns = ns_of(ru.ru_stime),
	};
}

static bool read_clock(struct d9__cpu_reading *out)
{
	struct timespec ts;

	if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts) < 0)
		return false;
	*out = (struct d9__cpu_reading){
		.run_ns = d9__timespec_ns(&ts),
	};
	return true;
}

/*
 * The run time in schedstat is that of the latest tick, up to 10 ms ago: a thread that computed since
 * would seem to have slept.  The clock looks now.  Keeps errno.
 */
static bool take_reading(struct d9__cpu_time *cpu, uint64_t now_ns, struct d9__cpu_reading *out)
{
	int saved = errno;
	bool done;

	if (d9__sandbox_is_shut())
		return false;
	if (fake_read)
		done = fake_read(out);
	else if ((done = read_clock(out)))
		read_wait(cpu, now_ns, out);
	errno = saved;
	return done;
}

/* How much longer it has waited for a CPU in |reading| than in |before|. */
static uint64_t waited(const struct d9__cpu_reading *before, const struct d9__cpu_reading *reading)
{
	return before->has_wait && reading->has_wait && reading->wait_ns > before->wait_ns
		       ? reading->wait_ns - before->wait_ns
		       : 0;
}

/* |ns| of the wait since the reading at |from_ns| are told by nothing else. */
static void add_untold(struct d9__cpu_time *cpu, uint64_t from_ns, uint64_t ns)
{
	if (!cpu->untold_ns)
		cpu->untold_from_ns = from_ns;
	cpu->untold_ns += ns;
}

/* The newest reading is |reading| from here on. */
static void keep(struct d9__cpu_time *cpu, uint64_t now_ns, const struct d9__cpu_reading *reading)
{
	cpu->last = *reading;
	cpu->read_ns = now_ns;
	cpu->parked_ns = 0;
	cpu->sleeps = 0;
}

void d9__cpu_time_release(struct d9__cpu_time *cpu)
{
	struct d9__cpu_reading reading;
	int saved = errno;

	if (cpu->fd >= 0 && pread_schedstat(cpu, &reading))
		close(cpu->fd);
	cpu->fd = -1;
	errno = saved;
}

/* ---- parks ---- */

static uint64_t at_least(uint64_t value, uint64_t floor)
{
	return value > floor ? value : floor;
}

static bool is_due(const struct d9__cpu_time *cpu, uint64_t now_ns)
{
	if (!cpu->pair_ns)
		return true;
	if (now_ns - cpu->pair_ns < D9__CPU_LONG_NS)
		return false;
	return cpu->was_long || now_ns - cpu->unpark_ns >= D9__CPU_LONG_NS ||
	       now_ns - cpu->pair_ns >= PAIR_MAX_NS ||
	       cpu->pairs + 1 >= atomic_load_explicit(&rate, memory_order_relaxed);
}

/* A long poll that ended just now was read already. */
static bool is_fresh(const struct d9__cpu_time *cpu, uint64_t now_ns)
{
	return cpu->read_ns > cpu->unpark_ns && now_ns - cpu->read_ns < FRESH_NS;
}

/*
 * CPU time of the awake thread, taken to have run since it was last known.  From the newest reading and not from
 * what was written since: each guess would add to the error of those before it.
 */
static uint64_t guess_run(const struct d9__cpu_time *cpu, uint64_t now_ns)
{
	if (cpu->read_ns)
		return cpu->last.run_ns + (now_ns - cpu->read_ns - cpu->parked_ns);
	return cpu->unpark_cpu + (cpu->unpark_ns ? now_ns - cpu->unpark_ns : 0);
}

/*
 * How long the thread waited for a CPU since the newest reading, behind which |reading| was taken.
 * Where the kernel does not tell, one that never gave the CPU away was put aside in all that it did
 * not run.
 */
static uint64_t waited_since(const struct d9__cpu_time *cpu, uint64_t now_ns,
			     const struct d9__cpu_reading *reading)
{
	uint64_t all_ns = now_ns - cpu->read_ns, run_ns = reading->run_ns - cpu->last.run_ns;
	struct d9__cpu_usage usage = { 0 };

	if (!cpu->read_ns || reading->has_wait || run_ns >= all_ns)
		return waited(&cpu->last, reading);
	read_usage(&usage);
	return usage.voluntary == cpu->usage.voluntary ? all_ns - run_ns : 0;
}

D9__HOT uint64_t d9__cpu_time_park(struct d9__cpu_time *cpu, uint64_t now_ns)
{
	bool due = is_due(cpu, now_ns);
	struct d9__cpu_reading reading;

	cpu->measured = due && is_fresh(cpu, now_ns);
	if (due && !cpu->measured && take_reading(cpu, now_ns, &reading)) {
		add_untold(cpu, cpu->read_ns, waited_since(cpu, now_ns, &reading));
		keep(cpu, now_ns, &reading);
		cpu->measured = true;
	}
	if (cpu->measured)
		cpu->pair_ns = now_ns;
	cpu->pairs = cpu->measured ? 0 : cpu->pairs + 1;
	cpu->was_long = false;
	cpu->park_ns = now_ns;
	cpu->park_cpu = at_least(guess_run(cpu, now_ns), cpu->unpark_cpu);
	return (cpu->park_cpu + D9__CPU_STEP_NS - 1) & ~(uint64_t)(D9__CPU_STEP_NS - 1);
}

D9__HOT uint64_t d9__cpu_time_take_untold(struct d9__cpu_time *cpu, uint64_t *from_ns)
{
	uint64_t ns = cpu->untold_ns;

	if (ns < UNTOLD_NS)
		return 0;
	*from_ns = cpu->untold_from_ns;
	cpu->untold_ns = 0;
	return ns;
}

D9__HOT uint64_t d9__cpu_time_unpark(struct d9__cpu_time *cpu, uint64_t now_ns, uint64_t *wait_ns)
{
	struct d9__cpu_reading reading;
	uint64_t value = cpu->park_cpu;

	*wait_ns = 0;
	if (cpu->park_ns) {
		cpu->parked_ns += now_ns - cpu->park_ns;
		cpu->sleeps += now_ns - cpu->park_ns >= SLEEP_NS;
	}
	if ((cpu->measured || !cpu->read_ns) && take_reading(cpu, now_ns, &reading)) {
		*wait_ns = waited(&cpu->last, &reading);
		keep(cpu, now_ns, &reading);
		read_usage(&cpu->usage);
		value = reading.run_ns;
	}
	cpu->measured = false;
	cpu->unpark_ns = now_ns;
	cpu->unpark_cpu = at_least(value, cpu->park_cpu);
	return cpu->unpark_cpu & ~(uint64_t)(D9__CPU_STEP_NS - 1);
}

static struct d9__cpu_usage growth(const struct d9__cpu_usage *from, const struct d9__cpu_usage *to)
{
	return (struct d9__cpu_usage){
		.voluntary = to->voluntary - from->voluntary,
		.involuntary = to->involuntary - from->involuntary,
		.minor = to->minor - from->minor,
		.major = to->major - from->major,
		/* The kernel divides by its ticks, and may take back a little. */
		.user_ns = to->user_ns > from->user_ns ? to->user_ns - from->user_ns : 0,
		.system_ns = to->system_ns > from->system_ns ? to->system_ns - from->system_ns : 0,
	};
}

bool d9__cpu_time_long_poll(struct d9__cpu_time *cpu, uint64_t now_ns, uint64_t poll_ns,
			    struct d9__cpu_off *off)
{
	struct d9__cpu_reading before = cpu->last, reading;
	struct d9__cpu_usage used_before = cpu->usage;
	uint64_t awake = now_ns - cpu->read_ns - cpu->parked_ns;
	uint64_t ran, lost, sleeps = cpu->sleeps;
	uint64_t read_ns = cpu->read_ns, wait_ns;

	cpu->was_long = true;
	if (!take_reading(cpu, now_ns, &reading))
		return false;
	keep(cpu, now_ns, &reading);
	read_usage(&cpu->usage);
	if (!read_ns)
		return false;
	off->grown = growth(&used_before, &cpu->usage);
	wait_ns = waited(&before, &reading);
	ran = reading.run_ns > before.run_ns ? reading.run_ns - before.run_ns : 0;
	lost = awake > ran ? awake - ran : 0;
	if (lost > poll_ns)
		lost = poll_ns;
	if (lost < D9__CPU_STEP_NS)
		lost = 0;
	off->run_queue_ns = wait_ns;
	if (off->run_queue_ns > lost || off->grown.voluntary <= sleeps)
		off->run_queue_ns = lost;
	off->blocked_ns = lost - off->run_queue_ns;
	add_untold(cpu, read_ns, wait_ns > off->run_queue_ns ? wait_ns - off->run_queue_ns : 0);
	return true;
}
