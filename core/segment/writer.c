/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/heap.h"
#include "base/options.h"
#include "base/test_point.h"
#include "base/time.h"
#include "format/encoder.h"
#include "ring/clock.h"
#include "ring/event_types.h"
#include "ring/note.h"
#include "segment/directory_helper.h"
#include "segment/metadata.h"
#include "segment/modules.h"
#include "segment/writer.h"

#define BACKOFF_MAX_NS (30 * D9__SECOND_NS)
#define WARN_EVERY_NS  (60 * D9__SECOND_NS)
#define CLOCK_MOVED_NS INT64_C(1000000)
#define RAW_SHARE      4 /* of the budget, one part: what may lie raw */
#define RAW_LEAST                                                                                  \
	(64 << 10) /* what a thread hands over at a time: less is left where none of that fits */
#define RAW_TOLD    (8 << 20)
#define RAW_LOOK_NS (10 * D9__SECOND_NS)
#define FACTS_MAX   6 /* keys and values that a segment says of itself */

static void count(_Atomic(uint64_t) *counter, uint64_t n)
{
	atomic_fetch_add_explicit(counter, n, memory_order_relaxed);
}

void d9__writer_init(struct d9__writer *w, const struct d9_options *options, const char *boot_id,
		     struct d9__writer_counters *counters)
{
	*w = (struct d9__writer){
		.kind = (enum d9_writer)d9__options_number(options, D9__OPTION_WRITER),
		.compress = (enum d9_compress)d9__options_number(options, D9__OPTION_COMPRESS),
		.collect = d9__options_number(options, D9__OPTION_GC_DEAD_NAMESPACES),
		.counters = counters,
		.giver = d9__options_text(options, D9__OPTION_GIVER),
		.ns = { .parent_fd = -1, .dir_fd = -1, .lock_fd = -1 },
		.seg = { .fd = -1 },
		.cut_index = UINT64_MAX,
	};
	w->kept_last = &w->kept;
	snprintf(w->ns.boot_id, sizeof(w->ns.boot_id), "%s", boot_id);
	d9__retention_init(&w->ret, d9__options_number(options, D9__OPTION_MAX_TOTAL_BYTES),
			   d9__options_number(options, D9__OPTION_MAX_FILE_BYTES),
			   d9__options_number(options, D9__OPTION_ROTATION_MS) * D9__MS_NS);
	w->ret.dump_budget = d9__options_number(options, D9__OPTION_MAX_DUMP_BYTES);
	if (w->kind == D9_WRITER_SINGLE)
		w->ret.file_limit = w->ret.rotation_ns = UINT64_MAX;
}

static bool has_files(const struct d9__writer *w)
{
	return w->kind == D9_WRITER_ROTATING || w->kind == D9_WRITER_SINGLE;
}

static void drop_kept(struct d9__writer *w, uint64_t index)
{
	for (struct d9_sealed_segment **p = &w->kept; *p; p = &(*p)->next) {
		struct d9_sealed_segment *segment = *p;

		if (segment->index != index)
			continue;
		*p = segment->next;
		if (!*p)
			w->kept_last = p;
		d9__sealed_segment_drop(segment);
		return;
	}
}

static bool evict(struct d9__writer *w, const struct d9__family *victim)
{
	bool gone = true;

	if (has_files(w))
		gone = !d9__namespace_evict(&w->ns, victim);
	else
		drop_kept(w, victim->index);
	/* A segment that cannot be deleted is forgotten, because it would be tried for ever. */
	d9__retention_remove(&w->ret, victim, gone);
	return gone;
}

/* In the metadata of all that follows: "ID,ID". */
static void tell_evicted_dump(struct d9__writer *w, const char *id)
{
	char text[D9__EVICTED_MAX * D9__RETENTION_ID] = "";

	if (w->n_evicted_dumps == D9__EVICTED_MAX)
		memmove(w->evicted_dumps, w->evicted_dumps + 1, --w->n_evicted_dumps * sizeof(w->evicted_dumps[0]));
	memcpy(w->evicted_dumps[w->n_evicted_dumps++], id, D9__RETENTION_ID);
	for (unsigned i = 0; i < w->n_evicted_dumps; i++) {
		if (i)
			strcat(text, ",");
		strcat(text, w->evicted_dumps[i]);
	}
	d9__metadata_set("dumps.evicted", text);
}

