/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A dead process's ring with anything changed in it, and beside it a segment that the process left
 * open: looked at as `dial9 status` does, recovered, and what that wrote is read.  No crash, no
 * hang, and what was recovered is a trace without damage.
 *
 * The input is a row of changes, each {place, index, offset low, offset high, length, bytes}: see
 * change().  The ring under them is one that was really recorded.
 */
#include "config.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <dial9/loop.h>
#include <dial9/reader.h>

#include "core/record/fixture.h"
#include "drain/dead_ring.h"
#include "drain/rescue.h"
#include "fuzz/fuzz.h"
#include "ring/ring_view.h"
#include "ring/side_ring.h"
#include "segment/writer.h"
#include "span/span_events.h"

#define CHUNKS	   5
#define RING_BYTES (D9__RING_CHUNKS_AT + CHUNKS * D9__CHUNK_SIZE)
#define BOOT_ID	   "fuzz-1"
#define HEAD_LEN   5
#define PATH_LEN   1024

static uint8_t *recorded;	    /* the ring as it was */
static uint32_t chunk_used[CHUNKS]; /* bytes of each that mean something */
static char scratch[64];

/* ---- a ring to begin with ---- */

static void record_polls(unsigned n)
{
	struct d9__slot *slot = d9__slot_self();
	uint32_t name = d9__name_intern("program+0x10 @ program+0x20", 27);

	for (unsigned i = 0; i < n; i++) {
		d9__emit_poll_start(slot, UINT64_C(1000000000) + i * 1000, 0, 1, 7 + i % 3, name);
		d9__emit_poll_end(slot, UINT64_C(1000000500) + i * 1000, 0);
	}
}

/* A slot with a chunk of which a part was written, and with a side ring. */
static void *record_more(void *arg)
{
	struct d9__slot *slot = d9__slot_self();
	struct d9__batch batch;
	uint8_t *p;

	(void)arg;
	record_polls(3);
	if (d9__chunk_pin_open(d9__slot_index(slot), &batch))
		d9__chunk_unpin(&batch, true);
	record_polls(2);
	p = d9__side_begin(slot, D9__EVENT_POLL_END, UINT64_C(1000009000), 1);
	if (p) {
		*p = 0;
		d9__side_end(slot, p + 1);
	}
	return NULL;
}

static void keep_ring(void)
{
	struct d9__ring_header *header = d9__ring.header;

	/* Of another machine: a process with that pid here is not the ring's. */
	strcpy(header->kernel_boot_id, "00000000-0000-0000-0000-000000000000");
	header->kind = D9__RING_SHM;
	atomic_store(&header->chunk_count, CHUNKS);
	recorded = malloc(RING_BYTES);
	fuzz_require(recorded != NULL, "there is memory");
	memcpy(recorded, d9__ring.base, RING_BYTES);
	for (unsigned i = 0; i < CHUNKS; i++) {
		const uint8_t *chunk = recorded + D9__RING_CHUNKS_AT + i * D9__CHUNK_SIZE;
		uint32_t used = D9__CHUNK_SIZE;

		while (used > D9__CHUNK_HEADER && !chunk[used - 1])
			used--;
		chunk_used[i] = used < D9__CHUNK_SIZE - 64 ? used + 64 : used;
	}
}

/* A callback that hangs, in a function that its library has called, as the flush thread told of it.
 */
static void hang(struct d9__slot *slot, uint64_t ns, uint32_t name)
{
	struct d9__ring_health *health = d9__ring.health;
	struct d9__ring_inner *inner =
		(struct d9__ring_inner *)(void *)(d9__ring.base + D9__RING_INNER_AT);

	d9__emit_poll_woken(slot, ns, 1, 0, 9, name, 500 << 4 | D9_WAKE_DEFERRED);
	health->state = D9__STATE_RECORDING;
	health->tick_ns = ns + 2 * D9__OPEN_CALL_NS;
	health->n_open = 1;
	health->open[0] = (struct d9__ring_open) {
		.since_ns = ns, .task = 9, .worker = 1, .span = "on_body"
	};
	*inner = (struct d9__ring_inner) {
		.since_ns = ns + 100, .task = 9, .worker = 1, .library = "own", .name = "on_body"
	};
	atomic_store(&inner->id, 77);
}

/* A slot whose polls tell their wakes, with calls of a library, and the ring as it is when it
 * hangs. */
