// SPDX-License-Identifier: Apache-2.0
// Traces in which runs of callbacks are no polls: functions inside of a library's callback, loops inside of calls, tasks that move between
// loops, calls that the trace's end cuts, and wakes whose call was lost.

import { HEADER, SHAPES, event, pool, reset, schema, stream, u32, uleb } from './trace_bytes.mjs';

const US = 1000, ORIGIN = 5e9;
const START = 1, END = 2, PARK = 3, UNPARK = 4, WAKE = 5, SAMPLE = 6, SPAWN = 7, ENTER = 8, EXIT = 9, LOSS = 10, OFF_CPU = 11;
const PLACES = ['bufferevent read @ svc+0x10', 'svc+0x20 @ svc+0x30', 'svc+0x40 @ svc+0x50', 'tick @ svc+0x60', 'work', 'overrun', 'io'];
const SPAN_FIELDS = [['worker_id', 9], ['span_id', 9], ['parent_span_id', 137], ['span_name', 7]];

const start = (us, worker, task, place) => [us, START, uleb(worker), 1, uleb(task), u32(place)];
const end = (us, worker) => [us, END, uleb(worker)];
const park = (us, worker, cpu) => [us, PARK, uleb(worker), 0, uleb(cpu * US), u32(100 + worker)];
const unpark = (us, worker, cpu) => [us, UNPARK, uleb(worker), 0, uleb(cpu * US), uleb(0), u32(100 + worker)];
const wake = (us, waker, task, reason = 1) => [us, WAKE, uleb(waker), uleb(task), 255, reason];
const enter = (us, worker, id, place) => [us, ENTER, uleb(worker), uleb(id), 0, u32(place)];
const leave = (us, worker, id, place) => [us, EXIT, uleb(worker), uleb(id), 0, u32(place)];
const sample = (us, worker) => [us, SAMPLE, uleb(worker), u32(100 + worker), 0, u32(0)];
const spawn = (us, task, place) => [us, SPAWN, uleb(task), u32(place), 1, u32(6)];
const offCpu = (us, worker, task, ready) => [us, OFF_CPU, uleb(worker), uleb(task), uleb(0), uleb(ready * US)];
const loss = (us, worker, from, to) => [us, LOSS, u32(100 + worker), uleb(worker), u32(5), uleb(9), uleb(ORIGIN + from * US), uleb(ORIGIN + to * US)];
const RESUMED = 8;

function traceOf(rows) {
	const parts = [HEADER, SHAPES.start(START), SHAPES.end(END), SHAPES.park(PARK), SHAPES.unpark(UNPARK), SHAPES.wake(WAKE), SHAPES.sample(SAMPLE), SHAPES.spawn(SPAWN),
		schema(ENTER, 'SpanEnter:libevent', SPAN_FIELDS), schema(EXIT, 'SpanExit:libevent', SPAN_FIELDS),
		schema(OFF_CPU, 'OffCpuEvent', [['worker_id', 9], ['task_id', 9], ['blocked_ns', 9], ['run_queue_ns', 9]]),
		schema(LOSS, 'RecorderLossEvent', [['tid', 13], ['worker_id', 9], ['cause', 7], ['events', 9], ['from_ns', 9], ['to_ns', 9]]), ...PLACES.map((text, i) => pool(i, text))];
	for (const [us, id, ...bytes] of rows.sort((a, b) => a[0] - b[0])) parts.push(reset(BigInt(ORIGIN + us * US)), event(id, 0, ...bytes));
	return stream(...parts);
}