/* The manifest first: what it lists is there. */
static void evict_dump(struct d9__writer *w, struct d9__retained_dump *dump)
{
	struct d9__family family;

	if (has_files(w))
		d9__namespace_evict_manifest(&w->ns, dump->peer, dump->id);
	for (size_t i = 0; i < dump->n; i++)
		if (d9__retention_is_left(&w->ret, dump->peer, dump->segments[i], &family))
			evict(w, &family);
	d9__note(D9_LOG_INFO, "dump %s was deleted, for the budget of dumps is full", dump->id);
	tell_evicted_dump(w, dump->id);
	d9__free(dump->segments);
}

/* That our own go while those of dead processes stay is told, once for each time that a shipper is there. */
static void spare_peers(struct d9__writer *w, bool spare)
{
	w->ret.spares_peers = spare;
	w->told_spared &= spare;
}

static void tell_victim(struct d9__writer *w, bool gone)
{
	d9__note(gone ? D9_LOG_INFO : D9_LOG_WARNING, "%s, for the budget is full",
		 gone ? "the oldest segment was deleted" : "the oldest segment cannot be deleted");
	if (gone && w->ret.spares_peers && w->ns.n_peers && !w->told_spared) {
		w->told_spared = true;
		d9__note(D9_LOG_INFO, "segments of dead processes are left to dial9 ship, which is there: ours are deleted first");
	}
}

/* ---- raw frames ---- */

/* `dial9 ship` compresses what it finds raw.  Which families it did is told by their length. */
static void look_at_raw(struct d9__writer *w)
{
	for (size_t i = 0; w->has_dir && i < w->ret.n; i++) {
		const struct d9__family family = w->ret.families[i];
		char name[D9__SEGMENT_NAME_MAX];
		struct stat st;

		if (!family.raw)
			continue;
		snprintf(name, sizeof(name), "trace.%" PRIu64 "%s", family.index,
			 d9__packer_suffix(w->compress));
		if (fstatat(w->ns.dir_fd, name, &st, AT_SYMLINK_NOFOLLOW))
			d9__retention_set_raw(&w->ret, family.index,
					      errno == ENOENT ? 0 : family.raw);
		else if ((uint64_t)st.st_size < family.bytes)
			d9__retention_repacked(&w->ret, family.index, (uint64_t)st.st_size);
	}
}

/* Bytes that may still be written raw, beside those of the segment that is open. */
static uint64_t raw_left(const struct d9__writer *w)
{
	uint64_t share = w->ret.budget / RAW_SHARE;

	return share > w->ret.raw ? share - w->ret.raw : 0;
}

static void allow_raw(struct d9__writer *w)
{
	w->seg.packer.raw_limit = w->pressed ? raw_left(w) : 0;
}

/* Of what is kept in memory that is dearer than a CPU. */
static bool may_be_raw(const struct d9__writer *w)
{
	return has_files(w) && w->compress == D9_COMPRESS_ZSTD;
}

/* In the segment that is open. */
static uint64_t raw_open(const struct d9__writer *w)
{
	return w->seg.open ? w->seg.packer.raw_bytes : 0;
}

static uint64_t raw_ever(const struct d9__writer *w)
{
	return atomic_load_explicit(&w->counters->raw, memory_order_relaxed) + raw_open(w);
}

static void tell_raw(struct d9__writer *w)
{
	char text[24];

	w->told_raw = raw_ever(w);
	snprintf(text, sizeof(text), "%" PRIu64, w->told_raw);
	d9__metadata_set("recorder.raw", w->pressed ? "on" : "off");
	d9__metadata_set("recorder.raw_bytes", text);
}

