/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cgroup.h"
#include "base/descriptors.h"
#include "base/dir.h"
#include "base/hash.h"
#include "base/sandbox.h"
#include "base/time.h"
#include "base/u64.h"
#include "record/process_state.h"
#include "ring/emit_inl.h"
#include "ring/event_types.h"

#define COUNTED_A_SECOND 100 /* descriptors, where they have to be counted: 1,000 every ten seconds */
#define OPEN_EVERY_NS (30 * D9__SECOND_NS) /* a limit may come to a group that had none */
#define STEAL_EVERY_NS (10 * D9__SECOND_NS) /* the kernel adds up all processors and interrupts for it */

/* ---- files ---- */

/* 0: it cannot be had.  In a shared table of descriptors it gets a high number. */
static int open_at(int dir, const char *path, int flags)
{
	int fd = d9__descriptor_place(openat(dir, path, O_RDONLY | O_CLOEXEC | O_NOCTTY | flags));

	return fd > 0 ? fd : 0;
}

static bool read_text(int fd, char *text, size_t size)
{
	ssize_t n = fd ? pread(fd, text, size - 1, 0) : -1;

	text[n > 0 ? n : 0] = '\0';
	return n > 0;
}

/* ---- cgroups ---- */

static bool field(const char *text, const char *key, uint64_t *value)
{
	size_t len = strlen(key);

	for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n')
		if (!strncmp(line, key, len) && line[len] == ' ') {
			*value = strtoull(line + len, NULL, 10);
			return true;
		}
	return false;
}

bool d9__process_state_parse_cgroup(const char *text, struct d9__process_figures *out)
{
	uint64_t times, ns;

	if (!field(text, "nr_throttled", &times))
		return false;
	if (field(text, "throttled_usec", &ns))
		ns *= 1000;
	else if (!field(text, "throttled_time", &ns))
		return false;
	out->throttled += times;
	out->throttled_ns += ns;
	out->has_throttled = true;
	return true;
}

/* Keep cpu.stat of the cgroup in |dir| open, if it tells of throttling and there is room for one more. */
static void open_group(void *arg, const char *dir, bool unified)
{
	struct d9__process_state *state = arg;
	struct d9__process_figures figures = { 0 };
	char file[PATH_MAX + 128], text[1024];
	unsigned n = 0;
	int fd;

	(void)unified;
	while (n < D9__STATE_CGROUPS && state->cgroups[n])
		n++;
	if (n == D9__STATE_CGROUPS)
		return;
	snprintf(file, sizeof(file), "%s/cpu.stat", dir);
	fd = open_at(AT_FDCWD, file, 0);
	if (fd && read_text(fd, text, sizeof(text)) && d9__process_state_parse_cgroup(text, &figures))
		state->cgroups[n] = fd;
	else if (fd)
		close(fd);
}

static void close_groups(struct d9__process_state *state)
{
	for (unsigned i = 0; i < D9__STATE_CGROUPS; i++) {
		if (state->cgroups[i] > 0)
			close(state->cgroups[i]);
		state->cgroups[i] = 0;
	}
}

/* Add up what the groups that are open tell.  False: none does; one that was removed does not. */
static bool read_groups(const struct d9__process_state *state, struct d9__throttled *out)
{
	struct d9__process_figures figures = { 0 };
	char text[1024];

	for (unsigned i = 0; i < D9__STATE_CGROUPS && state->cgroups[i]; i++)
		if (read_text(state->cgroups[i], text, sizeof(text)))
			d9__process_state_parse_cgroup(text, &figures);
	if (figures.has_throttled)
		*out = (struct d9__throttled){ figures.throttled_ns, figures.throttled };
	return figures.has_throttled;
}

/* Groups count from beginnings of their own, and the process's figures go on. */
static void open_groups(struct d9__process_state *state, uint64_t now_ns)
{
	struct d9__throttled before = state->groups;

	close_groups(state);
	d9__cgroup_each("cpu", open_group, state);
	state->opening_ns = now_ns + OPEN_EVERY_NS;
	state->throttles = read_groups(state, &state->groups);
	state->others.ns += before.ns - state->groups.ns;
	state->others.times += before.times - state->groups.times;
}

/* Whether the process has come into another group since this was asked last. */
static bool has_moved(struct d9__process_state *state)
{
	char text[4096];
	uint64_t member;

	if (!read_text(state->membership, text, sizeof(text)))
		return false;
	member = d9__hash_bytes(0, text, strlen(text));
	if (member == state->member)
		return false;
	state->member = member;
	return true;
}

