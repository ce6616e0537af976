/* SPDX-License-Identifier: Apache-2.0 */
/* Records as the kernel writes them into the ring of a perf event, made by hand. */

#ifndef D9_TESTS_SAMPLE_PERF_BUILDER_H
#define D9_TESTS_SAMPLE_PERF_BUILDER_H

#include <linux/perf_event.h>
#include <stdint.h>
#include <string.h>

#include "sample/perf_records.h"

struct perf_builder {
	uint8_t bytes[65536];
	size_t len, record; /* of all; where the open record began */
};

static inline void perf_put(struct perf_builder *b, const void *bytes, size_t len)
{
	memcpy(b->bytes + b->len, bytes, len);
	b->len += len;
}

static inline void perf_put_u32(struct perf_builder *b, uint32_t n)
{
	perf_put(b, &n, sizeof(n));
}

static inline void perf_put_u64(struct perf_builder *b, uint64_t n)
{
	perf_put(b, &n, sizeof(n));
}

static inline void perf_begin(struct perf_builder *b, uint32_t type)
{
	struct perf_event_header header = { .type = type };

	b->record = b->len;
	perf_put(b, &header, sizeof(header));
}

static inline void perf_end(struct perf_builder *b)
{
	uint16_t size = (uint16_t)(b->len - b->record);

	memcpy(b->bytes + b->record + offsetof(struct perf_event_header, size), &size, sizeof(size));
}

/* The fields of a sample. */
struct perf_words {
	uint32_t pid, tid, cpu;
	uint64_t ns;
	const uint64_t *chain;	 /* with its contexts */
	uint64_t n_chain, abi;	 /* abi 0: no registers follow */
	uint64_t first_register; /* register i, as the kernel orders them, is this + i */
	const void *stack;
	uint64_t room, filled; /* bytes of it; room 0: none follows */
};

static inline void perf_put_sample(struct perf_builder *b, const struct perf_words *words)
{
	static const uint8_t nothing[4096];

	perf_begin(b, PERF_RECORD_SAMPLE);
	perf_put_u64(b, 0x1234); /* ip: the chain begins with it, or the registers have it */
	perf_put_u32(b, words->pid);
	perf_put_u32(b, words->tid);
	perf_put_u64(b, words->ns);
	perf_put_u32(b, words->cpu);
	perf_put_u32(b, 0);
	perf_put_u64(b, words->n_chain);
	for (uint64_t i = 0; i < words->n_chain; i++)
		perf_put_u64(b, words->chain[i]);
	perf_put_u64(b, words->abi);
	for (unsigned i = 0; words->abi && i < 64; i++)
		if (D9__PERF_REGISTERS & UINT64_C(1) << i)
			perf_put_u64(b, words->first_register + i);
	perf_put_u64(b, words->room);
	if (words->room) {
		perf_put(b, words->stack ? words->stack : nothing, words->room);
		perf_put_u64(b, words->filled);
	}
	perf_end(b);
}

static inline void perf_put_lost(struct perf_builder *b, uint64_t lost)
{
	perf_begin(b, PERF_RECORD_LOST);
	perf_put_u64(b, 7); /* of which event */
	perf_put_u64(b, lost);
	perf_end(b);
}

#endif /* D9_TESTS_SAMPLE_PERF_BUILDER_H */
