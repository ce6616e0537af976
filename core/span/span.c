/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Behind <dial9/span.h>.
 *
 * A span's object is in the program's memory and holds all that its events say, spelled as they
 * spell it.  How long a thread has been inside, and which span is current, is the thread's own:
 * loop/entered.h.
 */
#include "config.h"

#include <errno.h>
#include <string.h>

#include <dial9/span.h>

#include "base/span_filter.h"
#include "loop/span_stack.h"
#include "loop/wire.h"
#include "record/arguments.h"
#include "record/recorder.h"
#include "ring/emit_inl.h"
#include "ring/gate.h"
#include "span/open_spans.h"
#include "span/span_events.h"
#include "span/span_sites.h"

#define CLOSED (UINT64_C(1) << 63)

/* Why what does not fit together need not be a mistake. */
enum missed {
	MISSED_CALL = 1,  /* an enter or exit while nothing was recorded */
	MISSED_PLACE = 2, /* an enter is in the trace, but too deep to be followed */
};

struct __attribute__((may_alias)) object {
	uint64_t id; /* 0: not recorded; with CLOSED set: closed */
	struct d9__span_state state;
	const struct d9__span_stack *owner; /* of the thread that created it */
	struct d9__open_span *open;	 /* where it is among those that live; NULL: nowhere */
	uint64_t start_ns;
	uint64_t first_ns; /* atomic: any thread */
	/* Atomic: threads other than the owner add in one step; it need not. */
	uint64_t own_ns, other_ns;
	uint32_t own_in, other_in; /* threads inside */
	uint32_t missed;	   /* enum missed */
	uint32_t opening;	   /* of the gate, at the creation or the latest enter */
	uint32_t epoch;		   /* of the process that created it */
	uint32_t unbalanced;
	/* Owner of the call that sets them; see struct d9__span_state. */
	uint16_t at[D9_SPAN_FIELDS_MAX + 1];
	uint8_t values[D9_SPAN_BYTES_MAX];
};

static_assert(sizeof(struct object) <= sizeof(struct d9_span), "the program's memory holds it");
static_assert(D9_SPAN_FIELDS_MAX == D9__SPAN_VALUES_MAX, "one limit");

static struct object *object_of(struct d9_span *span)
{
	return (struct object *)(void *)span;
}

/* ---- values ---- */

/* The encoded value of field |i|; |size| bytes of room.  Its length, -EINVAL, -E2BIG. */
static int encode(uint8_t *p, size_t size, uint8_t type, const struct d9_arg *arg)
{
	struct d9_arg text;
	long len;

	*p = arg->kind != D9_ARG_ABSENT;
	if (arg->kind == D9_ARG_ABSENT)
		return 1;
	len = d9__arg_measure(type, arg);
	if (len < 0)
		return (int)len;
	if (type == D9_FIELD_POOLED_STRING) {
		if (size < 5)
			return -E2BIG;
		d9__wire_put_u32(p + 1, d9__arg_name(arg));
		return 5;
	}
	if (type == D9_FIELD_STRING && (size_t)len + 1 > size && size > 5) {
		text = d9__arg_cut(arg, size - 5);
		arg = &text;
		len = d9__arg_measure(type, arg);
	}
	/* A varint is measured at its longest. */
	if ((size_t)len + 1 > size)
		return -E2BIG;
	return (int)(d9__arg_put(p + 1, type, arg) - p);
}

/* |n_left| fields behind this one need a byte each. */
static int set_next(struct object *o, unsigned i, unsigned n_left, const struct d9_arg *arg)
{
	size_t room = D9_SPAN_BYTES_MAX - o->at[i] - n_left;
	int len = encode(o->values + o->at[i], room, o->state.type->fields[i].type, arg);

	if (len == -E2BIG) {
		o->values[o->at[i]] = 0;
		len = 1;
	}
	if (len < 0)
		return len;
	o->at[i + 1] = (uint16_t)(o->at[i] + len);
	return 0;
}

