/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The order makes it safe to be killed in here, too: the open segment is sealed first; the ring
 * remembers which segment is made of it, and goes last.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/heap.h"
#include "base/test_point.h"
#include "base/thread.h"
#include "drain/drain.h"
#include "drain/rescue.h"
#include "drain/side_event.h"
#include "format/encoder.h"
#include "ring/clock.h"
#include "ring/event_types.h"
#include "segment/files.h"
#include "segment/note_event.h"
#include "segment/segment.h"
#include "segment/shipped_next.h"

#define GROUP 16

/* Schema and annotations frames, borrowed from the description; NULL: not defined there. */
struct type {
	const uint8_t *frames;
	uint32_t len;
};

struct rescue {
	struct d9__dead_ring *ring; /* or NULL */
	struct d9__recovered *out;
	struct d9__walker *walker;
	struct d9__drain *drain;
	struct d9__writer writer;
	struct d9__writer_counters counters;
	struct d9__segment_tail tail;
	struct d9__builder probe; /* one side record, to see whether it is an event */
	char newest[D9__FILE_NAME_MAX]; /* of the segments, sealed or not; "" if none */
	uint64_t index;                        /* its number */
	uint64_t shipped_next; /* shipped_next.h */
	bool active;                           /* it is not sealed */
	/* What a segment begins with. */
	uint8_t *description;
	uint32_t description_len;
	const uint8_t *pairs; /* of its metadata, after the count */
	uint32_t pairs_len, n_pairs;
	uint64_t first_ns;
	struct type *types; /* the program's, from D9__EVENT_PROGRAM on */
	struct type *type;  /* the one that was found last */
};

static int fail(struct rescue *r, const char *op, int err)
{
	r->out->op = op;
	return err;
}

/* ---- metadata ---- */

/* Whether [p, p + len) is |n| pairs of texts, no less and no more. */
static bool is_pairs(const uint8_t *p, uint32_t len, uint32_t n)
{
	for (uint64_t texts = 2 * (uint64_t)n; texts; texts--) {
		uint32_t text;

		if (len < 4)
			return false;
		text = d9__wire_get_u32(p);
		if (text > len - 4)
			return false;
		p += 4 + text;
		len -= 4 + text;
	}
	return !len;
}

static void find_type(struct rescue *r, const struct d9__wire_frame *frame)
{
	uint16_t id = d9__wire_get_u16(frame->bytes + 1);

	if (frame->tag == D9__WIRE_ANNOTATIONS && r->type &&
	    r->type->frames + r->type->len == frame->bytes)
		r->type->len += frame->len;
	if (frame->tag != D9__WIRE_SCHEMA || id < D9__EVENT_PROGRAM || id >= D9__TYPES_MAX)
		return;
	r->type = &r->types[id - D9__EVENT_PROGRAM];
	*r->type = (struct type){ frame->bytes, frame->len };
}

/* The first metadata, and every type of the program. */
static bool look_at_description(void *arg, const struct d9__wire_frame *frame)
{
	struct rescue *r = arg;
	uint32_t len;

	if (frame->tag == D9__WIRE_SCHEMA || frame->tag == D9__WIRE_ANNOTATIONS)
		find_type(r, frame);
	if (frame->tag != D9__WIRE_EVENT || frame->type_id != D9__EVENT_SEGMENT_METADATA || r->pairs)
		return true;
	len = (uint32_t)(frame->bytes + frame->len - frame->values);
	if (len < 4 || !is_pairs(frame->values + 4, len - 4, d9__wire_get_u32(frame->values)))
		return true;
	r->n_pairs = d9__wire_get_u32(frame->values);
	r->pairs = frame->values + 4;
	r->pairs_len = len - 4;
	return true;
}

static void take_description(struct rescue *r)
{
	if (!r->ring)
		return;
	r->description = d9__dead_ring_description(r->ring, &r->description_len);
	if (r->description && d9__walk(r->walker, r->description, r->description_len, look_at_description, r) < 0) {
		d9__free(r->description);
		r->description = NULL;
		r->pairs = NULL;
		r->pairs_len = r->n_pairs = 0;
		memset(r->types, 0, (D9__TYPES_MAX - D9__EVENT_PROGRAM) * sizeof(*r->types));
	}
}

