/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pools of ready-made callback stubs.
 *
 * A stub is a tiny precompiled function of the callback's own type that calls one body of the
 * adapter with the same arguments and its own number.  Put in place of a callback, it stands for
 * one (callback, site, kind): the body looks the three up by the number.  The program's argument
 * is not touched, and nothing is allocated per event.
 *
 *	static __attribute__((noinline)) void run_event(int fd, short what, void *arg, unsigned index);
 *	D9__STUBS_DEFINE(event_stubs, 1024, void, run_event, (int fd, short what, void *arg),
 *			 (fd, what, arg))
 *
 *	static void run_event(int fd, short what, void *arg, unsigned index)
 *	{
 *		struct d9__stub *stub = d9__stub_at(&event_stubs, index);
 *		...
 *	}
 *
 * defines `static struct d9__stubs event_stubs`.  A stub is never given back: the program may
 * keep its address for ever.
 */

#pragma once

#include <dial9/export.h>

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/sanitized.h"

/* The callback and place of one stub.  Immutable once its address is out, the atomics excepted. */
struct d9__stub {
	void *callback;   /* what the body has to call */
	const void *site; /* where the program registered it; NULL: any site (pool nearly full) */
	uint32_t kind;    /* the adapter's */
	uint32_t home;    /* which modules hold callback and site; 0: made at run time */
	_Atomic(void *) tag;     /* the adapter's; set by |prepare| or later */
	_Atomic(uint64_t) word;  /* the adapter's, too */
	_Atomic(uint32_t) alive; /* the adapter's: what it was put into and still is in, about */
	/* One of the modules is gone and its addresses may be reused: never matched again. */
	_Atomic(bool) dead;
};

/* Members are set by D9__STUBS_DEFINE; an adapter may set |prepare| before the first wrap. */
struct d9__stubs {
	void *const *functions; /* |size| stubs */
	unsigned size;
	unsigned key_mask;
	struct d9__stub *slots;
	_Atomic(uint16_t) *keys;      /* open addressing by key: slot + 1; 0 free */
	_Atomic(uint16_t) *addresses; /* open addressing by stub address: slot + 1 */
	/*
	 * Fill in |tag| and |word| of a new stub before others can see it.  Runs under the lock of
	 * all pools, possibly under the loop library's: leaf work only.
	 */
	void (*prepare)(struct d9__stub *stub);

	_Atomic(uintptr_t) low, high; /* of all stubs; 0 before the first use */
	_Atomic(uint32_t) used;
	_Atomic(uint32_t) full; /* callbacks passed through because no stub was left */
	struct d9__stubs *next;
};

/*
 * The stub for (callback, site, kind), made at first sight.  Returns |callback| itself if it is
 * NULL or the pool is full; a stub of this pool is replaced by its callback first.  From 80 % fill
 * on new callbacks share one stub for all their sites.  Lock-free unless new; then a leaf lock.
 * Any thread; not async-signal-safe.
 */
D9_API void *d9__stubs_wrap(struct d9__stubs *stubs, void *callback, const void *site,
			    uint32_t kind);

/* The stub whose address is |function|, or NULL.  Lock-free; a range test for most others. */
D9_API struct d9__stub *d9__stubs_find(struct d9__stubs *stubs, const void *function);

/*
 * True if |function| is a stub of this pool.  A range test, because it runs for every callback; pass no
 * stub of another pool.
 */
static inline bool d9__stubs_hold(struct d9__stubs *stubs, const void *function)
{
	/* relaxed: the range only grows from nothing to all of it */
	return (uintptr_t)function >= atomic_load_explicit(&stubs->low, memory_order_relaxed) &&
	       (uintptr_t)function <= atomic_load_explicit(&stubs->high, memory_order_relaxed);
}

/* The program's own callback behind |function|; |function| itself if it is no stub. */
static inline void *d9__stubs_unwrap(struct d9__stubs *stubs, void *function)
{
	struct d9__stub *stub = d9__stubs_find(stubs, function);

	return stub ? stub->callback : function;
}

/* In the body: what stub |index| stands for. */
static inline struct d9__stub *d9__stub_at(struct d9__stubs *stubs, unsigned index)
{
	D9__TSAN_ACQUIRE(&stubs->slots[index]);
	return &stubs->slots[index];
}

/* Mark stubs of all pools dead whose code was unmapped.  Done by d9__got_rescan(). */
void d9__stubs_sweep(void);

/* Held across fork(2) by hook/got.c. */
void d9__stubs_lock(void);
void d9__stubs_unlock(void);

/* ---- generated code ---- */

