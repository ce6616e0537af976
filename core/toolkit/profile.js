// SPDX-License-Identifier: Apache-2.0
// Profiles: stacks with weights of what a range of time, some threads or the calls of one callback have.
//
// A profile is {weights, samples, of, unit}: weights is a Map from a key of stackKey() to a sum in |unit|
// ('samples', 'ns' or 'bytes'); samples is how many were counted, of how many of this kind in the trace.

import { placeOfField } from './known.js';
import { offTimes } from './off_time.js';
import { functionAt } from './runs.js';
import { knownReader, pollAt, rowsNamed, tablesNamed } from './trace.js';
import { lowerBound } from './table.js';
import { sampleNs } from './time.js';
import { lonelyNs, weightOfSample } from './weights.js';

const IDLE_MEAN_MS = 10, HEAP_RATE = 524288;

/** Kinds of profiles: what their stacks are of, and what records them. */
export const PROFILE_KINDS = {
	cpu: { title: 'on the CPU', unit: 'samples', of: 'samples on the CPU', option: 'dial9 record --cpu 99' },
	'off-cpu': { title: 'off the CPU', unit: 'samples', of: 'samples off the CPU', option: 'dial9 record --off-cpu' },
	blocking: { title: 'blocking calls', unit: 'ns', of: 'blocking calls', option: 'dial9 record without --no-blocking' },
	heap: { title: 'allocated', unit: 'bytes', of: 'sampled allocations', option: 'dial9 record --memory' },
	live: { title: 'not freed', unit: 'bytes', of: 'sampled allocations that were followed', option: 'dial9 record --memory' },
	idle: { title: 'idle tasks', unit: 'ns', of: 'waits of idle tasks', option: 'dial9 record --task-dumps' },
};

/** A stack by its number, and whether its outer frames are missing; -1: no stack. */
function stackKey(stack, cut) {
	return stack < 0 || Number.isNaN(stack) ? -1 : stack * 2 + (cut ? 1 : 0);
}

/** What was derived from a trace, kept as long as the trace. */
const derived = new WeakMap();

function derive(trace, what, make) {
	let kept = derived.get(trace);
	if (!kept) derived.set(trace, kept = new Map());
	if (!kept.has(what)) kept.set(what, make(trace));
	return kept.get(what);
}

/** A function (row) => number of the stack in the field |name|, -1 where there is none. */
function stackReader({ name: event, fields, columns }, name) {
	const column = columns[placeOfField(event, fields, name)];
	return (row) => (column && !Number.isNaN(column[row]) ? column[row] : -1);
}

/** The worker that a thread ran, or -1. */
function workerOfThread(trace, tid) {
	const byTid = derive(trace, 'tids', () => new Map(trace.workers.flatMap((worker) => worker.tids.map((t) => [t, worker.id]))));
	return byTid.get(tid) ?? -1;
}

/**
 * Blocking calls: {rows, byStamp}.  rows, in order of time: [{time, worker, task, dur, fd, name, holderTid, holderTask, holderName, stack, cut,
 * holderStack}], -1 where there is no stack; byStamp: Map from "time/worker" to the number of the row.
 */
export function blockingCalls(trace) {
	return derive(trace, 'blocking', () => {
		const rows = [];
		for (const table of tablesNamed(trace, 'BlockingCallEvent')) {
			const read = Object.fromEntries(['worker_id', 'task_id', 'function', 'fd', 'duration_ns', 'holder_tid', 'holder_task', 'holder_name'].map((field) => [field, knownReader(trace, table, field)]));
			const holder = stackReader(table, 'holder_stack');
			for (let i = 0; i < table.rows.n; i++)
				rows.push({ time: table.rows.time[i], worker: Number(read.worker_id(i) ?? -1), task: Number(read.task_id(i) ?? 0), dur: Number(read.duration_ns(i) ?? 0),
					fd: read.fd(i) === undefined ? null : Number(read.fd(i)), name: read.function(i) ?? '', holderTid: Number(read.holder_tid(i) ?? 0), holderTask: Number(read.holder_task(i) ?? 0), holderName: read.holder_name(i) ?? '',
					stack: -1, cut: false, holderStack: holder(i) });
		}
		rows.sort((a, b) => a.time - b.time);
		const byStamp = new Map(rows.map((row, i) => [`${row.time}/${row.worker}`, i]));
		const { samples } = trace;
		for (let i = 0; i < samples.time.length; i++) {
			const row = samples.source[i] === 1 ? rows[byStamp.get(`${samples.time[i]}/${samples.worker[i]}`)] : null;
			if (row) Object.assign(row, { stack: samples.stack[i], cut: Boolean(samples.cut[i]) });
		}
		return { rows, byStamp };
	});
}