static uint8_t *put_pair(uint8_t *p, const char *key, const char *value)
{
	return d9__wire_put_text(d9__wire_put_text(p, key, strlen(key)), value, strlen(value));
}

/* Whether the segment before the one that is made of the ring was written to its end by its recorder. */
static bool is_prior_clean(const struct rescue *r)
{
	uint8_t clean[64];
	size_t len = (size_t)(put_pair(clean, "segment.sealed_clean", "true") - clean);

	/* Else a write failed there, or it was sealed by us or by a recovery that was killed before it had done. */
	return !r->out->sealed && r->tail.len && memmem(r->tail.data, r->tail.len, clean, len);
}

/* Begin |out|; all that is known of the process, and |complete| unless NULL. */
static void put_metadata(struct rescue *r, struct d9__builder *out, const char *complete,
			 uint64_t ns)
{
	const struct d9__ring_header *h = r->ring ? &r->ring->header : NULL;
	bool bare = h && !r->pairs;
	char pid[16];
	uint8_t *p;

	p = d9__builder_event(out, D9__EVENT_SEGMENT_METADATA, ns, r->pairs_len + 1024u);
	if (!p)
		return;
	p = d9__wire_put_u32(p, r->n_pairs + 1 + (complete ? 2 : r->newest[0] != '\0') + (bare ? 3 : 0));
	if (r->pairs_len)
		p = d9__wire_put_bytes(p, r->pairs, r->pairs_len);
	if (bare) {
		snprintf(pid, sizeof(pid), "%u", h->pid);
		p = put_pair(p, "service", h->service);
		p = put_pair(p, "boot_id", h->boot_id);
		p = put_pair(p, "pid", pid);
	}
	p = put_pair(p, "recovered", "true");
	if (complete) {
		p = put_pair(p, "segment.complete", complete);
		p = put_pair(p, "segment.sealed_clean", "false");
	} else if (r->newest[0]) {
		p = put_pair(p, "segment.prior_sealed_clean", is_prior_clean(r) ? "true" : "false");
	}
	d9__builder_end(out, p);
}

static void put_clock(struct rescue *r, struct d9__builder *out)
{
	const struct d9__anchor *anchor = &r->ring->header.anchor;
	uint8_t *p = d9__builder_event(out, D9__EVENT_CLOCK_SYNC, r->first_ns, D9__VARINT_MAX);

	if (p)
		d9__builder_end(out, d9__varint_put(p, anchor->real_ns + r->first_ns -
							       anchor->mono_ns));
}

static int lead_in(struct d9__writer *w, const char *complete, uint64_t now_ns)
{
	struct rescue *r = w->lead_arg;
	struct d9__builder description = { .data = r->description, .len = r->description_len,
				    .first_ns = r->first_ns, .last_ns = r->first_ns, .events = 1 };
	int err;

	d9__builder_begin(&w->note);
	if (!complete)
		put_clock(r, &w->note);
	put_metadata(r, &w->note, complete, complete ? w->seg.has.last_ns : r->first_ns);
	if (!complete)
		put_clock(r, &w->note);
	err = d9__writer_lead(w, &w->note, now_ns);
	if (!err && !complete && r->description)
		err = d9__writer_lead(w, &description, now_ns);
	return err;
}

/* ---- the segment that was open ---- */

static enum d9_compress kind_of(const char *name)
{
	return strstr(name, ".zst") ? D9_COMPRESS_ZSTD :
	       strstr(name, ".gz")  ? D9_COMPRESS_GZIP : D9_COMPRESS_NONE;
}

static int find_newest(struct rescue *r)
{
	int got = d9__file_newest(r->writer.ns.dir_fd, r->newest, &r->index, &r->active);

	return got < 0 ? fail(r, "open", got) : 0;
}