#define D9__STUB_REP16(m, p, ...)                                                                  \
	m(p##0, __VA_ARGS__) m(p##1, __VA_ARGS__) m(p##2, __VA_ARGS__) m(p##3, __VA_ARGS__)        \
	m(p##4, __VA_ARGS__) m(p##5, __VA_ARGS__) m(p##6, __VA_ARGS__) m(p##7, __VA_ARGS__)        \
	m(p##8, __VA_ARGS__) m(p##9, __VA_ARGS__) m(p##a, __VA_ARGS__) m(p##b, __VA_ARGS__)        \
	m(p##c, __VA_ARGS__) m(p##d, __VA_ARGS__) m(p##e, __VA_ARGS__) m(p##f, __VA_ARGS__)
#define D9__STUB_REP64(m, p, ...)                                                                  \
	D9__STUB_REP16(m, p##0, __VA_ARGS__) D9__STUB_REP16(m, p##1, __VA_ARGS__)                  \
	D9__STUB_REP16(m, p##2, __VA_ARGS__) D9__STUB_REP16(m, p##3, __VA_ARGS__)
#define D9__STUB_REP256(m, p, ...)                                                                 \
	D9__STUB_REP64(m, p, __VA_ARGS__)                                                          \
	D9__STUB_REP16(m, p##4, __VA_ARGS__) D9__STUB_REP16(m, p##5, __VA_ARGS__)                  \
	D9__STUB_REP16(m, p##6, __VA_ARGS__) D9__STUB_REP16(m, p##7, __VA_ARGS__)                  \
	D9__STUB_REP16(m, p##8, __VA_ARGS__) D9__STUB_REP16(m, p##9, __VA_ARGS__)                  \
	D9__STUB_REP16(m, p##a, __VA_ARGS__) D9__STUB_REP16(m, p##b, __VA_ARGS__)                  \
	D9__STUB_REP16(m, p##c, __VA_ARGS__) D9__STUB_REP16(m, p##d, __VA_ARGS__)                  \
	D9__STUB_REP16(m, p##e, __VA_ARGS__) D9__STUB_REP16(m, p##f, __VA_ARGS__)

/* Numbers count from 0x1000, so that none reads as octal; the digits behind the 1 are the index. */
#define D9__STUB_ALL_16(m, ...)  D9__STUB_REP16(m, 0x100, __VA_ARGS__)
#define D9__STUB_ALL_64(m, ...)  D9__STUB_REP64(m, 0x10, __VA_ARGS__)
#define D9__STUB_ALL_256(m, ...) D9__STUB_REP256(m, 0x10, __VA_ARGS__)
#define D9__STUB_ALL_512(m, ...)                                                                   \
	D9__STUB_REP256(m, 0x10, __VA_ARGS__) D9__STUB_REP256(m, 0x11, __VA_ARGS__)
#define D9__STUB_ALL_1024(m, ...)                                                                  \
	D9__STUB_ALL_512(m, __VA_ARGS__)                                                           \
	D9__STUB_REP256(m, 0x12, __VA_ARGS__) D9__STUB_REP256(m, 0x13, __VA_ARGS__)

#define D9__STUB_ARGS(...) __VA_ARGS__
#define D9__STUB_FUNCTION(n, pool, type, body, params, args)                                       \
	static type pool##_##n params                                                              \
	{                                                                                          \
		return body(D9__STUB_ARGS args, (n - 0x1000u));                                    \
	}
#define D9__STUB_ADDRESS(n, pool) (void *)pool##_##n,

/*
 * Define `static struct d9__stubs POOL` with |size| stubs (16, 64, 256, 512 or 1024, written as a
 * number) that return |type| and hand |args| and the index to |body|, declared before, noinline.
 */
#define D9__STUBS_DEFINE(pool, size, type, body, params, args)                                     \
	D9__STUBS_IN(static, pool, size, type, body, params, args)

/* As D9__STUBS_DEFINE, but `struct d9__stubs POOL`, which a header of the adapter declares. */
#define D9__STUBS_SHARE(pool, size, type, body, params, args)                                      \
	D9__STUBS_IN(, pool, size, type, body, params, args)

#define D9__STUBS_IN(linkage, pool, size_, type, body, params, args)                               \
	D9__STUB_ALL_##size_(D9__STUB_FUNCTION, pool, type, body, params, args)                    \
	static void *const pool##_functions[size_] = {                                             \
		D9__STUB_ALL_##size_(D9__STUB_ADDRESS, pool)                                       \
	};                                                                                         \
	static struct d9__stub pool##_slots[size_];                                                \
	static _Atomic(uint16_t) pool##_keys[4 * (size_)];                                         \
	static _Atomic(uint16_t) pool##_addresses[4 * (size_)];                                    \
	linkage struct d9__stubs pool = {                                                          \
		.functions = pool##_functions,                                                     \
		.size = (size_),                                                                   \
		.key_mask = 4 * (size_)-1,                                                         \
		.slots = pool##_slots,                                                             \
		.keys = pool##_keys,                                                               \
		.addresses = pool##_addresses,                                                     \
	};
