// SPDX-License-Identifier: Apache-2.0
// The five parts of the time, and spans, of traces whose readings are planted.

import { test } from 'node:test';
import assert from 'node:assert/strict';
import { nameOfSpan, spanOf } from '../../core/toolkit/spans.js';
import { partsOfCall, partsOfRange, partsOfSpan } from '../../core/toolkit/time.js';
import { readTrace } from '../../core/toolkit/trace.js';
import { waitColumns } from '../../core/viewer/lod.js';
import { Model } from '../../core/viewer/model.js';
import { HEADER, SHAPES, event, pool, reset, schema, stackPool, str16, str32, stream, u16, u32, uleb } from './trace_bytes.mjs';

const MS = 1000000, ORIGIN = 1000 * MS;
const START = 1, END = 2, PARK = 3, UNPARK = 4, WAKE = 5, OFF_CPU = 6, BLOCKED = 7, SAMPLE = 8, METADATA = 9, ENTER = 10, EXIT = 11, CLOSE = 12;
const OFF_CPU_SHAPE = schema(OFF_CPU, 'OffCpuEvent', [['worker_id', 9], ['task_id', 9], ['blocked_ns', 9], ['run_queue_ns', 9], ['voluntary_switches', 137],
	['involuntary_switches', 137], ['minor_faults', 137], ['major_faults', 137], ['user_cpu_ns', 137], ['system_cpu_ns', 137]]);
const SPAN_FIELDS = [['worker_id', 9], ['span_id', 9], ['parent_span_id', 137], ['span_name', 7]];

const readBytes = (bytes) => readTrace([{ name: 'a', chunks: async function* chunks() { yield bytes; } }]);

/** A trace of |rows|: [ms, type id, ...bytes], in the order of their times. */
function traceOf(rows, ...more) {
	const parts = [HEADER, SHAPES.start(START), SHAPES.end(END), SHAPES.park(PARK), SHAPES.unpark(UNPARK), SHAPES.wake(WAKE), OFF_CPU_SHAPE,
		schema(BLOCKED, 'BlockingCallEvent', [['worker_id', 9], ['task_id', 9], ['duration_ns', 9], ['function', 7]]), SHAPES.sample(SAMPLE), SHAPES.metadata(METADATA),
		schema(ENTER, 'SpanEnter:a', SPAN_FIELDS), schema(EXIT, 'SpanExit:a', SPAN_FIELDS),
		schema(CLOSE, 'SpanCloseEvent', [['span_id', 9], ['start_timestamp_ns', 9]]), pool(0, 'f @ a.c:1'), pool(1, 'work'), pool(2, 'fsync'), stackPool(0, [1]), ...more];
	for (const [ms, id, ...bytes] of rows) parts.push(reset(BigInt(ORIGIN) + BigInt(Math.round(ms * MS))), event(id, 0, ...bytes));
	return readBytes(stream(...parts));
}

const start = (ms, task = 7) => [ms, START, uleb(0), 1, uleb(task), u32(0)];
const end = (ms) => [ms, END, uleb(0)];
const park = (ms, cpu) => [ms, PARK, uleb(0), 0, uleb(cpu * MS), u32(9)];
const unpark = (ms, cpu, wait = 0) => [ms, UNPARK, uleb(0), 0, uleb(cpu * MS), uleb(wait * MS), u32(9)];
const offCpu = (ms, blocked, ready, { task = 7, switches = 1, cpu } = {}) => [ms, OFF_CPU, uleb(0), uleb(task), uleb(blocked * MS), uleb(ready * MS),
	1, uleb(switches), 0, 0, 0, ...cpu === undefined ? [0, 0] : [1, uleb(cpu * MS), 1, uleb(0)]];
const told = (ms, ns, task = 7, name = 1) => [ms, BLOCKED, uleb(0), uleb(task), uleb(ns * MS), u32(name)];
const sample = (ms) => [ms, SAMPLE, uleb(0), u32(9), 0, u32(0)];
const enter = (ms, id) => [ms, ENTER, uleb(0), uleb(id), 0, u32(1)];
const leave = (ms, id) => [ms, EXIT, uleb(0), uleb(id), 0, u32(1)];
const hz = (n) => [0, METADATA, u32(1), str32('cpu.sample_hz'), str32(String(n))];

/** Parts in ms. */
function inMs(parts) {
	const sum = ['on_cpu', 'ready', 'blocked', 'unknown', 'waiting'].reduce((all, key) => all + (parts[key] ?? 0), 0);
	assert.equal(sum, parts.total, 'the parts sum to the whole');
	return Object.fromEntries(['on_cpu', 'ready', 'blocked', 'unknown', 'waiting', 'total'].filter((key) => key in parts).map((key) => [key, parts[key] / MS]));
}

