/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A libevent.a in the program.  There are no slots to patch: `-Wl,--wrap=NAME` turns each call of
 * a hooked NAME, by the program or from one object of libevent to another, into one of __wrap_NAME,
 * which is the hook's symbol in a static library.  Calls inside one object of libevent stay as they
 * are, so public functions that end in a hooked one are wrapped too.
 *
 * A libevent is told from its absence by weak references: a program may well link this library and
 * a shared libevent, with the flags or without, and is then patched like any other.
 */

#include "config.h"

#include <link.h>
#include <stdint.h>

#include "libevent/static.h"

#if D9__LIBEVENT_ARCHIVE

#include "libevent/thread.h"

bool d9__libevent_static;

/* ---- the real functions ---- */

#define WRAPPED(type, name, params)                                                                \
	extern type wrapped_##name params __asm__("__real_" #name) __attribute__((weak));
#define PLAIN(type, name, params)                                                                  \
	extern type plain_##name params __asm__(#name) __attribute__((weak));
#define OUTER(type, name, params, args) WRAPPED(type, name, params)

D9__LIBEVENT_HOOKED(WRAPPED)
D9__LIBEVENT_CALLED(PLAIN)
D9__LIBEVENT_OUTER(OUTER)

#define TAKE_WRAPPED(type, name, params) d9__real.name = wrapped_##name;
#define TAKE_PLAIN(type, name, params)	 d9__real.name = plain_##name;

static uintptr_t image_low, image_high;

bool d9__libevent_in_image(const void *address)
{
	return (uintptr_t)address - image_low < image_high - image_low;
}

/* _dl_find_object() knows a fully static program without its data. */
static int measure_image(struct dl_phdr_info *info, size_t len, void *arg)
{
	uintptr_t low = UINTPTR_MAX, high = 0;

	(void)len;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		uintptr_t start = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;

		if (info->dlpi_phdr[i].p_type != PT_LOAD)
			continue;
		if (start < low)
			low = start;
		if (start + info->dlpi_phdr[i].p_memsz > high)
			high = start + info->dlpi_phdr[i].p_memsz;
	}
	if ((uintptr_t)arg - low >= high - low)
		return 0;
	image_low = low;
	image_high = high;
	return 1;
}

/* Before any constructor of the program makes a base. */
static __attribute__((constructor(101))) void find_linked(void)
{
	if (!wrapped_event_base_loop)
		return;
	D9__LIBEVENT_HOOKED(TAKE_WRAPPED)
	D9__LIBEVENT_CALLED(TAKE_PLAIN)
	dl_iterate_phdr(measure_image, (void *)find_linked);
	d9__libevent_static = d9__libevent_in_image((void *)wrapped_event_base_loop);
}

bool d9__libevent_is_wrapped(void)
{
	return wrapped_event_base_loop;
}

/* ---- public functions that end in a hooked one ---- */

#define DEFINE_OUTER(type, name, params, args)                                                     \
	type outer_##name params __asm__("__wrap_" #name);                                         \
	type outer_##name params                                                                   \
	{                                                                                          \
		D9__SCOPE();                                                                       \
                                                                                                   \
		return wrapped_##name args;                                                        \
	}

D9__LIBEVENT_OUTER(DEFINE_OUTER)

/* ---- our own code ---- */

/* The linker's marks. */
extern const char calls_back_start[] __asm__("__start_d9_calls_back");
extern const char calls_back_stop[] __asm__("__stop_d9_calls_back");

bool d9__libevent_calls_back_at(const void *address)
{
	return (uintptr_t)address - (uintptr_t)calls_back_start <=
	       (uintptr_t)calls_back_stop - (uintptr_t)calls_back_start;
}

#endif
