/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "ship/shipper.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include <dial9/error.h>

#include "base/directory.h"
#include "base/time.h"
#include "read/folder.h"
#include "ship/dump_object.h"
#include "ship/hour.h"
#include "ship/refused.h"
#include "ship/shipped.h"

#define STOP_NS (30 * 1000 * D9__MS_NS)

enum state { PENDING, RUNNING, FINISHED };

struct item {
	const struct d9__ship_segment *segment;
	enum state state;
};

/* Segments that are on their way together. */
struct batch {
	struct d9__shipper *shipper;
	const struct d9__ship_tree *tree;
	struct item *items;
	size_t n, running;
	struct d9__outgoing *slots; /* of those that run; |owner| has their items */
	size_t owner[D9__SHIPPER_PARALLEL_MAX];
	bool busy[D9__SHIPPER_PARALLEL_MAX];
};

static uint64_t real_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return d9__timespec_ns(&now);
}

/* True if the time is over.  After a signal to end, running transfers get a while. */
static bool is_over(struct d9__shipper *shipper)
{
	uint64_t last_ns = d9__mono_ns() + STOP_NS;

	if (shipper->pulse)
		shipper->pulse(shipper->context);
	if (shipper->stop && *shipper->stop && (!shipper->deadline_ns || shipper->deadline_ns > last_ns))
		shipper->deadline_ns = last_ns;
	if (shipper->deadline_ns && d9__mono_ns() >= shipper->deadline_ns)
		shipper->over = true;
	return shipper->over || (shipper->stop && *shipper->stop);
}

/* ---- the store's answers ---- */

/* A store that fails in the same way again is not told of again, nor one that was given up. */
static void tell_store(struct d9__shipper *shipper, const struct d9__bucket_answer *answer)
{
	char line[256];

	snprintf(line, sizeof(line), "%s%s%s", answer->code, *answer->code ? ": " : "", answer->message);
	if (shipper->over || !strcmp(line, shipper->told))
		return;
	memcpy(shipper->told, line, sizeof(line));
	shipper->tell(shipper->context, NULL, line);
}

static void fail_store(struct d9__shipper *shipper, const struct d9__bucket_answer *answer)
{
	uint64_t random = 0;

	if (getrandom(&random, sizeof(random), GRND_NONBLOCK) < 0)
		random = d9__mono_ns();
	tell_store(shipper, answer);
	d9__breaker_fail(&shipper->breaker, d9__mono_ns(), answer->retry_after, random);
	if (shipper->give_up && (answer->class == D9__BUCKET_UNUSABLE || shipper->breaker.failures >= shipper->give_up))
		shipper->over = true;
}

static void succeed(struct d9__shipper *shipper, const struct d9__bucket_answer *answer)
{
	d9__breaker_succeed(&shipper->breaker);
	shipper->told[0] = shipper->refused_code[0] = shipper->refused_path[0] = '\0';
	if (*answer->note)
		shipper->tell(shipper->context, NULL, answer->note);
}

/* ---- one segment ---- */

static int add_to_hour(const struct d9__outgoing *out)
{
	struct d9__hour_segment segment = { .key = out->key,
					    .service = out->service,
					    .instance = out->instance,
					    .boot_id = out->boot_id,
					    .index = out->index,
					    .bytes = out->bytes,
					    .worst_ns = out->worst_ns,
					    .epoch_s = out->epoch_s,
					    .summary = out->summary };

	return d9__hour_add(out->claim.dir, &segment);
}

static int write_down(const struct d9__shipper *shipper, const struct d9__outgoing *out)
{
	struct d9__shipped_line line = { .index = out->index,
					 .bytes = out->bytes,
					 .worst_ms = out->worst_ns / D9__MS_NS,
					 .first_ns = out->first_ns,
					 .last_ns = out->last_ns,
					 .stored_ns = real_ns(),
					 .key = out->key };
	int err = d9__shipped_gap(out->claim.dir, out->facts.evicted, out->epoch_s);

	if (!err)
		err = d9__shipped_append(out->claim.dir, &line);
	return err || !shipper->what.summarise ? err : add_to_hour(out);
}

static bool is_full(int err)
{
	return err == -ENOSPC || err == -EDQUOT;
}

/*
 * Write down a segment that was removed to make room.  A stage that ended just now may have had a
 * part of that room: the kernel gives it back a moment later.
 */