test('a call with a reading of its own has the parts that it tells', async () => {
	const trace = await traceOf([unpark(0, 0), start(1), end(11), offCpu(11, 4, 3), park(12, 100)]);
	assert.deepEqual(inMs(partsOfCall(trace, trace.workers[0], 0)), { on_cpu: 3, ready: 3, blocked: 4, unknown: 0, total: 10 });
});

test('a thread that never gave up the CPU did not block: the machine took it', async () => {
	const trace = await traceOf([unpark(0, 0), start(1), end(11), offCpu(11, 4, 3, { switches: 0 }), park(12, 100)]);
	assert.deepEqual(inMs(partsOfCall(trace, trace.workers[0], 0)), { on_cpu: 3, ready: 7, blocked: 0, unknown: 0, total: 10 });
});

test('what a reading leaves over is unknown where less CPU time was used', async () => {
	const trace = await traceOf([unpark(0, 0), start(1), end(11), offCpu(11, 4, 3, { cpu: 1 }), park(12, 100)]);
	assert.equal(partsOfCall(trace, trace.workers[0], 0).unknown, 2 * MS - 4096);
});

test('the viewer tells the same parts, and in which functions a call was blocked', async () => {
	const trace = await traceOf([unpark(0, 0), start(0), told(1, 1), told(3, 5, 7, 2), end(10), park(10, 3), unpark(20, 3), start(20), end(20)]);
	const model = new Model([trace], { name: 'a', shown: 1, segments: 1 }), [lane] = model.lanes;
	assert.deepEqual(model.parts(lane, 0), partsOfCall(trace, trace.workers[0], 0));
	assert.deepEqual(inMs(model.parts(lane, 0)), { on_cpu: 3, ready: 0, blocked: 6, unknown: 1, total: 10 });
	assert.deepEqual(model.blockedIn(lane, 0), ['fsync', 'work']);
	assert.equal(model.parts(lane, 1), null, 'a call that took no time has no parts');
});

test('a lane tells where its loop waits for events, and where nothing is known of it', async () => {
	const trace = await traceOf([unpark(0, 0), start(0), end(1), park(1, 1), unpark(4, 1), start(4), end(5), park(9, 2), unpark(9.5, 2), start(9.5), end(10)]);
	const model = new Model([trace], { name: 'a', shown: 1, segments: 1 }), [lane] = model.lanes;
	assert.deepEqual([...waitColumns(lane, 0, 10 * MS, 10).waiting], [0, 1, 1, 1, 0, 0, 0, 0, 0, 1]);
	assert.deepEqual(model.waitAt(lane, 2 * MS), { start: 1 * MS, dur: 3 * MS });
	assert.equal(model.waitAt(lane, 6 * MS), null);
});

test('a span that its segment tells is known from its creation on, and once where the segment before is there too', async () => {
	const OPEN = 13, told = (ms, id, from) => [ms, OPEN, uleb(id), 0, u32(1), uleb(ORIGIN + from * MS), u32(1)];
	const shape = schema(OPEN, 'SpanOpenEvent', [['span_id', 9], ['parent_span_id', 137], ['span_name', 7], ['start_timestamp_ns', 9], ['origin', 7]]);
	const before = [enter(2, 5), leave(3, 5), enter(4, 3)], behind = [told(10, 5, 1), told(10, 3, 4), leave(12, 3), [13, CLOSE, uleb(3), uleb(ORIGIN + 4 * MS)]];
	const spansOf = ({ lives, spans }) => [[...lives.ids].map((id, i) => [id, (lives.start[i] + 0) / MS, lives.end[i] / MS]), [...spans.values()].map((table) => table.n)];
	const alone = await traceOf([start(0), end(1), ...behind], shape), both = await traceOf([start(0), end(1), ...before, ...behind], shape);
	assert.deepEqual(spansOf(alone), [[[5, 1, 10], [3, 4, 13]], []]);
	assert.deepEqual(spansOf(both), [[[5, 2, 3], [3, 4, 13]], [2]]);
	assert.equal(nameOfSpan(alone, 0), 'work');
});

test('short calls share the CPU time of their active period by their lengths', async () => {
	const trace = await traceOf([unpark(0, 0), start(0), end(0.4), start(0.4), end(0.5), park(0.5, 0.25)]);
	const parts = [0, 1].map((row) => partsOfCall(trace, trace.workers[0], row));
	assert.deepEqual(parts.map((p) => [p.on_cpu, p.unknown, p.by_period]), [[200000, 200000, 400000], [50000, 50000, 100000]]);
});