static void *record_told(void *arg)
{
	static const uint64_t wakes[] = { 1, 300 << 4 | D9_WAKE_ACTIVE, 1,
					  200 << 4 | D9_WAKE_DEFERRED, 100 << 4 | D9_WAKE_FD };
	struct d9__slot *slot = d9__slot_self();
	struct d9__builder description = { 0 };
	uint32_t name = d9__name_intern("program+0x30 @ program+0x40", 27);
	int type = d9__span_call_register("own");
	uint64_t ns = UINT64_C(1000100000);

	(void)arg;
	fuzz_require(type > 0, "calls have a type");
	for (uint64_t i = 0; i < sizeof(wakes) / sizeof(wakes[0]); i++, ns += 1000) {
		d9__emit_unpark(slot, ns - 50, 1, 0, 0, 0, d9__slot_tid(slot));
		d9__emit_poll_woken(slot, ns, 1, 0, 8 + i % 2, name, wakes[i]);
		d9__span_write_call(
			slot, ns + 90, 1,
			&(struct d9__span_call) { (uint32_t)type, name, ns + 10, i % 2 * 70 });
		d9__emit_poll_end(slot, ns + 400, 1);
	}
	hang(slot, ns, name);
	d9__writer_describe(&description);
	d9__ring_set_description(description.data, description.len);
	d9__builder_release(&description);
	keep_ring();
	return NULL;
}

static void prepare(void)
{
	pthread_t thread;

	fixture_ring(CHUNKS);
	record_polls(5);
	d9__chunk_seal(d9__slot_self());
	record_polls(4);
	for (unsigned i = 0; i < 400; i++) /* once round the ring */
		d9__note(D9_LOG_WARNING, "line %u of the recorder's log", i);
	fuzz_require(!pthread_create(&thread, NULL, record_more, NULL), "a thread can be made");
	pthread_join(thread, NULL);
	fuzz_require(!pthread_create(&thread, NULL, record_told, NULL), "a thread can be made");
	pthread_join(thread, NULL);
	strcpy(scratch,
	       access("/dev/shm", W_OK) ? "/tmp/fuzz_ring.XXXXXX" : "/dev/shm/fuzz_ring.XXXXXX");
	fuzz_require(mkdtemp(scratch) != NULL, "a directory can be made");
}

static void clean_up(void)
{
	rmdir(scratch);
}

/* ---- changes ---- */

enum place {
	HEADER,
	SLOT,
	CHUNK_HEADER,
	CHUNK,
	LOSSES,
	LEAD,
	PAGES,
	CUT,
	SEGMENT,
	NOTES,
	INNER,
	PLACES
};

struct input {
	uint8_t *ring;
	size_t ring_len;
	uint8_t segment[4096]; /* that was left open */
	size_t segment_len;
	bool packed, none;
};

static void change(struct input *in, unsigned place, unsigned index, size_t offset,
		   const uint8_t *bytes, size_t len)
{
	unsigned chunk = index % CHUNKS;
	size_t at = 0, room = 0;

	switch (place % PLACES) {
	case HEADER:
		room = sizeof(struct d9__ring_header);
		break;
	case SLOT:
		at = D9__RING_SLOTS_AT + index % 4 * sizeof(struct d9__slot);
		room = sizeof(struct d9__slot);
		break;
	case CHUNK_HEADER:
		at = D9__RING_CHUNKS_AT + (size_t)chunk * D9__CHUNK_SIZE;
		room = D9__CHUNK_HEADER;
		break;
	case CHUNK:
		at = D9__RING_CHUNKS_AT + (size_t)chunk * D9__CHUNK_SIZE;
		room = chunk_used[chunk];
		break;
	case LOSSES:
		at = index % 2 ? D9__RING_LOSS_AT : D9__RING_LOSSES_AT;
		room = 3 * sizeof(struct d9__losses);
		break;
	case LEAD:
		at = D9__RING_DESCRIPTION_AT + index % 2 * D9__RING_DESCRIPTION_BYTES;
		room = 4096;
		break;
	case PAGES: /* control words and health */
		at = D9__RING_CONTROL_AT;
		room = D9__RING_FREE_AT - D9__RING_CONTROL_AT;
		break;
	case NOTES: /* lines that stand whole in it are words with a sum: most changes lose one */
		at = D9__RING_NOTES_AT;
		room = sizeof(struct d9__notes);
		break;
	case INNER:
		at = D9__RING_INNER_AT;
		room = D9__RING_OPEN_MAX * sizeof(struct d9__ring_inner);
		break;
	case CUT:
		in->ring_len = offset * 13 % (RING_BYTES + 1);
		return;
	case SEGMENT:
		in->packed = index & 1;
		in->none = index & 2; /* packing is slow: not what is tried most */
		if (len > sizeof(in->segment) - in->segment_len)
			len = sizeof(in->segment) - in->segment_len;
		memcpy(in->segment + in->segment_len, bytes, len);
		in->segment_len += len;
		return;
	}
	offset %= room;
	memcpy(in->ring + at + offset, bytes, len < room - offset ? len : room - offset);
}

static void apply(struct input *in, const uint8_t *data, size_t size)
{
	while (size >= HEAD_LEN) {
		size_t len = data[4];

		if (len > size - HEAD_LEN)
			len = size - HEAD_LEN;
		change(in, data[0], data[1], data[2] | (size_t)data[3] << 8, data + HEAD_LEN, len);
		data += HEAD_LEN + len;
		size -= HEAD_LEN + len;
	}
}

/* ---- files ---- */

static void put_file(const char *path, const uint8_t *bytes, size_t len)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	fuzz_require(fd >= 0 && write(fd, bytes, len) == (ssize_t)len && !close(fd),
		     "a file can be written");
}