static void change_pressure(struct d9__writer *w, bool pressed)
{
	w->pressed = pressed;
	tell_raw(w);
	d9__note(D9_LOG_INFO, pressed ? "pressure: frames are written raw from now on"
				      : "no more pressure: frames are compressed again");
}

bool d9__writer_press(struct d9__writer *w, bool pressed, uint64_t now_ns)
{
	bool full;

	pressed &= may_be_raw(w);
	if (w->pressed != pressed)
		change_pressure(w, pressed);
	else if (pressed && raw_ever(w) - w->told_raw >= RAW_TOLD)
		tell_raw(w);
	if (pressed && w->ret.raw && now_ns - w->raw_seen_ns >= RAW_LOOK_NS) {
		w->raw_seen_ns = now_ns;
		look_at_raw(w);
	}
	allow_raw(w);
	full = pressed && raw_open(w) + RAW_LEAST > w->seg.packer.raw_limit;
	if (full && !w->told_share)
		d9__note(D9_LOG_INFO, "a quarter of the disk budget is raw: frames are compressed, "
				      "pressure or not");
	w->told_share |= full;
	w->told_share &= pressed;
	return pressed;
}

static void keep_budget(struct d9__writer *w)
{
	struct d9__retained_dump dump;
	struct d9__family victim;

	if (w->ret.raw && d9__retention_victim(&w->ret, &victim))
		look_at_raw(w);
	while (d9__retention_take_dump(&w->ret, &dump))
		evict_dump(w, &dump);
	while (w->kind != D9_WRITER_SINGLE && d9__retention_victim(&w->ret, &victim)) {
		bool gone;

		if (victim.dumps) {
			d9__retention_leave(&w->ret, victim.peer, victim.index);
			while (d9__retention_take_dump(&w->ret, &dump))
				evict_dump(w, &dump);
			continue;
		}
		gone = evict(w, &victim);
		tell_victim(w, gone);
	}
}

static const char *text_of(int err)
{
#ifdef HAVE_STRERRORDESC_NP
	return strerrordesc_np(err) ? strerrordesc_np(err) : "unknown error";
#else
	return strerror(err); /* glibc before 2.32: for errors that it knows as good */
#endif
}

/* Behind chroot(2) it is not to be made: who runs `dial9 record` has made it. */
static bool is_missing(const char *trace_dir)
{
	struct stat st;

	return stat(trace_dir, &st) != 0;
}

int d9__writer_open(struct d9__writer *w, const char *trace_dir, uint64_t clock)
{
	int err;

	if (!has_files(w) || w->has_dir)
		return 0;
	w->uid = geteuid();
	err = w->giver && is_missing(trace_dir) ? -errno : d9__namespace_open(&w->ns, trace_dir, clock);
	if (err && (!w->giver || d9__directory_helper_ask(w->giver, &w->ns, trace_dir, clock)))
		return err;
	w->has_dir = true;
	d9__metadata_set("segment.evicted", NULL); /* was of another directory */
	d9__metadata_set("dumps.evicted", NULL);
	d9__namespace_scan(&w->ns, &w->ret);
	keep_budget(w);
	return 0;
}

void d9__writer_follow_user(struct d9__writer *w)
{
	uid_t real, effective, saved;
	int err;

	if (!w->has_dir || getresuid(&real, &effective, &saved) || w->uid == effective)
		return;
	/* A process that can go back, as servers that act for a user for a moment, keeps its own directory. */
	if (real != effective || saved != effective)
		return;
	w->uid = effective;
	d9__note(D9_LOG_INFO, "the program became user %u", (unsigned)effective);
	if (w->giver && (err = d9__directory_helper_ask(w->giver, &w->ns, w->ns.trace_dir, 0)))
		d9__note(D9_LOG_WARNING, "the directory was not given to this user: %s", text_of(-err));
}

static int renew(struct d9__writer *w)
{
	int err = d9__namespace_renew(&w->ns);

	return err && w->giver && !d9__directory_helper_ask(w->giver, &w->ns, w->ns.trace_dir, 0) ? 0 : err;
}