/* A table of descriptors that the program has, too, is left alone while it runs. */
static void look_at_groups(struct d9__process_state *state, uint64_t now_ns)
{
	state->throttles = read_groups(state, &state->groups);
	if (d9__descriptors_are_shared())
		return;
	if (has_moved(state) || now_ns >= state->opening_ns)
		open_groups(state, now_ns);
}

uint64_t d9__process_state_throttled(const struct d9__process_state *state)
{
	struct d9__throttled now = state->groups;

	read_groups(state, &now);
	return now.ns - state->groups.ns;
}

void d9__process_state_begin(struct d9__process_state *state)
{
	struct stat st;

	d9__process_state_end(state);
	if (d9__descriptors_are_few())
		return;
	state->statm = open_at(AT_FDCWD, "/proc/self/statm", 0);
	state->stat = open_at(AT_FDCWD, "/proc/stat", 0);
	state->task_dir = open_at(AT_FDCWD, "/proc/self/task", O_DIRECTORY);
	/* Of the process's first thread: not this one's, which has a table of its own. */
	state->fd_dir = open_at(AT_FDCWD, "/proc/self/fd", O_DIRECTORY);
	state->has_fd_count = state->fd_dir && !fstat(state->fd_dir, &st) && st.st_size > 0;
	state->membership = open_at(AT_FDCWD, "/proc/self/cgroup", 0);
	has_moved(state);
	open_groups(state, 0);
	state->cpus = (unsigned)sysconf(_SC_NPROCESSORS_ONLN);
}

void d9__process_state_end(struct d9__process_state *state)
{
	const int fds[] = { state->statm, state->stat, state->task_dir, state->fd_dir,
			    state->membership };

	for (unsigned i = 0; i < sizeof(fds) / sizeof(fds[0]); i++)
		if (fds[i] > 0)
			close(fds[i]);
	close_groups(state);
	*state = (struct d9__process_state){ .groups = state->groups,
					     .others = state->others,
					     .told_ns = state->told_ns };
}

/* ---- looks ---- */

/* Call |fn| with each number that names an entry of |dir|.  Nothing is opened: the table may be the program's. */
static void each_number(int dir, void (*fn)(void *arg, uint32_t number), void *arg)
{
	struct d9__dir numbers;
	const char *name;

	if (!dir || lseek(dir, 0, SEEK_SET))
		return;
	d9__dir_of(&numbers, dir);
	while ((name = d9__dir_next(&numbers)))
		if (name[0] >= '0' && name[0] <= '9')
			fn(arg, (uint32_t)strtoul(name, NULL, 10));
}

static void count(void *arg, uint32_t number)
{
	(void)number;
	++*(uint64_t *)arg;
}

static uint64_t count_descriptors(struct d9__process_state *state, uint64_t now_ns)
{
	struct stat st;

	if (state->has_fd_count)
		return fstat(state->fd_dir, &st) ? 0 : (uint64_t)st.st_size;
	if (now_ns < state->count_ns)
		return state->descriptors;
	state->descriptors = 0;
	each_number(state->fd_dir, count, &state->descriptors);
	state->count_ns = now_ns + state->descriptors / COUNTED_A_SECOND * D9__SECOND_NS;
	return state->descriptors;
}

static uint64_t count_threads(const struct d9__process_state *state)
{
	struct stat st;

	/* The folder has a link more for each, as for each folder in it. */
	if (!state->task_dir || fstat(state->task_dir, &st) || st.st_nlink < 3)
		return 0;
	return st.st_nlink - 2;
}