/** Handlers, cheap and dear, whatever share of the library's call they take: a tenth, a half, all of it, two in one call. */
function handlers() {
	const rows = [unpark(0, 0, 0), spawn(0, 7, 0)];
	for (let i = 0; i < 40; i++) {
		const at = 100 + i * 3000, dear = i % 4 === 0;
		rows.push(wake(at - 7, 0, 7), start(at, 0, 7, 0), enter(at + 10, 0, 100 + i, 1), leave(at + (dear ? 1500 : 12), 0, 100 + i, 1));
		if (i % 3 === 0) rows.push(enter(at + 1600, 0, 500 + i, 2), leave(at + 1610, 0, 500 + i, 2), sample(at + 1605, 0));
		rows.push(sample(at + 5, 0), ...dear ? [sample(at + 700, 0), sample(at + 900, 0)] : [], end(at + (dear ? 1650 : i % 3 ? 30 : 1700), 0), park(at + (dear ? 1651 : i % 3 ? 31 : 1701), 0, 10 + i * 1000), unpark(at + 2900, 0, 12 + i * 1000));
	}
	return rows;
}

/** Loops inside of calls, also of a function inside of a library's callback; what goes on behind them is one call. */
function nested() {
	const rows = [unpark(0, 0, 0)];
	for (let i = 0; i < 10; i++) {
		const at = 100 + i * 5000, task = i % 2 ? 7 : 8;
		rows.push(wake(at - 5, 0, task), start(at, 0, task, i % 2 ? 0 : 3));
		if (i % 2) rows.push(enter(at + 20, 0, 100 + i, 1));
		rows.push(end(at + 200, 0), start(at + 300, 0, 9, 3), sample(at + 350, 0), end(at + 400, 0), wake(at + 1000, task, task, RESUMED), start(at + 1000, 0, task, i % 2 ? 0 : 3), sample(at + 1100, 0));
		if (i % 2) rows.push(leave(at + 1400, 0, 100 + i, 1));
		rows.push(end(at + 1500, 0));
	}
	return rows;
}

/** A loop inside of a call waits, and the machine is long in giving the thread a CPU then: it is in that call, and not asleep outside of all. */
function suspended() {
	const rows = [unpark(0, 0, 0)];
	for (let i = 0; i < 10; i++) {
		const at = 100 + i * 5000;
		rows.push(start(at, 0, 8, 3), end(at + 200, 0), offCpu(at + 200, 0, 8, 0), park(at + 210, 0, 300 + i * 1000), unpark(at + 900, 0, 304 + i * 1000));
		rows.push(start(at + 2000, 0, 9, 4), end(at + 2003, 0), wake(at + 2010, 8, 8, RESUMED), start(at + 2010, 0, 8, 3), end(at + 2030, 0), offCpu(at + 2030, 0, 8, 1000));
		rows.push(park(at + 2040, 0, 370 + i * 1000), unpark(at + 4000, 0, 374 + i * 1000));
	}
	return rows;
}

/** One task runs on either loop, woken from the other; a wake that one used is none of the other's. */
function moving() {
	const rows = [unpark(0, 0, 0), unpark(0, 1, 0)];
	for (let i = 0; i < 30; i++) {
		const at = 100 + i * 400, on = i % 2;
		rows.push(wake(at - 30 - i, 0, 7), start(at, on, 7, 3), end(at + 50, on), start(at + 60, 1 - on, 8, 4), end(at + 130, 1 - on), park(at + 200, on, i * 50), unpark(at + 300, on, i * 50 + 1));
	}
	return rows;
}

/** The trace ends inside of a function that a library's callback called. */
const unended = () => [...handlers(), wake(200000 - 5, 0, 7), start(200000, 0, 7, 0), sample(200001, 0), enter(200010, 0, 900, 1), sample(200020, 0)];

/** The call that used a wake was lost. */
function lossy() {
	const rows = [unpark(0, 0, 0)];
	for (let i = 0; i < 20; i++) {
		const at = 100 + i * 1000;
		rows.push(wake(at - 40, 0, 7));
		if (i % 5 === 3) rows.push(loss(at + 500, 0, at - 10, at + 400));
		else rows.push(start(at, 0, 7, 3), end(at + 100, 0));
	}
	return rows;
}

/** The traces by name. */
export const RUNS_TRACES = Object.fromEntries(Object.entries({ handlers, nested, suspended, moving, unended, lossy }).map(([name, rows]) => [name, () => traceOf(rows())]));