void d9__writer_collect(struct d9__writer *w)
{
	if (!w->has_dir || !w->collect)
		return;
	d9__namespace_collect(&w->ns, &w->ret);
	spare_peers(w, d9__namespace_shipping(&w->ns) != D9__SHIPPING_NONE);
	keep_budget(w);
}

/* ---- what leads a segment in ---- */

static int64_t offset_of(const struct d9__anchor *anchor)
{
	return (int64_t)(anchor->real_ns - anchor->mono_ns);
}

static void put_clock(struct d9__writer *w, const struct d9__anchor *anchor)
{
	uint8_t *p;

	d9__builder_begin(&w->note);
	p = d9__builder_event(&w->note, D9__EVENT_CLOCK_SYNC, anchor->mono_ns, D9__VARINT_MAX);
	if (p)
		d9__builder_end(&w->note, d9__varint_put(p, anchor->real_ns));
	w->clock_offset = offset_of(anchor);
}

/* An optional value: 0 is unknown. */
static uint8_t *put_known(uint8_t *p, uint64_t value)
{
	*p++ = value != 0;
	return value ? d9__varint_put(p, value) : p;
}

static void put_module(void *arg, const struct d9__module *module)
{
	static const char digits[] = "0123456789abcdef";
	struct d9__builder *note = arg;
	size_t path_len = strlen(module->path);
	char hex[2 * D9__BUILD_ID_MAX];
	uint8_t *p;

	for (unsigned i = 0; i < module->build_id_len; i++) {
		hex[2 * i] = digits[module->build_id[i] >> 4];
		hex[2 * i + 1] = digits[module->build_id[i] & 15];
	}
	p = d9__builder_event(note, D9__EVENT_MODULE,
			      module->loaded ? d9__clock_mono_ns() : module->gone_ns,
			      6 * D9__VARINT_MAX + path_len + sizeof(hex) + 12);
	if (!p)
		return;
	p = d9__varint_put(p, module->base);
	p = d9__varint_put(p, module->start);
	p = d9__varint_put(p, module->end - module->start);
	p = d9__wire_put_text(p, module->path, path_len);
	p = d9__wire_put_text(p, hex, 2u * module->build_id_len);
	*p++ = !module->loaded;
	p = put_known(p, module->file_size);
	p = put_known(p, module->file_mtime_ns);
	p = put_known(p, module->file_inode);
	d9__builder_end(note, p);
}

void d9__writer_describe(struct d9__builder *out)
{
	d9__metadata_write(out, d9__clock_mono_ns(), NULL);
	d9__modules_each(put_module, out);
}

int d9__writer_lead(struct d9__writer *w, const struct d9__builder *note, uint64_t now_ns)
{
	if (note->failed)
		return -ENOMEM;
	if (!note->events)
		return 0;
	return d9__segment_add(&w->seg, note->data, note->len, note->first_ns, note->last_ns,
			       0, false, now_ns);
}

static int add_note(struct d9__writer *w, uint64_t now_ns)
{
	return d9__writer_lead(w, &w->note, now_ns);
}

static int add_clock(struct d9__writer *w, uint64_t now_ns)
{
	struct d9__anchor anchor;

	d9__clock_anchor(&anchor, 8);
	put_clock(w, &anchor);
	return add_note(w, now_ns);
}

/* Write the metadata of the process, at |ns|, with |facts| of the segment: keys and values, NULL behind the last. */
static int add_metadata(struct d9__writer *w, const char *const *facts, uint64_t ns, uint64_t now_ns)
{
	const char *more[D9__WRITER_MORE + FACTS_MAX] = { NULL };
	size_t n = 0;
	int err;

	while (facts[n]) {
		more[n] = facts[n];
		n++;
	}
	memcpy(more + n, w->more, sizeof(w->more));
	w->metadata_written = d9__metadata_generation();
	d9__metadata_write(&w->note, ns, more);
	err = add_note(w, now_ns);
	return err ? err : add_clock(w, now_ns);
}

