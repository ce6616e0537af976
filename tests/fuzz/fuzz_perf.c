/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes for the ring of a perf event: no crash, what is told lies in them, and the ring is empty in the end.  The
 * first two bytes say where in the ring the others begin.
 */
#include "config.h"

#include <string.h>

#include "fuzz/fuzz.h"
#include "sample/perf_records.h"

#define RING 16384u

static void check_record(const struct d9__perf_record *record, const uint8_t *ring, const uint8_t *scratch)
{
	const uint8_t *stack = record->stack;

	fuzz_require(record->n_kernel <= D9__PERF_KERNEL_MAX, "frames have room");
	if (!record->stack_len)
		return;
	fuzz_require((stack >= ring && stack + record->stack_len <= ring + RING) ||
			     (stack >= scratch && stack + record->stack_len <= scratch + D9__PERF_RECORD_MAX),
		     "the stack lies in the record");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t ring_bytes[RING];
	static _Alignas(8) uint8_t scratch[D9__PERF_RECORD_MAX];
	static struct d9__perf_record record;
	struct d9__perf_ring ring = { ring_bytes, RING, 0, 0 };
	size_t n = 0;

	if (size < 2 || size - 2 > RING)
		return 0;
	ring.tail = data[0] * 64u + data[1];
	ring.head = ring.tail + size - 2;
	for (size_t i = 0; i + 2 < size; i++)
		ring_bytes[(ring.tail + i) % RING] = data[i + 2];
	while (d9__perf_next(&ring, scratch, &record)) {
		check_record(&record, ring_bytes, scratch);
		n++;
	}
	fuzz_require(ring.tail == ring.head, "the ring is empty");
	fuzz_require(n <= size / sizeof(struct perf_event_header), "each record has a header");
	return 0;
}
