/* SPDX-License-Identifier: Apache-2.0 */
/* One binary or debug file, opened so that nothing it claims takes more than it has. */

#pragma once

#include <libelf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

struct d9__elf_file;

/*
 * A descriptor to read the regular file |path| by, and what it is, or -errno.  Traces name paths, and opening a device does
 * something (a watchdog begins to run), so what is no regular file is not opened: -EBADMSG.
 */
int d9__elf_file_descriptor(const char *path, struct stat *st);

/*
 * Open |path|.  0, -EBADMSG if it is no ELF file, -EFBIG if it takes far more than it has, -ENOMEM, or an error of open(2).
 */
int d9__elf_file_open(const char *path, struct d9__elf_file **out);

/* Open |len| bytes in memory, of malloc(3); they belong to the file, and after an error are freed. */
int d9__elf_file_from_memory(void *bytes, size_t len, struct d9__elf_file **out);

/* Whether both are the same file, by whatever names. */
bool d9__elf_file_same(const struct d9__elf_file *a, const struct d9__elf_file *b);

/* NULL is allowed.  All that libelf or libdw made of it has to be released before. */
void d9__elf_file_close(struct d9__elf_file *file);

/* The build-id in lower-case hex, or "". */
const char *d9__elf_file_build_id(const struct d9__elf_file *file);

/* Its size. */
uint64_t d9__elf_file_bytes(const struct d9__elf_file *file);

/* The facts that stand in for a build-id; all 0: not known. */
struct d9__elf_facts {
	uint64_t size, mtime_ns, inode;
};

/* True if |file| has these |facts|, or they are not known.  A copy has another inode: it is looked
 * at unless |is_copy|. */
bool d9__elf_file_fits(const struct d9__elf_file *file, const struct d9__elf_facts *facts,
		       bool is_copy);

/* Write the folder that it lies in into |buf|.  False: it is in memory, or that is not known. */
bool d9__elf_file_folder(const struct d9__elf_file *file, char *buf, size_t size);

/* For libelf and libdw; borrowed. */
Elf *d9__elf_file_elf(const struct d9__elf_file *file);

/* The section |name| that has contents, or NULL. */
Elf_Scn *d9__elf_file_section(const struct d9__elf_file *file, const char *name);
