// SPDX-License-Identifier: Apache-2.0
// The rules for producers of FORMAT.md (TRC 1, section "Rules for producers"), checked on a plain
// TRC file with a decoder that shares nothing with the one in C:
//
//	node trace_rules.mjs TRACE.trc [--foreign|--segment]
//
// One line per broken rule, exit status 1; a summary and 0 if all hold.  --foreign leaves out the
// rules that only promise something about our own producer (the minimum set); --segment those that
// need the segments before (tasks announced earlier, a queue sample near by).

import { readFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { decode } from '../../core/toolkit/frames.js';
import { checkSpans, isSpanEvent } from './span_rules.mjs';

const LOOP_EVENTS = new Set(['PollStartEvent', 'PollEndEvent', 'WorkerParkEvent', 'WorkerUnparkEvent']);
const MANDATORY = {
	ClockSyncEvent: ['realtime_ns'],
	PollStartEvent: ['worker_id', 'local_queue', 'task_id'],
	PollEndEvent: ['worker_id'],
	WorkerParkEvent: ['worker_id', 'local_queue', 'cpu_time_ns', 'tid'],
	WorkerUnparkEvent: ['worker_id', 'local_queue', 'cpu_time_ns', 'sched_wait_ns', 'tid'],
	QueueSampleEvent: ['global_queue'],
	TaskSpawnEvent: ['task_id'],
	TaskTerminateEvent: ['task_id'],
	WakeEventEvent: ['waker_task_id', 'woken_task_id', 'target_worker'],
};

/** Returns { problems: [text], counts: {name: n} } for the plain TRC in |bytes|. */
export function checkRules(bytes, { foreign = false, segment = false } = {}) {
	const problems = [], counts = {}, workers = new Map(), known = new Set(), named = new Set();
	const terminated = new Map(), spawned = [], pending = [], firstTen = [], metadata = new Map(), spans = [];
	let first = null, last = 0n;
	let batchEvents = 0, batchNumber = -1, emptyRun = 0, schemaUsed = new Map(), lastSchema = null;
	let nextString = 0, nextStack = 0, needReset = true, resets = 0;
	const bad = (rule, offset, what) => {
		if (problems.length < 50) problems.push(`rule ${rule}, offset ${offset}: ${what}`);
	};
	const worker = (id) => {
		if (!workers.has(id)) workers.set(id, { time: 0n, poll: null, park: null, tid: null, polls: 0, parks: 0 });
		return workers.get(id);
	};

	const loopEvent = (name, v, time, offset) => {
		const id = v.worker_id, w = worker(id);
		if (id > 63n) bad(9, offset, `worker id ${id}`);
		if (time < w.time) bad(10, offset, `worker ${id}: ${name} at ${time} after ${w.time}`);
		w.time = time;
		const isPoll = name.startsWith('Poll'), last = isPoll ? w.poll : w.park;
		if (last === name) bad(isPoll ? 11 : 12, offset, `worker ${id}: two ${name} in a row`);
		if (isPoll) w.poll = name;
		else w.park = name;
		if (name === 'PollStartEvent') w.polls++;
		if (name === 'WorkerParkEvent') {
			w.parks++;
			if (w.poll === 'PollStartEvent') bad(12, offset, `worker ${id}: a poll is open across a park`);
		}
		if (!isPoll) {
			if (!v.tid) bad(14, offset, `worker ${id}: no tid`);
			w.tid = v.tid;
		}
	};

	const taskEvent = (name, v, time, offset) => {
		if (name === 'TaskSpawnEvent') {
			known.add(v.task_id);
			spawned.push([v.task_id, time, offset, 'spawned']);
		} else if (name === 'PollStartEvent') {
			if (v.spawn_loc) named.add(v.task_id);
			else if (!known.has(v.task_id)) pending.push([v.task_id, offset, 'polled']);
			spawned.push([v.task_id, time, offset, 'polled']);
		} else if (name === 'WakeEventEvent') {
			pending.push([v.woken_task_id, offset, 'woken']);
			if (v.target_worker > 63n && v.target_worker !== 254n && v.target_worker !== 255n)
				bad(9, offset, `wake by worker ${v.target_worker}`);
		} else if (name === 'TaskTerminateEvent') {
			terminated.set(v.task_id, time);
		}
		// Of these, 0 is a loop outside of callbacks.
		if (['StuckPollEvent', 'LastSignEvent', 'SourceTimeEvent', 'TaskIoEvent', 'BlockingCallEvent'].includes(name)) return;
		for (const key of ['task_id', 'woken_task_id'])
			if (v[key] !== undefined && (v[key] === 0n || v[key] >= 1n << 53n)) bad(16, offset, `${key} ${v[key]}`);
	};

	const endBatch = (offset) => {
		emptyRun = batchEvents === 0 && batchNumber >= 0 ? emptyRun + 1 : 0;
		if (emptyRun > 2) bad(7, offset, 'a run of batches without events');
	};

	const end = decode(bytes, {
		header(offset, batch) {
			endBatch(offset);
			batchNumber = batch;
			batchEvents = nextString = nextStack = 0;
			schemaUsed = new Map();
			needReset = true;
			resets = 0;
		},
		schema(schema, offset, again) {
			if (again) bad(2, offset, `schema ${schema.name} written twice in a batch`);
			if (!schema.hasTime) bad(3, offset, `${schema.name} has no time`);
			schemaUsed.set(schema.id, { used: false, annotated: false, name: schema.name });
			lastSchema = schema.id;
		},
		annotations(id, entries, offset) {
			const use = schemaUsed.get(id);
			if (!use || use.used || use.annotated || lastSchema !== id)
				bad(2, offset, 'an annotation frame that does not directly follow its schema');
			if (use) use.annotated = true;
		},
		strings(entries, offset) {
			for (const [id] of entries) if (id !== nextString++) bad(4, offset, `string id ${id}, expected ${nextString - 1}`);
		},
		stacks(entries, offset) {
			for (const [id] of entries) if (id !== nextStack++) bad(4, offset, `stack id ${id}, expected ${nextStack - 1}`);
		},
		reset(base, offset) {
			// A batch that continues another one may begin with two.
			if (++resets === 3) bad(7, offset, 'a run of resets');
			needReset = false;
		},
		event({ schema, time, values: v, notes }, offset) {
			const name = schema.name;
			resets = 0;
			lastSchema = null;
			batchEvents++;
			schemaUsed.get(schema.id).used = true;
			counts[name] = (counts[name] ?? 0) + 1;
			if (firstTen.length < 10) firstTen.push(name);
			if (needReset) bad(1, offset, 'first event of a batch without a reset');
			needReset = false;
			if (!notes.shortest) bad(5, offset, `${name}: a varint longer than it must be`);
			if (notes.bool > 1) bad(5, offset, `${name}: a bool or presence byte of ${notes.bool}`);
			if (notes.badInner) bad(5, offset, `${name}: optional or pooled type inside a container`);
			for (const id of notes.undefinedIds) bad(4, offset, `${name}: undefined ${id}`);
			for (const field of MANDATORY[name] ?? [])
				if (typeof v[field] !== 'bigint') bad(18, offset, `${name} without ${field}`);
			if (LOOP_EVENTS.has(name)) {
				if (time > last) last = time;
				if (first === null || time < first) first = time;
				loopEvent(name, v, time, offset);
			}
			taskEvent(name, v, time, offset);
			if (isSpanEvent(name)) spans.push({ name, time, values: v, offset });
			if (name === 'SegmentMetadataEvent') for (const [key, value] of v.entries) metadata.set(key, value);
		},
	});

	endBatch(bytes.length);
	if (end !== bytes.length) bad(8, end, 'bytes behind the last frame');
	// A wake may be written by another thread before the spawn's batch: known anywhere is enough.
	for (const [task, offset, how] of segment ? [] : pending)
		if (!known.has(task) && !named.has(task)) bad(16, offset, `task ${task} ${how} but never announced`);
	// In time, not in file order: threads hand their batches over one after the other.
	for (const [task, time, offset, how] of spawned)
		if (time > terminated.get(task)) bad(16, offset, `task ${task} ${how} after its end`);
	checkSpans(spans, (offset, what) => bad('of spans', offset, what),
		!segment && !foreign && !counts.RecorderLossEvent && !counts.SpanMisuseEvent);
	if (!foreign) {
		if (firstTen[0] !== 'ClockSyncEvent') bad(19, 0, `first event is ${firstTen[0]}`);
		const m = firstTen.indexOf('SegmentMetadataEvent');
		if (m < 0 || !firstTen.slice(m + 1).includes('ClockSyncEvent')) bad(19, 0, `begins with ${firstTen}`);
		for (const key of ['service', 'process.available_parallelism'])
			if (!metadata.has(key)) bad(20, 0, `metadata without ${key}`);
		const listed = [...metadata].filter(([key]) => key.startsWith('runtime.')).flatMap(([, ids]) => ids.split(','));
		// The flush thread lists them at its first tick: a process that was killed before that has no list at all.
		for (const id of listed.length || counts.RecorderHealthEvent ? workers.keys() : [])
			if (!listed.includes(String(id))) bad(20, 0, `worker ${id} in no runtime list`);
		// "About every 10 ms": a process whose loops were over before the first is excused; on a busy machine that takes a second.
		if (workers.size && !segment && last - first > 1000000000n && !counts.QueueSampleEvent) bad(22, 0, 'no queue samples');
	}
	return { problems, counts, workers, metadata };
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
	const [path, flag] = process.argv.slice(2);
	const { problems, counts, workers } = checkRules(readFileSync(path), 
		{ foreign: flag === '--foreign', segment: flag === '--segment' });
	for (const line of problems) console.log(line);
	const events = Object.values(counts).reduce((a, b) => a + b, 0);
	console.log(`${events} events, ${workers.size} workers, ${problems.length} broken rules`);
	process.exitCode = problems.length ? 1 : 0;
}
