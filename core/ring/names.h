/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names: text -> handle, once per process; handle -> wire id, once per chunk.
 *
 * A slot's table holds one word per handle: the generation of the chunk that defined it in the
 * high half, its wire id there in the low half.  A word of another generation is undefined, so
 * nothing is cleared when the chunk changes.
 */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define D9__NAME_EMPTY 0u      /* the empty text */
#define D9__NAME_OTHER 1u      /* "(other)": what all further texts become when the table is full */
#define D9__NAMES_MAX  65536u  /* handles */
#define D9__NAME_BYTES 1024u   /* longer texts are cut, at a character's boundary */

struct d9__name {
	uint32_t len;
	char text[];
};

/*
 * The handle of |text|; equal texts have equal handles.  Takes a mutex and may allocate: at
 * registration, never on a poll, not in signal handlers.  D9__NAME_OTHER when the table is full
 * or memory is short, and counted.  Keeps errno.
 */
uint32_t d9__name_intern(const char *text, size_t len);

/* The text behind |handle|, never NULL and never freed.  Any thread.  Async-signal-safe. */
const struct d9__name *d9__name_text(uint32_t handle);

uint32_t d9__name_count(void);

/* Texts that became D9__NAME_OTHER. */
uint64_t d9__name_overflows(void);

/* Make the tables now, and not with the first name.  False: out of memory. */
bool d9__names_ready(void);

/* The atfork handler's three: no thread interns while the process is copied. */
void d9__names_fork_prepare(void);
void d9__names_fork_parent(void);
void d9__names_fork_child(void);

/* ---- a slot's table ---- */

/*
 * 65536 words for names, then D9__TYPES_MAX half words that say in which generation the schema
 * of a type was written.  Mapped, so only what is used takes memory.  NULL: out of memory.
 */
uint32_t *d9__name_table_new(void);

/* Forget all: after 65535 chunks the generation starts again. */
void d9__name_table_clear(uint32_t *table);

static inline uint16_t *d9__name_table_types(uint32_t *table)
{
	return (uint16_t *)(table + D9__NAMES_MAX);
}
