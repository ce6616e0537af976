/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <fcntl.h>
#include <stdlib.h>

#include "core/record/scratch.h"
#include "format/encoder.h"
#include "segment/segment.h"
#include "segment/segment_tail.h"

#define OPENED_NS UINT64_C(5000000000)
#define EARLY_NS  UINT64_C(1000000000)

static void add_clock(struct d9__segment *seg, uint64_t ns)
{
	struct d9__builder b = { 0 };
	uint8_t *p;

	d9__builder_begin(&b);
	p = d9__builder_event(&b, D9__EVENT_CLOCK_SYNC, ns, D9__VARINT_MAX);
	CU_ASSERT_PTR_NOT_NULL_FATAL(p);
	d9__builder_end(&b, d9__varint_put(p, ns));
	CU_ASSERT_EQUAL(d9__segment_add(seg, b.data, b.len, ns, ns, 0, false, ns), 0);
	d9__builder_release(&b);
}

/* A batch of polls that happened before the segment was opened. */
static void add_polls(struct d9__segment *seg, uint64_t number)
{
	struct d9__builder b = { 0 };

	d9__builder_begin(&b);
	for (uint64_t i = 0; i < 4000; i++) {
		uint8_t *p = d9__builder_event(&b, D9__EVENT_POLL_END,
					       EARLY_NS + number * 1000000 + i * 100, D9__VARINT_MAX);

		if (p)
			d9__builder_end(&b, d9__varint_put(p, i % 7));
	}
	CU_ASSERT(!b.failed);
	CU_ASSERT_EQUAL(d9__segment_add(seg, b.data, b.len, b.first_ns, b.last_ns, b.events, true,
					OPENED_NS), 0);
	CU_ASSERT_EQUAL(d9__segment_write(seg, OPENED_NS), 0);
	d9__builder_release(&b);
}

/* Return the tail of a segment whose process wrote |batches| of older events and was killed. */
static struct d9__segment_tail tail_of(enum d9_compress kind, unsigned batches)
{
	struct d9__walker *walker = calloc(1, sizeof(*walker));
	struct d9__segment seg = { .fd = -1 };
	struct d9__segment_tail tail = { .kind = kind };
	int dir = open(scratch_new(), O_RDONLY | O_DIRECTORY), fd;
	struct d9__segment_place place = { dir, false, kind };
	char name[D9__SEGMENT_NAME_MAX + 8];

	CU_ASSERT_PTR_NOT_NULL_FATAL(walker);
	CU_ASSERT_EQUAL_FATAL(d9__event_types_init(), 0);
	CU_ASSERT_EQUAL_FATAL(d9__segment_open(&seg, &place, 0, OPENED_NS), 0);
	add_clock(&seg, OPENED_NS);
	for (unsigned i = 0; i < batches; i++)
		add_polls(&seg, i);
	snprintf(name, sizeof(name), "%s.active", seg.name);
	fd = openat(dir, name, O_RDONLY);
	CU_ASSERT_FATAL(fd >= 0);
	CU_ASSERT_EQUAL(d9__segment_tail_read(&tail, fd, kind, walker), 0);
	close(fd);
	close(dir);
	d9__segment_release(&seg);
	free(walker);
	return tail;
}

static void check_opening_counts(enum d9_compress kind)
{
	struct d9__segment_tail tail = tail_of(kind, 3);

	CU_ASSERT_EQUAL(tail.n_batches, 4);
	CU_ASSERT_EQUAL(tail.last_ns, OPENED_NS);
	d9__segment_tail_release(&tail);
	/* So long that its beginning is not among the batches that are kept. */
	tail = tail_of(kind, 700);
	CU_ASSERT(tail.n_batches > 3);
	CU_ASSERT(kind == D9_COMPRESS_NONE || tail.n_batches < 700);
	CU_ASSERT_EQUAL(tail.last_ns, OPENED_NS);
	d9__segment_tail_release(&tail);
}

static void test_segment_is_as_new_as_its_opening_whatever_its_events_are(void)
{
	check_opening_counts(D9_COMPRESS_NONE);
	check_opening_counts(D9_COMPRESS_ZSTD);
	check_opening_counts(D9_COMPRESS_GZIP);
}

static const CU_TestInfo tests[] = {
	{ "segment is as new as its opening, whatever its events are",
	  test_segment_is_as_new_as_its_opening_whatever_its_events_are },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	int status = d9_test_main("segment tail", tests);

	scratch_remove();
	return status;
}
