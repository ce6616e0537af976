/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "block/prints.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include "block/call.h"
#include "hook/images.h"

static int (*vfprintf_of_libc)(FILE *stream, const char *format, va_list args);
static int (*vfprintf_chk_of_libc)(FILE *stream, int flag, const char *format, va_list args);

/* |call| takes |args|, behind the format. */
#define PRINT(function, label, params, call)                                                       \
	static int(*real_##function) params;                                                       \
                                                                                                   \
	static int hook_##function params                                                          \
	{                                                                                          \
		uint64_t begin_ns = d9__block_is_inside() ? d9__block_begin() : 0;                 \
		va_list args;                                                                      \
		int result;                                                                        \
                                                                                                   \
		va_start(args, format);                                                            \
		result = call;                                                                     \
		va_end(args);                                                                      \
		if (__builtin_expect(begin_ns != 0, 0))                                            \
			D9__BLOCK_END(begin_ns, label, D9__BLOCK_REAL(real_##function), -1);       \
		return result;                                                                     \
	}

PRINT(printf, "printf", (const char *format, ...), vfprintf_of_libc(stdout, format, args))
PRINT(fprintf, "fprintf", (FILE * stream, const char *format, ...),
      vfprintf_of_libc(stream, format, args))
PRINT(__printf_chk, "printf", (int flag, const char *format, ...),
      vfprintf_chk_of_libc(stdout, flag, format, args))
PRINT(__fprintf_chk, "fprintf", (FILE * stream, int flag, const char *format, ...),
      vfprintf_chk_of_libc(stream, flag, format, args))

#define HOOK(function)                                                                             \
	{                                                                                          \
		.name = #function, .replacement = (void *)hook_##function,                         \
		.real = (void *)&real_##function, .place = D9__GOT_IN_OTHERS | D9__GOT_SCOPE       \
	}

const struct d9__got_hook d9__print_hooks[D9__PRINT_HOOKS] = {
	HOOK(printf),
	HOOK(fprintf),
	HOOK(__printf_chk),
	HOOK(__fprintf_chk),
};

/* Its address, if the C library at |libc| has it and the program's scope gives that; else NULL. */
static void *find(const struct d9__module_range *libc, const char *name)
{
	void *found = dlsym(RTLD_DEFAULT, name);
	uintptr_t address = (uintptr_t)found;

	return address >= libc->low && address < libc->high ? found : NULL;
}

bool d9__prints_find(void)
{
	struct d9__module_range libc;
	void *version = dlsym(RTLD_DEFAULT, "gnu_get_libc_version");

	if (!version || !d9__module_range_of(version, &libc))
		return false;
	*(void **)&vfprintf_of_libc = find(&libc, "vfprintf");
	*(void **)&vfprintf_chk_of_libc = find(&libc, "__vfprintf_chk");
	for (size_t i = 0; i < D9__PRINT_HOOKS; i++)
		if (!find(&libc, d9__print_hooks[i].name))
			return false;
	return vfprintf_of_libc && vfprintf_chk_of_libc;
}