static int read_tail(struct rescue *r)
{
	int fd, err;

	if (!r->newest[0])
		return 0;
	fd = d9__file_open(r->writer.ns.dir_fd, r->newest, O_RDONLY);
	if (fd < 0)
		return fail(r, "open", fd);
	err = d9__segment_tail_read(&r->tail, fd, kind_of(r->newest), r->walker);
	close(fd);
	return err ? fail(r, "read", err) : 0;
}

static int seal_file(struct rescue *r, int fd)
{
	struct d9__builder last = { 0 };
	int err;

	d9__builder_begin(&last);
	put_metadata(r, &last, r->tail.lossy ? "false" : "true", r->tail.last_ns);
	err = d9__segment_tail_seal(&r->tail, fd, &last);
	d9__builder_release(&last);
	return err;
}

/* What was opened and has nothing in it goes: what matters is the end of the one before. */
static int remove_empty(struct rescue *r)
{
	int err = 0;

	while (!err && r->active && !r->tail.n_batches) {
		err = d9__file_remove(r->writer.ns.dir_fd, r->newest);
		if (err)
			return fail(r, "remove", err);
		r->newest[0] = '\0';
		r->active = false;
		d9__segment_tail_release(&r->tail);
		err = find_newest(r);
		if (!err)
			err = read_tail(r);
	}
	return err;
}

/* Seal what the process was writing. */
static int seal_active(struct rescue *r)
{
	char name[sizeof(r->newest)];
	int dir = r->writer.ns.dir_fd, fd, err = 0;

	if (!r->active)
		return 0;
	fd = d9__file_open(dir, r->newest, O_RDWR);
	if (fd < 0)
		return fail(r, "open", fd);
	err = seal_file(r, fd);
	close(fd);
	if (err)
		return fail(r, "write", err);
	strcpy(name, r->newest);
	name[strlen(name) - strlen(".active")] = '\0';
	err = d9__file_rename(dir, r->newest, name);
	if (err)
		return fail(r, "rename", err);
	r->out->sealed = true;
	return 0;
}

/* ---- the ring ---- */

/* In flight mode the chunks before the oldest of a slot made room, and are not missed. */
static void begin_with_oldest(struct rescue *r)
{
	bool seen[D9__SLOT_COUNT] = { false };

	for (uint32_t i = 0; i < r->ring->n_batches; i++) {
		const struct d9__batch *batch = &r->ring->batches[i].batch;
		struct d9__drain_slot *st = &r->drain->slot[batch->slot];

		if (seen[batch->slot])
			continue;
		seen[batch->slot] = true;
		st->partly = batch->taken_bytes != 0;
		st->serial = batch->serial - !st->partly;
	}
}

/* Go on where the process was killed. */
static void set_progress(struct rescue *r)
{
	const struct d9__ring *view = &r->ring->view;

	r->drain->ring = &r->ring->view;
	for (uint32_t i = 0; i <= D9__SLOT_COUNT; i++) {
		struct d9__drain_slot *st = &r->drain->slot[i];
		struct d9__losses *losses = i == D9__SLOT_COUNT ? view->proc_losses :
								  &view->losses[i];
		uint64_t written = i == D9__SLOT_COUNT ? 0 :
				   atomic_load_explicit(&view->slots[i].written,
							memory_order_relaxed);

		st->serial = (uint32_t)(written >> 32);
		st->partly = written && !(written & 1);
		st->worker = UINT32_MAX;
		for (int cause = 0; cause < D9__LOSS_CAUSES; cause++) {
			struct d9__loss *loss = &losses->cause[cause];

			uint64_t events = atomic_load_explicit(&loss->events,
							       memory_order_relaxed);

			/* Killed within us of the write that told of it: told twice, but not hidden. */
			st->lost[cause] = atomic_load_explicit(&loss->noted, memory_order_relaxed);
			if (st->lost[cause] > events)
				st->lost[cause] = events;
			r->out->lost += events - st->lost[cause];
		}
	}
	if (atomic_load_explicit(&r->ring->header.flight, memory_order_relaxed))
		begin_with_oldest(r);
	for (size_t i = 0; i < r->tail.n_batches; i++)
		d9__drain_follow(r->drain, r->tail.data + r->tail.batch[i].at,
				 r->tail.batch[i].len);
}