static int set_values(struct object *o, const struct d9_arg *values, size_t n)
{
	const struct d9_arg absent = { .kind = D9_ARG_ABSENT };
	unsigned n_fields = o->state.type->n_fields;

	if (n > n_fields || (n && !values))
		return -EINVAL;
	o->at[0] = 0;
	for (unsigned i = 0; i < n_fields; i++) {
		int err = set_next(o, i, n_fields - i - 1, i < n ? &values[i] : &absent);

		if (err)
			return err;
	}
	return 0;
}

int d9_span_set(struct d9_span *span, size_t field, struct d9_arg value)
{
	struct object *o = object_of(span);
	uint8_t buf[D9_SPAN_BYTES_MAX];
	unsigned n_fields;
	size_t old, end;
	int len;

	if (!o->id || o->id & CLOSED)
		return 0;
	n_fields = o->state.type->n_fields;
	if (field >= n_fields)
		return -EINVAL;
	end = o->at[n_fields];
	old = (size_t)o->at[field + 1] - o->at[field];
	len = encode(buf, D9_SPAN_BYTES_MAX - end + old, o->state.type->fields[field].type, &value);
	if (len < 0)
		return len;
	memmove(o->values + o->at[field] + len, o->values + o->at[field + 1],
		end - o->at[field + 1]);
	memcpy(o->values + o->at[field], buf, (size_t)len);
	for (size_t i = field + 1; i <= n_fields; i++)
		o->at[i] = (uint16_t)(o->at[i] + (size_t)len - old);
	return 0;
}

/* ---- this thread ---- */

struct here {
	struct d9__slot *slot;
	struct d9__thread *thread;
	struct d9__span_stack *entered;
	uint32_t opening; /* of the gate */
};

static inline bool is_recording(void)
{
	return d9__gate_open(D9__GATE_EVENT);
}

/* True if |o| is a span of this process, not of its parent. */
static inline bool is_ours(const struct object *o)
{
	return o->epoch == atomic_load_explicit(&d9__span_epoch, memory_order_relaxed);
}

/*
 * False: nothing is recorded now.  The slot is not touched before the gate was asked: in a clone of
 * the process it would be the parent's.
 */
static inline bool find_here(struct here *here)
{
	uint32_t gate = d9__gate_word();

	if (__builtin_expect(!(gate & D9__GATE_EVENT), 0))
		return false;
	here->slot = d9__slot_self();
	if (!here->slot)
		return false;
	here->opening = gate >> 8;
	here->thread = d9__thread_peek();
	here->entered = d9__span_stack_of(here->slot, here->opening);
	return true;
}

static inline uint32_t worker_of(const struct d9__thread *thread)
{
	return thread && !(thread->odd & D9__ODD_NO_WORKER) ? thread->worker : D9__SPAN_NO_WORKER;
}

/* The stamp, behind the second piece of the callback's poll if that is held back. */
static inline uint64_t stamp(const struct here *here)
{
	if (here->thread && here->thread->resume_ns && d9__gate_open(D9__GATE_LOOP))
		d9__wire_resume(here->thread, here->slot);
	return d9__slot_now(here->slot);
}

static __attribute__((noinline)) void tell(const struct object *o, const struct here *here,
					   enum d9__span_mistake mistake)
{
	d9__span_write_misuse(here->slot, stamp(here), worker_of(here->thread), o->state.id,
			      o->state.name, d9__span_mistake_name(mistake));
}

/* ---- create ---- */

static int create(struct object *o, struct d9_span_site *site, uint64_t parent,
		  const struct d9_arg *values, size_t n)
{
	const struct d9__span_site_type *type;
	struct here here;
	int err = d9__span_site_resolve(site);

	type = d9__span_site_type(site);
	/* None: it was not wanted at that look, which may have changed since. */
	if (err || !type || !d9_span_on(site) || !find_here(&here))
		return err;
	o->state = (struct d9__span_state){ .type = &type->type, .name = type->name,
					    .values = o->values, .at = o->at };
	err = set_values(o, values, n);
	if (err)
		return err;
	o->owner = here.entered;
	o->start_ns = d9__slot_now(here.slot);
	o->first_ns = o->own_ns = o->other_ns = 0;
	o->own_in = o->other_in = o->missed = o->unbalanced = 0;
	o->opening = here.opening;
	o->epoch = atomic_load_explicit(&d9__span_epoch, memory_order_relaxed);
	o->state.parent = parent == D9_SPAN_CURRENT ?
				  d9__span_stack_current(here.entered, here.thread) : parent;
	o->id = o->state.id = d9__span_stack_new_id(here.entered);
	o->open = d9__open_span_add(&d9__open_spans_all[d9__slot_index(here.slot)], o->epoch,
				    &(struct d9__living_span) { o->id, o->start_ns, o->state.parent,
								o->state.name, type->type.origin });
	return 0;
}

