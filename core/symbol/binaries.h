/* SPDX-License-Identifier: Apache-2.0 */
/* The files that modules were mapped from: which there are, what is wrong with them, what is at their addresses. */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <dial9/reader.h>

#include "symbol/debug_files.h"
#include "symbol/dwarf_frames.h"
#include "symbol/elf_functions.h"
#include "symbol/symbol.h"

#define D9__NO_BINARY UINT32_MAX

/* The result of the search for a binary's files. */
enum d9__binary_fate {
	D9__BINARY_UNOPENED, /* not asked for yet */
	D9__BINARY_FOUND,    /* or its debug file was */
	D9__BINARY_REFUSED,  /* the file there is another than the recorded one */
	D9__BINARY_MISSING,  /* not there, or not to be read */
	D9__BINARY_NO_FILE,  /* nothing that was ever a file */
};

/* One build-id, or what stands in for it, at one path. */
struct d9__binary {
	char *path, *build_id; /* build_id: lower-case hex, may be empty */
	struct d9__elf_facts facts; /* as recorded, in place of a build-id */
	const char *name;      /* base name, inside |path| */
	enum d9__binary_fate fate;
	char *refused;	       /* a debug file of the right name and another build-id, or NULL */
	const char *split;     /* a .dwo file that is missing, or NULL */
	uint64_t answers, nameless; /* about addresses in it; with a place and no function */
	/* The rest is the binaries' own. */
	struct d9__elf_file *file, *debug, *packed; /* NULL: there is none, or it was refused */
	struct d9__dwarf *dwarf;
	struct d9__elf_functions functions;
	bool shares_file;	 /* with another binary, which closes it */
	bool read;		 /* |functions| and |dwarf| are there */
	uint32_t older, n_alike; /* of the same name: number + 1, 0: none; how many before it */
};

struct d9__binaries;

/* |places| is copied, its texts are borrowed.  0 or -ENOMEM. */
int d9__binaries_new(const struct d9__debug_places *places, struct d9__binaries **out);
void d9__binaries_free(struct d9__binaries *binaries);

/*
 * The number of the binary with this path and build-id, and these |facts| where it has no build-id,
 * given at first sight; dense from 0.  0 or -ENOMEM.
 */
int d9__binaries_number(struct d9__binaries *binaries, const struct d9_text *path,
			const struct d9_text *build_id, const struct d9__elf_facts *facts,
			uint32_t *number);

size_t d9__binaries_count(const struct d9__binaries *binaries);

/* Borrowed until the next d9__binaries_number(). */
const struct d9__binary *d9__binaries_get(const struct d9__binaries *binaries, uint32_t number);

/* The newest binary of that base name, with a usable file if there is one; or D9__NO_BINARY. */
uint32_t d9__binaries_find(struct d9__binaries *binaries, const char *name, size_t len);

/* "has another build-id than the recorded one, not used", of the file at |binary|'s path. */
const char *d9__binary_refusal(const struct d9__binary *binary);

/* Look for the files of a binary, unless that was done.  Nothing is read of them but headers. */
const struct d9__binary *d9__binaries_open(struct d9__binaries *binaries, uint32_t number);

/* Count an answer about an address in the binary; |named|: it tells a function. */
void d9__binaries_note_answer(struct d9__binaries *binaries, uint32_t number, bool named);

/* A number that stands for the files that were found and how they are read; 0: there are none. */
uint64_t d9__binaries_stamp(struct d9__binaries *binaries, uint32_t number);

/*
 * The frames at file address |address| of the binary, the innermost first, the real function last; how many, 0:
 * nothing is known.  For D9__ENTRY one.  Texts live as long as |binaries|; functions may be mangled.
 */
size_t d9__binaries_frames(struct d9__binaries *binaries, uint32_t number, uint64_t address,
			   enum d9__address_role role, struct d9__dwarf_frame frames[D9__DWARF_DEPTH_MAX]);

/* Line |i| of what went wrong so far: files refused or missing, one sentence each with the path; NULL after the last. */
const char *d9__binaries_problem(const struct d9__binaries *binaries, size_t i);