test('a long call without a reading has what the others cannot have used, and what was told as blocked', async () => {
	const trace = await traceOf([unpark(0, 0), start(0), end(10), start(10), end(10.5), park(11, 9)]);
	assert.deepEqual(inMs(partsOfCall(trace, trace.workers[0], 0)), { on_cpu: 8, ready: 0, blocked: 0, unknown: 2, total: 10 });
	const slept = await traceOf([unpark(0, 0), start(0), told(1, 6), end(10), park(10, 3)]);
	assert.deepEqual(inMs(partsOfCall(slept, slept.workers[0], 0)), { on_cpu: 3, ready: 0, blocked: 6, unknown: 1, total: 10 });
});

test('samples tell where readings do not, from three that are expected on', async () => {
	const rows = [start(0), sample(5), sample(15), sample(25), end(40)];
	const trace = await traceOf([hz(100), ...rows]), parts = partsOfCall(trace, trace.workers[0], 0);
	assert.deepEqual(inMs(parts), { on_cpu: 30, ready: 0, blocked: 0, unknown: 10, total: 40 });
	assert.equal(parts.by_samples, true);
	const few = await traceOf([hz(20), ...rows]), unsure = partsOfCall(few, few.workers[0], 0);
	assert.deepEqual([unsure.on_cpu, unsure.by_samples, unsure.too_few_samples], [0, false, true]);
});

test('a range has the parts of its waits and of what the loop did between them', async () => {
	const trace = await traceOf([unpark(0, 0), start(1), end(11), offCpu(11, 4, 3), park(12, 4), unpark(30, 5, 6), start(30), end(30.5), park(31, 6)]);
	const worker = trace.workers[0];
	assert.deepEqual(inMs(partsOfRange(trace, worker, 0, 31 * MS)), { on_cpu: 6, ready: 9, blocked: 4, unknown: 1, waiting: 11, total: 31 });
	const wait = inMs(partsOfRange(trace, worker, 14 * MS, 29 * MS));
	assert.deepEqual([wait.waiting, wait.ready, wait.total], [10, 5, 15]);
});

test('a range has what readings tell of waits for a CPU: before, or in the wait that begins with one', async () => {
	const RUN_QUEUE = 13, shape = schema(RUN_QUEUE, 'RunQueueEvent', [['worker_id', 9], ['from_ns', 9], ['wait_ns', 9]]);
	const putAside = (from, ms, ns) => [ms, RUN_QUEUE, uleb(0), uleb(ORIGIN + from * MS), uleb(ns * MS)];
	const partsWith = async (cpu, row) => {
		const trace = await traceOf([unpark(0, 0), start(1), end(2), row, park(10, cpu), unpark(30, cpu), start(30), end(30.5), park(31, cpu + 1)], shape);
		return inMs(partsOfRange(trace, trace.workers[0], 0, 30 * MS));
	};
	// Six of the ten milliseconds awake it had no CPU.
	assert.deepEqual(await partsWith(4, putAside(0, 10, 6)), { on_cpu: 4, ready: 6, blocked: 0, unknown: 0, waiting: 20, total: 30 });
	// So long it cannot have been: it was in the wait.
	assert.deepEqual(await partsWith(10, putAside(0, 10, 15)), { on_cpu: 10, ready: 15, blocked: 0, unknown: 0, waiting: 5, total: 30 });
});

test('of a call that a range cuts only what is certain is told', async () => {
	const trace = await traceOf([unpark(0, 0), start(0), end(10), offCpu(10, 8, 0), park(10, 2)]);
	assert.deepEqual(inMs(partsOfRange(trace, trace.workers[0], 0, 5 * MS)), { on_cpu: 0, ready: 0, blocked: 3, unknown: 2, waiting: 0, total: 5 });
});

test('parts of neighbouring ranges never sum to more than those of the whole', async () => {
	const trace = await traceOf([unpark(0, 0), start(1), end(11), offCpu(11, 4, 3), park(12, 4), unpark(30, 5, 6), start(30), end(30.5), park(31, 6)]);
	const whole = partsOfRange(trace, trace.workers[0], 0, 31 * MS);
	for (const at of [0.5, 3, 11.5, 20, 30.2].map((ms) => ms * MS)) {
		const parts = [partsOfRange(trace, trace.workers[0], 0, at), partsOfRange(trace, trace.workers[0], at, 31 * MS)];
		for (const key of ['on_cpu', 'ready', 'blocked']) assert.ok(parts[0][key] + parts[1][key] <= whole[key] + 1, `${key} at ${at}`);
	}
});