static int write_batches(struct rescue *r, uint64_t now_ns)
{
	int err = 0;

	for (uint32_t i = 0; !err && i < r->ring->n_batches; i++) {
		struct d9__batch *batch = &r->ring->batches[i].batch;
		struct d9__drain_slot *st = &r->drain->slot[batch->slot];

		err = d9__dead_ring_read(r->ring, i);
		if (!err && batch->serial != st->serial + !st->partly)
			d9__writer_lossy(&r->writer);
		if (!err)
			err = d9__drain_take(r->drain, batch, false, now_ns);
		st->partly = false;
		r->out->events += batch->events - batch->taken_events;
		if (!err && i % GROUP == GROUP - 1)
			err = d9__writer_commit(&r->writer, now_ns);
	}
	return err;
}

/* Ours are known; those of the program have to stand in its description, and there is room for a few in a batch. */
static bool define_type(const struct rescue *r, struct d9__builder *to, uint32_t type_id)
{
	const struct type *type;

	if (type_id < D9__EVENT_PROGRAM)
		return type_id && type_id < D9__EVENT_BUILTIN_END;
	if (type_id >= D9__TYPES_MAX)
		return false;
	type = &r->types[type_id - D9__EVENT_PROGRAM];
	return type->frames && d9__builder_define(to, (uint16_t)type_id, type->frames, type->len);
}

struct probe {
	unsigned events;
	bool last; /* the last frame is one */
};

static bool count_events(void *arg, const struct d9__wire_frame *frame)
{
	struct probe *found = arg;

	found->last = frame->tag == D9__WIRE_EVENT;
	found->events += found->last;
	return true;
}

/* Whether the record's bytes are the fields of one event, no less and no more. */
static bool is_event(struct rescue *r, const struct d9__side_record *record)
{
	struct probe found = { 0 };

	if (d9__side_is_raw(record))
		return d9__side_is_sound(record);
	d9__builder_begin(&r->probe);
	if (!define_type(r, &r->probe, record->type_id))
		return false;
	d9__side_build(&r->probe, record);
	return !r->probe.failed &&
	       !d9__walk(r->walker, r->probe.data, (uint32_t)r->probe.len, count_events, &found) &&
	       found.events == 1 && found.last;
}

static void add_side_records(struct rescue *r, uint8_t *chunk)
{
	struct d9__side_record record;

	while (d9__side_take_from(chunk, &record)) {
		if (is_event(r, &record) && define_type(r, &r->drain->note, record.type_id))
			d9__side_build(&r->drain->note, &record);
		else
			r->ring->bad_events++;
	}
}

static int write_side_rings(struct rescue *r, uint64_t now_ns)
{
	struct d9__builder *note = &r->drain->note;
	uint8_t *chunk;

	d9__builder_begin(note);
	for (uint32_t i = 0; i < D9__SLOT_COUNT; i++)
		if ((chunk = d9__dead_ring_side(r->ring, i)))
			add_side_records(r, chunk);
	r->out->events += note->events;
	if (!note->events)
		return 0;
	return d9__writer_add(&r->writer, note->data, note->len, note->first_ns, note->last_ns,
			      note->events, now_ns);
}

/* What the health page knows of the call that |slot| has open, or NULL. */
static const struct d9__ring_open *find_open(const struct d9__ring_health *health, const struct d9__slot *slot)
{
	for (uint32_t i = 0; i < health->n_open && i < D9__RING_OPEN_MAX; i++)
		if (health->open[i].worker == slot->worker && health->open[i].task == slot->task)
			return &health->open[i];
	return NULL;
}

/* True if the ring tells of a function as a recorder writes it. */
static bool is_sound_inner(const struct d9__ring_inner *inner, const struct d9__ring_health *health)
{
	static const char *const libraries[] = { "own", "libevent", "libev", "glib" };
	bool known = false;

	for (size_t i = 0; i < sizeof(libraries) / sizeof(libraries[0]); i++)
		known |= !strncmp(inner->library, libraries[i], sizeof(inner->library));
	return known && memchr(inner->name, '\0', sizeof(inner->name)) && inner->since_ns &&
	       inner->since_ns <= health->tick_ns;
}

