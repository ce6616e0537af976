/* SPDX-License-Identifier: Apache-2.0 */
/* Builder: a batch that the flush thread makes itself, in memory of its own. */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define D9__BUILDER_NAMES 64u

/* Zero is an empty builder.  One thread. */
struct d9__builder {
	uint8_t *data;
	size_t len, capacity;
	uint64_t time_base;
	uint64_t first_ns, last_ns; /* of its events */
	uint32_t events;
	uint32_t n_defined;
	uint16_t defined[32]; /* type ids whose schema is in the batch */
	uint32_t n_names;
	const char *names[D9__BUILDER_NAMES]; /* string i of its pool; static texts */
	uint32_t n_stacks;     /* in its pool */
	struct {
		uint32_t id, at, n; /* |n| addresses at offset |at| of |data|; 0: none */
	} stacks[64];	       /* the latest of each hash */
	bool failed;          /* out of memory; the batch is useless until the next begin */
};

/* Forget what is in it and write a header. */
void d9__builder_begin(struct d9__builder *b);
void d9__builder_release(struct d9__builder *b);

/* Append |len| raw bytes: whole frames. */
void d9__builder_put(struct d9__builder *b, const void *bytes, size_t len);

/*
 * Begin an event, with its schema if that is new to the batch, and return the place of its
 * fields, with room for |max_bytes|; NULL if out of memory.  d9__builder_end() with the first byte
 * behind the fields completes it.
 */
uint8_t *d9__builder_event(struct d9__builder *b, uint16_t type_id, uint64_t ns, size_t max_bytes);
void d9__builder_end(struct d9__builder *b, const uint8_t *end);

/*
 * Define a type by the frames of another process, instead of those that this process has for its id.  False: there are
 * too many.
 */
bool d9__builder_define(struct d9__builder *b, uint16_t type_id, const void *frames, size_t len);

/*
 * The pool id of |text|, which must live as long as the batch; defined at its first use.  To be asked
 * before the event that refers to it is begun.
 */
uint32_t d9__builder_name(struct d9__builder *b, const char *text);

/* Return the pool id of a call stack; equal ones near each other have one id. */
uint32_t d9__builder_stack(struct d9__builder *b, const uint64_t *addresses, uint32_t n);
