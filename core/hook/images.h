/* SPDX-License-Identifier: Apache-2.0 */
/* The modules of one loop library: where they are mapped, and its real functions. */

#pragma once

#include <dial9/export.h>

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define D9__IMAGES_MAX 16

/*
 * One mapped module of the library.  Written under the lock of hook/got.c, read by every hook:
 * |high| is stored last (release) and cleared first, so a reader sees an empty range or a valid one.
 */
struct d9__image {
	_Atomic(uintptr_t) low;
	_Atomic(uintptr_t) high; /* one past the last byte; 0: no module here */
	uintptr_t base;          /* load bias; 0 is legal */
	uintptr_t dynamic;       /* with |base| the module's identity */
	void *handle;            /* keeps the module mapped for ever once its functions are in use */
};

/*
 * An adapter defines one of these, static, with the first three members set:
 *
 *	static const char *const names[] = { "libevent", NULL };
 *	static struct d9__images images = { .names = names, .scope_first = true };
 */
struct d9__images {
	/*
	 * NULL-ended.  A module belongs to the library if its file name starts with one of these
	 * and goes on with no letter or digit: "libevent" takes libevent-2.1.so.7,
	 * libevent_core.so and libevent.so, but not libeventlog.so.
	 */
	const char *const *names;
	/*
	 * Ask the program's scope (RTLD_DEFAULT) before the images themselves: with two flavours
	 * of libevent mapped, the first in scope serves all callers.  libev and GLib: false.
	 */
	bool scope_first;

	/* The engine's. */
	_Atomic(unsigned) n;
	struct d9__image image[D9__IMAGES_MAX]; /* in the loader's order, which is scope order */
};

/* True if |addr| lies in the library.  Lock-free, async-signal-safe, a few ns. */
static inline bool d9__images_contain(const struct d9__images *images, const void *addr)
{
	/* acquire: pairs with the release in d9__images_refresh() */
	unsigned n = atomic_load_explicit(&images->n, memory_order_acquire);

	for (unsigned i = 0; i < n; i++) {
		const struct d9__image *image = &images->image[i];

		if ((uintptr_t)addr < atomic_load_explicit(&image->high, memory_order_acquire) &&
		    (uintptr_t)addr >= atomic_load_explicit(&image->low, memory_order_relaxed))
			return true;
	}
	return false;
}

/*
 * Look for modules of the library that are mapped now.  Returns how many there are, 0 if none.
 * Takes the loader's lock for a moment, and its load lock to pin a module seen for the first
 * time, so not under a loop library's lock.  Any thread.
 */
D9_API unsigned d9__images_refresh(struct d9__images *images);

/*
 * The library's own function |name|: only an address inside one of its images counts; an own
 * export, another tracer's or an embedded copy's never does.  NULL if there is none.  Locks as
 * d9__images_refresh(), which must have found the images.  Any thread.
 */
D9_API void *d9__images_resolve(struct d9__images *images, const char *name);

/* Look up |n| names at once in the same way. */
struct d9__image_symbol {
	const char *name;
	void *address; /* result, or NULL */
	bool in_scope; /* result: RTLD_DEFAULT gives it, too */
};
D9_API void d9__images_resolve_all(struct d9__images *images, struct d9__image_symbol *symbols,
				   size_t n);

/* The address range of one mapped module. */
struct d9__module_range {
	uintptr_t low;
	uintptr_t high; /* one past the last byte */
};

/* Find the module that holds |addr|.  False: no module does (a closure made at run time). */
D9_API bool d9__module_range_of(const void *addr, struct d9__module_range *out);

/* How many modules the loader has unmapped so far: ranges seen earlier may be stale. */
D9_API uint64_t d9__module_unloads(void);

/* The function |name| that the module holding |addr| defines itself, or NULL. */
D9_API void *d9__module_definition(const void *addr, const char *name);

/*
 * The first module in scope order, behind the one that holds |self|, that defines |name|: what
 * RTLD_NEXT would give |self|.  NULL if there is none.
 */
D9_API void *d9__module_next_definition(const void *self, const char *name);
