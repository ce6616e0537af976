/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <string.h>

#include "format/cursor.h"
#include "sample/perf_records.h"

/* Numbers above this are no addresses in a call chain, but say whose those behind them are. */
#define CONTEXTS (UINT64_MAX - 4095)

static bool take_chain(struct d9__cursor *cursor, struct d9__perf_record *out)
{
	bool in_kernel = true;
	uint64_t n, address;

	if (!d9__cursor_u64(cursor, &n) || n > d9__cursor_left(cursor) / sizeof(address))
		return false;
	while (n-- && d9__cursor_u64(cursor, &address)) {
		if (address > CONTEXTS)
			in_kernel = address == (uint64_t)PERF_CONTEXT_KERNEL;
		else if (in_kernel && out->n_kernel < D9__PERF_KERNEL_MAX)
			out->kernel[out->n_kernel++] = address;
	}
	return true;
}

#if defined(__x86_64__)
#define N_REGISTERS 17
#elif defined(__aarch64__)
#define N_REGISTERS 3
#else
#define N_REGISTERS 0
#endif

/* |values|: those of D9__PERF_REGISTERS, the least bit first. */
static void set_registers(const uint64_t *values, struct d9__registers *out)
{
#if defined(__x86_64__)
	/* Where the psABI's register i is. */
	static const uint8_t order[D9__REGISTERS] = { 0, 3, 2, 1, 4, 5, 6, 7, 9, 10, 11, 12, 13, 14, 15, 16 };

	for (size_t i = 0; i < D9__REGISTERS; i++)
		out->all[i] = (uintptr_t)values[order[i]];
	out->bp = (uintptr_t)values[6];
	out->sp = (uintptr_t)values[7];
	out->ip = (uintptr_t)values[8];
#elif defined(__aarch64__)
	out->bp = (uintptr_t)values[0];
	out->sp = (uintptr_t)values[1];
	out->ip = (uintptr_t)values[2];
#else
	(void)values, (void)out;
#endif
}

/* None of a thread of the kernel's, or one that ends. */
static bool take_registers(struct d9__cursor *cursor, struct d9__perf_record *out)
{
	uint64_t abi, values[N_REGISTERS + 1];

	if (!d9__cursor_u64(cursor, &abi))
		return false;
	if (abi == PERF_SAMPLE_REGS_ABI_NONE)
		return true;
	for (size_t i = 0; i < N_REGISTERS; i++)
		if (!d9__cursor_u64(cursor, &values[i]))
			return false;
	set_registers(values, &out->registers);
	/* A stack of 32-bit code is nothing that a walk knows. */
	out->has_registers = N_REGISTERS && abi == PERF_SAMPLE_REGS_ABI_64;
	return true;
}

/* A room of the size that was asked for, and behind it how much of it the stack filled. */
static bool take_stack(struct d9__cursor *cursor, struct d9__perf_record *out)
{
	const uint8_t *stack;
	uint64_t room, len;

	if (!d9__cursor_u64(cursor, &room))
		return false;
	if (!room)
		return true;
	if (!d9__cursor_take(cursor, room, &stack) || !d9__cursor_u64(cursor, &len))
		return false;
	out->stack = stack;
	out->stack_len = (size_t)(len < room ? len : room);
	return true;
}

static bool take_sample(struct d9__cursor *cursor, struct d9__perf_record *out)
{
	uint64_t ip;

	return d9__cursor_u64(cursor, &ip) && d9__cursor_u32(cursor, &out->pid) && d9__cursor_u32(cursor, &out->tid) &&
	       d9__cursor_u64(cursor, &out->ns) && d9__cursor_u32(cursor, &out->cpu) && d9__cursor_skip(cursor, 4) &&
	       take_chain(cursor, out) && take_registers(cursor, out) && take_stack(cursor, out);
}

static bool take_lost(struct d9__cursor *cursor, struct d9__perf_record *out)
{
	return d9__cursor_skip(cursor, 8) && d9__cursor_u64(cursor, &out->lost);
}

/* |cursor|: behind the header. */
static void parse(uint32_t type, struct d9__cursor cursor, struct d9__perf_record *out)
{
	out->kind = D9__PERF_OTHER;
	out->n_kernel = 0;
	out->has_registers = false;
	out->stack = NULL;
	out->stack_len = 0;
	if (type == PERF_RECORD_SAMPLE && take_sample(&cursor, out))
		out->kind = D9__PERF_SAMPLE;
	else if (type == PERF_RECORD_LOST && take_lost(&cursor, out))
		out->kind = D9__PERF_LOST;
}

/* |len| bytes of the ring at |tail|: where they lie, or copied where they cross its end. */
static const uint8_t *bytes_at(const struct d9__perf_ring *ring, size_t len, uint8_t *scratch)
{
	size_t at = (size_t)(ring->tail & (ring->size - 1)), straight = ring->size - at;

	if (len <= straight)
		return ring->data + at;
	memcpy(scratch, ring->data + at, straight);
	memcpy(scratch + straight, ring->data, len - straight);
	return scratch;
}

bool d9__perf_next(struct d9__perf_ring *ring, uint8_t *scratch, struct d9__perf_record *out)
{
	uint64_t left = ring->head - ring->tail;
	struct perf_event_header header;
	const uint8_t *record;

	if (!left || left > ring->size || left < sizeof(header)) {
		ring->tail = ring->head;
		return false;
	}
	memcpy(&header, bytes_at(ring, sizeof(header), scratch), sizeof(header));
	if (header.size < sizeof(header) || header.size > left) {
		ring->tail = ring->head;
		return false;
	}
	record = bytes_at(ring, header.size, scratch);
	parse(header.type, (struct d9__cursor) { record + sizeof(header), record + header.size, 0 }, out);
	ring->tail += header.size;
	return true;
}