/* With the time of the list of living tasks, whose events follow: readers in order of time learn first what these are. */
static int add_first_metadata(struct d9__writer *w, uint64_t now_ns)
{
	char told[24];
	const char *facts[] = { "segment.prior_sealed_clean", w->prior == D9__SEALED_CLEAN ? "true" : "false",
				w->lead_in ? "segment.told_ns" : NULL, told, NULL };

	if (w->prior == D9__SEALED_NONE)
		return add_metadata(w, (const char *[]){ NULL }, d9__clock_mono_ns(), now_ns);
	if (w->lead_in && !w->living.ns)
		w->lead_in->list(&w->living, w->ret.file_limit);
	snprintf(told, sizeof(told), "%llu", (unsigned long long)w->living.ns);
	return add_metadata(w, facts, w->lead_in ? w->living.ns : d9__clock_mono_ns(), now_ns);
}

static int add_last_metadata(struct d9__writer *w, uint64_t now_ns)
{
	const char *complete = w->seg.complete ? "true" : "false";
	char raw[24];
	const char *facts[] = { "segment.complete",
				complete,
				"segment.sealed_clean",
				"true",
				w->seg.packer.raw_bytes ? "segment.raw_bytes" : NULL,
				raw,
				NULL };

	if (w->lead)
		return w->lead(w, complete, now_ns);
	d9__metadata_settle();
	snprintf(raw, sizeof(raw), "%" PRIu64, w->seg.packer.raw_bytes);
	return add_metadata(w, facts, d9__clock_mono_ns(), now_ns);
}

static int add_modules(struct d9__writer *w, uint64_t now_ns)
{
	w->modules_written = d9__modules_generation();
	d9__builder_begin(&w->note);
	d9__modules_report(put_module, &w->note);
	return add_note(w, now_ns);
}

static void finish_cut(struct d9__writer *w, bool kept);

/* Finish the segment that the last error left behind, which comes first. */
static int finish_earlier(struct d9__writer *w)
{
	bool kept;
	int err = d9__segment_finish(&w->seg, w->ns.dir_fd, &kept);

	if (!err)
		finish_cut(w, kept);
	return err;
}

int d9__writer_finish_dump(struct d9__writer *w)
{
	uint64_t index = w->seg.index;
	int err;

	if (!w->seg.unfinished || w->seg.open)
		return 0;
	err = finish_earlier(w);
	if (!err)
		d9__retention_leave(&w->ret, 0, index);
	return err;
}

static int begin_segment(struct d9__writer *w, uint64_t now_ns)
{
	struct d9__segment_place place = { w->ns.dir_fd, !has_files(w), w->compress };
	int err = w->seg.unfinished ? finish_earlier(w) : 0;

	if (err)
		return err;
	err = d9__segment_open(&w->seg, &place, w->ret.next_index, now_ns);
	if (err == -EEXIST) {
		/* Somebody put a file of that name there: it is not ours, take the next number. */
		w->ret.next_index++;
		err = d9__segment_open(&w->seg, &place, w->ret.next_index, now_ns);
	}
	if (err)
		return err;
	w->ret.next_index++;
	allow_raw(w);
	if (w->lossy)
		w->seg.complete = w->lossy = false;
	if (w->lead)
		return w->lead(w, NULL, now_ns);
	d9__modules_scan();
	d9__modules_renew();
	err = add_clock(w, now_ns);
	if (!err)
		err = add_first_metadata(w, now_ns);
	if (!err)
		err = add_modules(w, now_ns);
	if (!err && w->lead_in && w->living.ns)
		err = w->lead_in->tell(&w->living, w);
	D9__TEST_POINT(SEGMENT_LED_IN);
	return err;
}

/* Somebody set the wall clock: stamps go on as before, what they mean does not. */
static int refresh_clock(struct d9__writer *w, uint64_t now_ns)
{
	struct d9__anchor anchor;
	int64_t moved;

	d9__clock_anchor(&anchor, 2);
	moved = offset_of(&anchor) - w->clock_offset;
	if (moved > -CLOCK_MOVED_NS && moved < CLOCK_MOVED_NS)
		return 0;
	return add_clock(w, now_ns);
}