static uint64_t resident_bytes(const struct d9__process_state *state)
{
	uint64_t pages = 0;
	char text[128], *at = text;

	if (read_text(state->statm, text, sizeof(text))) {
		strtoull(at, &at, 10);
		pages = strtoull(at, NULL, 10);
	}
	return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* The eighth figure of the line of all processors, in clock ticks. */
static void look_at_steal(struct d9__process_state *state, uint64_t now_ns)
{
	char text[256], *at = text + 3;
	uint64_t ticks = 0;

	if (now_ns < state->stat_ns || !read_text(state->stat, text, sizeof(text)) || strncmp(text, "cpu ", 4))
		return;
	for (int i = 0; i < 8; i++)
		ticks = strtoull(at, &at, 10);
	state->steal_ns = ticks * (D9__SECOND_NS / (uint64_t)sysconf(_SC_CLK_TCK));
	state->stat_ns = now_ns + STEAL_EVERY_NS;
	state->has_steal = true;
}

static void add_thread(void *arg, uint32_t tid)
{
	struct d9__process_state *state = arg;
	char path[32], text[96], *at = text;
	uint64_t wait_ns, cpu_ns;
	unsigned i = 0;
	int fd;

	if (tid == (uint32_t)syscall(SYS_gettid))
		return; /* this thread gives way to the program on purpose */
	while (i < state->n_threads && state->threads[i].tid != tid)
		i++;
	if (i == D9__STATE_THREADS)
		return;
	snprintf(path, sizeof(path), "%u/schedstat", tid);
	fd = openat(state->task_dir, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	if (read_text(fd, text, sizeof(text))) {
		cpu_ns = strtoull(at, &at, 10);
		wait_ns = strtoull(at, NULL, 10);
		if (i == state->n_threads) {
			state->threads[i].tid = tid;
			state->threads[i].wait_ns = state->threads[i].cpu_ns = 0;
			state->n_threads++;
		}
		state->threads[i].seen = true;
		state->threads[i].growth = (struct d9__thread_growth) {
			.tid = tid,
			.cpu_ns = d9__u64_minus(cpu_ns, state->threads[i].cpu_ns),
			.wait_ns = d9__u64_minus(wait_ns, state->threads[i].wait_ns),
		};
		state->runqueue_ns += state->threads[i].growth.wait_ns;
		state->threads[i].cpu_ns = cpu_ns;
		state->threads[i].wait_ns = wait_ns;
	}
	close(fd);
}

static void look_at_threads(struct d9__process_state *state)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < state->n_threads; i++)
		state->threads[i].seen = false;
	each_number(state->task_dir, add_thread, state);
	for (unsigned i = 0; i < state->n_threads; i++)
		if (state->threads[i].seen)
			state->threads[kept++] = state->threads[i];
	state->n_threads = kept;
}

void d9__process_state_look(struct d9__process_state *state, uint64_t now_ns, struct d9__process_figures *out)
{
	*out = (struct d9__process_figures){ .resident_bytes = resident_bytes(state),
					     .descriptors = count_descriptors(state, now_ns),
					     .threads = count_threads(state) };
	look_at_groups(state, now_ns);
	out->has_throttled = state->throttles;
	out->throttled_ns = state->others.ns + state->groups.ns;
	out->throttled = state->others.times + state->groups.times;
	look_at_steal(state, now_ns);
	out->has_steal = state->has_steal;
	out->steal_ns = state->steal_ns;
	/* A file is opened for each thread: not among the program's, once a second. */
	if (out->threads && out->threads <= D9__STATE_THREADS && !d9__descriptors_are_shared()) {
		look_at_threads(state);
		out->has_runqueue = true;
		out->runqueue_ns = state->runqueue_ns;
	}
}

static uint8_t *put_optional(uint8_t *p, bool present, uint64_t value)
{
	*p++ = present;
	return present ? d9__varint_put(p, value) : p;
}

static void write_figures(struct d9__slot *own, uint64_t now_ns,
			  const struct d9__process_figures *found)
{
	uint8_t *p;

	p = d9__emit_begin(own, D9__EVENT_PROCESS_STATE, now_ns, 7 * D9__VARINT_MAX + 4);
	if (!p)
		return;
	p = d9__varint_put(p, found->resident_bytes);
	p = d9__varint_put(p, found->descriptors);
	p = d9__varint_put(p, found->threads);
	p = put_optional(p, found->has_throttled, found->throttled_ns);
	p = put_optional(p, found->has_throttled, found->throttled);
	p = put_optional(p, found->has_steal, found->steal_ns);
	d9__emit_end(own, put_optional(p, found->has_runqueue, found->runqueue_ns));
}

void d9__process_state_write(struct d9__process_state *state, struct d9__slot *own, uint64_t now_ns)
{
	struct d9__process_figures found;
	/* A filter that the program has set may not know what is asked for here. */
	bool known = state->threads_known && !d9__sandbox_is_shut();

	d9__process_state_look(state, now_ns, &found);
	state->told_ns = found.throttled_ns;
	write_figures(own, now_ns, &found);
	/* When threads did what they had done before the first look is not known. */
	for (unsigned i = 0; found.has_runqueue && known && i < state->n_threads; i++)
		d9__bound_thread_write(own, now_ns, state->task_dir, state->cpus,
				       &state->threads[i].growth);
	state->threads_known = found.has_runqueue;
}

/* Only then: a program that ends has given up things, which is no end of its growth. */
void d9__process_state_write_last(struct d9__process_state *state, struct d9__slot *own,
				  uint64_t now_ns)
{
	struct d9__process_figures found;

	d9__process_state_look(state, now_ns, &found);
	if (found.has_throttled && found.throttled_ns != state->told_ns)
		write_figures(own, now_ns, &found);
}
