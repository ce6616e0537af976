/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "drain/gap.h"
#include "format/encoder.h"

void d9__gap_wrote(struct d9__gap *gaps, const struct d9__entry_state *exit, uint32_t tid,
		      uint64_t last_ns)
{
	struct d9__gap_worker *worker;

	if (exit->worker >= D9__BRIDGE_WORKERS || exit->state == D9__WORKER_UNKNOWN)
		return;
	worker = &gaps->worker[exit->worker];
	worker->state = exit->state;
	worker->task = exit->task;
	if (tid)
		worker->tid = tid;
	if (last_ns > worker->last_ns)
		worker->last_ns = last_ns;
}

static void take_park(struct d9__gap_worker *worker, const struct d9__wire_frame *frame,
		      const uint8_t *p)
{
	bool unpark = frame->type_id == D9__EVENT_UNPARK;

	p++; /* local_queue */
	worker->cpu_ns = d9__walk_varint(&p);
	if (unpark)
		d9__walk_varint(&p);
	worker->tid = d9__wire_get_u32(p);
	worker->state = unpark ? D9__WORKER_RUNNING : D9__WORKER_PARKED;
}

void d9__gap_wrote_event(struct d9__gap *gaps, const struct d9__wire_frame *frame)
{
	struct d9__gap_worker *worker;
	const uint8_t *p = frame->values;
	uint64_t id;

	if (frame->tag != D9__WIRE_EVENT || frame->type_id > D9__EVENT_UNPARK)
		return;
	id = d9__walk_varint(&p);
	if (id >= D9__BRIDGE_WORKERS)
		return;
	worker = &gaps->worker[id];
	if (frame->ns > worker->last_ns)
		worker->last_ns = frame->ns;
	if (frame->type_id == D9__EVENT_POLL_START) {
		p++; /* local_queue */
		worker->task = d9__walk_varint(&p);
		worker->state = D9__WORKER_POLLING;
	} else if (frame->type_id == D9__EVENT_POLL_END) {
		worker->state = D9__WORKER_RUNNING;
	} else {
		take_park(worker, frame, p);
	}
}

static void put_poll_end(struct d9__builder *out, uint32_t worker, uint64_t ns)
{
	uint8_t *p = d9__builder_event(out, D9__EVENT_POLL_END, ns, D9__VARINT_MAX);

	if (p)
		d9__builder_end(out, d9__varint_put(p, worker));
}

static void put_poll_start(struct d9__builder *out, uint32_t worker, uint64_t task, uint64_t ns)
{
	uint32_t empty = d9__builder_name(out, "");
	uint8_t *p;

	p = d9__builder_event(out, D9__EVENT_POLL_START, ns, 2 * D9__VARINT_MAX + 6);
	if (!p)
		return;
	p = d9__varint_put(p, worker);
	*p++ = 0;
	p = d9__wire_put_u32(d9__varint_put(p, task), empty);
	*p++ = 0; /* nothing is known of its wake */
	d9__builder_end(out, p);
}

static void put_park(struct d9__builder *out, uint16_t type, uint32_t worker, uint64_t cpu_ns,
		     uint32_t tid, uint64_t ns)
{
	uint8_t *p = d9__builder_event(out, type, ns, 3 * D9__VARINT_MAX + 5);

	if (!p)
		return;
	p = d9__varint_put(p, worker);
	*p++ = 0;
	p = d9__varint_put(p, cpu_ns);
	if (type == D9__EVENT_UNPARK)
		p = d9__varint_put(p, 0);
	d9__builder_end(out, d9__wire_put_u32(p, tid));
}

void d9__gap_close(struct d9__gap *gaps, const struct d9__entry_state *entry,
		    const struct d9__gap_edge *gap, struct d9__builder *out)
{
	struct d9__gap_worker *worker;
	uint64_t from_ns, to_ns, cpu_ns;
	uint32_t tid;

	if (entry->worker >= D9__BRIDGE_WORKERS || entry->state == D9__WORKER_UNKNOWN)
		return;
	worker = &gaps->worker[entry->worker];
	if (worker->state == D9__WORKER_UNKNOWN)
		return;
	from_ns = worker->last_ns;
	to_ns = gap->to_ns > from_ns ? gap->to_ns : from_ns;
	/* The CPU time behind the gap makes what is before it look busy, which is the safer guess. */
	cpu_ns = gap->cpu_ns ? gap->cpu_ns : worker->cpu_ns;
	tid = gap->tid ? gap->tid : worker->tid;
	if (worker->state == D9__WORKER_POLLING) {
		put_poll_end(out, entry->worker, from_ns);
		worker->state = D9__WORKER_RUNNING;
	}
	if (worker->state == D9__WORKER_PARKED && entry->state != D9__WORKER_PARKED)
		put_park(out, D9__EVENT_UNPARK, entry->worker, cpu_ns, tid, to_ns);
	if (worker->state == D9__WORKER_RUNNING && entry->state == D9__WORKER_PARKED)
		put_park(out, D9__EVENT_PARK, entry->worker, cpu_ns, tid, from_ns);
	if (entry->state == D9__WORKER_POLLING)
		put_poll_start(out, entry->worker, entry->task, to_ns);
	worker->state = entry->state;
	worker->task = entry->task;
	worker->last_ns = to_ns;
}