/* Once: what was found out at the start stays in a trace that has nothing else. */
static int keep_metadata(struct d9__writer *w, uint64_t now_ns)
{
	int err;

	if (w->metadata_kept || w->kind == D9_WRITER_NULL || !d9__metadata_is_kept())
		return 0;
	err = w->seg.open ? 0 : begin_segment(w, now_ns);
	if (!err)
		w->seg.has.real = w->metadata_kept = true;
	return err;
}

int d9__writer_refresh(struct d9__writer *w, uint64_t now_ns)
{
	int err = keep_metadata(w, now_ns);

	if (!w->seg.open && !err)
		return 0;
	if (!err)
		err = refresh_clock(w, now_ns);
	if (!err && w->metadata_written != d9__metadata_generation())
		err = add_metadata(w, (const char *[]){ NULL }, d9__clock_mono_ns(), now_ns);
	d9__modules_scan();
	if (!err && w->modules_written != d9__modules_generation())
		err = add_modules(w, now_ns);
	if (err)
		d9__writer_abandon(w, err, now_ns);
	return err;
}

/* ---- sealing ---- */

static struct d9_sealed_segment *describe(struct d9__writer *w)
{
	struct d9_sealed_segment *s = d9__calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	*s = (struct d9_sealed_segment){ .references = 1, .bytes = w->seg.bytes,
					 .index = w->seg.index, .events = w->seg.has.events,
					 .first_ns = w->seg.has.first_ns, .last_ns = w->seg.has.last_ns,
					 .complete = w->seg.complete };
	if (has_files(w)) {
		s->path = d9__text_of("%s/%s/%s", w->ns.trace_dir, w->ns.boot_id, w->seg.name);
	} else {
		s->data = w->seg.data;
		w->seg.data = NULL;
		w->seg.capacity = 0;
	}
	return s;
}

/* The segment was sealed and kept: account it, announce it. */
static void sealed(struct d9__writer *w)
{
	struct d9_sealed_segment *s = describe(w);

	w->prior = D9__SEALED_CLEAN;
	if (w->lead_in && !w->ending)
		w->lead_in->list(&w->living, w->ret.file_limit);
	count(&w->counters->sealed, 1);
	d9__retention_add(&w->ret, 0, w->seg.index, w->seg.bytes, d9__clock_real_ns());
	d9__retention_set_raw(&w->ret, w->seg.index, w->seg.packer.raw_bytes);
	if (w->seg.packer.raw_bytes) {
		count(&w->counters->raw, w->seg.packer.raw_bytes);
		tell_raw(w);
	}
	/* Of a dump. */
	if (w->more[0])
		d9__retention_leave(&w->ret, 0, w->seg.index);
	if (!s)
		return;
	if (!w->lead)
		d9__user_callbacks_announce(s);
	if (has_files(w)) {
		d9__sealed_segment_drop(s);
	} else {
		*w->kept_last = s;
		w->kept_last = &s->next;
	}
}

static void finish(struct d9__writer *w, bool kept)
{
	if (kept)
		sealed(w);
	d9__free(w->seg.data);
	w->seg.data = NULL;
	w->seg.capacity = 0;
	if (w->has_dir && w->ns.n_peers)
		spare_peers(w, d9__namespace_shipping(&w->ns) == D9__SHIPPING_NOW);
	keep_budget(w);
}

static void finish_cut(struct d9__writer *w, bool kept)
{
	finish(w, kept);
	if (!kept)
		return;
	w->prior = D9__SEALED_CUT;
	w->cut_index = w->seg.index;
}

int d9__writer_rotate(struct d9__writer *w, uint64_t now_ns)
{
	bool kept = false;
	uint64_t before;
	int err = 0;

	if (!w->seg.open)
		return 0;
	before = w->seg.bytes;
	if (w->seg.has.real)
		err = add_last_metadata(w, now_ns);
	if (!err)
		err = d9__segment_seal(&w->seg, now_ns, &kept);
	if (err) {
		d9__writer_abandon(w, err, now_ns);
		return err;
	}
	count(&w->counters->bytes_written, w->seg.bytes - before);
	finish(w, kept);
	return 0;
}