/** Sampled allocations: [{time, freed (NaN: not seen), tid, bytes, stack, live, followed}], bytes being those that the sample stands for. */
export function allocations(trace) {
	return derive(trace, 'allocations', () => {
		const told = Number(trace.metadata.get('memory.sample_rate_bytes')) || HEAP_RATE, events = [];
		for (const table of tablesNamed(trace, 'AllocEvent')) {
			const [tid, size, addr, rate] = ['tid', 'size', 'addr', 'sample_rate_bytes'].map((field) => knownReader(trace, table, field));
			const stack = stackReader(table, 'callchain');
			for (let i = 0; i < table.rows.n; i++)
				events.push({ time: table.rows.time[i], tid: Number(tid(i) ?? 0), bytes: heapWeight(Number(size(i) ?? 0), Number(rate(i) ?? told) || told),
					address: addr(i) ?? 0, stack: stack(i), live: false, followed: false, freed: NaN });
		}
		const all = [...events];
		for (const free of rowsNamed(trace, 'FreeEvent', ['addr', 'alloc_timestamp_ns'])) events.push({ ...free, frees: true });
		events.sort((a, b) => a.time - b.time);
		const blocks = new Map(), origin = BigInt(trace.origin[1]) << 32n | BigInt(trace.origin[0]);
		for (const event of events) {
			if (event.frees) {
				const block = blocks.get(event.addr);
				if (!block || BigInt(event.alloc_timestamp_ns ?? 0) - origin !== BigInt(Math.round(block.time) || 0)) continue;
				block.live = false;
				block.freed = event.time;
				blocks.delete(event.addr);
			} else if (event.address) {
				// The allocation that was there has been freed before, which the trace does not have.
				if (blocks.has(event.address)) Object.assign(blocks.get(event.address), { live: false, freed: event.time });
				event.live = event.followed = true;
				blocks.set(event.address, event);
			}
		}
		return all.sort((a, b) => a.time - b.time);
	});
}

/** The bytes that a sampled allocation of |size| stands for, at one sample in |rate| bytes. */
function heapWeight(size, rate) {
	return rate <= 1 || size === 0 ? size : size / -Math.expm1(-size / rate);
}

/** When the polls of some tasks began: Map of sorted lists. */
function startsOf(trace, tasks) {
	const starts = new Map([...tasks].map((task) => [task, []]));
	for (const { polls } of trace.workers)
		for (let row = 0; row < polls.n; row++) starts.get(polls.task[row])?.push(polls.start[row]);
	for (const list of starts.values()) list.sort((a, b) => a - b);
	return starts;
}

/** Waits of tasks that were dumped: [{time, task, stack, cut, length, weight}], weight in ns as they stand for. */
export function idleWaits(trace) {
	return derive(trace, 'idle', () => {
		const mean = (Number(trace.metadata.get('task_dump.idle_threshold_ms')) || IDLE_MEAN_MS) * 1e6, dumps = [];
		for (const table of tablesNamed(trace, 'TaskDumpEvent')) {
			const task = knownReader(trace, table, 'task_id'), cut = knownReader(trace, table, 'truncated');
			const stack = stackReader(table, 'callchain');
			for (let i = 0; i < table.rows.n; i++)
				dumps.push({ time: table.rows.time[i], task: Number(task(i) ?? 0), cut: Boolean(cut(i)), stack: stack(i) });
		}
		dumps.sort((a, b) => a.time - b.time);
		const starts = startsOf(trace, new Set(dumps.map((dump) => dump.task))), next = new Map();
		// From the last to the first, for a wait also ends where the task is armed again.
		for (let i = dumps.length - 1; i >= 0; i--) {
			const dump = dumps[i], list = starts.get(dump.task), later = next.get(dump.task);
			const again = !later ? Infinity : later.time > dump.time ? later.time : later.again;
			const ran = list[lowerBound(list, dump.time, list.length)] ?? Infinity, died = trace.tasks.get(dump.task)?.died;
			const end = Math.min(again, ran, died >= dump.time ? died : Infinity, trace.end);
			dump.length = Math.max(0, end - dump.time);
			dump.weight = dump.length ? dump.length / -Math.expm1(-dump.length / mean) : mean;
			next.set(dump.task, { time: dump.time, again });
		}
		return dumps;
	});
}

/**
 * What to count: |from|, |to| of the trace's own times; |workers| and |tids|: sets of ids of which one must
 * fit, or null; |site|: only inside of calls of this place, or -1.
 */
export const WHOLE = { from: -Infinity, to: Infinity, workers: null, tids: null, site: -1 };