static int write_down_later(const struct d9__shipper *shipper, const struct d9__outgoing *out)
{
	const struct timespec moment = { .tv_nsec = 20 * (long)D9__MS_NS };
	int err = write_down(shipper, out);

	for (unsigned i = 0; i < 25 && is_full(err); i++) {
		nanosleep(&moment, NULL);
		err = write_down(shipper, out);
	}
	return err;
}

/*
 * The segment is stored: note it in the list, and only then remove it.  If the disk is full, remove
 * it first, because nothing else would make room for the line.
 */
static void settle(struct d9__shipper *shipper, struct d9__outgoing *out)
{
	const char *left = "removed";
	int err = write_down(shipper, out);
	char what[128];

	if (!err) {
		err = d9__claim_remove(&out->claim);
	} else if (is_full(err)) {
		err = d9__claim_remove(&out->claim);
		d9__outgoing_let_go(out);
		left = "written down";
		err = err ? err : write_down_later(shipper, out);
	}
	if (!err || err == -EAGAIN)
		return;
	snprintf(what, sizeof(what), "stored, and not %s: %s", left, d9_strerror(err));
	shipper->tell(shipper->context, out->claim.path, what);
	shipper->failed++;
}

static void finish_stored(struct d9__shipper *shipper, struct d9__outgoing *out)
{
	shipper->stored++;
	shipper->bytes += out->bytes;
	shipper->show(shipper->context, out->key, out->bytes);
	if (!out->claim.copies)
		settle(shipper, out);
}

/* Move the segment that was refused before back, because the store refuses others in the same way. */
static void return_refused(struct d9__shipper *shipper)
{
	if (*shipper->refused_path && d9__refused_return(shipper->refused_path) > 0)
		shipper->refused--;
	shipper->refused_path[0] = '\0';
}

/* Only this object; the second of that kind is the store's fault. */
static enum state finish_refused(struct d9__shipper *shipper, const struct d9__outgoing *out,
				 const struct d9__bucket_answer *answer)
{
	char what[512];

	if (out->claim.copies || !strcmp(shipper->refused_code, answer->code)) {
		return_refused(shipper);
		fail_store(shipper, answer);
		shipper->over = shipper->over || shipper->give_up;
		return PENDING;
	}
	snprintf(shipper->refused_code, sizeof(shipper->refused_code), "%s", answer->code);
	snprintf(what, sizeof(what), "the store refuses it: %s: %s; it is now in refused/", answer->code, answer->message);
	snprintf(shipper->refused_path, sizeof(shipper->refused_path), "%s", out->claim.path);
	if (d9__refused_take(&out->claim)) {
		snprintf(what, sizeof(what), "the store refuses it: %s: %s", answer->code, answer->message);
		shipper->refused_path[0] = '\0';
	}
	shipper->tell(shipper->context, out->claim.path, what);
	shipper->refused++;
	return FINISHED;
}

/* Send the next object of |out|: its tables, then the segment. */
static int put(struct d9__bucket *bucket, const struct d9__outgoing *out, uint64_t token)
{
	const struct d9__table_object *table = out->next < out->tables.n ? &out->tables.items[out->next] : NULL;
	struct d9__bucket_put put = { .key = table ? table->key : out->key,
				      .type = table ? "application/vnd.apache.parquet" : out->type,
				      .meta = out->pairs,
				      .n_meta = table ? 0 : out->n_pairs,
				      .size = table ? table->bytes : out->bytes };

	return d9__bucket_put(bucket, token, &put, table ? table->fd : out->fd);
}

static enum state finish(struct d9__shipper *shipper, struct d9__outgoing *out, const struct d9__bucket_answer *answer)
{
	switch (answer->class) {
	case D9__BUCKET_DONE:
	case D9__BUCKET_THERE:
		succeed(shipper, answer);
		if (out->next < out->tables.n) {
			out->next++;
			return put(shipper->bucket, out, answer->token) ? PENDING : RUNNING;
		}
		finish_stored(shipper, out);
		return FINISHED;
	case D9__BUCKET_REFUSED:
	case D9__BUCKET_ABSENT:
		return finish_refused(shipper, out, answer);
	default:
		fail_store(shipper, answer);
		return PENDING;
	}
}

/* ---- a batch of them ---- */

static enum state count_end(struct d9__shipper *shipper, enum d9__outgoing_end end)
{
	shipper->taken += end == D9__OUTGOING_TAKEN;
	shipper->dropped += end == D9__OUTGOING_DROPPED;
	shipper->failed += end == D9__OUTGOING_FAILED;
	return FINISHED;
}