/* ---- errors ---- */

static void warn(struct d9__writer *w, int err, uint64_t now_ns)
{
	if (w->warned_ns && now_ns - w->warned_ns < WARN_EVERY_NS)
		return;
	w->warned_ns = now_ns;
	d9__log(D9_LOG_WARNING, "cannot %s in %s: %s%s", w->error_op, w->ns.trace_dir, text_of(-err),
		w->ending ? "" : "; trying again");
}

static void pause_writing(struct d9__writer *w, uint64_t now_ns)
{
	w->backoff_ns = w->backoff_ns ? w->backoff_ns * 2 : D9__SECOND_NS;
	if (w->backoff_ns > BACKOFF_MAX_NS)
		w->backoff_ns = BACKOFF_MAX_NS;
	w->retry_ns = now_ns + w->backoff_ns;
}

static bool is_linked(void *arg, const struct d9__family *family)
{
	const struct d9__writer *w = arg;

	return d9__namespace_is_linked(&w->ns, family);
}

/* In the metadata of all that follows, as "41-43,45". */
static void tell_evicted(struct d9__writer *w, uint64_t index)
{
	char text[D9__EVICTED_MAX * 42];
	unsigned n = w->n_evicted, len = 0;

	if (n && w->evicted[n - 1].last + 1 == index) {
		w->evicted[n - 1].last = index;
	} else {
		if (n == D9__EVICTED_MAX)
			memmove(w->evicted, w->evicted + 1, --n * sizeof(w->evicted[0]));
		w->evicted[n].first = w->evicted[n].last = index;
		w->n_evicted = ++n;
	}
	for (unsigned i = 0; i < w->n_evicted; i++) {
		uint64_t first = w->evicted[i].first, last = w->evicted[i].last;

		len += (unsigned)snprintf(text + len, sizeof(text) - len, i ? ",%" PRIu64 : "%" PRIu64, first);
		if (last != first)
			len += (unsigned)snprintf(text + len, sizeof(text) - len, "-%" PRIu64, last);
	}
	d9__metadata_set("segment.evicted", text);
}

/* On a full device, at our own cost only. */
static void make_room(struct d9__writer *w)
{
	struct d9__family victim;

	if (!has_files(w) || !d9__room_victim(&w->room, &w->ret, w->cut_index, is_linked, w, &victim) ||
	    !evict(w, &victim))
		return;
	d9__note(D9_LOG_WARNING, "segment %" PRIu64 " was deleted, for the device is full", victim.index);
	tell_evicted(w, victim.index);
}

static void failed(struct d9__writer *w, int err, uint64_t now_ns)
{
	atomic_store_explicit(&w->counters->error, err, memory_order_relaxed);
	count(&w->counters->errors, 1);
	w->error_ns = now_ns;
	w->error_op = w->seg.failed_op ? w->seg.failed_op : "write";
	warn(w, err, now_ns);
	if (w->all_or_nothing || w->more[0])
		return; /* of a dump: it is tried again, and other dumps are worth as much */
	d9__room_failed(&w->room);
	if (err == -ENOSPC || err == -EDQUOT)
		make_room(w);
	pause_writing(w, now_ns);
}

void d9__writer_abandon(struct d9__writer *w, int err, uint64_t now_ns)
{
	bool kept = false;

	if (w->seg.open) {
		if (w->all_or_nothing)
			w->seg.committed.real = false;
		d9__segment_cut(&w->seg, &kept);
		finish_cut(w, kept);
		w->metadata_kept &= kept || w->seg.unfinished;
	}
	failed(w, err, now_ns);
}

void d9__writer_keep_dump(struct d9__writer *w, const char *id, const uint64_t *segments, size_t n)
{
	d9__retention_add_dump(&w->ret, 0, id, segments, n);
	keep_budget(w);
}

