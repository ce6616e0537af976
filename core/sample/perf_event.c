/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <dial9/error.h>

#include "sample/perf_event.h"

#define RING_MIN ((size_t)128 << 10) /* less holds a few samples only */

#define NOBODY INT_MAX /* the setting is not known */

#define COUNT_LOST (UINT64_C(1) << 4) /* PERF_FORMAT_LOST, which headers before 6.0 have not */

#ifndef CAP_PERFMON
#define CAP_PERFMON 38
#endif

static struct perf_event_attr attributes(const struct d9__perf_want *want)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = want->hz ? PERF_COUNT_SW_CPU_CLOCK : PERF_COUNT_SW_CONTEXT_SWITCHES,
		.sample_period = 1,
		.sample_type = D9__PERF_SAMPLE_TYPE,
		.sample_regs_user = D9__PERF_REGISTERS,
		.sample_stack_user = want->stack,
		.read_format = COUNT_LOST,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
		.exclude_callchain_user = 1,
		.exclude_kernel = want->no_kernel,
		.exclude_hv = 1,
		.exclude_idle = 1,
	};

	if (want->hz) {
		attr.freq = 1;
		attr.sample_freq = want->hz;
	}
	return attr;
}

static long open_event(const struct d9__perf_want *want)
{
	struct perf_event_attr attr = attributes(want);
	long fd = syscall(SYS_perf_event_open, &attr, want->tid, want->cpu, -1, PERF_FLAG_FD_CLOEXEC);

	if (fd >= 0 || errno != EINVAL)
		return fd;
	/* A kernel before 6.0 counts no losses. */
	attr.read_format = 0;
	return syscall(SYS_perf_event_open, &attr, want->tid, want->cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

/* ---- filters ---- */

/* The number behind |key| in the status of this thread; 0: there is none. */
static unsigned long long status_of(const char *key, int base)
{
	char text[4096], *line;
	int fd = open("/proc/thread-self/status", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

	if (fd >= 0)
		close(fd);
	text[n > 0 ? n : 0] = '\0';
	line = strstr(text, key);
	return line ? strtoull(line + strlen(key), NULL, base) : 0;
}

static bool is_filtered(void)
{
	return status_of("\nSeccomp:", 10) > 0;
}

static int wait_for(pid_t pid)
{
	int status = 0;

	while (waitpid(pid, &status, __WALL) < 0)
		if (errno != EINTR)
			return -errno;
	return WIFEXITED(status) ? -WEXITSTATUS(status) : -ENOSYS;
}

/*
 * A filter may end a process that makes a call it does not know, so a child tries first.  The program does not learn of
 * the child's end, because that sends no signal.
 */
static int try_in_child(const struct d9__perf_want *want)
{
	long pid = syscall(SYS_clone, 0L, 0L, 0L, 0L, 0L);

	if (pid == 0) {
		/* No core is dumped, because the end of this child is not the program's fault. */
		prctl(PR_SET_DUMPABLE, 0);
		syscall(SYS_exit_group, open_event(want) < 0 ? errno : 0);
	}
	return pid < 0 ? -errno : wait_for((pid_t)pid);
}

/* Once: filters only grow, and one that this thread gets later ends it before. */
static int try_first(const struct d9__perf_want *want)
{
	static bool has_worked;
	int err = !has_worked && is_filtered() ? try_in_child(want) : 0;

	has_worked = !err;
	return err;
}

/* ---- open and close ---- */

/* As large as is allowed.  0 or -errno. */
static int map_ring(struct d9__perf_event *event, size_t ring)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	int err;

	do {
		event->map = mmap(NULL, page + ring, PROT_READ | PROT_WRITE, MAP_SHARED, event->fd_plus_1 - 1, 0);
		err = event->map == MAP_FAILED ? -errno : 0;
		event->ring = ring;
		ring /= 2;
	} while (err == -EPERM && ring >= RING_MIN);
	if (!err)
		return 0;
	event->map = NULL;
	return err == -EPERM ? -ENOMEM : err;
}

int d9__perf_open(struct d9__perf_event *event, const struct d9__perf_want *want)
{
	int err = try_first(want);
	long fd;

	if (err)
		return err;
	fd = open_event(want);
	if (fd < 0)
		return -errno;
	event->fd_plus_1 = (int)fd + 1;
	err = map_ring(event, want->ring);
	if (err)
		d9__perf_close(event);
	return err;
}

void d9__perf_stop(const struct d9__perf_event *event)
{
	if (event->fd_plus_1)
		ioctl(event->fd_plus_1 - 1, PERF_EVENT_IOC_DISABLE, 0);
}

void d9__perf_close(struct d9__perf_event *event)
{
	if (event->map)
		munmap(event->map, (size_t)sysconf(_SC_PAGESIZE) + event->ring);
	if (event->fd_plus_1)
		close(event->fd_plus_1 - 1);
	*event = (struct d9__perf_event) { .map = NULL };
}

/* ---- samples ---- */

/*
 * How many samples found no room since the last time.  |told| by records in the ring are those alone behind which another
 * sample found some: of a thread that ended meanwhile, or computes no more, only the kernel's count tells.
 */
static uint64_t newly_lost(struct d9__perf_event *event, uint64_t told)
{
	uint64_t counts[2]; /* events, lost samples */
	bool counted = read(event->fd_plus_1 - 1, counts, sizeof(counts)) == (ssize_t)sizeof(counts);
	uint64_t lost = counted ? counts[1] - event->lost : told;

	event->lost += lost;
	return lost;
}

uint64_t d9__perf_drain(struct d9__perf_event *event, void (*fn)(void *arg, struct d9__perf_record *record),
			void *arg)
{
	static _Alignas(8) uint8_t scratch[D9__PERF_RECORD_MAX];
	static struct d9__perf_record record;
	struct perf_event_mmap_page *page = event->map;
	struct d9__perf_ring ring;
	uint64_t lost = 0;

	if (!page)
		return 0;
	ring = (struct d9__perf_ring) {
		.data = (const uint8_t *)page + sysconf(_SC_PAGESIZE),
		.size = event->ring,
		.tail = page->data_tail,
		.head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE),
	};
	while (d9__perf_next(&ring, scratch, &record)) {
		if (record.kind == D9__PERF_SAMPLE)
			fn(arg, &record);
		else if (record.kind == D9__PERF_LOST)
			lost += record.lost;
		/* The kernel may write there again. */
		__atomic_store_n(&page->data_tail, ring.tail, __ATOMIC_RELEASE);
	}
	__atomic_store_n(&page->data_tail, ring.tail, __ATOMIC_RELEASE);
	return newly_lost(event, lost);
}

/* ---- reasons ---- */

static int paranoid(void)
{
	char text[16] = "";
	int fd = open("/proc/sys/kernel/perf_event_paranoid", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

	if (fd >= 0)
		close(fd);
	return n > 0 ? atoi(text) : NOBODY;
}

/* Whether the setting is none for us: then it is something else that refuses. */
static bool is_capable(void)
{
	return (status_of("\nCapEff:", 16) & (1ULL << CAP_PERFMON | 1ULL << CAP_SYS_ADMIN)) != 0;
}

/* The setting at which |want| is open to everybody. */
static int needed(const struct d9__perf_want *want)
{
	if (want->tid == -1)
		return 0;
	return want->no_kernel ? 2 : 1;
}

void d9__perf_explain(char reason[D9__PERF_REASON_LEN], const struct d9__perf_want *want, int err)
{
	bool refused = err == -EACCES || err == -EPERM;
	int set = paranoid();

	if (err == -ENOMEM)
		snprintf(reason, D9__PERF_REASON_LEN,
			 "no memory may be locked for its ring; raise kernel.perf_event_mlock_kb or "
			 "ulimit -l");
	else if (refused && set != NOBODY && set > needed(want) && !is_capable())
		snprintf(reason, D9__PERF_REASON_LEN,
			 "perf_event_open(): %s at kernel.perf_event_paranoid=%d; it takes "
			 "sysctl kernel.perf_event_paranoid=%d, or CAP_PERFMON",
			 d9_strerror(err), set, needed(want));
	else if (refused || err == -ENOSYS)
		snprintf(reason, D9__PERF_REASON_LEN, "perf_event_open(): %s%s",
			 refused ? d9_strerror(err) : "not there",
			 is_filtered() ? "; a filter of system calls (seccomp), such as containers and systemd have, "
					 "has to allow it"
			 : refused     ? "; a security module has to allow it"
				       : "; this kernel has none");
	else
		snprintf(reason, D9__PERF_REASON_LEN, "perf_event_open(): %s", d9_strerror(err));
}