/* True if |out| can be written into the list once it is stored; otherwise it would be sent at every look. */
static bool can_settle(struct d9__shipper *shipper, const struct d9__outgoing *out)
{
	int err = out->claim.copies ? 0 : d9__shipped_ready(out->claim.dir);
	char what[128];

	if (!err)
		return true;
	snprintf(what, sizeof(what), "not sent: that it is stored cannot be written to " D9__SHIPPED_NAME " beside it: %s",
		 err == -EINVAL ? "it is no file" : d9_strerror(err));
	shipper->tell(shipper->context, out->claim.path, what);
	shipper->failed++;
	return false;
}

/* Begin item |i| in |slot|. */
static int start(struct batch *batch, size_t i, size_t slot)
{
	struct d9__shipper *shipper = batch->shipper;
	struct item *item = &batch->items[i];
	struct d9__outgoing *out = &batch->slots[slot];
	enum d9__outgoing_end end = d9__outgoing_open(out, &shipper->what, &batch->tree->processes[item->segment->of],
						      item->segment, shipper->tell, shipper->context);
	int err;

	if (end != D9__OUTGOING_READY) {
		item->state = count_end(shipper, end);
		return 0;
	}
	if (shipper->what.dry_run) {
		shipper->show(shipper->context, out->key, out->bytes);
		d9__outgoing_release(out);
		item->state = FINISHED;
		return 0;
	}
	if (!can_settle(shipper, out)) {
		d9__outgoing_release(out);
		item->state = FINISHED;
		return 0;
	}
	err = put(shipper->bucket, out, slot);
	if (err) {
		d9__outgoing_release(out);
		if (err == -ENOMEM)
			return err;
		shipper->tell(shipper->context, item->segment->path, d9_strerror(err));
		shipper->failed++;
		item->state = FINISHED;
		return 0;
	}
	item->state = RUNNING;
	batch->busy[slot] = true;
	batch->owner[slot] = i;
	batch->running++;
	return 0;
}

static size_t pending(const struct batch *batch)
{
	size_t i = 0;

	while (i < batch->n && batch->items[i].state != PENDING)
		i++;
	return i;
}

static int fill(struct batch *batch)
{
	struct d9__shipper *shipper = batch->shipper;
	int err = 0;

	while (!err && !is_over(shipper) &&
	       batch->running <
		       d9__breaker_allows(&shipper->breaker, d9__mono_ns(), shipper->parallel)) {
		size_t i = pending(batch), slot = 0;

		if (i == batch->n)
			return 0;
		while (batch->busy[slot])
			slot++;
		err = start(batch, i, slot);
	}
	return err;
}

/* How long one may sleep: to the breaker's end or the deadline, and look at |stop| now and then. */
static int pause_ms(const struct d9__shipper *shipper)
{
	uint64_t now = d9__mono_ns(), until = now + 200 * D9__MS_NS;

	if (shipper->breaker.until_ns > now && shipper->breaker.until_ns < until)
		until = shipper->breaker.until_ns;
	if (shipper->deadline_ns > now && shipper->deadline_ns < until)
		until = shipper->deadline_ns;
	return (int)((until - now) / D9__MS_NS) + 1;
}

static int collect(struct batch *batch)
{
	const struct d9__bucket_answer *answer;
	int got;
	size_t slot;

	if (!batch->running) {
		int ms = pause_ms(batch->shipper);

		nanosleep(&(struct timespec) { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L }, NULL);
		return 0;
	}
	got = d9__bucket_wait(batch->shipper->bucket, pause_ms(batch->shipper), &answer);
	if (got <= 0 || answer->token >= batch->shipper->parallel)
		return got < 0 ? got : 0;
	slot = (size_t)answer->token;
	batch->items[batch->owner[slot]].state = finish(batch->shipper, &batch->slots[slot], answer);
	if (batch->items[batch->owner[slot]].state == RUNNING)
		return 0;
	d9__outgoing_release(&batch->slots[slot]);
	batch->busy[slot] = false;
	batch->running--;
	return 0;
}

/* Give up the transfers that still run at the deadline. */
static void cancel(struct batch *batch)
{
	for (size_t slot = 0; slot < batch->shipper->parallel; slot++)
		if (batch->busy[slot])
			d9__bucket_cancel(batch->shipper->bucket, slot);
}

