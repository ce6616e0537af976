/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/dir.h"
#include "base/thread.h"
#include "base/time.h"
#include "record/sampling.h"
#include "sample/sampled_threads.h"

struct sampled_thread {
	uint32_t tid; /* 0: none */
	bool met;     /* by the walk that goes on */
	bool is_new;  /* d9__sampled_is_new() */
	uint64_t named_ns; /* it was found, and may have taken another name since; 0: looked at */
	char name[16];
};

static struct {
	struct sampled_thread threads[D9__SAMPLED_MAX];
	uint32_t high, left_out;
	uint32_t found; /* the index that was looked for last */
	nlink_t links; /* of /proc/self/task, which has one for each thread */
	uint64_t second_ns;
	bool watched;
	bool walked;	  /* before, and every tick since has looked */
	uint64_t walk_ns; /* when there may be the next walk for a thread that was made */
} self;

#define WALK_EVERY_NS (5 * D9__MS_NS)
#define WALK_SHARE    20 /* of its time, at most, in which the flush thread walks */
#define NAMING_NS     (20 * D9__MS_NS) /* threads begin with the name of their maker */

void (*d9__sampled_watch)(void);

uint32_t d9__sampled_high(void)
{
	return self.high;
}

uint32_t d9__sampled_tid(uint32_t index)
{
	return self.threads[index].tid;
}

const char *d9__sampled_name(uint32_t index)
{
	return self.threads[index].name;
}

bool d9__sampled_is_new(uint32_t index)
{
	return self.threads[index].is_new;
}

uint32_t d9__sampled_left_out(void)
{
	return self.left_out;
}

uint32_t d9__sampled_find(uint32_t tid)
{
	uint32_t index = self.found;

	/* A walk meets most threads in the order in which they stand here. */
	for (uint32_t i = 0; i < self.high; i++) {
		index = index + 1 < self.high ? index + 1 : 0;
		if (self.threads[index].tid != tid)
			continue;
		self.found = index;
		return index;
	}
	return D9__SAMPLED_MAX;
}

void d9__sampled_forget(void)
{
	memset(self.threads, 0, self.high * sizeof(self.threads[0]));
	self.high = self.left_out = self.found = 0;
	self.links = 0;
	self.second_ns = self.walk_ns = 0;
	self.walked = false;
}

void d9__sampled_rest(void)
{
	self.walked = false;
}

static void read_name(uint32_t tid, char name[16])
{
	char path[64];
	ssize_t n = 0;
	int fd;

	snprintf(path, sizeof(path), "/proc/self/task/%u/comm", tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		n = read(fd, name, 15);
		close(fd);
	}
	name[n > 0 ? n : 0] = '\0';
	name[strcspn(name, "\n")] = '\0';
}

static void put(uint32_t index, uint32_t tid, const char *name, uint64_t now_ns)
{
	struct sampled_thread *thread = &self.threads[index];

	*thread = (struct sampled_thread) { .tid = tid, .met = true, .named_ns = now_ns };
	memcpy(thread->name, name, sizeof(thread->name));
	if (self.high <= index)
		self.high = index + 1;
}

/* ---- threads that run loops ---- */

/* The thread in slot |index| that runs loops, or 0.  That it does its owner says without asking anybody. */
__attribute__((no_sanitize("thread"))) static uint32_t loop_thread(uint32_t index, const struct d9__slot *own)
{
	const struct d9__slot *slot = &d9__ring.slots[index];
	uint64_t owner = atomic_load_explicit(&slot->owner, memory_order_acquire);
	bool runs_loop = __atomic_load_n(&slot->worker, __ATOMIC_RELAXED) != D9__WORKER_NONE;

	return slot != own && runs_loop && owner >> 32 == D9__SLOT_TAKEN ? (uint32_t)owner : 0;
}

static void look_at_slots(const struct d9__slot *own, uint64_t now_ns)
{
	for (uint32_t i = 0; i < d9__slot_high(); i++) {
		uint32_t tid = loop_thread(i, own), before;
		char name[16] = "";

		if (tid == self.threads[i].tid)
			continue;
		before = tid ? d9__sampled_find(tid) : D9__SAMPLED_MAX;
		if (before < D9__SAMPLED_MAX)
			self.threads[before].tid = 0;
		if (tid)
			read_name(tid, name);
		put(i, tid, name, now_ns);
	}
}

/* ---- the others ---- */

/* A place behind the slots for one more; D9__SAMPLED_MAX: there is none. */
static uint32_t free_place(void)
{
	for (uint32_t i = D9__SLOT_COUNT; i < D9__SAMPLED_MAX; i++)
		if (!self.threads[i].tid)
			return i;
	return D9__SAMPLED_MAX;
}

