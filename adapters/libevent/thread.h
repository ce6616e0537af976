/* SPDX-License-Identifier: Apache-2.0 */
/* Thread: the state of this thread in libevent. */

#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "libevent/real.h"
#include "libevent/roles.h"
#include "libevent/static.h"

struct d9__libevent_base;
struct d9__stub;

enum d9__libevent_state {
	D9__STATE_OUT,      /* in no loop that is recorded */
	D9__STATE_LOOP,     /* in a loop, between its callbacks */
	D9__STATE_DISPATCH, /* in the backend; the base lock may be held */
	D9__STATE_POLL,     /* in a callback */
	D9__STATE_INTERNAL, /* in a callback of libevent's own */
};

/* The state that a nested loop or poll saves on its own stack and puts back. */
struct d9__libevent_context {
	struct d9__libevent_base *base; /* NULL: none, or one that is not recorded */
	struct d9__stub *stub;          /* of the running poll */
	uintptr_t frame;                /* stack address of the innermost loop; 0: none */
	uint8_t state;                  /* enum d9__libevent_state */
	bool batch_starts;              /* nothing ran since the backend returned */
	uint8_t what;                   /* low bits of the running poll's second argument */
	bool in_span; /* static: a user's callback runs inside a poll of libevent's */
};

struct d9__libevent_thread {
	struct d9__libevent_context now;
	void *site;     /* who called the outermost hooked function of libevent; NULL: none active */
	uint32_t depth; /* ready in this batch, the next one included */
	/* The latest answer of d9__libevent_pool_wrap_event_called(), of two kinds: stub + 1; 0: none. */
	uint16_t latest[2];
	bool skip_assign;  /* the next event_assign() comes from a hook that has seen to it */
	bool constructing; /* inside the outermost constructor of a base */
	bool calibrating;  /* hooks pass everything through */
	uint8_t making;    /* enum d9__libevent_making */
	bool deferring;    /* inside event_deferred_cb_schedule_() */
	bool activating;   /* inside an event_active() that is made between callbacks */
	bool by_libevent;  /* static: libevent itself makes the call that is being hooked */
};

_Static_assert(sizeof(struct d9__libevent_thread) <= 64, "static TLS of late libraries is scarce");

extern _Thread_local struct d9__libevent_thread d9__libevent_self D9_TLS;

static inline struct d9__libevent_thread *d9__libevent_thread(void)
{
	return &d9__libevent_self;
}

static inline bool d9__libevent_in_poll(const struct d9__libevent_thread *thread)
{
	return thread->now.state >= D9__STATE_POLL;
}

/* Whether |address| is code of a libevent image. */
static inline bool d9__in_libevent(const void *address)
{
	return d9__images_contain(&d9__libevent_images, address);
}

/* True if a call that returns to |caller| was made by libevent itself. */
static inline bool d9__called_by_libevent(const struct d9__libevent_thread *thread,
					  const void *caller)
{
	if (!d9__libevent_is_static())
		return d9__in_libevent(caller);
	return thread->site ||
	       (thread->now.state == D9__STATE_INTERNAL && !thread->now.in_span);
}

/* True if |callback|, which the hooked call registers, is libevent's.  Ask for its site before. */
static inline bool d9__is_callback_of_libevent(const void *callback)
{
	return d9__libevent_is_static() ? d9__libevent_self.by_libevent : d9__in_libevent(callback);
}

/* ---- who registered it ---- */

/*
 * While a hooked function of libevent runs, the site is its caller outside libevent: what libevent
 * registers meanwhile carries it.
 */
struct d9__libevent_scope {
	void *saved;
};

void d9__libevent_thread_scope_enter(struct d9__libevent_scope *scope, void *caller);
void d9__libevent_thread_scope_leave(struct d9__libevent_scope *scope);

/* The site of a registration that returns to |caller|. */
void *d9__libevent_thread_site(void *caller);

/* The site of a registration by a function that only libevent calls. */
static inline void *d9__libevent_own_site(void *caller)
{
	void *site = d9__libevent_thread_site(caller);

	d9__libevent_self.by_libevent = true;
	return site;
}

/* The site alone is the caller's; what is being made stays what it was. */
#define D9__SCOPE()                                                                                \
	__attribute__((cleanup(d9__libevent_thread_scope_leave))) struct d9__libevent_scope scope;        \
	d9__libevent_thread_scope_enter(&scope, __builtin_return_address(0))

/* Both: what libevent registers until the block ends is for |what|, D9__MAKING_... */
#define D9__SCOPE_MAKING(what)                                                                     \
	D9__SCOPE();                                                                               \
	__attribute__((cleanup(d9__libevent_made), unused)) uint8_t outer_making =                 \
		d9__libevent_make(what)

static inline uint8_t d9__libevent_make(enum d9__libevent_making what)
{
	uint8_t outer = d9__libevent_self.making;

	d9__libevent_self.making = (uint8_t)what;
	return outer;
}

static inline void d9__libevent_made(const uint8_t *outer)
{
	d9__libevent_self.making = *outer;
}

/* ---- a user's callback inside a poll of libevent's ---- */

/* With a static libevent no address tells what the callback registers from what libevent does. */
struct d9__libevent_user_code {
	void *saved_site;
	bool saved_in_span;
};

static inline struct d9__libevent_user_code d9__libevent_user_enter(void)
{
	struct d9__libevent_thread *thread = d9__libevent_thread();
	struct d9__libevent_user_code saved = { thread->site, thread->now.in_span };

	thread->site = NULL;
	thread->now.in_span = true;
	return saved;
}

static inline void d9__libevent_user_leave(struct d9__libevent_user_code *saved)
{
	struct d9__libevent_thread *thread = d9__libevent_thread();

	thread->site = saved->saved_site;
	thread->now.in_span = saved->saved_in_span;
}

#if D9__LIBEVENT_ARCHIVE
#define D9__USER_CODE()                                                                            \
	struct d9__libevent_user_code user_code                                                    \
		__attribute__((unused, cleanup(d9__libevent_user_leave))) =                        \
			d9__libevent_user_enter()
#else
#define D9__USER_CODE() _Static_assert(1, "")
#endif