int d9_span_create(struct d9_span *span, struct d9_span_site *site, uint64_t parent,
		   const struct d9_arg *values, size_t n)
{
	struct object *o = object_of(span);

	o->id = 0;
	if (!d9_span_on(site))
		return 0;
	if (!is_recording()) {
		/* A forked child may have a recorder to start. */
		d9__recorder_child_check();
		if (!is_recording())
			return 0;
	}
	return create(o, site, parent, values, n);
}

/* ---- enter and exit ---- */

static inline void add_u32(uint32_t *sum, uint32_t n, bool alone)
{
	if (alone)
		__atomic_store_n(sum, __atomic_load_n(sum, __ATOMIC_RELAXED) + n, __ATOMIC_RELAXED);
	else
		__atomic_fetch_add(sum, n, __ATOMIC_RELAXED);
}

static inline void add_u64(uint64_t *sum, uint64_t n, bool alone)
{
	if (alone)
		__atomic_store_n(sum, __atomic_load_n(sum, __ATOMIC_RELAXED) + n, __ATOMIC_RELAXED);
	else
		__atomic_fetch_add(sum, n, __ATOMIC_RELAXED);
}

static inline void count_inside(struct object *o, const struct here *here, uint32_t n)
{
	if (o->owner == here->entered)
		add_u32(&o->own_in, n, true);
	else
		add_u32(&o->other_in, n, false);
}

static inline uint32_t inside(const struct object *o)
{
	return __atomic_load_n(&o->own_in, __ATOMIC_RELAXED) +
	       __atomic_load_n(&o->other_in, __ATOMIC_RELAXED);
}

static void miss(struct object *o, enum missed what)
{
	__atomic_fetch_or(&o->missed, what, __ATOMIC_RELAXED);
}

static void enter(struct object *o, const struct here *here)
{
	struct d9__stacked_span *item;
	bool written;
	uint64_t ns;

	if (__builtin_expect(inside(o) != 0, 0)) {
		item = d9__span_stack_find(here->entered, o->id);
		if (item) {
			item->depth++;
			return;
		}
	}
	ns = stamp(here);
	__atomic_store_n(&o->opening, here->opening, __ATOMIC_RELAXED);
	item = d9__span_stack_push(here->entered, here->thread, o->id, ns);
	written = d9__span_write_enter(here->slot, ns, worker_of(here->thread), &o->state);
	if (item) {
		item->written = written;
		count_inside(o, here, 1);
	} else {
		miss(o, written ? MISSED_PLACE : MISSED_CALL);
	}
	if (!__atomic_load_n(&o->first_ns, __ATOMIC_RELAXED))
		__atomic_store_n(&o->first_ns, ns, __ATOMIC_RELAXED);
}

void d9_span_enter(struct d9_span *span)
{
	struct object *o = object_of(span);
	struct here here;

	if (!o->id || !is_ours(o))
		return;
	if (!find_here(&here))
		miss(o, MISSED_CALL);
	else if (o->id & CLOSED)
		tell(o, &here, D9__SPAN_ENTER_AFTER_CLOSE);
	else
		enter(o, &here);
}

/* This thread is not inside any more. */
static void leave(struct object *o, const struct here *here, struct d9__stacked_span *item,
		  uint64_t ns)
{
	bool written = item->written;
	uint64_t took_ns = ns - item->enter_ns;

	d9__span_stack_pop(here->entered, item);
	count_inside(o, here, UINT32_MAX);
	if (o->owner == here->entered)
		add_u64(&o->own_ns, took_ns, true);
	else
		add_u64(&o->other_ns, took_ns, false);
	if (written)
		d9__span_write_exit(here->slot, ns, worker_of(here->thread), &o->state);
}