static void meet(uint32_t tid, bool renew, uint64_t now_ns)
{
	uint32_t index = d9__sampled_find(tid);
	bool is_new = index == D9__SAMPLED_MAX && self.walked;
	char name[16];

	if (index < D9__SAMPLED_MAX)
		self.threads[index].met = true;
	if (index < D9__SLOT_COUNT || (index < D9__SAMPLED_MAX && !renew))
		return;
	read_name(tid, name);
	if (!strncmp(name, D9__THREAD_NAMES, strlen(D9__THREAD_NAMES)))
		return;
	if (index == D9__SAMPLED_MAX)
		index = free_place();
	if (index == D9__SAMPLED_MAX) {
		self.left_out++;
		return;
	}
	put(index, tid, name, now_ns);
	self.threads[index].is_new = is_new;
}

static uint64_t own_cpu_ns(void)
{
	struct timespec used;

	return clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used) ? 0 : d9__timespec_ns(&used);
}

/* |renew|: read all names, also of threads that are known.  A thread that is made from now on asks
 * for another walk. */
static void walk_tasks(bool renew, uint64_t now_ns)
{
	uint64_t cpu_ns = own_cpu_ns();
	struct d9__dir tasks;
	const char *name;

	/* acquire: pairs with the release of the thread that made one, which is in /proc by then */
	atomic_exchange_explicit(&d9__sampling.thread_made, false, memory_order_acquire);
	self.left_out = 0;
	self.walk_ns = now_ns + WALK_EVERY_NS;
	if (d9__dir_open(&tasks, "/proc/self/task"))
		return;
	for (uint32_t i = D9__SLOT_COUNT; i < self.high; i++)
		self.threads[i].met = false;
	while ((name = d9__dir_next(&tasks)))
		meet((uint32_t)strtoul(name, NULL, 10), renew, now_ns);
	d9__dir_close(&tasks);
	for (uint32_t i = D9__SLOT_COUNT; i < self.high; i++)
		if (!self.threads[i].met)
			self.threads[i].tid = 0;
	self.walked = true;
	cpu_ns = (own_cpu_ns() - cpu_ns) * WALK_SHARE;
	if (cpu_ns > WALK_EVERY_NS)
		self.walk_ns = now_ns + cpu_ns;
}

/* Of threads without a loop keep the first one alone, which may run one later. */
static void keep_first(uint64_t now_ns)
{
	uint32_t first = (uint32_t)getpid();

	for (uint32_t i = D9__SLOT_COUNT; i < self.high; i++)
		if (self.threads[i].tid != first)
			self.threads[i].tid = 0;
	meet(first, false, now_ns);
	self.left_out = 0;
	self.links = 0;
	self.walked = false;
}

static void renew_names(void)
{
	for (uint32_t i = 0; i < self.high && i < D9__SLOT_COUNT; i++)
		if (self.threads[i].tid)
			read_name(self.threads[i].tid, self.threads[i].name);
}

/*
 * Threads that were found a while ago have the names that they gave to themselves, and loops that
 * they are to run.  Returns when the next one is due; UINT64_MAX: none is.
 */
static uint64_t read_new_names(uint64_t now_ns)
{
	uint64_t due_ns = UINT64_MAX;

	for (uint32_t i = 0; i < self.high; i++) {
		struct sampled_thread *thread = &self.threads[i];

		if (!thread->tid || !thread->named_ns)
			continue;
		if (now_ns - thread->named_ns >= NAMING_NS) {
			read_name(thread->tid, thread->name);
			thread->named_ns = 0;
		} else if (thread->named_ns + NAMING_NS < due_ns) {
			due_ns = thread->named_ns + NAMING_NS;
		}
	}
	return due_ns;
}

/* Whether threads came or went.  One that came while another went is found within a second. */
static bool has_changed(void)
{
	nlink_t before = self.links;
	struct stat st;

	if (!stat("/proc/self/task", &st))
		self.links = st.st_nlink;
	return self.links != before;
}

uint64_t d9__sampled_look(const struct d9__slot *own, uint64_t now_ns)
{
	bool all = atomic_load_explicit(&d9__sampling.all_threads, memory_order_relaxed);
	bool due = now_ns - self.second_ns >= D9__SECOND_NS;
	bool made = atomic_load_explicit(&d9__sampling.thread_made, memory_order_relaxed);
	uint64_t due_ns;

	for (uint32_t i = D9__SLOT_COUNT; i < self.high; i++)
		self.threads[i].is_new = false;
	if (all && d9__sampled_watch && !self.watched)
		d9__sampled_watch();
	self.watched |= all;
	look_at_slots(own, now_ns);
	if (due) {
		self.second_ns = now_ns;
		renew_names();
	}
	if (!all)
		keep_first(now_ns);
	else if (due || (made && now_ns >= self.walk_ns) || has_changed())
		walk_tasks(due, now_ns);
	due_ns = read_new_names(now_ns);
	return all && atomic_load_explicit(&d9__sampling.thread_made, memory_order_relaxed) &&
			       self.walk_ns < due_ns
		       ? self.walk_ns
		       : due_ns;
}