/* The function that the call of |slot| was in, which its library had called: its own event was to
 * come at its end. */
static void add_inner(struct d9__builder *note, const struct d9__slot *slot,
		      const struct d9__ring_inner *inner, const struct d9__ring_health *health)
{
	uint64_t id = atomic_load_explicit(&inner->id, memory_order_relaxed);
	bool fits = id && inner->worker == slot->worker && inner->task == slot->task &&
		    is_sound_inner(inner, health);
	int type = fits ? d9__span_enter_of(inner->library) : -1;
	uint32_t name;
	uint8_t *p;

	if (type < 0)
		return;
	name = d9__builder_name(note, inner->name);
	p = d9__builder_event(note, (uint16_t)type, inner->since_ns,
			      3 * D9__VARINT_MAX + 1 + 2 * 4);
	if (!p)
		return;
	p = d9__varint_put(p, slot->worker);
	p = d9__varint_put(p, id);
	*p++ = false; /* parent_span_id */
	p = d9__wire_put_u32(p, name);
	p = d9__varint_put(p, id);
	d9__builder_end(note, d9__wire_put_u32(p, d9__slot_tid(slot)));
}

static void add_last_sign(struct d9__builder *note, const struct d9__slot *slot,
			  const struct d9__ring_health *health, uint64_t seen_ns, uint32_t no_span)
{
	const struct d9__ring_open *open = find_open(health, slot);
	uint8_t *p;

	/* The trace has it, and with the function of the program that it is in. */
	if (open && open->sign_ns && seen_ns - open->sign_ns < D9__OPEN_CALL_NS)
		return;
	p = d9__builder_event(note, D9__EVENT_LAST_SIGN, seen_ns, 3 * D9__VARINT_MAX + 4);
	if (!p)
		return;
	p = d9__varint_put(p, slot->worker);
	p = d9__varint_put(p, slot->task);
	p = d9__varint_put(p, open ? open->since_ns : slot->last_ns);
	d9__builder_end(note, d9__wire_put_u32(p, no_span));
}

/*
 * Callbacks that were open when the process died, and had been for a while, were so at its last
 * tick, and when any of its threads told something last: how long they took is known up to there.
 */
static int write_last_signs(struct rescue *r, uint64_t now_ns)
{
	const struct d9__ring_health *health =
		(const struct d9__ring_health *)(const void *)(r->ring->head + D9__RING_HEALTH_AT);
	const struct d9__ring_inner *inner =
		(const struct d9__ring_inner *)(const void *)(r->ring->head + D9__RING_INNER_AT);
	struct d9__builder *note = &r->drain->note;
	/* Behind the event, which is of the time when it was open. */
	uint64_t told_ns = r->writer.seg.has.last_ns + 1;
	uint64_t seen_ns = told_ns > health->tick_ns ? told_ns : health->tick_ns;
	uint32_t no_span;

	/* Switched off, nobody wrote down that it returned. */
	if (health->state == D9__STATE_DISABLED)
		return 0;
	d9__builder_begin(note);
	no_span = d9__builder_name(note, "");
	for (uint32_t i = 0; i < D9__SLOT_COUNT; i++) {
		const struct d9__slot *slot = &r->ring->view.slots[i];

		if (atomic_load_explicit(&slot->owner, memory_order_relaxed) >> 32 ==
			    D9__SLOT_TAKEN &&
		    slot->worker_state == D9__WORKER_POLLING && slot->worker < D9__WORKER_NONE &&
		    health->tick_ns > slot->last_ns &&
		    health->tick_ns - slot->last_ns >= D9__OPEN_CALL_NS) {
			for (uint32_t k = 0; k < D9__RING_OPEN_MAX; k++)
				add_inner(note, slot, &inner[k], health);
			add_last_sign(note, slot, health, seen_ns, no_span);
		}
	}
	if (!note->events || note->failed)
		return 0;
	return d9__writer_add(&r->writer, note->data, note->len, note->first_ns, note->last_ns, note->events, now_ns);
}

