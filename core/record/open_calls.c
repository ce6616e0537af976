/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <dial9/error.h>

#include "base/descriptors.h"
#include "base/time.h"
#include "record/open_calls.h"
#include "ring/emit_inl.h"
#include "ring/event_types.h"
#include "ring/names.h"
#include "segment/metadata.h"

#define STUCK_MAX (6 * D9__VARINT_MAX + 15) /* bytes of a StuckPollEvent's fields */
#define ALMOST	  (D9__SECOND_NS / 10) /* a tick that comes a bit early is the one of this second */

static _Atomic(d9__open_calls_describe_fn) describer;

void d9__open_calls_provide(d9__open_calls_describe_fn describe)
{
	atomic_store_explicit(&describer, describe, memory_order_release);
}

void d9__open_calls_begin(struct d9__open_calls *calls)
{
	*calls = (struct d9__open_calls) { .youngest_ns = UINT64_MAX, .age_ns = UINT64_MAX };
	calls->task_fd = d9__descriptors_are_few() ?
				 -1 :
				 d9__descriptor_place(open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

/* ---- finding them ---- */

/*
 * The slot's owner changes these without asking anybody.  Between two equal values of |published| they are usually of
 * one moment, and where they are not no harm is done: they only say whom to look at.
 */
__attribute__((no_sanitize("thread"))) static bool read_slot(const struct d9__slot *slot, enum d9__worker_state wanted,
							     struct d9__open_call *call, uint64_t *last_ns)
{
	/* acquire: pairs with the release in d9__emit_leave() */
	uint64_t published = atomic_load_explicit(&slot->published, memory_order_acquire);
	uint8_t state = __atomic_load_n(&slot->worker_state, __ATOMIC_RELAXED);

	call->worker = __atomic_load_n(&slot->worker, __ATOMIC_RELAXED);
	call->task = __atomic_load_n(&slot->task, __ATOMIC_RELAXED);
	*last_ns = __atomic_load_n(&slot->last_ns, __ATOMIC_RELAXED);
	atomic_thread_fence(memory_order_acquire);
	return state == (uint8_t)wanted && call->worker != D9__WORKER_NONE &&
	       atomic_load_explicit(&slot->published, memory_order_relaxed) == published;
}

static bool is_taken(const struct d9__slot *slot, uint32_t *tid)
{
	uint64_t owner = atomic_load_explicit(&slot->owner, memory_order_acquire);

	*tid = (uint32_t)owner;
	return owner >> 32 == D9__SLOT_TAKEN;
}

bool d9__open_calls_of(uint32_t slot, enum d9__worker_state state, struct d9__open_call *call)
{
	*call = (struct d9__open_call){ .slot = slot };
	return is_taken(&d9__ring.slots[slot], &call->tid) &&
	       read_slot(&d9__ring.slots[slot], state, call, &call->since_ns);
}

bool d9__open_calls_in_library(const struct d9__open_call *call)
{
	d9__open_calls_describe_fn describe = atomic_load(&describer);
	struct d9__open_call outside = *call;

	if (!describe)
		return false;
	outside.outside = true;
	outside.task = 0;
	describe(&outside, 1);
	return outside.since_ns && !outside.function;
}

/* Add |call|; where there is no room, for the youngest of all. */
static void add_candidate(struct d9__open_call *found, size_t *n, const struct d9__open_call *call)
{
	size_t youngest = 0;

	if (*n < D9__OPEN_CALLS_MAX) {
		found[(*n)++] = *call;
		return;
	}
	for (size_t i = 1; i < *n; i++)
		if (found[i].since_ns > found[youngest].since_ns)
			youngest = i;
	if (call->since_ns < found[youngest].since_ns)
		found[youngest] = *call;
}

/* The callback whose loop the owner of |slot| is in, if it is in one. */
__attribute__((no_sanitize("thread"))) static void add_around(const struct d9__slot *slot, struct d9__open_call call,
							      struct d9__open_call *found, size_t *n)
{
	if (!__atomic_load_n(&slot->around, __ATOMIC_RELAXED))
		return;
	call.around = true;
	call.worker = __atomic_load_n(&slot->worker, __ATOMIC_RELAXED);
	call.task = 0;
	call.since_ns = 0;
	add_candidate(found, n, &call);
}

/* The loop that the owner of |slot| runs, if it may stand still outside of callbacks. */
static void add_outside(const struct d9__slot *slot, struct d9__open_call call, uint64_t now_ns, struct d9__open_call *found,
			size_t *n)
{
	uint64_t last_ns;

	if (!read_slot(slot, D9__WORKER_RUNNING, &call, &last_ns) || last_ns + D9__OPEN_CALL_HUNG_NS / 2 > now_ns)
		return;
	call.outside = true;
	call.task = 0;
	call.since_ns = last_ns;
	add_candidate(found, n, &call);
}

/* Calls that may be long: they have been quiet, or their task ran at the look before this one. */
static size_t find_candidates(struct d9__open_calls *calls, uint64_t now_ns, struct d9__open_call *out)
{
	size_t n = 0;

	for (uint32_t i = 0; i < d9__slot_high(); i++) {
		const struct d9__slot *slot = &d9__ring.slots[i];
		struct d9__open_call call = { .slot = i };
		uint64_t last_ns, quiet_ns, before = calls->tasks[i];

		calls->tasks[i] = 0;
		if (!is_taken(slot, &call.tid))
			continue;
		add_around(slot, call, out, &n);
		if (!read_slot(slot, D9__WORKER_POLLING, &call, &last_ns)) {
			add_outside(slot, call, now_ns, out, &n);
			continue;
		}
		calls->tasks[i] = call.task;
		quiet_ns = now_ns > last_ns ? now_ns - last_ns : 0;
		if (quiet_ns < calls->youngest_ns)
			calls->youngest_ns = quiet_ns;
		if (quiet_ns < D9__OPEN_CALL_NS && before != call.task)
			continue;
		call.since_ns = last_ns;
		add_candidate(out, &n, &call);
	}
	return n;
}

/* Take over what was known of |call| at the look before. */
static void remember(const struct d9__open_calls *calls, struct d9__open_call *call)
{
	for (size_t i = 0; i < calls->n; i++) {
		const struct d9__open_call *old = &calls->items[i];

		if (old->slot != call->slot || old->task != call->task || old->since_ns != call->since_ns)
			continue;
		call->next_look_ns = old->next_look_ns;
		call->told_for_ns = old->told_for_ns;
		call->sign_ns = old->sign_ns;
		call->told_inner_id = old->told_inner_id;
		call->known = old->known;
		call->stuck = old->stuck;
		call->stands = call->outside && old->outside && call->waits == old->waits;
		return;
	}
}

void d9__open_calls_look(struct d9__open_calls *calls, uint64_t now_ns)
{
	struct d9__open_call found[D9__OPEN_CALLS_MAX];
	d9__open_calls_describe_fn describe = atomic_load_explicit(&describer, memory_order_acquire);
	size_t n, kept = 0;

	calls->youngest_ns = calls->age_ns = UINT64_MAX;
	n = describe ? find_candidates(calls, now_ns, found) : 0;
	if (n)
		describe(found, n);
	for (size_t i = 0; i < n; i++) {
		if (!found[i].since_ns || found[i].since_ns + D9__OPEN_CALL_NS > now_ns)
			continue;
		if (now_ns - found[i].since_ns < calls->age_ns)
			calls->age_ns = now_ns - found[i].since_ns;
		remember(calls, &found[i]);
		found[kept++] = found[i];
	}
	memcpy(calls->items, found, kept * sizeof(found[0]));
	calls->n = kept;
}

/* ---- telling of them ---- */

/* Of a loop outside of callbacks it is not known at the first look whether it goes on. */
static bool is_told(const struct d9__open_call *call)
{
	return !call->outside || call->stands;
}

/* Whether |fd| is one of those that are told by their number: the first ones that callbacks were found at. */
static bool is_numbered(struct d9__open_calls *calls, int fd)
{
	for (size_t i = 0; i < calls->n_fds; i++)
		if (calls->fds[i] == fd)
			return true;
	if (calls->n_fds == D9__OPEN_CALL_FDS)
		return false;
	calls->fds[calls->n_fds++] = fd;
	return true;
}

/* "read(7)", or "read()" of a program that blocks in very many. */
static uint32_t name_of(struct d9__open_calls *calls, const struct d9__stuck *stuck)
{
	char text[D9__STUCK_SYSCALL];

	if (stuck->fd < 0 || is_numbered(calls, stuck->fd))
		return d9__name_intern(stuck->syscall, strlen(stuck->syscall));
	snprintf(text, sizeof(text), "%.*s()", (int)strcspn(stuck->syscall, "("), stuck->syscall);
	return d9__name_intern(text, strlen(text));
}

/* Begin an event up to its optional fields.  NULL: lost. */
static uint8_t *begin_stuck(struct d9__open_calls *calls, const struct d9__open_call *call,
			    struct d9__slot *own, uint64_t now_ns, const char *kind)
{
	const uint32_t names[] = { name_of(calls, &call->stuck),
				   d9__name_intern(call->stuck.wchan, strlen(call->stuck.wchan)),
				   d9__name_intern(kind, strlen(kind)) };
	uint32_t ids[3];
	uint8_t *p;

	p = d9__emit_begin_named(own, D9__EVENT_STUCK_POLL, now_ns, STUCK_MAX, names, ids, 3);
	if (!p)
		return NULL;
	p = d9__varint_put(p, call->worker);
	p = d9__varint_put(p, call->task);
	p = d9__wire_put_u32(p, ids[0]);
	*p++ = call->stuck.running;
	p = d9__varint_put(p, now_ns - call->since_ns);
	p = d9__wire_put_u32(p, ids[1]);
	return d9__wire_put_u32(p, ids[2]);
}

static void write_stuck(struct d9__open_calls *calls, const struct d9__open_call *call,
			struct d9__slot *own, uint64_t now_ns)
{
	uint8_t *p = begin_stuck(calls, call, own, now_ns, "");

	if (!p)
		return;
	*p++ = false; /* cpu_ns, wall_ns */
	*p++ = false;
	d9__emit_end(own, p);
}

static void write_sign(struct d9__slot *own, const struct d9__open_call *call, uint64_t now_ns)
{
	uint32_t id;
	uint8_t *p = d9__emit_begin_named(own, D9__EVENT_LAST_SIGN, now_ns, 3 * D9__VARINT_MAX + 4, &call->span, &id, 1);

	if (!p)
		return;
	p = d9__varint_put(p, call->worker);
	p = d9__varint_put(p, call->task);
	p = d9__varint_put(p, call->since_ns);
	d9__emit_end(own, d9__wire_put_u32(p, id));
}

static void say_source(const char *state)
{
	d9__metadata_set("source.stuck", state);
}

/*
 * Write that a loop library called the function that |call| is in: its own event comes when it
 * returns, if ever.  That has the id then, because the owner thread knows from |describer| that it
 * was told.
 */
static void write_inner(struct d9__slot *own, struct d9__open_call *call)
{
	int type = call->n_inner && call->inner[0].id > call->told_inner_id
			   ? d9__span_enter_of(call->library)
			   : -1;

	if (type < 0 || !own || d9__old_events())
		return;
	for (uint32_t i = call->n_inner; i--;) {
		const struct d9__open_inner *inner = &call->inner[i];
		uint32_t id;
		uint8_t *p;

		if (inner->id <= call->told_inner_id)
			continue;
		p = d9__emit_begin_named(own, (uint32_t)type, inner->since_ns,
					 4 * D9__VARINT_MAX + 1 + 2 * 4, &inner->name, &id, 1);
		if (!p)
			return;
		call->told_inner_id = inner->id;
		p = d9__varint_put(p, call->worker);
		p = d9__varint_put(p, inner->id);
		*p++ = i + 1 < call->n_inner;
		if (i + 1 < call->n_inner)
			p = d9__varint_put(p, call->inner[i + 1].id);
		p = d9__wire_put_u32(p, id);
		p = d9__varint_put(p, inner->id);
		d9__emit_end(own, d9__wire_put_u32(p, call->tid));
	}
}

/* Where the thread of |call| is.  False: that cannot be had. */
static bool look_at_thread(struct d9__open_calls *calls, struct d9__open_call *call)
{
	int err = calls->task_fd <= 0 ? -ENOENT : d9__stuck_look(calls->task_fd, call->tid, &call->stuck);
	char text[64];

	if ((err == -ENOENT || err == -ESRCH) && calls->task_fd > 0)
		return false; /* the thread ended meanwhile */
	if (err)
		snprintf(text, sizeof(text), "off: /proc/self/task: %s", d9_strerror(err));
	say_source(err ? text : "on");
	return !err;
}

void d9__open_calls_tell_library(struct d9__open_calls *calls, struct d9__open_call *call,
				 struct d9__slot *own, uint64_t now_ns, struct d9__burnt burnt)
{
	uint8_t *p;

	call->task = 0;
	look_at_thread(calls, call);
	p = begin_stuck(calls, call, own, now_ns, "library");
	if (!p)
		return;
	*p++ = true;
	p = d9__varint_put(p, burnt.cpu_ns);
	*p++ = true;
	d9__emit_end(own, d9__varint_put(p, burnt.wall_ns));
}

static bool is_doubled(const struct d9__open_call *call, uint64_t for_ns)
{
	return for_ns >= 2 * call->told_for_ns;
}

/* At 10 ms, at each doubling, and when it went elsewhere: looked at once a second in the end. */
static void sample(struct d9__open_calls *calls, struct d9__open_call *call, struct d9__slot *own, uint64_t now_ns)
{
	struct d9__stuck before = call->stuck;
	uint64_t for_ns = now_ns - call->since_ns;
	bool same;

	if (now_ns < call->next_look_ns)
		return;
	call->next_look_ns = now_ns + (for_ns < D9__SECOND_NS ? for_ns : D9__SECOND_NS) -
			     ALMOST / 100;

	if (!look_at_thread(calls, call))
		return;
	same = call->known && !strcmp(before.syscall, call->stuck.syscall) && before.running == call->stuck.running;
	call->known = true;
	if (same && !is_doubled(call, for_ns))
		return;
	call->told_for_ns = for_ns;
	write_stuck(calls, call, own, now_ns);
}

void d9__open_calls_tell(struct d9__open_calls *calls, struct d9__slot *own, uint64_t now_ns)
{
	for (size_t i = 0; i < calls->n; i++) {
		struct d9__open_call *call = &calls->items[i];

		if (!is_told(call))
			continue;
		if (!call->around)
			sample(calls, call, own, now_ns);
		if (now_ns - call->since_ns < D9__OPEN_CALL_HUNG_NS || now_ns - call->sign_ns < D9__SECOND_NS - ALMOST)
			continue;
		call->sign_ns = now_ns;
		write_inner(own, call);
		write_sign(own, call, now_ns);
	}
}

void d9__open_calls_tell_inner(struct d9__open_calls *calls)
{
	struct d9__open_call found[D9__OPEN_CALLS_MAX];
	d9__open_calls_describe_fn describe =
		atomic_load_explicit(&describer, memory_order_acquire);
	size_t n = 0;

	for (uint32_t i = 0; describe && i < d9__slot_high(); i++) {
		struct d9__open_call call;

		if (d9__open_calls_of(i, D9__WORKER_POLLING, &call))
			add_candidate(found, &n, &call);
	}
	if (n)
		describe(found, n);
	for (size_t i = 0; i < n; i++) {
		if (!found[i].since_ns)
			continue;
		remember(calls, &found[i]);
		if (found[i].n_inner)
			write_inner(d9__slot_self(), &found[i]);
	}
}

/* ---- the ring ---- */

/* A callback's name, without the place where its task was made. */
static void copy_name(char *to, size_t size, uint32_t handle)
{
	const struct d9__name *name = d9__name_text(handle);
	const char *at = memmem(name->text, name->len, " @ ", 3);
	size_t len = at ? (size_t)(at - name->text) : name->len;

	snprintf(to, size, "%.*s", (int)len, name->text);
}

static void publish_one(const struct d9__open_call *call, struct d9__ring_open *to)
{
	to->since_ns = call->since_ns;
	to->task = call->task;
	to->sign_ns = call->sign_ns;
	to->worker = call->worker;
	to->tid = call->tid;
	to->around = call->around;
	to->outside = call->outside;
	to->known = call->known;
	to->running = call->stuck.running;
	memcpy(to->syscall, call->stuck.syscall, sizeof(to->syscall));
	memcpy(to->wchan, call->stuck.wchan, sizeof(to->wchan));
	copy_name(to->loc, sizeof(to->loc), call->loc);
	copy_name(to->span, sizeof(to->span), call->span);
}

/* Put one into |to|, which another may be in. */
static void publish_inner(const struct d9__open_call *call, const struct d9__open_inner *inner,
			  struct d9__ring_inner *to)
{
	const struct d9__name *name = d9__name_text(inner->name);

	to->since_ns = inner->since_ns;
	to->task = call->task;
	to->worker = call->worker;
	snprintf(to->library, sizeof(to->library), "%s", call->library);
	snprintf(to->name, sizeof(to->name), "%.*s", (int)name->len, name->text);
	/* Recovery reads what the process's memory held when it died. */
	atomic_store_explicit(&to->id, inner->id, memory_order_release);
}

static void publish_all_inner(const struct d9__open_calls *calls)
{
	struct d9__ring_inner *to =
		(struct d9__ring_inner *)(void *)(d9__ring.base + D9__RING_INNER_AT);
	uint32_t n = 0;

	for (uint32_t i = 0; i < D9__RING_OPEN_MAX; i++)
		atomic_store_explicit(&to[i].id, 0, memory_order_relaxed);
	atomic_thread_fence(memory_order_release);
	for (size_t i = 0; i < calls->n && !d9__old_events(); i++)
		for (uint32_t k = 0; k < calls->items[i].n_inner && n < D9__RING_OPEN_MAX; k++)
			if (calls->items[i].inner[k].id > calls->items[i].told_inner_id &&
			    d9__name_text(calls->items[i].inner[k].name)->len < sizeof(to->name))
				publish_inner(&calls->items[i], &calls->items[i].inner[k],
					      &to[n++]);
}

void d9__open_calls_publish(const struct d9__open_calls *calls, struct d9__ring_health *health)
{
	bool told[D9__OPEN_CALLS_MAX] = { false };
	uint32_t n = 0;

	while (n < D9__RING_OPEN_MAX) {
		size_t oldest = calls->n;

		for (size_t i = 0; i < calls->n; i++)
			if (!told[i] && is_told(&calls->items[i]) &&
			    (oldest == calls->n || calls->items[i].since_ns < calls->items[oldest].since_ns))
				oldest = i;
		if (oldest == calls->n)
			break;
		told[oldest] = true;
		publish_one(&calls->items[oldest], &health->open[n++]);
	}
	health->n_open = n;
	publish_all_inner(calls);
}

void d9__open_calls_release(struct d9__open_calls *calls)
{
	if (calls->task_fd > 0)
		close(calls->task_fd);
	calls->task_fd = 0;
	calls->n = 0;
}
