/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small segment, as the recorder packs it, cut behind every byte and with every byte changed, through
 * the public reader.  What was written in one go, by one flush, ends on a boundary of the packing:
 * everything that was flushed in front of the damage is read, whole and unchanged.
 *
 * Behind that: zstd and plain segments have no checksum, so a changed byte may read as another value;
 * gzip's is known at the end.  Nothing crashes, hangs or takes memory that the input does not account
 * for.
 *
 * D9_LONG=1 for all 255 values of each byte.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "core/record/scratch.h"
#include "format/encoder.h"
#include "ring/event_types.h"
#include "segment/builder.h"
#include "segment/segment.h"

#define FLUSHES	   7
#define PER_FLUSH  6
#define EVENTS	   (FLUSHES * PER_FLUSH)
#define FILE_MAX   8192
#define MEMORY_MAX ((rlim_t)192 << 20) /* zstd's largest window is 128 MiB */

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED true
#else
#define SANITIZED false
#endif

static struct original {
	uint8_t bytes[FILE_MAX];
	size_t len;
	size_t flushed[FLUSHES]; /* the file's length behind each */
	uint64_t digest[EVENTS]; /* of each event, in file order; the same in order of time */
} original;

/* ---- the segment ---- */

static void put_batch(struct d9__builder *b, uint64_t flush)
{
	static const char *const causes[] = { "overrun", "no_chunk", "disk" };

	d9__builder_begin(b);
	for (uint64_t i = 0; i < PER_FLUSH; i++) {
		uint64_t n = flush * PER_FLUSH + i, ns = 1000000000 + n * 12345;
		uint32_t cause = d9__builder_name(b, causes[n % 3]);
		bool loss = i % 2;
		uint8_t *p = d9__builder_event(b, loss ? D9__EVENT_LOSS : D9__EVENT_POLL_END, ns, 64);

		CU_ASSERT_PTR_NOT_NULL_FATAL(p);
		if (loss)
			p = d9__varint_put(d9__wire_put_u32(p, 77), n % 3);
		p = loss ? d9__wire_put_u32(p, cause) : d9__varint_put(p, n % 7);
		for (int k = 0; loss && k < 3; k++)
			p = d9__varint_put(p, ns >> (20 * k));
		d9__builder_end(b, p);
	}
}

static size_t size_of(int dir, const char *name)
{
	struct stat st;

	CU_ASSERT_EQUAL_FATAL(fstatat(dir, name, &st, 0), 0);
	return (size_t)st.st_size;
}

static void load(int dir, const char *name)
{
	int fd = openat(dir, name, O_RDONLY);
	ssize_t n = read(fd, original.bytes, FILE_MAX);

	CU_ASSERT_FATAL(n > 0 && n < FILE_MAX);
	original.len = (size_t)n;
	close(fd);
	unlinkat(dir, name, 0);
}

/* Every second flush ends a zstd frame; the last one's is left to the sealing. */
static void make_segment(enum d9_compress kind)
{
	struct d9__segment seg = { .fd = -1 };
	struct d9__builder b = { 0 };
	int dir = open(scratch_new(), O_RDONLY | O_DIRECTORY);
	struct d9__segment_place place = { dir, false, kind };
	char name[D9__SEGMENT_NAME_MAX + 8];
	bool kept = false;

	CU_ASSERT_EQUAL_FATAL(d9__segment_open(&seg, &place, 0, 0), 0);
	snprintf(name, sizeof(name), "%s.active", seg.name);
	for (uint64_t i = 0; i < FLUSHES; i++) {
		uint64_t now_ns = i * 600000000;

		put_batch(&b, i);
		CU_ASSERT_EQUAL(d9__segment_add(&seg, b.data, b.len, b.first_ns, b.last_ns, b.events,
						true, now_ns), 0);
		CU_ASSERT_EQUAL(d9__segment_write(&seg, now_ns), 0);
		original.flushed[i] = size_of(dir, name);
	}
	CU_ASSERT_EQUAL(d9__segment_seal(&seg, FLUSHES * UINT64_C(600000000), &kept), 0);
	CU_ASSERT_FATAL(kept);
	name[strlen(name) - strlen(".active")] = '\0';
	load(dir, name);
	close(dir);
	d9__builder_release(&b);
	d9__segment_release(&seg);
}

