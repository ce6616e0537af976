/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A libev.a in the program.  `-Wl,--wrap=NAME` turns the program's calls of a hooked NAME into calls of
 * __wrap_NAME, which is the hook's symbol in a static library.  libev is one object: its own calls stay
 * as they are, so what it feeds and stops is not seen.  Our drain is called through the loop's pointer,
 * and sees all callbacks.
 *
 * libev's code is told from the program's by where it lies: between its functions, which come out of
 * one object in one piece.  Those that run rarely may lie elsewhere, and do not count.
 */

#include "config.h"

#include <stdint.h>

#include "libev/static.h"

#if D9__LIBEV_ARCHIVE

/* A libev is this large at most; functions further apart do not lie in one piece. */
#define CODE_MAX 0x20000

static bool is_static;

/* ---- the real functions ---- */

#define WRAPPED(type, name, params, ...)                                                           \
	extern type wrapped_##name params __asm__("__real_" #name) __attribute__((weak));
#define PLAIN(type, name, params)                                                                  \
	extern type plain_##name params __asm__(#name) __attribute__((weak));

D9__LIBEV_HOOKED(WRAPPED)
D9__LIBEV_CALLED(PLAIN)

#define TAKE_WRAPPED(type, name, params, ...) d9__libev.name = wrapped_##name;
#define TAKE_PLAIN(type, name, params)	      d9__libev.name = plain_##name;

/* ---- where its code lies ---- */

static void include(uintptr_t address)
{
	if (!d9__libev_image.high || address < d9__libev_image.low)
		d9__libev_image.low = address;
	if (address >= d9__libev_image.high)
		d9__libev_image.high = address + 1;
}

#define INCLUDE_KIND(type, ...)                                                                    \
	include((uintptr_t)wrapped_ev_##type##_start);                                             \
	include((uintptr_t)wrapped_ev_##type##_stop);

void d9__libev_static_callback(const void *callback)
{
	if (is_static && (uintptr_t)callback < d9__libev_image.low &&
	    d9__libev_image.high - (uintptr_t)callback < CODE_MAX)
		d9__libev_image.low = (uintptr_t)callback;
}

/* The linker's marks. */
extern const char calls_back_start[] __asm__("__start_d9_ev_calls_back");
extern const char calls_back_stop[] __asm__("__stop_d9_ev_calls_back");

bool d9__libev_calling_code(struct d9__module_range *range)
{
	range->low = (uintptr_t)calls_back_start;
	range->high = (uintptr_t)calls_back_stop + 1;
	return true;
}

/* Before any constructor of the program makes a loop. */
static __attribute__((constructor(101))) void find_linked(void)
{
	struct d9__module_range own;

	if (!wrapped_ev_run)
		return;
	D9__LIBEV_HOOKED(TAKE_WRAPPED)
	D9__LIBEV_CALLED(TAKE_PLAIN)
	if (d9__module_range_of((void *)find_linked, &own) &&
	    (uintptr_t)wrapped_ev_run - own.low >= own.high - own.low)
		return;
	D9__LIBEV_KINDS(INCLUDE_KIND, )
	include((uintptr_t)wrapped_ev_run);
	include((uintptr_t)wrapped_ev_invoke_pending);
	include((uintptr_t)wrapped_ev_feed_event);
	include((uintptr_t)wrapped_ev_async_send);
	include((uintptr_t)wrapped_ev_once);
	is_static = d9__libev_image.high - d9__libev_image.low < CODE_MAX;
	if (!is_static)
		d9__libev_image = (struct d9__module_range) { 0 };
	else
		d9__libev_calling_code(&d9__libev_own);
}

bool d9__libev_is_static(void)
{
	return is_static;
}

#endif
