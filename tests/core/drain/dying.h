/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dying: a process that dies, and what is read of its trace.  The process is the test itself: its
 * ring is copied to a file as a kill would leave it, and a child writes the segments that it had
 * open.
 */

#ifndef D9_TESTS_DRAIN_DYING_H
#define D9_TESTS_DRAIN_DYING_H

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/options.h"
#include "core/record/fixture.h"
#include "core/record/scratch.h"
#include "drain/rescue.h"
#include "format/varint.h"
#include "ring/event_types.h"
#include "segment/writer.h"

#define CHUNKS	   4u
#define RING_BYTES (D9__RING_CHUNKS_AT + CHUNKS * D9__CHUNK_SIZE)
#define BOOT_ID	   "test-1"
#define SECOND	   UINT64_C(1000000000)
#define MS	   UINT64_C(1000000)

/* ---- the process that dies ---- */

static inline void live(void)
{
	scratch_new();
	fixture_ring(CHUNKS);
}

/* |n| polls of 500 ns, from |ns| on. */
static inline void record_polls(unsigned n, uint64_t ns)
{
	struct d9__slot *slot = d9__slot_self();
	uint32_t name = d9__name_intern("here", 4);

	for (unsigned i = 0; i < n; i++) {
		d9__emit_poll_start(slot, ns + i * 1000, 0, 1, 7, name);
		d9__emit_poll_end(slot, ns + i * 1000 + 500, 0);
	}
}