test('a span waits outside of the calls of its task, and has its share of those', async () => {
	const trace = await traceOf([unpark(0, 0), start(0), enter(2, 5), leave(10, 5), end(10), offCpu(10, 0, 0), park(10, 10), unpark(20, 10), start(20, 8), end(21),
		start(21), enter(21, 5), leave(22, 5), end(23), offCpu(23, 2, 0), [23, CLOSE, uleb(5), uleb(ORIGIN + MS)], park(24, 12)]);
	assert.equal(trace.lives.n, 1);
	assert.deepEqual(inMs(partsOfSpan(trace, spanOf(trace, 0))), { on_cpu: 8, ready: 0, blocked: 1, unknown: 0, waiting: 13, total: 22 });
});

test('a stay belongs to the worker that entered, and an id may be used again behind a close', async () => {
	const trace = await traceOf([enter(1, 5), [2, EXIT, uleb(3), uleb(5), 0, u32(1)], [3, CLOSE, uleb(5), uleb(ORIGIN)], enter(4, 5), leave(5, 5)]);
	assert.deepEqual([...trace.spans.keys()], [0]);
	assert.deepEqual([...trace.spans.get(0).life], [0, 1]);
	assert.deepEqual([...trace.lives.start], [-MS, 3 * MS]);
});

test('ids of 64 bits that differ in their last are different spans', async () => {
	const id = 2n ** 63n, twice = (ms, n) => [[ms, ENTER, uleb(0), uleb(id + n), 0, u32(1)], [ms + 1, EXIT, uleb(0), uleb(id + n), 0, u32(1)]];
	const trace = await traceOf([...twice(1, 1n), ...twice(3, 2n)]);
	assert.deepEqual(trace.lives.ids, [id + 1n, id + 2n]);
});

/** The annotation frame of a schema: [[field, key, value]]. */
const annotations = (id, entries) => [6, ...uleb(id), ...u16(entries.length), ...entries.flatMap(([field, key, value]) => [...u16(field), ...str16(key), ...str32(value)])];
const JOB = 300;
const jobs = (entries, fields = [['took', 9], ['what', 7], ['worker', 9], ['task', 9]]) => [schema(JOB, 'JobDone', fields), annotations(JOB, entries)];
const job = (ms, took, worker = 0, task = 7) => [ms, JOB, uleb(took), u32(1), uleb(worker), uleb(task)];
const ROLES = [[0, 'dial9.role', 'span.duration'], [0, 'unit', 'us'], [1, 'dial9.role', 'span.name'], [2, 'dial9.role', 'tokio.worker_id'], [3, 'dial9.role', 'tokio.task_id']];

test('an event whose field has the length of a span is a span that ends there', async () => {
	const trace = await traceOf([start(0), job(5, 3000), end(6)], ...jobs(ROLES));
	assert.equal(nameOfSpan(trace, 0), 'work');
	const { start: from, end: to, task } = trace.spans.get(0);
	assert.deepEqual([from[0], to[0], task[0]], [2 * MS, 5 * MS, 7]);
});

test('one with a start of its own is a span from there, and one that starts behind its end is none', async () => {
	const trace = await traceOf([start(0), job(5, (ORIGIN + MS) / 1000), job(6, (ORIGIN + 9 * MS) / 1000), end(6)],
		...jobs([[0, 'dial9.role', 'span.start'], [0, 'unit', 'us']]));
	assert.equal(nameOfSpan(trace, 0), 'JobDone');
	assert.deepEqual([trace.lives.n, trace.lives.start[0], trace.lives.end[0]], [1, MS, 5 * MS]);
});

test('roles that contradict each other make no spans, and saying one twice is no contradiction', async () => {
	const lives = async (entries) => (await traceOf([start(0), job(5, 3), end(6)], ...jobs(entries))).lives.n;
	assert.equal(await lives([...ROLES, ROLES[0]]), 1);
	assert.equal(await lives([...ROLES, [2, 'dial9.role', 'span.duration']]), 0);
	assert.equal(await lives([[0, 'dial9.role', 'span.duration'], [0, 'unit', 'hours']]), 0);
	assert.equal(await lives([[1, 'dial9.role', 'span.duration']]), 0);
	assert.equal(await lives(ROLES.slice(2)), 0);
});

test('a role or a unit that is called like a method of all objects is none', async () => {
	const lives = async (entries) => (await traceOf([start(0), job(5, 3), end(6)], ...jobs(entries))).lives.n;
	for (const name of ['constructor', 'toString', '__proto__']) {
		assert.equal(await lives([...ROLES, [0, 'dial9.role', name]]), 1, name);
		assert.equal(await lives([[0, 'dial9.role', 'span.duration'], [0, 'unit', name]]), 0, name);
	}
});