static int run_items(struct batch *batch)
{
	struct d9__shipper *shipper = batch->shipper;
	bool cancelled = false;
	int err = 0;

	while (!err && (batch->running || (pending(batch) < batch->n && !is_over(shipper)))) {
		err = fill(batch);
		if (!err && (batch->running || pending(batch) < batch->n))
			err = collect(batch);
		if (!cancelled && shipper->deadline_ns && is_over(shipper) &&
		    d9__mono_ns() >= shipper->deadline_ns) {
			cancel(batch);
			cancelled = true;
		}
	}
	for (size_t slot = 0; slot < shipper->parallel; slot++)
		if (batch->busy[slot])
			d9__outgoing_release(&batch->slots[slot]);
	for (size_t i = 0; i < batch->n; i++)
		shipper->left += batch->items[i].state != FINISHED;
	return err;
}

/*
 * Take the next segment of each process in turn, until all are taken: those of dumps, or the
 * others.
 */
static size_t take_turns(const struct d9__ship_tree *tree, bool dumps, struct item *items)
{
	size_t n = 0, most = 0;

	for (size_t p = 0; p < tree->n; p++)
		if (tree->processes[p].n_segments > most)
			most = tree->processes[p].n_segments;
	for (size_t turn = 0; turn < most; turn++)
		for (size_t p = 0; p < tree->n; p++) {
			const struct d9__ship_process *process = &tree->processes[p];

			if (turn < process->n_segments && !process->segments[turn].dumps == !dumps)
				items[n++].segment = &process->segments[turn];
		}
	return n;
}

static int run_batch(struct d9__shipper *shipper, const struct d9__ship_tree *tree, bool dumps)
{
	struct batch batch = { .shipper = shipper, .tree = tree };
	size_t all = 1;
	int err = -ENOMEM;

	for (size_t p = 0; p < tree->n; p++)
		all += tree->processes[p].n_segments;
	batch.items = calloc(all, sizeof(*batch.items));
	batch.slots = calloc(shipper->parallel, sizeof(*batch.slots));
	if (batch.items && batch.slots) {
		batch.n = take_turns(tree, dumps, batch.items);
		err = run_items(&batch);
	}
	free(batch.items);
	free(batch.slots);
	return err;
}

/* ---- what is told of them ---- */

/*
 * Wait for the answer to |token| until the time is over; NULL: none came.  Other answers are to
 * requests that were given up.
 */
static const struct d9__bucket_answer *await_text(struct d9__shipper *shipper, uint64_t token)
{
	const struct d9__bucket_answer *answer;

	while (!is_over(shipper))
		if (d9__bucket_wait(shipper->bucket, pause_ms(shipper), &answer) == 1 && answer->token == token)
			return answer;
	d9__bucket_cancel(shipper->bucket, token);
	return NULL;
}

/* Tell that the store refuses the object about |path|; the others are still sent. */
static void refuse_text(struct d9__shipper *shipper, const char *path, const struct d9__bucket_answer *answer)
{
	char what[512];

	snprintf(what, sizeof(what), "the store refuses what is told of it: %s: %s", answer->code, answer->message);
	shipper->tell(shipper->context, path, what);
}

/* Try once.  1: it is stored, 0: not now, -EAGAIN: ask again. */
static int try_text(struct d9__shipper *shipper, const char *path, const struct d9__bucket_put *put, const char *text)
{
	uint64_t token = D9__SHIPPER_PARALLEL_MAX + shipper->texts++;
	const struct d9__bucket_answer *answer;

	if (d9__bucket_put_bytes(shipper->bucket, token, put, text))
		return 0;
	answer = await_text(shipper, token);
	if (!answer)
		return 0;
	switch (answer->class) {
	case D9__BUCKET_DONE:
	case D9__BUCKET_THERE:
		succeed(shipper, answer);
		return 1;
	case D9__BUCKET_REFUSED:
	case D9__BUCKET_ABSENT:
		refuse_text(shipper, path, answer);
		return 0;
	default:
		fail_store(shipper, answer);
		return -EAGAIN;
	}
}

/*
 * Store the object |text|, about |path|; true if it is stored.  With |give_up| set, ask until an
 * answer counts, as for segments.  A service tries once a look, so that a failure does not delay
 * segments.
 */