/** The place of the function that runs on a worker at |time|, or -1. */
function siteAt(trace, id, time) {
	const worker = derive(trace, 'workers', () => new Map(trace.workers.map((w) => [w.id, w]))).get(id), row = worker ? pollAt(worker.polls, time) : -1;
	return worker ? functionAt(trace, worker, row, time) : -1;
}

/** Whether something of a worker (-1: none), a thread (-1: not told) at a time is in |scope|. */
export function isInScope(trace, scope, worker, tid, time) {
	if (time < scope.from || time >= scope.to) return false;
	if (scope.workers && !scope.workers.has(worker) && !scope.tids.has(tid)) return false;
	return scope.site < 0 || siteAt(trace, worker, time) === scope.site;
}

/** Numbers of the samples in |scope| for which |wanted|(number) holds, in order. */
function samplesWhere(trace, scope, wanted) {
	const { samples } = trace, found = [];
	for (let i = lowerBound(samples.time, scope.from, samples.time.length); i < samples.time.length && samples.time[i] < scope.to; i++)
		if (wanted(i) && isInScope(trace, scope, samples.worker[i], samples.tid[i], samples.time[i])) found.push(i);
	return found;
}

/** Numbers of all samples in |scope|. */
export function samplesIn(trace, scope) {
	return samplesWhere(trace, scope, () => true);
}

/** |weigh|(number): what a sample stands for, in |unit|. */
function sampleProfile(trace, scope, wanted, unit = 'samples', weigh = () => 1) {
	const { samples } = trace, weights = new Map(), found = samplesWhere(trace, scope, wanted);
	for (const i of found) {
		const key = stackKey(samples.stack[i], samples.cut[i]);
		weights.set(key, (weights.get(key) ?? 0) + weigh(i));
	}
	let of = 0;
	for (let i = 0; i < samples.time.length; i++) of += wanted(i) ? 1 : 0;
	return { weights, samples: found.length, of, unit };
}

function cpuProfile(trace, scope) {
	const wanted = (i) => trace.samples.source[i] !== 1;
	if (!sampleNs(trace)) return sampleProfile(trace, scope, wanted);
	const profile = sampleProfile(trace, scope, wanted, 'ns', (i) => weightOfSample(trace, i)), { weights } = profile;
	// Of a part of the time, or of the threads, it is not known.
	const lonely = !scope.workers && scope.from <= trace.start && scope.to > trace.end ? lonelyNs(trace, scope.site < 0 ? null : trace.strings[scope.site]) : 0;
	if (lonely) weights.set(-1, (weights.get(-1) ?? 0) + lonely);
	return profile;
}

/** A profile of |rows|, which have time, stack and cut, by |weigh|(row), of those that are |inside|. */
function rowProfile(rows, unit, inside, weigh) {
	const weights = new Map();
	let samples = 0;
	for (const row of rows) {
		if (!inside(row)) continue;
		const key = stackKey(row.stack, row.cut), weight = weigh(row);
		weights.set(key, (weights.get(key) ?? 0) + weight);
		samples++;
	}
	return { weights, samples, of: rows.length, unit };
}

/** The profile of one kind of PROFILE_KINDS. */
export function profileOf(trace, kind, scope = WHOLE) {
	const { samples } = trace;
	switch (kind) {
	case 'off-cpu': {
		// A blocking call's stack is a sample, too, and has its length: it is counted there.
		const blocked = blockingCalls(trace), wanted = (i) => samples.source[i] === 1 && !blocked.byStamp.has(`${samples.time[i]}/${samples.worker[i]}`);
		const weigh = offTimes(trace, blocked);
		return weigh ? sampleProfile(trace, scope, wanted, 'ns', weigh) : sampleProfile(trace, scope, wanted);
	}
	case 'blocking':
		return rowProfile(blockingCalls(trace).rows, 'ns', (row) => isInScope(trace, scope, row.worker, -1, row.time), (row) => row.dur);
	case 'heap': case 'live': {
		const rows = kind === 'live' ? allocations(trace).filter((row) => row.followed) : allocations(trace);
		return rowProfile(rows, 'bytes', (row) => (kind === 'heap' || row.live) && isInScope(trace, scope, workerOfThread(trace, row.tid), row.tid, row.time), (row) => row.bytes);
	}
	case 'idle':
		// Tasks wait on no thread, and inside of no call.
		return rowProfile(idleWaits(trace), 'ns', (row) => row.time >= scope.from && row.time < scope.to && !scope.workers
			&& (scope.site < 0 || trace.strings[scope.site] === trace.tasks.get(row.task)?.location), (row) => row.weight);
	default:
		return cpuProfile(trace, scope);
	}
}