/* What the process noted and its trace does not have.  For that alone no segment is made. */
static int write_log(struct rescue *r, uint64_t now_ns)
{
	const struct d9__notes *notes = (const struct d9__notes *)(const void *)(r->ring->head + D9__RING_NOTES_AT);
	uint32_t told = (uint32_t)atomic_load_explicit(&notes->told, memory_order_relaxed);

	d9__builder_begin(&r->drain->note);
	d9__note_events_of(notes, told, 0, &r->drain->note);
	return d9__writer_note(&r->writer, &r->drain->note, false, now_ns);
}

/* Losses that the trace does not tell of yet, and what we had to leave out. */
static void write_losses(struct rescue *r, uint64_t now_ns)
{
	struct d9__loss *loss = &r->ring->view.proc_losses->cause[D9__LOSS_DISK];

	if (r->ring->bad || r->ring->bad_events)
		d9__writer_lossy(&r->writer);
	atomic_fetch_add_explicit(&loss->events, r->ring->bad_events, memory_order_relaxed);
	r->out->lost += r->ring->bad_events;
	r->out->bad = r->ring->bad;
	d9__drain_losses(r->drain, now_ns);
}

/* Give up a segment that could not be written: the ring still has it all. */
static void discard(struct rescue *r)
{
	struct d9__segment *seg = &r->writer.seg;
	char active[D9__SEGMENT_NAME_MAX + 8];

	if (!seg->name[0])
		return;
	snprintf(active, sizeof(active), "%s.active", seg->name);
	/* One of them is there. */
	d9__file_remove(r->writer.ns.dir_fd, active);
	d9__file_remove(r->writer.ns.dir_fd, seg->name);
}

static int write_ring(struct rescue *r)
{
	uint64_t now_ns = d9__clock_mono_ns();
	int err = d9__drain_init(r->drain, &r->writer);

	if (err)
		return fail(r, "read", err);
	set_progress(r);
	err = write_batches(r, now_ns);
	if (!err)
		err = write_side_rings(r, now_ns);
	if (!err)
		err = write_last_signs(r, now_ns);
	if (!err)
		err = write_log(r, now_ns);
	if (!err) {
		write_losses(r, now_ns);
		err = d9__writer_commit(&r->writer, now_ns);
	}
	if (!err)
		err = d9__writer_rotate(&r->writer, now_ns);
	if (!err && r->writer.retry_ns) /* d9__drain_losses() met an error */
		err = atomic_load_explicit(&r->counters.error, memory_order_relaxed);
	if (err)
		discard(r);
	return err ? fail(r, "write", err) : 0;
}

/* ---- all of it ---- */

static void prepare_writer(struct rescue *r)
{
	struct d9__writer *w = &r->writer;

	w->kind = D9_WRITER_SINGLE; /* one segment, and no budget */
	w->compress = r->newest[0] ? kind_of(r->newest) : D9_COMPRESS_ZSTD;
	w->counters = &r->counters;
	w->kept_last = &w->kept;
	w->seg.fd = -1;
	w->lead = lead_in;
	w->lead_arg = r;
	d9__retention_init(&w->ret, UINT64_MAX, UINT64_MAX, UINT64_MAX);
	w->ret.next_index = r->newest[0] ? r->index + 1 : 0;
	if (w->ret.next_index < r->shipped_next)
		w->ret.next_index = r->shipped_next;
}

static int load_ring(struct rescue *r)
{
	int err = d9__dead_ring_load(r->ring, &r->tail, r->walker);

	r->first_ns = r->ring->first_ns ? r->ring->first_ns : r->ring->header.anchor.mono_ns;
	/* Segments are put in order by the times they were opened: behind what is sealed already. */
	if (r->first_ns < r->tail.last_ns)
		r->first_ns = r->tail.last_ns;
	if (!err)
		take_description(r);
	return err ? fail(r, "read the ring", err) : 0;
}

/*
 * A recovery before this one was killed.  What it had begun is thrown away.  True if it had been
 * complete but for the ring's removal.
 */
