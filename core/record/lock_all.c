/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/mapped.h"
#include "base/maps.h"
#include "base/sandbox.h"
#include "record/flush.h"
#include "record/lock_all.h"
#include "record/sampling.h"
#include "ring/note.h"
#include "ring/ring_file.h"
#include "segment/modules.h"

#define OURS_MAX   (48 + D9__MAPPED_MAX)
#define USER_LIMIT ((uintptr_t)1 << 47)	 /* the kernel's own page, which is listed too, lies above */

struct ours {
	struct d9__mapping range[OURS_MAX];
	size_t n;
	bool too_many;
};

static void add(struct ours *ours, uintptr_t low, uintptr_t high)
{
	if (ours->n == OURS_MAX) {
		ours->too_many = true;
		return;
	}
	ours->range[ours->n++] = (struct d9__mapping){ .low = low, .high = high };
}

static bool is_ours(const char *path)
{
	const char *name = strrchr(path, '/');

	return name && !strncmp(name + 1, "libdial9", 8);
}

static int add_module(struct dl_phdr_info *info, size_t size, void *arg)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	struct ours *ours = arg;

	(void)size;
	for (int i = 0; is_ours(info->dlpi_name) && i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
		uintptr_t low = info->dlpi_addr + ph->p_vaddr;

		if (ph->p_type == PT_LOAD)
			add(ours, low & ~(page - 1), (low + ph->p_memsz + page - 1) & ~(page - 1));
	}
	return 0;
}

static void add_mapped(void *arg, const void *memory, size_t bytes)
{
	add(arg, (uintptr_t)memory, ((uintptr_t)memory + bytes + 4095) & ~(uintptr_t)4095);
}

static bool list_ours(struct ours *ours)
{
	d9__modules_walk(add_module, ours);
	d9__mapped_each(add_mapped, ours);
	if (d9__flush.stack)
		add(ours, d9__flush.stack, d9__flush.stack + d9__flush.stack_bytes);
	if (d9__ring.base)
		add(ours, (uintptr_t)d9__ring.base, (uintptr_t)d9__ring.base + d9__ring.reserved);
	return !ours->too_many;
}

/* |*piece| is the first part of |*rest| that is not ours; what lies behind it stays in |*rest|.  False: there is none. */
static bool next_piece(const struct ours *ours, struct d9__mapping *rest, struct d9__mapping *piece)
{
	*piece = *rest;
	for (size_t i = 0; i < ours->n; i++) {
		if (ours->range[i].low <= piece->low && piece->low < ours->range[i].high) {
			piece->low = ours->range[i].high; /* and perhaps in the next */
			i = (size_t)-1;
		}
	}
	if (piece->low >= rest->high)
		return false;
	for (size_t i = 0; i < ours->n; i++)
		if (ours->range[i].low > piece->low && ours->range[i].low < piece->high)
			piece->high = ours->range[i].low;
	rest->low = piece->high;
	return true;
}

/* Call |fn| for whatever is mapped and not ours.  False: the kernel does not show it. */
static bool each_of_program(const struct ours *ours, void (*fn)(void *arg, const struct d9__mapping *piece), void *arg)
{
	struct d9__mapping rest, piece;
	struct d9__maps maps;

	if (!d9__maps_open(&maps))
		return false;
	while (d9__maps_next(&maps, &rest) && rest.high <= USER_LIMIT)
		while (next_piece(ours, &rest, &piece))
			fn(arg, &piece);
	d9__maps_close(&maps);
	return true;
}

static void count(void *arg, const struct d9__mapping *piece)
{
	*(uint64_t *)arg += piece->high - piece->low;
}

/* The kernel locks also what it cannot bring into memory, and then mlock2() fails; mlockall() takes no notice of that either. */
static void lock(void *arg, const struct d9__mapping *piece)
{
	const int *how = arg;

	syscall(SYS_mlock2, piece->low, piece->high - piece->low, *how);
}

static bool is_within_limit(const struct ours *ours)
{
	struct rlimit limit;
	uint64_t bytes = 0;

	if (getrlimit(RLIMIT_MEMLOCK, &limit) || !each_of_program(ours, count, &bytes))
		return false;
	if (bytes > limit.rlim_cur)
		d9__note(D9_LOG_WARNING, "mlockall() failed: %llu KiB are mapped without the recorder's, ulimit -l is %llu KiB",
			 (unsigned long long)bytes / 1024, (unsigned long long)limit.rlim_cur / 1024);
	return bytes <= limit.rlim_cur;
}

static int lock_program(int flags, int (*real)(int flags))
{
	int how = flags & MCL_ONFAULT ? MLOCK_ONFAULT : 0;
	struct ours ours = { .n = 0 };

	if (!list_ours(&ours) || !is_within_limit(&ours))
		return -1;
	/* First: what other threads map meanwhile is locked, too. */
	if (flags & MCL_FUTURE && real(flags & ~MCL_CURRENT))
		return -1;
	/* As far as an earlier call locked them: they would count. */
	for (size_t i = 0; i < ours.n; i++)
		syscall(SYS_munlock, ours.range[i].low, ours.range[i].high - ours.range[i].low);
	return each_of_program(&ours, lock, &how) ? 0 : -1;
}

static bool has_limit(void)
{
	struct rlimit limit;

	return !getrlimit(RLIMIT_MEMLOCK, &limit) && limit.rlim_cur != RLIM_INFINITY;
}

int d9__lock_all(int flags, int (*real)(int flags))
{
	int before = errno, result = real(flags), err = errno;

	if (d9__sandbox_is_shut() || atomic_load_explicit(&d9__sampling.unguarded_locking, memory_order_relaxed))
		return result;
	if (result && err == ENOMEM && flags & MCL_CURRENT)
		result = lock_program(flags, real);
	/* Later mappings of the program must find the room that they have without us. */
	if (!result && flags & MCL_FUTURE && has_limit())
		d9__mapped_limit();
	errno = result ? err : before;
	return result;
}
