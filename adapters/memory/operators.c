/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operators new and delete of C++.  Those of libstdc++ call malloc() and free(), where they are seen; they come here all
 * the same, so that stacks begin with who called new.  Those of tcmalloc, jemalloc and mimalloc allocate by themselves,
 * and are seen here.  Which of both it is shows a first allocation.
 *
 * Compiled with exceptions: they pass through.  The program's own operators are its own: it never calls these.
 */
#include "config.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "memory/hooks.h"
#include "memory/real.h"
#include "sample/alloc.h"

#define CALLER __builtin_return_address(0)

/* A call behind which the frame stays. */
#define STAY() __asm__ volatile("")

/* X(function, symbol, parameters, arguments, how to undo it) */
#define NEWS(X)                                                                                                 \
	X(new, "_Znwm", (size_t size), (size), real.delete(block))                                              \
	X(new_array, "_Znam", (size_t size), (size), real.delete_array(block))                                  \
	X(new_nothrow, "_ZnwmRKSt9nothrow_t", (size_t size, const void *nothrow), (size, nothrow),              \
	  real.delete(block))                                                                                   \
	X(new_array_nothrow, "_ZnamRKSt9nothrow_t", (size_t size, const void *nothrow), (size, nothrow),        \
	  real.delete_array(block))                                                                             \
	X(new_aligned, "_ZnwmSt11align_val_t", (size_t size, size_t alignment), (size, alignment),              \
	  real.delete_aligned(block, alignment))                                                                \
	X(new_array_aligned, "_ZnamSt11align_val_t", (size_t size, size_t alignment), (size, alignment),        \
	  real.delete_array_aligned(block, alignment))                                                          \
	X(new_aligned_nothrow, "_ZnwmSt11align_val_tRKSt9nothrow_t",                                            \
	  (size_t size, size_t alignment, const void *nothrow), (size, alignment, nothrow),                     \
	  real.delete_aligned(block, alignment))                                                                \
	X(new_array_aligned_nothrow, "_ZnamSt11align_val_tRKSt9nothrow_t",                                      \
	  (size_t size, size_t alignment, const void *nothrow), (size, alignment, nothrow),                     \
	  real.delete_array_aligned(block, alignment))

/* X(function, symbol, parameters, arguments) */
#define DELETES(X)                                                                                             \
	X(delete, "_ZdlPv", (void *block), (block))                                                            \
	X(delete_array, "_ZdaPv", (void *block), (block))                                                      \
	X(delete_sized, "_ZdlPvm", (void *block, size_t size), (block, size))                                  \
	X(delete_array_sized, "_ZdaPvm", (void *block, size_t size), (block, size))                            \
	X(delete_nothrow, "_ZdlPvRKSt9nothrow_t", (void *block, const void *nothrow), (block, nothrow))        \
	X(delete_array_nothrow, "_ZdaPvRKSt9nothrow_t", (void *block, const void *nothrow), (block, nothrow))  \
	X(delete_aligned, "_ZdlPvSt11align_val_t", (void *block, size_t alignment), (block, alignment))        \
	X(delete_array_aligned, "_ZdaPvSt11align_val_t", (void *block, size_t alignment), (block, alignment))  \
	X(delete_sized_aligned, "_ZdlPvmSt11align_val_t", (void *block, size_t size, size_t alignment),        \
	  (block, size, alignment))                                                                            \
	X(delete_array_sized_aligned, "_ZdaPvmSt11align_val_t", (void *block, size_t size, size_t alignment),  \
	  (block, size, alignment))                                                                            \
	X(delete_aligned_nothrow, "_ZdlPvSt11align_val_tRKSt9nothrow_t",                                       \
	  (void *block, size_t alignment, const void *nothrow), (block, alignment, nothrow))                   \
	X(delete_array_aligned_nothrow, "_ZdaPvSt11align_val_tRKSt9nothrow_t",                                 \
	  (void *block, size_t alignment, const void *nothrow), (block, alignment, nothrow))

/* The operators that the program would call without us. */
struct real {
#define MEMBER_NEW(name, symbol, parameters, arguments, undo) void *(*name) parameters;
	NEWS(MEMBER_NEW)
#define MEMBER_DELETE(name, symbol, parameters, arguments) void (*name) parameters;
	DELETES(MEMBER_DELETE)
};

static struct real real;
static _Atomic(bool) known; /* stored behind |real| (release) */

/* Which of them do not end in a function of hooks.c. */
static struct {
#define MEMBER_FLAG(name, symbol, parameters, arguments, undo) bool name;
	NEWS(MEMBER_FLAG)
} allocates_itself;

/*
 * A library that is loaded at run time for itself has its C++ library in a scope of its own, where only its caller is a
 * way to it.  What is found stays loaded.
 */
static void *find_by(const char *symbol, const void *caller)
{
	void *found, *handle;
	Dl_info info;

	if (!dladdr(caller, &info) || !(handle = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD)))
		return NULL;
	found = dlsym(handle, symbol);
	if (found && dladdr(found, &info))
		dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
	dlclose(handle);
	return found;
}

static void *find(const char *symbol, const void *caller)
{
	void *found = dlsym(RTLD_NEXT, symbol);

	return found ? found : find_by(symbol, caller);
}

/* An allocator may have some, and leave the others to the C++ library. */
static void probe(void)
{
	static const char nothrow[1];
	const size_t size = 1, alignment = 64;
	void *block;

	(void)nothrow, (void)alignment;
#define PROBE(name, symbol, parameters, arguments, undo)                          \
	d9__alloc_probe_begin();                                                  \
	block = real.name ? real.name arguments : NULL;                           \
	allocates_itself.name = !d9__alloc_probe_end();                           \
	if (block)                                                                \
		undo;
	NEWS(PROBE)
}

/* Several threads may do this at a time: all find the same. */
static void find_all(const void *caller)
{
	struct real all;
	int saved = errno;
	void *found;

#define FIND(name, symbol, ...)                                                   \
	found = find(symbol, caller);                                             \
	memcpy(&all.name, &found, sizeof(found));
	NEWS(FIND)
	DELETES(FIND)
	real = all;
	/* One operator may call another. */
	atomic_store_explicit(&known, true, memory_order_release);
	probe();
	errno = saved;
}

static inline void know(const void *caller)
{
	if (__builtin_expect(!atomic_load_explicit(&known, memory_order_acquire), 0))
		find_all(caller);
}

#define DEFINE_NEW(name, symbol, parameters, arguments, undo)                     \
	void *d9__##name parameters                                               \
	{                                                                         \
		void *block;                                                      \
                                                                                  \
		know(CALLER);                                                     \
		block = real.name arguments;                                      \
		STAY();                                                           \
		if (allocates_itself.name && !d9__alloc_pass(size))               \
			d9__alloc_sample(block, size, CALLER);                    \
		return block;                                                     \
	}
NEWS(DEFINE_NEW)

#define DEFINE_DELETE(name, symbol, parameters, arguments)                        \
	void d9__##name parameters                                                \
	{                                                                         \
		know(CALLER);                                                     \
		if (d9__alloc_maybe_live(block))                                  \
			d9__alloc_freed(block);                                   \
		real.name arguments;                                              \
	}
DELETES(DEFINE_DELETE)