/* An exit without a known enter. */
static __attribute__((noinline)) void leave_unknown(struct object *o, const struct here *here)
{
	uint32_t missed = __atomic_load_n(&o->missed, __ATOMIC_RELAXED);

	/* Recording was off meanwhile, and who was inside then is forgotten. */
	if (__atomic_load_n(&o->opening, __ATOMIC_RELAXED) != here->opening)
		missed |= MISSED_CALL;
	if (o->id & CLOSED)
		tell(o, here, D9__SPAN_EXIT_AFTER_CLOSE);
	else if (missed & MISSED_PLACE)
		d9__span_write_exit(here->slot, stamp(here), worker_of(here->thread), &o->state);
	else if (!missed)
		tell(o, here, D9__SPAN_EXIT_WITHOUT_ENTER);
}

void d9_span_exit(struct d9_span *span)
{
	struct object *o = object_of(span);
	struct d9__stacked_span *item;
	struct here here;

	if (!o->id || !is_ours(o))
		return;
	if (!find_here(&here)) {
		miss(o, MISSED_CALL);
		return;
	}
	item = d9__span_stack_find(here.entered, o->state.id);
	if (!item)
		leave_unknown(o, &here);
	else if (o->id & CLOSED)
		d9__span_stack_pop(here.entered, item); /* told at the close */
	else if (--item->depth == 0)
		leave(o, &here, item, stamp(&here));
}

/* ---- close ---- */

static void close_at(struct object *o, const struct here *here, uint64_t ns)
{
	const struct d9__span_times times = {
		.start_ns = o->start_ns,
		.first_ns = o->first_ns,
		.active_ns = __atomic_load_n(&o->own_ns, __ATOMIC_RELAXED) +
			     __atomic_load_n(&o->other_ns, __ATOMIC_RELAXED),
		.unbalanced = o->unbalanced,
	};

	d9__span_write_close(here->slot, ns, &o->state, &times);
	o->id |= CLOSED;
}

static void close_span(struct object *o, const struct here *here)
{
	uint32_t threads = inside(o);
	struct d9__stacked_span *item = threads ? d9__span_stack_find(here->entered, o->id) : NULL;
	uint64_t ns;

	if (threads && !__atomic_load_n(&o->missed, __ATOMIC_RELAXED) &&
	    __atomic_load_n(&o->opening, __ATOMIC_RELAXED) == here->opening) {
		tell(o, here, D9__SPAN_CLOSE_WHILE_ENTERED);
		o->unbalanced += threads;
	}
	d9__open_span_remove(o->open, o->id);
	ns = stamp(here);
	if (item)
		leave(o, here, item, ns);
	close_at(o, here, ns);
}

void d9_span_close(struct d9_span *span)
{
	struct object *o = object_of(span);
	struct here here;

	if (!o->id)
		return;
	if (!is_ours(o) || !find_here(&here)) {
		d9__open_span_remove(o->open, o->id);
		o->id |= CLOSED;
	} else if (o->id & CLOSED) {
		tell(o, &here, D9__SPAN_CLOSE_TWICE);
	} else {
		close_span(o, &here);
	}
}

void d9_span_end(struct d9_span *span)
{
	struct object *o = object_of(span);
	struct d9__stacked_span *item = NULL;
	struct here here;
	uint64_t ns;

	if (!span || !o->id)
		return;
	if (is_ours(o) && !(o->id & CLOSED) && find_here(&here))
		item = d9__span_stack_find(here.entered, o->id);
	if (!item || item->depth != 1 || inside(o) != 1) {
		d9_span_exit(span);
		d9_span_close(span);
		return;
	}
	d9__open_span_remove(o->open, o->id);
	ns = stamp(&here);
	leave(o, &here, item, ns);
	close_at(o, &here, ns);
}

uint64_t d9_span_current(void)
{
	struct here here;

	return find_here(&here) ? d9__span_stack_current(here.entered, here.thread) : 0;
}