static bool put_text(struct d9__shipper *shipper, const char *path, const char *key, const char *text)
{
	struct d9__bucket_put put = { .key = key, .type = "application/json", .size = strlen(text), .only_new = true };

	while (!is_over(shipper)) {
		int got = -EAGAIN;

		if (d9__breaker_allows(&shipper->breaker, d9__mono_ns(), 1))
			got = try_text(shipper, path, &put, text);
		else if (shipper->give_up)
			nanosleep(&(struct timespec) { .tv_nsec = 50000000 }, NULL);
		if (got != -EAGAIN || !shipper->give_up)
			return got == 1;
	}
	return false;
}

static void ship_dump(struct d9__shipper *shipper, const struct d9__ship_process *process, const struct d9__kept_dump *dump)
{
	char key[D9__BUCKET_KEY_MAX + 1], *text = NULL;
	int err = d9__object_key_dump(shipper->what.prefix, dump->id, key, sizeof(key));

	if (err >= 0)
		err = d9__dump_object_make(process->path, dump, &text);
	if (err && err != -EAGAIN) {
		shipper->tell(shipper->context, dump->path, d9_strerror(err));
		shipper->failed++;
	} else if (!text || !put_text(shipper, dump->path, key, text)) { /* -EAGAIN: a segment of it is not stored yet */
		shipper->left++;
	} else {
		shipper->dumps++;
		shipper->show(shipper->context, key, strlen(text));
		err = d9__dump_object_done(process->path, dump->id);
		if (err)
			shipper->tell(shipper->context, dump->path, d9_strerror(err));
	}
	free(text);
}

static void show_dump(struct d9__shipper *shipper, const struct d9__kept_dump *dump)
{
	char key[D9__BUCKET_KEY_MAX + 1];

	if (d9__object_key_dump(shipper->what.prefix, dump->id, key, sizeof(key)) > 0)
		shipper->show(shipper->context, key, 0);
}

static void ship_marker(struct d9__shipper *shipper, int dir, const struct d9__hour_marker *marker, const char *path)
{
	int err;

	if (!put_text(shipper, path, marker->key, marker->body)) {
		shipper->left++;
		return;
	}
	shipper->hours++;
	shipper->show(shipper->context, marker->key, strlen(marker->body));
	err = d9__hour_told(dir, marker);
	if (err)
		shipper->tell(shipper->context, path, d9_strerror(err));
}

/* Only after a round that left nothing: the marker of an hour has all of it. */
static int ship_hours(struct d9__shipper *shipper, const struct d9__ship_process *process)
{
	struct d9__hour_markers markers = { 0 };
	uint64_t now_s = (uint64_t)time(NULL);
	int dir = d9__directory_open(process->path, 0), err;

	if (dir < 0)
		return 0;
	err = d9__hour_due(dir, shipper->what.prefix, now_s, d9__folder_is_held(dir) <= 0, &markers);
	for (size_t i = 0; i < markers.n && !err; i++)
		ship_marker(shipper, dir, &markers.items[i], process->path);
	d9__hour_forget(dir, now_s);
	d9__hour_markers_release(&markers);
	close(dir);
	return err;
}

static void ship_dumps(struct d9__shipper *shipper, const struct d9__ship_tree *tree)
{
	for (size_t p = 0; p < tree->n; p++)
		for (size_t d = 0; d < tree->processes[p].n_dumps; d++)
			if (shipper->what.dry_run)
				show_dump(shipper, &tree->processes[p].dumps[d]);
			else
				ship_dump(shipper, &tree->processes[p], &tree->processes[p].dumps[d]);
}

/* Tell that the deadline came before any answer, because a store that accepts connections and is silent causes no error. */
static void tell_silence(struct d9__shipper *shipper)
{
	if (shipper->over && shipper->deadline_ns && shipper->left && !shipper->stored && !*shipper->told)
		shipper->tell(shipper->context, NULL, "there was no answer in time: see --endpoint, or give more with --deadline");
}

int d9__shipper_run(struct d9__shipper *shipper, const struct d9__ship_tree *tree)
{
	size_t left = shipper->left, told;
	bool whole;
	int err = run_batch(shipper, tree, true);

	/* An hour is told when all its segments are stored; dumps do not matter for it. */
	told = shipper->left;
	if (!err)
		ship_dumps(shipper, tree);
	left += shipper->left - told;
	if (!err)
		err = run_batch(shipper, tree, false);
	whole = shipper->left == left && shipper->what.summarise;
	for (size_t p = 0; !err && p < tree->n && whole; p++)
		err = ship_hours(shipper, &tree->processes[p]);
	tell_silence(shipper);
	return err;
}