/* ---- reading it ---- */

struct seen {
	unsigned events;
	unsigned same; /* of them, in front, equal to the original's */
	struct d9_segment_info info;
	bool refused;
};

static uint64_t mix(uint64_t digest, uint64_t value)
{
	return (digest ^ value) * UINT64_C(0x100000001b3) + 1;
}

static uint64_t digest_of(const struct d9_event *event)
{
	uint64_t digest = mix(0, event->timestamp_ns);

	for (const char *p = d9_event_name(event); *p; p++)
		digest = mix(digest, (uint8_t)*p);
	for (size_t i = 0; i < d9_schema_fields(event->schema); i++) {
		const struct d9_value *value = &event->values[i];

		if (!value->present)
			continue;
		if (value->type == D9_FIELD_STRING || value->type == D9_FIELD_BYTES ||
		    value->type == D9_FIELD_POOLED_STRING)
			for (size_t k = 0; k < value->u.text.len; k++)
				digest = mix(digest, (uint8_t)value->u.text.data[k]);
		else if (value->type != D9_FIELD_STACK && value->type != D9_FIELD_POOLED_STACK)
			digest = mix(digest, value->u.u64);
	}
	return digest;
}

static struct seen read_bytes(const uint8_t *bytes, size_t len, bool file_order, bool keep)
{
	struct seen seen = { 0 };
	struct d9_reader *reader = NULL;
	const struct d9_event *event;
	char path[64];
	int fd = memfd_create("damage", MFD_CLOEXEC), got = 0;

	if (fd < 0 || pwrite(fd, bytes, len, 0) != (ssize_t)len || d9_reader_new(&reader))
		abort();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	d9_reader_set_file_order(reader, file_order);
	seen.refused = d9_reader_add(reader, path) != 0;
	while (!seen.refused && (got = d9_reader_next(reader, &event)) == 1) {
		uint64_t digest = digest_of(event);

		if (keep && seen.events < EVENTS)
			original.digest[seen.events] = digest;
		if (seen.same == seen.events && seen.same < EVENTS &&
		    original.digest[seen.same] == digest)
			seen.same++;
		seen.events++;
	}
	if (got)
		CU_FAIL("damage is an error of reading");
	if (!seen.refused)
		d9_reader_segment(reader, 0, &seen.info);
	d9_reader_free(reader);
	close(fd);
	return seen;
}

/* Events of flushes that ended in front of |at|. */
static unsigned events_before(size_t at)
{
	unsigned n = 0;

	while (n < FLUSHES && original.flushed[n] <= at)
		n++;
	return n * PER_FLUSH;
}

static void make_original(enum d9_compress kind)
{
	make_segment(kind);
	CU_ASSERT_EQUAL_FATAL(read_bytes(original.bytes, original.len, true, true).events, EVENTS);
	CU_ASSERT_EQUAL_FATAL(read_bytes(original.bytes, original.len, false, false).same, EVENTS);
}

/* ---- tests ---- */

static void check_cut(enum d9_compress kind, size_t at, bool file_order)
{
	struct seen seen = read_bytes(original.bytes, at, file_order, false);
	unsigned least = events_before(at);

	if (seen.events != seen.same || seen.events < least) {
		printf("cut at %zu of %zu: %u events, %u are right, %u wanted\n", at, original.len,
		       seen.events, seen.same, least);
		CU_FAIL("what was flushed before the cut is not read");
	}
	/* Between two events of a plain segment, or two frames of a packed one, it is none. */
	if (kind == D9_COMPRESS_GZIP && at < original.len && !seen.refused && !seen.info.truncated)
		CU_FAIL("nobody says that it was cut");
}

