/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Modules: what is mapped where, with build-ids; for names of addresses, now and afterwards.
 *
 * A file without a build-id is told by its size, the time of its last change and its inode, so that
 * a reader does not take names from another one that lies there later.
 */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <dial9/export.h>

#define D9__BUILD_ID_MAX 32 /* bytes; longer ones are cut */

struct d9__module {
	uintptr_t base;       /* load bias: address = base + offset in the file's own terms */
	uintptr_t start, end; /* of what is mapped */
	char *path;	      /* absolute; "" or relative if no more can be found out */
	uint64_t loader_name; /* hash of the name that the loader has: by it a module is found again
			       */
	uint8_t build_id[D9__BUILD_ID_MAX];
	uint8_t build_id_len;
	uint64_t file_size, file_mtime_ns,
		file_inode; /* stand in for a build-id; all 0: not known */
	uint64_t gone_ns;   /* when it was unloaded, or a scan found so */
	bool unread;   /* its file was cut: its build-id, or all but |base|, could not be read */
	bool loaded;   /* was there at the last scan */
	bool reported; /* its present state is in the current segment */
	bool met;      /* by the scan that runs */
};

/* Around a fork: no other thread is in the middle of a look at the loader's list. */
void d9__modules_fork_prepare(void);
void d9__modules_fork_parent(void);
void d9__modules_fork_child(void);

/*
 * Look at the loader's list if its counters moved, or at the first call.  1 if anything changed, 0
 * if not or where d9__modules_may_walk() is false, -ENOMEM.  Takes the loader's lock for a moment; not for hooks.  Any thread.
 */
int d9__modules_scan(void);

struct dl_phdr_info;

/*
 * Fill in the addresses and the build-id of a module that dl_iterate_phdr() shows.  |info| has headers that can be read, see
 * base/own_memory.h.
 */
void d9__module_describe(struct d9__module *module, const struct dl_phdr_info *info);

/*
 * False in a forked child whose loader's lock no thread will give back; then d9__modules_walk() shows no module.  Who asks first, in
 * the child of a parent with several threads, waits for a probe: some 100 us, and 100 ms where the answer is no.  Any
 * thread, not in handlers; keeps errno.
 */
bool d9__modules_may_walk(void);

/*
 * dl_iterate_phdr(), in a way that no fork falls into it: the child would inherit the loader's lock from a
 * thread that it has not.  Any thread, not in handlers.
 */
int d9__modules_walk(int (*visit)(struct dl_phdr_info *info, size_t size, void *arg), void *arg);

/* True if |addr| is in an executable segment of a loaded module.  Any thread, not in handlers. */
bool d9__modules_have_code(const void *addr);

/* Changes with every scan that looked anew. */
uint32_t d9__modules_generation(void);

/* Call |fn| for every module, under the module lock. */
void d9__modules_each(void (*fn)(void *arg, const struct d9__module *module), void *arg);

/*
 * Call |fn| from now on for the addresses of each module that was unloaded.  It runs under the
 * module lock, and takes none.  For a constructor.
 */
void d9__modules_on_unload(void (*fn)(uintptr_t start, uintptr_t end));

/* Forget what was reported, because a new segment begins; unloaded modules of which a segment told
 * go. */
void d9__modules_renew(void);

/*
 * Call |fn| for every module whose state was not reported yet, and mark it so.  |fn| runs under the
 * module lock.
 */
void d9__modules_report(void (*fn)(void *arg, const struct d9__module *module), void *arg);

/*
 * Write the name of |addr| as "module+0xoffset" into |buf|, the offset counted from the load bias,
 * so that it is the address in the file's own terms; "0x..." if no module is known there.  Always
 * terminated.  Returns the length that was written.
 *
 * Scans again if |addr| is unknown and the loader's list changed.  Any thread.
 */
D9_API int d9__module_name_of(const void *addr, char *buf, size_t len);

/* Free everything; for tests. */
void d9__modules_release(void);
