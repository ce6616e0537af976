/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Own memory: reads memory of modules, because another process may cut their files while they are mapped.
 *
 * A page that its file no longer has ends the program by SIGBUS when it is touched.  The kernel,
 * asked for a copy of it, returns an error instead.
 */

#pragma once

#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Read as if no file was ever cut, or with false not any more.  Any thread. */
void d9__own_memory_trust(bool trust);

/*
 * Copy |len| bytes from |address| on.  How many there are up to the first that cannot be read.  Keeps errno, allocates
 * nothing.  Where threads may make no system call, as behind a filter, it touches the memory.
 */
size_t d9__own_memory_read(uintptr_t address, void *out, size_t len);

/* Headers that a module may have; those of more are cut. */
#define D9__OWN_HEADERS_MAX 32

/* A module as dl_iterate_phdr() shows it, its headers copied. */
struct d9__own_headers {
	struct dl_phdr_info info;
	ElfW(Phdr) headers[D9__OWN_HEADERS_MAX];
};

/* |info| with a copy of its headers; NULL: they cannot be read. */
const struct dl_phdr_info *d9__own_headers_read(struct d9__own_headers *copy, const struct dl_phdr_info *info);