static bool undo_earlier(struct rescue *r)
{
	uint64_t index = r->ring ? r->ring->header.recovery : 0;

	/* It was complete, if it has been sent already. */
	if (index && r->shipped_next >= index)
		return true;
	if (!index || !r->newest[0] || r->index != index - 1)
		return false;
	if (!r->active)
		return true;
	d9__file_remove(r->writer.ns.dir_fd, r->newest);
	r->newest[0] = '\0';
	r->active = false;
	return false;
}

static int run(struct rescue *r)
{
	int err = find_newest(r);

	r->shipped_next = d9__shipped_next(r->writer.ns.dir_fd);
	if (!err && undo_earlier(r)) {
		d9__dead_ring_unlink(r->ring);
		return 0;
	}
	if (!err && !r->newest[0])
		err = find_newest(r);
	if (!err)
		err = read_tail(r);
	if (!err)
		err = remove_empty(r);
	if (!err && r->ring)
		err = load_ring(r);
	if (!err)
		err = seal_active(r);
	if (err || !r->ring)
		return err;
	D9__TEST_POINT(RESCUE_SEALED);
	prepare_writer(r);
	d9__dead_ring_begin(r->ring, r->writer.ret.next_index);
	D9__TEST_POINT(RESCUE_BEGUN);
	err = write_ring(r);
	D9__TEST_POINT(RESCUE_WRITTEN);
	if (!err)
		d9__dead_ring_unlink(r->ring);
	return err;
}

static int prepare(struct rescue *r, struct d9__dead_ring *ring, struct d9__recovered *out)
{
	r->ring = ring;
	r->out = out;
	r->walker = d9__malloc(sizeof(*r->walker));
	r->drain = d9__calloc(1, sizeof(*r->drain));
	r->types = d9__calloc(D9__TYPES_MAX - D9__EVENT_PROGRAM, sizeof(*r->types));
	return r->walker && r->drain && r->types ? d9__event_types_init() : -ENOMEM;
}

static void release(struct rescue *r)
{
	d9__segment_release(&r->writer.seg);
	d9__builder_release(&r->writer.note);
	d9__retention_release(&r->writer.ret);
	if (r->drain)
		d9__drain_release(r->drain);
	d9__segment_tail_release(&r->tail);
	d9__builder_release(&r->probe);
	d9__free(r->drain);
	d9__free(r->walker);
	d9__free(r->description);
	d9__free(r->types);
	d9__free(r);
}

bool d9__rescue_into(const struct d9__namespace *ns, struct d9__dead_ring *ring, struct d9__recovered *out)
{
	struct rescue *r = d9__calloc(1, sizeof(*r));

	out->err = r ? prepare(r, ring, out) : -ENOMEM;
	if (!out->err) {
		r->writer.ns = *ns;
		r->writer.seg.fd = -1;
		r->writer.has_dir = true;
		out->err = run(r);
	}
	if (r)
		release(r);
	/* The ring of a recorder that was stopped before its process died holds nothing. */
	return out->err || (ring && out->events + out->lost + out->bad) || out->sealed;
}

void d9__rescue_describe(const char *dir, const char *boot_id, const struct d9__dead_ring *ring,
			 struct d9__recovered *out)
{
	*out = (struct d9__recovered){ .uid = geteuid(), .ring = ring != NULL };
	snprintf(out->dir, sizeof(out->dir), "%s/%s", dir, boot_id);
	if (!ring)
		return;
	out->pid = ring->header.pid;
	memcpy(out->service, ring->header.service, sizeof(out->service));
}

bool d9__rescue(const char *trace_dir, const char *boot_id, struct d9__dead_ring *ring,
		struct d9__recovered *out)
{
	struct d9__namespace ns;
	bool found;

	d9__rescue_describe(trace_dir, boot_id, ring, out);
	out->err = d9__namespace_inherit(&ns, trace_dir, boot_id);
	if (out->err) {
		out->op = "open";
		return out->err != -EBUSY;
	}
	found = d9__rescue_into(&ns, ring, out);
	d9__namespace_close(&ns);
	return found;
}