static void cut_everywhere(enum d9_compress kind)
{
	make_original(kind);
	for (size_t at = 0; at <= original.len; at++) {
		check_cut(kind, at, true);
		check_cut(kind, at, false);
	}
}

static void test_segment_cut_behind_any_byte_is_read_up_to_there(void)
{
	cut_everywhere(D9_COMPRESS_NONE);
	cut_everywhere(D9_COMPRESS_ZSTD);
	cut_everywhere(D9_COMPRESS_GZIP);
}

static void check_change(size_t at, uint8_t value, bool file_order)
{
	uint8_t saved = original.bytes[at];
	unsigned least = events_before(at);
	struct seen seen;

	original.bytes[at] = value;
	seen = read_bytes(original.bytes, original.len, file_order, false);
	original.bytes[at] = saved;
	/* In order of time, what follows may move in front of it. */
	if (file_order ? seen.same < least : seen.events < least) {
		printf("%u instead of %u at %zu of %zu: %u events, %u are right, %u wanted\n", value,
		       saved, at, original.len, seen.events, seen.same, least);
		CU_FAIL("what was flushed before the damage is not read");
	}
	if (seen.events > 100 * EVENTS)
		CU_FAIL("a changed byte makes very many events");
}

/* A request of the reader beyond that is refused, which the reader would report. */
static void limit_memory(void)
{
	struct rlimit limit = { MEMORY_MAX, MEMORY_MAX };

	if (!SANITIZED)
		CU_ASSERT_EQUAL(setrlimit(RLIMIT_AS, &limit), 0);
}

static void change(size_t at, uint8_t value)
{
	if (value == original.bytes[at])
		return;
	check_change(at, value, true);
	check_change(at, value, false);
}

/* Every bit, with a sanitizer or valgrind one of eight, and the extremes; with D9_LONG all 255 other values. */
static void change_everywhere(enum d9_compress kind)
{
	const char *all = getenv("D9_LONG");
	bool slow = SANITIZED || getenv("VALGRIND");

	make_original(kind);
	limit_memory();
	for (size_t at = 0; at < original.len; at++) {
		for (unsigned bit = 0; !all && bit < 8; bit++)
			if (!slow || bit == at % 8)
				change(at, (uint8_t)(original.bytes[at] ^ 1u << bit));
		if (!all)
			change(at, 0);
		for (unsigned value = all ? 0 : 255; value < 256; value++)
			change(at, (uint8_t)value);
	}
}

static void test_any_changed_byte_of_a_plain_segment_takes_nothing_before_it(void)
{
	change_everywhere(D9_COMPRESS_NONE);
}

static void test_any_changed_byte_of_a_zstd_segment_takes_nothing_before_it(void)
{
	change_everywhere(D9_COMPRESS_ZSTD);
}

static void test_any_changed_byte_of_a_gzip_segment_takes_nothing_before_it(void)
{
	change_everywhere(D9_COMPRESS_GZIP);
}

static const CU_TestInfo tests[] = {
	{ "segment cut behind any byte is read up to there",
	  test_segment_cut_behind_any_byte_is_read_up_to_there },
	{ "any changed byte of a plain segment takes nothing before it",
	  test_any_changed_byte_of_a_plain_segment_takes_nothing_before_it },
	{ "any changed byte of a zstd segment takes nothing before it",
	  test_any_changed_byte_of_a_zstd_segment_takes_nothing_before_it },
	{ "any changed byte of a gzip segment takes nothing before it",
	  test_any_changed_byte_of_a_gzip_segment_takes_nothing_before_it },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	int status;

	if (d9__event_types_init())
		return 99;
	status = d9_test_main("damage", tests);
	scratch_remove();
	return status;
}
