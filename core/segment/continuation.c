/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "segment/continuation.h"

#include <errno.h>

#include "format/encoder.h"
#include "format/poll_wakes.h"

struct job {
	const struct d9__walker *walker;
	struct d9__builder *out;
	const uint8_t *batch;
	uint32_t taken;
	uint32_t copied; /* of |batch|, once the rest has begun */
	uint64_t ns;	 /* of the latest event or reset */
	size_t wanted;	 /* length of |out| that is asked about */
	uint32_t found;	 /* what it is in |batch| */
	bool out_of_memory;
	struct d9__poll_wakes seen;
};

/* As far as the frame that ends at |at|. */
static void copy(struct job *job, uint32_t at)
{
	size_t before = job->out->len;

	if (job->wanted >= before)
		job->found = job->wanted - before < at - job->copied
				     ? job->copied + (uint32_t)(job->wanted - before)
				     : at;
	d9__builder_put(job->out, job->batch + job->copied, at - job->copied);
	job->copied = at;
}

static void begin_rest(struct job *job)
{
	uint8_t reset[D9__WIRE_TIME_RESET_LEN] = { D9__WIRE_TIME_RESET };

	d9__wire_put_u64(reset + 1, job->ns);
	d9__builder_put(job->out, reset, sizeof(reset));
	job->copied = job->taken;
	job->seen.part = true;
}

/* ---- what is told anew ---- */

/* A PollStart, as it stands in the batch. */
struct start {
	const uint8_t *wake; /* its last field */
	uint64_t worker, task, told;
};

static struct start read_start(const struct d9__wire_frame *frame)
{
	const uint8_t *p = frame->values;
	struct start start = { .worker = d9__walk_varint(&p) };

	p++; /* local_queue */
	start.task = d9__walk_varint(&p);
	start.wake = p + 4; /* behind spawn_loc */
	p = start.wake;
	start.told = d9__walk_varint(&p);
	return start;
}

/* The wake as an event, for which the time goes back and forth. */
static void put_event(struct job *job, const struct d9__wire_frame *frame,
		      const struct d9__poll_wake *wake, const struct start *start)
{
	uint8_t bytes[2 * D9__WIRE_TIME_RESET_LEN + D9__WIRE_EVENT_HEAD_LEN + 2 * D9__VARINT_MAX +
		      2];
	uint8_t *p = bytes, none = 0;

	p = d9__wire_put_event_head(d9__wire_put_time_reset(p, wake->ns), D9__EVENT_WAKE, 0);
	p = d9__varint_put(d9__varint_put(p, wake->waker), wake->woken);
	*p++ = wake->worker < 255 ? (uint8_t)wake->worker : 255;
	*p++ = wake->reason;
	/* The poll's own distance counts from the event before it. */
	p = d9__wire_put_time_reset(p, frame->ns - d9__wire_get_u24(frame->bytes + 3));
	d9__builder_put(job->out, bytes, (size_t)(p - bytes));
	d9__builder_put(job->out, frame->bytes, (size_t)(start->wake - frame->bytes));
	d9__builder_put(job->out, &none, 1);
}

static void put_delay(struct job *job, const struct d9__wire_frame *frame,
		      const struct d9__poll_wake *wake, const struct start *start)
{
	uint8_t bytes[D9__VARINT_MAX];
	const uint8_t *end = d9__varint_put(bytes, (frame->ns - wake->ns) << 4 | wake->reason);

	d9__builder_put(job->out, frame->bytes, (size_t)(start->wake - frame->bytes));
	d9__builder_put(job->out, bytes, (size_t)(end - bytes));
}

static void see_start(struct job *job, const struct d9__wire_frame *frame)
{
	const struct start start = read_start(frame);
	uint32_t at = (uint32_t)(frame->bytes - job->batch);
	struct d9__poll_wake wake;
	int got = d9__poll_wakes_start(&job->seen, start.worker, start.task, frame->ns, start.told,
				       &wake);

	job->out_of_memory |= got < 0;
	if (got != 1 || at < job->taken || !wake.refers_back)
		return;
	copy(job, at);
	if (start.told == 1)
		put_delay(job, frame, &wake, &start);
	else
		put_event(job, frame, &wake, &start);
	job->copied = at + frame->len;
	if (job->wanted >= job->out->len)
		job->found = job->copied;
}

static void see_event(struct job *job, const struct d9__wire_frame *frame)
{
	const uint8_t *p = frame->values;

	job->ns = frame->ns;
	/* Recorders of before had no such field. */
	if (frame->type_id == D9__EVENT_POLL_START && job->walker->n_fields[frame->type_id] >= 5)
		see_start(job, frame);
	else if (frame->type_id == D9__EVENT_POLL_END)
		d9__poll_wakes_end(&job->seen, d9__walk_varint(&p), frame->ns);
	else if (frame->type_id == D9__EVENT_UNPARK)
		job->out_of_memory |=
			d9__poll_wakes_unpark(&job->seen, d9__walk_varint(&p), frame->ns) < 0;
}

static bool see(void *arg, const struct d9__wire_frame *frame)
{
	struct job *job = arg;
	bool is_rest = (uint32_t)(frame->bytes - job->batch) >= job->taken;

	if (is_rest && !job->seen.part)
		begin_rest(job);
	if (frame->tag == D9__WIRE_EVENT)
		see_event(job, frame);
	else if (frame->tag == D9__WIRE_TIME_RESET)
		job->ns = d9__wire_get_u64(frame->bytes + 1);
	else if (!is_rest)
		/* Definitions are kept; events and times are not. */
		d9__builder_put(job->out, frame->bytes, frame->len);
	return !job->out_of_memory;
}

int d9__continuation(struct d9__walker *walker, const uint8_t *batch, uint32_t taken, uint32_t len,
		     struct d9__builder *out, uint32_t *end)
{
	struct job job = {
		.walker = walker, .out = out, .batch = batch, .taken = taken, .found = taken
	};
	int err;

	job.wanted = end ? *end : 0;
	d9__builder_begin(out);
	err = d9__walk(walker, batch, len, see, &job);
	d9__poll_wakes_release(&job.seen);
	if (job.out_of_memory)
		return -ENOMEM;
	if (!job.seen.part && err)
		return err;
	if (!job.copied)
		begin_rest(&job);
	copy(&job, len);
	if (end)
		*end = job.found;
	return out->failed ? -ENOMEM : 0;
}