static inline const char *path_of(const char *name)
{
	static char path[2 * PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", scratch_dir, name);
	return path;
}

static inline bool is_there(const char *name)
{
	return access(path_of(name), F_OK) == 0;
}

static inline void put_file(const char *name, const void *bytes, size_t len)
{
	int fd = open(path_of(name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	CU_ASSERT_FATAL(fd >= 0);
	CU_ASSERT_EQUAL(write(fd, bytes, len), (ssize_t)len);
	close(fd);
}

/* Leave the ring in a file, as if on another machine: a process of that number may live here. */
static inline void die(void)
{
	struct d9__ring_header *header = d9__ring.header;

	strcpy(header->kernel_boot_id, "00000000-0000-0000-0000-000000000000");
	header->kind = D9__RING_SHM;
	atomic_store(&header->chunk_count, CHUNKS);
	put_file("x.ring", d9__ring.base, RING_BYTES);
}

static inline void make_folder(void)
{
	CU_ASSERT_EQUAL_FATAL(mkdir(path_of(BOOT_ID), 0700), 0);
}

static bool segment_is_lossy;

static inline void put_loss(struct d9__builder *b, uint64_t ns)
{
	uint32_t cause = d9__builder_name(b, "overrun");
	uint8_t *p = d9__builder_event(b, D9__EVENT_LOSS, ns, 128);

	p = d9__wire_put_u32(d9__varint_put(d9__wire_put_u32(p, 1), 0), cause);
	d9__builder_end(b, d9__varint_put(d9__varint_put(d9__varint_put(p, 5), ns), ns));
}

static inline void write_batch(struct d9__writer *writer, uint64_t ns)
{
	struct d9__builder b = { 0 };
	uint8_t *p;

	d9__builder_begin(&b);
	p = d9__builder_event(&b, D9__EVENT_TASK_TERMINATE, ns, 64);
	d9__builder_end(&b, d9__varint_put(p, 0));
	if (segment_is_lossy)
		put_loss(&b, ns);
	if (d9__writer_add(writer, b.data, b.len, b.first_ns, b.last_ns, b.events, ns) ||
	    d9__writer_commit(writer, ns))
		_exit(2);
}

/* In a child: write |sealed| segments and, if |open|, one that stays open, from |ns| on. */
static inline void write_segments(enum d9_compress kind, unsigned sealed, bool open, uint64_t ns)
{
	struct d9__writer writer;
	struct d9__writer_counters counters = { 0 };
	struct d9_options *given, options = { 0 };

	if (d9_options_new(&given) || d9__event_types_init())
		_exit(3);
	d9_options_set_environment(given, false);
	d9_options_set_compress(given, kind);
	if (d9__options_resolve(&options, given))
		_exit(4);
	d9__writer_init(&writer, &options, BOOT_ID, &counters);
	if (d9__writer_open(&writer, scratch_dir, 1))
		_exit(5);
	for (unsigned i = 0; i < sealed + open; i++) {
		write_batch(&writer, ns + i * SECOND);
		if (i < sealed && d9__writer_rotate(&writer, ns + i * SECOND))
			_exit(6);
	}
	_exit(0);
}

static inline void leave_segments(enum d9_compress kind, unsigned sealed, bool open, uint64_t ns)
{
	int status;
	pid_t pid = fork();

	if (!pid)
		write_segments(kind, sealed, open, ns);
	CU_ASSERT_EQUAL_FATAL(waitpid(pid, &status, 0), pid);
	CU_ASSERT_EQUAL_FATAL(status, 0);
}

/* ---- and is rescued ---- */

static struct d9__recovered found;

static inline bool rescue(void)
{
	struct d9__dead_ring ring;
	bool did;

	CU_ASSERT_EQUAL_FATAL(d9__dead_ring_open(&ring, path_of("x.ring")), 0);
	did = d9__rescue(scratch_dir, BOOT_ID, &ring, &found);
	d9__dead_ring_close(&ring);
	return did;
}

static inline bool rescue_without_ring(void)
{
	return d9__rescue(scratch_dir, BOOT_ID, NULL, &found);
}

/* All is well, and the ring is gone. */
static inline void check_rescued(uint64_t events, uint64_t lost)
{
	CU_ASSERT_TRUE(rescue());
	CU_ASSERT_EQUAL(found.err, 0);
	CU_ASSERT_EQUAL(found.events, events);
	CU_ASSERT_EQUAL(found.lost, lost);
	CU_ASSERT_FALSE(is_there("x.ring"));
	CU_ASSERT_EQUAL(scratch_files(scratch_dir, ".active"), 0);
}

/* ---- what is read of it ---- */

struct seen {
	char facts[16384];          /* "KEY=VALUE;" of all metadata of a segment */
	uint64_t first_ns, last_ns; /* of its events */
	uint64_t end_ns;            /* of the event that ends it */
	unsigned clocks;
	uint64_t real_ns;           /* that its first clock says for |first_ns| */
	uint64_t lost;              /* as its RecorderLossEvents say */
	uint64_t sign_ns, since_ns; /* of its last LastSignEvent */
};

static struct seen seen;

static inline void look_at_facts(const struct d9_value *pairs)
{
	size_t len = strlen(seen.facts);

	for (size_t i = 0; i < pairs->u.string_map.n; i++) {
		const struct d9_text *pair = &pairs->u.string_map.pairs[2 * i];

		len += (size_t)snprintf(seen.facts + len, sizeof(seen.facts) - len, "%.*s=%.*s;",
					(int)pair[0].len, pair[0].data, (int)pair[1].len,
					pair[1].data);
		CU_ASSERT_FATAL(len < sizeof(seen.facts));
	}
}

static inline uint64_t value_of(const struct d9_event *event, const char *name)
{
	const struct d9_value *value = d9_event_field(event, name);

	CU_ASSERT_PTR_NOT_NULL_FATAL(value);
	return value->u.u64;
}

static inline void look_at(void *arg, const struct d9_event *event)
{
	const char *name = d9_event_name(event);

	(void)arg;
	if (!seen.first_ns)
		seen.first_ns = event->timestamp_ns;
	seen.clocks += !strcmp(name, "ClockSyncEvent");
	seen.end_ns = event->timestamp_ns;
	if (event->timestamp_ns > seen.last_ns)
		seen.last_ns = event->timestamp_ns;
	if (!seen.real_ns && !strcmp(name, "ClockSyncEvent"))
		seen.real_ns = value_of(event, "realtime_ns");
	if (event->kind == D9_EVENT_SEGMENT_METADATA)
		look_at_facts(&event->values[0]);
	if (!strcmp(name, "RecorderLossEvent"))
		seen.lost += value_of(event, "events");
	if (!strcmp(name, "LastSignEvent")) {
		seen.sign_ns = event->timestamp_ns;
		seen.since_ns = value_of(event, "since_ns");
	}
}

/* Read segment |name| of the process into |seen|. */
static inline void read_segment(const char *name)
{
	char path[2 * PATH_MAX];

	snprintf(path, sizeof(path), "%s/" BOOT_ID "/%s", scratch_dir, name);
	memset(&seen, 0, sizeof(seen));
	CU_ASSERT_TRUE(scratch_read(path, true, look_at, NULL) > 0);
}

/* How often the segment that was read says |pair|, "KEY=VALUE;". */
static inline unsigned said(const char *pair)
{
	unsigned n = 0;

	for (const char *p = seen.facts; (p = strstr(p, pair)); p++)
		n++;
	return n;
}

#endif /* D9_TESTS_DRAIN_DYING_H */