bool d9__writer_ready(struct d9__writer *w, uint64_t now_ns)
{
	int err;

	if (!w->retry_ns)
		return true;
	if (now_ns < w->retry_ns)
		return false;
	if (w->has_dir && (err = renew(w))) {
		w->seg.failed_op = "open";
		failed(w, err, now_ns);
		return !w->retry_ns;
	}
	w->retry_ns = 0;
	return true;
}

/* ---- batches ---- */

static int add(struct d9__writer *w, const void *batch, size_t len, uint64_t first_ns,
	       uint64_t last_ns, uint32_t events, bool real, uint64_t now_ns)
{
	int err = 0;

	count(&w->counters->bytes_recorded, len);
	if (w->kind == D9_WRITER_NULL)
		return 0;
	if (!w->seg.open)
		err = begin_segment(w, now_ns);
	return err ? err : d9__segment_add(&w->seg, batch, len, first_ns, last_ns, events, real,
					   now_ns);
}

int d9__writer_add(struct d9__writer *w, const void *batch, size_t len, uint64_t first_ns,
		   uint64_t last_ns, uint32_t events, uint64_t now_ns)
{
	return add(w, batch, len, first_ns, last_ns, events, true, now_ns);
}

int d9__writer_note(struct d9__writer *w, const struct d9__builder *note, bool real,
		    uint64_t now_ns)
{
	if (note->failed)
		return -ENOMEM;
	if (!note->events || (!real && !w->seg.open))
		return 0;
	return add(w, note->data, note->len, note->first_ns, note->last_ns, 0, real, now_ns);
}

int d9__writer_commit(struct d9__writer *w, uint64_t now_ns)
{
	uint64_t before = w->seg.bytes;
	int err;

	if (!w->seg.open)
		return 0;
	err = d9__segment_write(&w->seg, now_ns);
	if (err) {
		d9__writer_abandon(w, err, now_ns);
		return err;
	}
	if (w->seg.bytes != before) {
		count(&w->counters->bytes_written, w->seg.bytes - before);
		w->success_ns = now_ns;
		w->backoff_ns = 0;
		d9__room_wrote(&w->room, now_ns);
	}
	return 0;
}

int d9__writer_rotate_full(struct d9__writer *w, uint64_t now_ns)
{
	if (w->all_or_nothing || !w->seg.open || !d9__retention_full(&w->ret, w->seg.bytes))
		return 0;
	return d9__writer_rotate(w, now_ns);
}

bool d9__writer_aged(const struct d9__writer *w, uint64_t now_ns)
{
	return w->seg.open && d9__retention_aged(&w->ret, w->seg.opened_ns, now_ns,
						 w->seg.has.real);
}

void d9__writer_lossy(struct d9__writer *w)
{
	if (w->seg.open)
		w->seg.complete = false;
	else
		w->lossy = true;
}

void d9__writer_publish(struct d9__writer *w)
{
	struct d9__writer_counters *c = w->counters;

	atomic_store_explicit(&c->evicted, w->ret.evicted, memory_order_relaxed);
	atomic_store_explicit(&c->bytes_evicted, w->ret.evicted_bytes, memory_order_relaxed);
	atomic_store_explicit(&c->retained, w->ret.bytes + w->ret.dump_bytes, memory_order_relaxed);
}

void d9__writer_close(struct d9__writer *w, uint64_t now_ns)
{
	d9__writer_rotate(w, now_ns);
	/* If that is refused once more, readers stop where it was to end. */
	if (w->seg.unfinished)
		finish_earlier(w);
	d9__writer_publish(w);
	d9__segment_release(&w->seg);
	while (w->kept)
		drop_kept(w, w->kept->index);
	if (w->has_dir)
		d9__namespace_close(&w->ns);
	w->has_dir = false;
	d9__retention_release(&w->ret);
	d9__builder_release(&w->note);
	if (w->lead_in)
		w->lead_in->release(&w->living);
}