static void lay_out(const struct input *in, const char *ring, const char *boot)
{
	char path[PATH_LEN];

	put_file(ring, in->ring, in->ring_len);
	if (in->none)
		return;
	fuzz_require(!mkdir(boot, 0700), "a directory can be made");
	snprintf(path, sizeof(path), "%s/trace.0.bin%s.active", boot, in->packed ? ".zst" : "");
	put_file(path, in->segment, in->segment_len);
}

static void remove_folder(const char *path)
{
	DIR *dir = opendir(path);
	const struct dirent *entry;

	while (dir && (entry = readdir(dir)))
		unlinkat(dirfd(dir), entry->d_name, 0);
	if (dir)
		closedir(dir);
	rmdir(path);
}

/* ---- what must hold ---- */

/* As `dial9 status --log` does. */
static void look_at_notes(const struct d9__ring_view *view)
{
	static struct d9__notes notes;
	struct d9__note_line line;
	uint32_t at = 0, before = 0;

	if (d9__ring_view_read(view, D9__RING_NOTES_AT, &notes, sizeof(notes)))
		return;
	while (d9__notes_next(&notes, &at, &line)) {
		fuzz_require(at > before && at <= D9__NOTE_WORDS, "the reader gets on");
		fuzz_require(line.level <= D9_LOG_INFO && strlen(line.text) <= D9__NOTE_TEXT,
			     "a line is whole");
		before = at;
	}
}

static void look_at(const char *path)
{
	struct d9__ring_view view;
	struct d9__ring_look look;
	int err = d9__ring_view_open(&view, AT_FDCWD, path);

	fuzz_require(d9__ring_view_strerror(err)[0] != '\0', "an error has words");
	if (err)
		return;
	(void)d9__ring_view_owner(&view);
	if (!d9__ring_view_look(&view, &look)) {
		fuzz_require(look.n_workers <= D9__VIEW_WORKERS_MAX, "workers fit");
		fuzz_require(strlen(look.health.segment) < sizeof(look.health.segment) &&
				     strlen(look.health.facts) < sizeof(look.health.facts),
			     "texts of the health end");
	}
	look_at_notes(&view);
	d9__ring_view_close(&view);
}

static uint64_t read_events(const char *boot, const char *segment)
{
	struct d9_segment_info info;
	const struct d9_event *event;
	struct d9_reader *reader;
	char path[PATH_LEN];
	uint64_t n = 0;
	int got;

	snprintf(path, sizeof(path), "%s/%s", boot, segment);
	fuzz_require(!d9_reader_new(&reader), "a reader can be made");
	fuzz_require(!d9_reader_add(reader, path), "what was recovered is a trace");
	while ((got = d9_reader_next(reader, &event)) == 1)
		n++;
	fuzz_require(!got && !d9_reader_segment(reader, 0, &info), "it can be read");
	fuzz_require(!info.err && !info.truncated, "what was recovered has no damage");
	d9_reader_free(reader);
	return n;
}

/* The newest segment is that of the ring. */
static void check_recovered(const char *boot, const struct d9__recovered *found)
{
	DIR *dir = opendir(boot);
	const struct dirent *entry;
	char newest[NAME_MAX + 1] = "";

	while (dir && (entry = readdir(dir))) {
		fuzz_require(!strstr(entry->d_name, ".active"), "nothing is left open");
		if (entry->d_name[0] != '.' && strcmp(entry->d_name, newest) > 0)
			strcpy(newest, entry->d_name);
	}
	if (dir)
		closedir(dir);
	if (newest[0] && found->events)
		fuzz_require(read_events(boot, newest) >= found->events, "all events are there");
}

static void rescue(const char *path, const char *boot)
{
	struct d9__dead_ring ring;
	struct d9__recovered found;
	int err = d9__dead_ring_open(&ring, path);
	bool empty;

	if (err)
		return;
	empty = d9__dead_ring_is_empty(&ring);
	if (d9__rescue(scratch, BOOT_ID, &ring, &found) && !found.err) {
		check_recovered(boot, &found);
		fuzz_require(!empty || !found.events, "an empty ring holds nothing");
		fuzz_require(access(path, F_OK) != 0, "a ring that was recovered is gone");
	}
	d9__dead_ring_close(&ring);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct input in;
	char path[PATH_LEN / 2], boot[PATH_LEN / 2];

	if (!recorded) {
		prepare();
		atexit(clean_up);
		in.ring = malloc(RING_BYTES);
		fuzz_require(in.ring != NULL, "there is memory");
	}
	memcpy(in.ring, recorded, RING_BYTES);
	in.ring_len = RING_BYTES;
	in.segment_len = 0;
	in.packed = in.none = false;
	apply(&in, data, size);
	snprintf(path, sizeof(path), "%s/x.ring", scratch);
	snprintf(boot, sizeof(boot), "%s/" BOOT_ID, scratch);
	lay_out(&in, path, boot);
	look_at(path);
	rescue(path, boot);
	unlink(path);
	remove_folder(boot);
	return 0;
}
