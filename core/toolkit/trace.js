// SPDX-License-Identifier: Apache-2.0
// What a trace is: workers with their polls and parks, wakes, and every other event in columns.
//
// Times are ns since |origin|, the first time base of the trace, as doubles.  The result of finish() is plain
// data, so that a worker can hand it over without a copy.

import { Decoder } from './decode.js';
import { TYPE, TraceError, Truncated } from './frames.js';
import { mandatoryPlaces, placeOfField } from './known.js';
import { readSpans } from './spans.js';
import { Budget, Interner, growTable, lowerBound, newTable, orderOf, sortTable } from './table.js';
import { LimitError, unpack } from './unpack.js';

const POLLS = { start: Float64Array, dur: Float64Array, task: Float64Array, site: Int32Array, ready: Uint32Array, flags: Uint8Array };
const PARKS = { start: Float64Array, end: Float64Array, cpuBefore: Float64Array, cpuAfter: Float64Array, wait: Float64Array, flags: Uint8Array };
const ENTRIES = { time: Float64Array, cpu: Float64Array };
const LATER = { time: Float64Array, kind: Uint8Array, a: Float64Array, b: Float64Array, c: Float64Array };
const EVENT_BYTES = 128; // of an event as a list
const KIND = { POLL_START: 0, POLL_END: 1, PARK: 2, UNPARK: 3 };
const WAKES = { time: Float64Array, waker: Float64Array, woken: Float64Array, by: Uint8Array, reason: Uint8Array };

/** Flags of a poll. */
export const POLL = { OPEN_ENDED: 1, SAMPLED: 2 };

/** Flags of a wait: another thread than before began it, or ended it. */
export const PARK = { OTHER_BEFORE: 1, OTHER_AFTER: 2 };

const HOT_FIELDS = new Map(Object.entries({
	PollStartEvent: ['worker_id', 'local_queue', 'task_id', 'spawn_loc'],
	PollEndEvent: ['worker_id'],
	WorkerParkEvent: ['worker_id', 'cpu_time_ns', 'tid'],
	WorkerUnparkEvent: ['worker_id', 'cpu_time_ns', 'sched_wait_ns', 'tid'],
	WakeEventEvent: ['waker_task_id', 'woken_task_id', 'target_worker', 'reason'],
}));
// What is told of the whole trace, at no time.
const TIMELESS = new Set(['SymbolTableEntry', 'SegmentMetadataEvent', 'RecorderLossEvent', 'MemoryProfileOverflowEvent']);
const U8_MAX = 2 ** 8 - 1, U32_MAX = 2 ** 32 - 1;
const NO_WORKER = 255;
const TELLING_NS = 1e8; // what begins while living tasks are told may be among these
const DEFAULT_BYTES = 1.5 * 2 ** 30;
const WORKERS_MAX = 4096; // only a damaged trace has more
const SHARE_FROM = 1 << 18; // bytes of input that tell how many rows the rest of it has
const INLINE_MAX = 1024; // frames of one address

/** The column for a field: integers of up to 32 bits as they are, all else as doubles. */
function columnType(field) {
	if (field.optional) return Float64Array;
	switch (field.type) {
	case TYPE.U8: case TYPE.BOOL: return Uint8Array;
	case TYPE.U16: return Uint16Array;
	case TYPE.U32: return Uint32Array;
	case TYPE.STRING: case TYPE.POOLED_STRING: case TYPE.STACK: case TYPE.POOLED_STACK: return Int32Array;
	default: return Float64Array;
	}
}

/** A known integer as a number; |absent| where there is none, or a negative one. */
const number = (value, absent = 0) => (value === undefined || value < 0 ? absent : Number(value));

/** The same of one that has 32 bits, such as a thread's id: a longer one counts as absent. */
const shortNumber = (value) => (value > U32_MAX ? 0 : number(value));

/** What a worker's events are put into, one after another in the order of time; |threads|: [time, tid] of each change, |replaced|: waits that another one began in. */
const freshLane = () => ({ polls: newTable(POLLS), parks: newTable(PARKS), entries: newTable(ENTRIES), open: false, parked: false, time: -Infinity, tid: 0, tids: new Set(), threads: [], replaced: [] });

/** Events of both lists in order; of those at one time the first list's, where |isFirst| says so of it. */
function* merged(left, right, isFirst) {
	let a = left.next(), b = right.next();
	while (!a.done || !b.done) {
		if (b.done || (!a.done && (a.value[0] < b.value[0] || (a.value[0] === b.value[0] && isFirst(a.value))))) {
			yield a.value;
			a = left.next();
		} else {
			yield b.value;
			b = right.next();
		}
	}
}

function* callEvents({ polls, open }) {
	for (let row = 0; row < polls.n; row++) {
		const last = open && row === polls.n - 1;
		yield [polls.start[row], KIND.POLL_START, polls.task[row], polls.site[row], polls.ready[row]];
		if (!last && !(polls.flags[row] & POLL.OPEN_ENDED)) yield [polls.start[row] + polls.dur[row], KIND.POLL_END, 0, 0, 0];
	}
}

/** A function of a time, which never goes back: the thread that ran then. */
function threadsInOrder(threads) {
	let change = 0;
	return (time) => {
		while (change < threads.length && threads[change][0] <= time) change++;
		return threads[change - 1]?.[1] ?? 0;
	};
}

function* waitEvents({ parks, parked, threads }) {
	const threadAt = threadsInOrder(threads);
	for (let row = 0; row < parks.n; row++) {
		yield [parks.start[row], KIND.PARK, parks.cpuBefore[row], threadAt(parks.start[row]), 0];
		if (!parked || row < parks.n - 1) yield [parks.end[row], KIND.UNPARK, parks.cpuAfter[row], threadAt(parks.end[row]), parks.wait[row]];
	}
}

function* entryEvents({ entries, threads }) {
	const threadAt = threadsInOrder(threads);
	for (let row = 0; row < entries.n; row++) yield [entries.time[row], KIND.UNPARK, entries.cpu[row], threadAt(entries.time[row]), 0];
}

/** The events that |worker| was made of, [time, kind, a, b, c] as later() takes them, in order. */
function eventsOf(worker, loneEnds) {
	const calls = merged(loneEnds.map((time) => [time, KIND.POLL_END, 0, 0, 0]).values(), callEvents(worker), () => true);
	// At one time a call ends before a wait begins, and begins when one has ended.
	const waits = merged(worker.replaced.values(), merged(waitEvents(worker), entryEvents(worker), ([, kind]) => kind === KIND.PARK), () => true);
	return merged(calls, waits, ([, kind]) => kind === KIND.POLL_END);
}

/** Takes what the decoder finds. */
class TraceBuilder {
	constructor(bytes = DEFAULT_BYTES) {
		this.budget = new Budget(bytes);
		this.origin = null;
		this.strings = new Interner(this.budget);
		this.stacks = new Interner(this.budget);
		this.workers = new Map();
		this.wakes = newTable(WAKES);
		this.tables = new Map();
		this.segments = [];
		this.lastId = NaN; // of a worker: none yet, and any number can be one
		this.last = null;
		this.wakeTime = -Infinity;
		this.wakesInOrder = true;
		this.loneEnds = new Map(); // by worker: when calls ended that had not begun
	}

	worker(id) {
		if (id === this.lastId) return this.last;
		let worker = this.workers.get(id);
		if (!worker) {
			if (this.workers.size === WORKERS_MAX) throw new RangeError(`more than ${WORKERS_MAX} workers`);
			worker = { id, ...freshLane(), unended: null, later: null };
			this.workers.set(id, worker);
		}
		this.lastId = id;
		this.last = worker;
		return worker;
	}

	close(worker, time, flags) {
		const { polls } = worker, row = polls.n - 1;
		polls.dur[row] = time - polls.start[row];
		polls.flags[row] = flags;
		worker.open = false;
	}

	pollStart(id, time, ready, task, site) {
		const worker = this.worker(id), { polls } = worker;
		if (time < worker.time) {
			this.later(worker, time, KIND.POLL_START, task, site, ready);
			return;
		}
		worker.time = time;
		if (worker.open) this.close(worker, time, POLL.OPEN_ENDED);
		if (polls.n === polls.size) growTable(polls, this.budget);
		const row = polls.n++;
		polls.start[row] = time;
		polls.task[row] = task;
		polls.site[row] = site;
		polls.ready[row] = ready;
		worker.open = true;
	}

	pollEnd(id, time) {
		const worker = this.worker(id);
		if (time < worker.time) {
			this.later(worker, time, KIND.POLL_END, 0, 0, 0);
			return;
		}
		worker.time = time;
		if (worker.open) this.close(worker, time, 0);
		else this.loneEnd(id, time);
	}

	loneEnd(id, time) {
		this.budget.take(8);
		if (!this.loneEnds.has(id)) this.loneEnds.set(id, []);
		this.loneEnds.get(id).push(time);
	}

	park(id, time, cpu, tid) {
		const worker = this.worker(id), { parks } = worker;
		if (time < worker.time) {
			this.later(worker, time, KIND.PARK, cpu, tid, 0);
			return;
		}
		worker.time = time;
		if (worker.open) this.close(worker, time, POLL.OPEN_ENDED);
		if (parks.n === parks.size) growTable(parks, this.budget);
		if (worker.parked) {
			this.budget.take(EVENT_BYTES);
			worker.replaced.push([parks.start[parks.n - 1], KIND.PARK, parks.cpuBefore[parks.n - 1], worker.tid, 0]);
		}
		const row = worker.parked ? parks.n - 1 : parks.n++;
		parks.start[row] = time;
		parks.end[row] = NaN;
		parks.cpuBefore[row] = cpu;
		parks.flags[row] = this.otherThread(worker, time, tid) ? PARK.OTHER_BEFORE : 0;
		worker.parked = true;
	}

	/** |worker| runs on thread |tid| (0: not told): whether it ran on another one before. */
	otherThread(worker, time, tid) {
		const { tid: before } = worker;
		if (tid === before && tid) return false;
		worker.tids.add(tid);
		if (tid) {
			worker.tid = tid;
			worker.threads.push([time, tid]);
		}
		return before !== 0 && tid !== 0 && tid !== before;
	}

	unpark(id, time, cpu, wait, tid) {
		const worker = this.worker(id), { parks } = worker;
		if (time < worker.time) {
			this.later(worker, time, KIND.UNPARK, cpu, tid, wait);
			return;
		}
		worker.time = time;
		const other = this.otherThread(worker, time, tid);
		if (!worker.parked) {
			this.enter(worker.entries, time, cpu);
			return;
		}
		const row = parks.n - 1;
		parks.end[row] = time;
		parks.cpuAfter[row] = cpu;
		parks.wait[row] = wait;
		if (other) parks.flags[row] |= PARK.OTHER_AFTER;
		worker.parked = false;
	}

	/**
	 * An event of |worker| comes behind a younger one: segments that overlap, or batches of threads that took turns.  From
	 * here on its events are kept, to be put in the order of their times when all are there.
	 */
	later(worker, time, kind, a, b, c) {
		if (!worker.later) {
			worker.later = newTable(LATER);
			for (const event of eventsOf(worker, this.loneEnds.get(worker.id) ?? [])) this.keep(worker.later, ...event);
			this.loneEnds.delete(worker.id);
			Object.assign(worker, freshLane(), { time: Infinity });
		}
		this.keep(worker.later, time, kind, a, b, c);
	}

	keep(later, ...event) {
		if (later.n === later.size) growTable(later, this.budget);
		const row = later.n++;
		Object.keys(LATER).forEach((column, i) => { later[column][row] = event[i]; });
	}

	/** What was kept of |worker|, now in order. */
	replay(worker) {
		const { id, later } = worker, { time, kind, a, b, c } = later, order = orderOf(time, later.n);
		worker.later = null;
		worker.time = -Infinity;
		for (const i of order) {
			switch (kind[i]) {
			case KIND.POLL_START: this.pollStart(id, time[i], c[i], a[i], b[i]); break;
			case KIND.POLL_END: this.pollEnd(id, time[i]); break;
			case KIND.PARK: this.park(id, time[i], a[i], b[i]); break;
			default: this.unpark(id, time[i], a[i], c[i], b[i]);
			}
		}
	}

	/** A loop was entered: an unpark without a wait. */
	enter(entries, time, cpu) {
		if (entries.n === entries.size) growTable(entries, this.budget);
		const row = entries.n++;
		entries.time[row] = time;
		entries.cpu[row] = cpu;
	}

	wake(time, waker, woken, by, reason) {
		const { wakes } = this;
		if (time < this.wakeTime) this.wakesInOrder = false;
		this.wakeTime = time;
		if (wakes.n === wakes.size) growTable(wakes, this.budget);
		const row = wakes.n++;
		wakes.time[row] = time;
		wakes.waker[row] = waker;
		wakes.woken[row] = woken;
		wakes.by[row] = by;
		wakes.reason[row] = reason;
	}

	/** The table for events of a schema; the same for all schemas that look alike. */
	table(shape, name, fields, hasTime) {
		let table = this.tables.get(shape);
		if (table) return table;
		const must = mandatoryPlaces(name, fields), hot = hasTime && must ? HOT_FIELDS.get(name) : null;
		table = { name, fields, hasTime, annotations: [], count: 0, known: must !== null,
			must: must?.filter((at) => fields[at].optional) ?? [], bare: null,
			places: hot?.map((field) => placeOfField(name, fields, field)) ?? null,
			rows: newTable({ time: Float64Array }), columns: fields.map((f) => new (columnType(f))(0)),
			exact: fields.map(() => new Map()) };
		this.tables.set(shape, table);
		return table;
	}

	annotate(table, field, key, value) {
		if (!table.annotations.some((a) => a[0] === field && a[1] === key && a[2] === value)) table.annotations.push([field, key, value]);
	}

	/** The table for those of |table|'s events that lack a mandatory value. */
	bareOf(table) {
		if (!table.bare) {
			table.bare = { ...table, known: false, must: [], bare: null, places: null, count: 0, annotations: [...table.annotations],
				rows: newTable({ time: Float64Array }), columns: table.fields.map((f) => new (columnType(f))(0)), exact: table.fields.map(() => new Map()) };
			this.tables.set(table.bare, table.bare);
		}
		return table.bare;
	}

	event(table, time, values) {
		if (table.must.some((at) => values[at] === undefined)) {
			const bare = this.bareOf(table);
			table.count--;
			bare.count++;
			this.event(bare, time, values);
			return;
		}
		const { places } = table;
		if (places) {
			// What has no time has no place in a lane.
			if (Number.isNaN(time)) return;
			const at = (i) => (places[i] < 0 ? undefined : values[places[i]]);
			switch (table.name) {
			case 'PollStartEvent': this.pollStart(number(at(0)), time, shortNumber(at(1)), number(at(2)), at(3) ?? -1); return;
			case 'PollEndEvent': this.pollEnd(number(at(0)), time); return;
			case 'WorkerParkEvent': this.park(number(at(0)), time, number(at(1)), shortNumber(at(2))); return;
			case 'WorkerUnparkEvent': this.unpark(number(at(0)), time, number(at(1)), number(at(2)), shortNumber(at(3))); return;
			default: this.wake(time, number(at(0)), number(at(1)), Math.min(U8_MAX, number(at(2))), Math.min(U8_MAX, number(at(3)))); return;
			}
		}
		const { rows, columns } = table;
		if (rows.n === rows.size) growTable(rows, this.budget, columns);
		const row = rows.n++;
		rows.time[row] = time;
		for (let i = 0; i < columns.length; i++) {
			const value = values[i];
			if (typeof value === 'number') {
				columns[i][row] = value;
			} else if (value === undefined) {
				columns[i][row] = NaN;
			} else {
				// 64 bits, bytes, lists and maps beside the column.
				this.budget.take(64 + (value.length ?? 0) * 16);
				columns[i][row] = typeof value === 'bigint' ? Number(value) : NaN;
				table.exact[i].set(row, value);
			}
		}
	}

	/** The call that worker |id| never ended lasted as long as it was seen open; the segment with its beginning may be gone. */
	closeUnended(id, signs, trace) {
		const told = signs.findLast(({ task, since }) => task && since >= this.lastTime(id));
		if (told) this.pollStart(id, Math.max(0, told.since), 0, told.task, -1);
		const worker = this.workers.get(id), { polls } = worker ?? {};
		if (!worker?.open) return;
		const row = polls.n - 1, seen = signs.findLast(({ time, task }) => task === polls.task[row] && time >= polls.start[row]);
		if (!seen) return;
		worker.unended = { start: polls.start[row], task: polls.task[row], site: polls.site[row] };
		this.close(worker, Math.max(seen.time, toldUntil(trace, id, seen.task, polls.start[row])), POLL.OPEN_ENDED);
	}

	/** When the last thing of worker |id| ended; if it goes on, never. */
	lastTime(id) {
		const worker = this.workers.get(id);
		if (!worker) return this.workers.size < WORKERS_MAX ? -Infinity : Infinity;
		return worker.open || worker.parked ? Infinity : worker.time;
	}

	/** Everything as plain data; call once, at the end of the input. */
	finish() {
		const texts = this.strings.texts();
		const trace = { origin: this.origin ?? [0, 0], strings: texts, stacks: this.stacks.stacks(), wakes: this.wakes,
			segments: this.segments, workers: [], tables: [...this.tables.values()] };
		if (!this.wakesInOrder) sortTable(this.wakes, 'time');
		for (const worker of this.workers.values()) if (worker.later) this.replay(worker);
		const signs = signsOf(trace);
		for (const [id, list] of signs) this.closeUnended(id, list, trace);
		for (const worker of [...this.workers.values()].sort((a, b) => a.id - b.id)) trace.workers.push(finishWorker(worker));
		const ends = [...timesOf(trace)];
		trace.start = ends.reduce((least, [first]) => Math.min(least, first), Infinity);
		trace.end = ends.reduce((most, [, last]) => Math.max(most, last), -Infinity);
		if (trace.start > trace.end) trace.start = trace.end = 0;
		for (const { parks } of trace.workers)
			if (parks.n && Number.isNaN(parks.end[parks.n - 1])) parks.end[parks.n - 1] = Math.max(trace.end, parks.start[parks.n - 1]);
		return describe(trace, this);
	}
}

/** Since when a sign of life says that it was so; not since later. */
const sinceOf = (trace, { time, since_ns: since }) => (since === undefined ? time : Math.min(time, relativeTime(trace, since)));

/**
 * Times of a worker outside of its rounds, in order: {n, start, dur, kind}; kind "between" (the program was between rounds of a
 * loop that it drives itself) or "stopped" (the whole process stood still).
 */
export function outsideOf(trace, worker) {
	const found = [], add = (kind, { from_ns: from, to_ns: to }) => {
		if (from === undefined || to === undefined) return;
		const start = relativeTime(trace, from), dur = relativeTime(trace, to) - start;
		if (dur > 0) found.push({ kind, start, dur });
	};
	for (const row of rowsNamed(trace, 'LoopOutsideEvent', ['worker_id', 'from_ns', 'to_ns'])) if (number(row.worker_id) === worker) add('between', row);
	for (const row of rowsNamed(trace, 'ProcessStoppedEvent', ['from_ns', 'to_ns'])) add('stopped', row);
	found.sort((a, b) => a.start - b.start);
	return { n: found.length, start: Float64Array.from(found, (f) => f.start), dur: Float64Array.from(found, (f) => f.dur), kind: found.map((f) => f.kind),
		longest: found.reduce((most, f) => Math.max(most, f.dur), 0) };
}

/** When the recorder saw calls that went on and on, by worker: [{time, task, since}] in order of time; |since|: when they began. */
function signsOf(trace) {
	const signs = new Map();
	const add = (row, since) => {
		const id = number(row.worker_id);
		if (Number.isNaN(row.time)) return;
		if (!signs.has(id)) signs.set(id, []);
		signs.get(id).push({ time: row.time, task: number(row.task_id), since });
	};
	for (const row of rowsNamed(trace, 'LastSignEvent', ['worker_id', 'task_id', 'since_ns'])) add(row, sinceOf(trace, row));
	for (const row of rowsNamed(trace, 'StuckPollEvent', ['worker_id', 'task_id'])) add(row, NaN);
	for (const list of signs.values()) list.sort((a, b) => a.time - b.time);
	return signs;
}

/** When the thread of worker |id| told last that its call of |task|, which began at |start|, was open: by a wait that ended, or a sample. */
function toldUntil(trace, id, task, start) {
	let latest = start;
	for (const row of rowsNamed(trace, 'BlockingCallEvent', ['worker_id', 'task_id', 'duration_ns']))
		if (number(row.worker_id) === id && number(row.task_id) === task && row.time >= start) latest = Math.max(latest, row.time + number(row.duration_ns));
	for (const row of rowsNamed(trace, 'CpuSampleEvent', ['worker_id']))
		if (number(row.worker_id) === id && row.time >= latest) latest = row.time + 1;
	return latest;
}

function finishWorker(worker) {
	const { polls, parks, entries } = worker;
	// The length of a call that had not ended, and that nobody saw since, is unknown.
	if (worker.open) {
		polls.n--;
		worker.unended = { start: polls.start[polls.n], task: polls.task[polls.n], site: polls.site[polls.n] };
	}
	return { id: worker.id, polls, parks, entries, unended: worker.unended, running: worker.open,
		tids: [...worker.tids], tid: worker.tid };
}

/** First and last time of each row of things that a cut of the trace would cut. */
function* timesOf(trace) {
	for (const { polls, parks, unended } of trace.workers) {
		if (unended) yield [unended.start, unended.start];
		if (polls.n) yield [polls.start[0], polls.start[polls.n - 1] + polls.dur[polls.n - 1]];
		if (parks.n) yield [parks.start[0], Number.isNaN(parks.end[parks.n - 1]) ? parks.start[parks.n - 1] : parks.end[parks.n - 1]];
	}
	const { wakes } = trace;
	if (wakes.n) yield [wakes.time[0], wakes.time[wakes.n - 1]];
	for (const table of trace.tables) {
		if (table.places || /^(TaskDumpEvent|SegmentMetadataEvent|ClockSyncEvent|ModuleEvent|SymbolTableEntry|Recorder.*)$/.test(table.name)) continue;
		const { time } = table.rows;
		let least = Infinity, most = -Infinity;
		for (let i = 0; i < table.rows.n; i++) {
			if (time[i] < least) least = time[i];
			if (time[i] > most) most = time[i];
		}
		if (least <= most) yield [least, most];
	}
}

/** Tables of events called |name|, which readers know, with all that is mandatory: one for each schema that the trace gives it. */
export function tablesNamed(trace, name) {
	return trace.tables.filter((table) => table.name === name && table.known && table.rows.n);
}

/** A function (row) => value for the field |name|; texts as texts; undefined where there is none. */
export function fieldReader(trace, table, name) {
	const i = table.fields.findIndex((field) => field.name === name);
	if (i < 0) return () => undefined;
	const column = table.columns[i], exact = table.exact[i];
	switch (table.fields[i].type) {
	case TYPE.STRING: case TYPE.POOLED_STRING:
		return (row) => (Number.isNaN(column[row]) ? undefined : trace.strings[column[row]] ?? '<unresolved>');
	case TYPE.STACK: case TYPE.POOLED_STACK:
		return (row) => (Number.isNaN(column[row]) ? undefined : trace.stacks[column[row]] ?? []);
	default:
		return (row) => exact.get(row) ?? (Number.isNaN(column[row]) ? undefined : column[row]);
	}
}

/** The same of a field that readers know: undefined, too, where it has a type that they do not take, or is negative. */
export function knownReader(trace, table, name) {
	if (placeOfField(table.name, table.fields, name) < 0) return () => undefined;
	const read = fieldReader(trace, table, name);
	return (row) => {
		const value = read(row);
		return value < 0 ? undefined : value;
	};
}

/** Rows of all events called |name|, which readers know, as objects of |fields| and their time, in order of time; those that need a time and have none are left out. */
export function rowsNamed(trace, name, fields) {
	const rows = [];
	for (const table of tablesNamed(trace, name)) {
		const readers = fields.map((field) => [field, knownReader(trace, table, field)]);
		for (let i = 0; i < table.rows.n; i++) {
			const row = { time: table.rows.time[i] };
			if (Number.isNaN(row.time) && !TIMELESS.has(name)) continue;
			for (const [field, read] of readers) row[field] = read(i);
			rows.push(row);
		}
	}
	const order = (row) => (Number.isNaN(row.time) ? -Infinity : row.time);
	return rows.sort((a, b) => order(a) - order(b) || 0);
}

/** What follows from the events: metadata, clock, tasks, threads, samples, spans, symbols. */
function describe(trace, { budget, loneEnds }) {
	trace.metadata = new Map(rowsNamed(trace, 'SegmentMetadataEvent', ['entries']).flatMap((row) => row.entries ?? []));
	const anchor = rowsNamed(trace, 'ClockSyncEvent', ['realtime_ns']).find((row) => row.realtime_ns !== undefined);
	trace.wallOffset = anchor ? BigInt(anchor.realtime_ns) - absoluteTime(trace, anchor.time) : null;
	trace.lost = Math.min(2 ** 64, rowsNamed(trace, 'RecorderLossEvent', ['events']).reduce((sum, row) => sum + number(row.events), 0));
	trace.tasks = tasksOf(trace);
	addSeenCalls(trace, loneEnds, budget);
	trace.samples = samplesOf(trace);
	const { stays, lives, inside } = readSpans(trace, fieldReader, knownReader);
	Object.assign(trace, { spans: stays, lives, inside });
	trace.symbols = symbolsOf(trace);
	trace.modules = rowsNamed(trace, 'ModuleEvent', ['base', 'start', 'size', 'path', 'build_id']).filter((row) => row.path);
	trace.recordedTexts = recordedTextsOf(trace);
	trace.events = trace.tables.reduce((sum, table) => sum + table.count, 0);
	fillPlaces(trace);
	nameWorkers(trace);
	return trace;
}

/** Where a call is of no place that is known, its beginning being gone, it is of that of its task. */
function fillPlaces(trace) {
	const bySite = new Map(), placeOf = (task) => bySite.get(task) ?? trace.strings.indexOf(trace.tasks.get(task)?.location);
	if (!trace.workers.some(({ polls, unended }) => unended?.site === -1 || polls.site.subarray(0, polls.n).includes(-1))) return;
	for (const { polls } of trace.workers)
		for (let row = 0; row < polls.n; row++) if (polls.site[row] >= 0 && !bySite.has(polls.task[row])) bySite.set(polls.task[row], polls.site[row]);
	for (const { polls, unended } of trace.workers) {
		for (let row = 0; row < polls.n; row++) if (polls.site[row] < 0) polls.site[row] = placeOf(polls.task[row]);
		if (unended?.site === -1) unended.site = placeOf(unended.task);
	}
}

/** Calls that ended, and had begun before this segment, began when the recorder says who saw them open once a second. */
function addSeenCalls(trace, loneEnds, budget) {
	const signs = rowsNamed(trace, 'LastSignEvent', ['worker_id', 'task_id', 'since_ns']).filter((sign) => sign.task_id);
	for (const worker of trace.workers) {
		const seen = signs.filter((sign) => sign.worker_id === worker.id);
		if (seen.length) beginAgain(trace, worker, seen, loneEnds.get(worker.id) ?? [], budget);
	}
}

/** |seen|: signs of life of |worker|, in order of time. */
function beginAgain(trace, { polls, parks }, seen, ends, budget) {
	const { n } = polls, times = seen.map((sign) => sign.time);
	let added = -Infinity; // when the newest of them ended
	for (const end of ends) {
		const sign = seen[lowerBound(times, end) - 1];
		if (!sign) continue;
		const start = Math.max(trace.start, sinceOf(trace, sign));
		const poll = lowerBound(polls.start, end, n) - 1, park = lowerBound(parks.start, end, parks.n) - 1;
		// What ended since then was after another call.
		if (start >= end || added > start || (poll >= 0 && polls.start[poll] + polls.dur[poll] > start) || (park >= 0 && parks.end[park] > start)) continue;
		if (polls.n === polls.size) growTable(polls, budget);
		const call = { start, dur: end - start, task: sign.task_id, site: trace.strings.indexOf(trace.tasks.get(sign.task_id)?.location), ready: 0, flags: 0 };
		for (const [column, value] of Object.entries(call)) polls[column][polls.n] = value;
		polls.n++;
		added = end;
	}
	if (polls.n > n) sortTable(polls, 'start');
}

/** A time as the trace tells it, ns as BigInt; of what has none, the origin. */
export function absoluteTime(trace, time) {
	return (BigInt(trace.origin[1]) << 32n | BigInt(trace.origin[0])) + BigInt(Math.round(time) || 0);
}

/** The inverse, for ns as text or BigInt. */
export function relativeTime(trace, ns) {
	return Number(BigInt(ns) - (BigInt(trace.origin[1]) << 32n | BigInt(trace.origin[0])));
}

/** Tasks by id; |before|: it lived when a segment began, and that is all that is known of its birth. */
function tasksOf(trace) {
	const tasks = new Map(), told = new Set(rowsNamed(trace, 'SegmentMetadataEvent', ['entries']).flatMap((row) => row.entries ?? [])
		.filter(([key, value]) => key === 'segment.told_ns' && /^\d{1,20}$/.test(value)).map(([, value]) => relativeTime(trace, value)));
	for (const row of rowsNamed(trace, 'TaskSpawnEvent', ['task_id', 'spawn_loc', 'kind', 'fd', 'name', 'instrumented'])) {
		// Told again after a loss and at the beginning of a segment: the first one counts, one of its beginning more.
		const before = told.has(row.time);
		const id = number(row.task_id), known = tasks.get(id);
		if (known && (before || !known.before || row.time - known.born > TELLING_NS)) continue;
		tasks.set(id, { born: row.time, before, died: NaN, location: row.spawn_loc ?? '', kind: row.kind ?? '',
			fd: row.fd, name: row.name, uninstrumented: row.instrumented === 0 });
	}
	for (const row of rowsNamed(trace, 'TaskTerminateEvent', ['task_id'])) {
		const task = tasks.get(number(row.task_id));
		if (task) task.died = row.time;
	}
	return tasks;
}

function samplesOf(trace) {
	const samples = { time: [], worker: [], tid: [], stack: [], source: [], cut: [], thread: [], switched: [] };
	const byTid = new Map(trace.workers.flatMap((worker) => worker.tids.map((tid) => [tid, worker.id])));
	const all = [];
	for (const table of tablesNamed(trace, 'CpuSampleEvent')) {
		const place = placeOfField(table.name, table.fields, 'callchain');
		const read = ['worker_id', 'tid', 'source', 'truncated', 'cpu'].map((name) => knownReader(trace, table, name)), thread = knownReader(trace, table, 'thread_name');
		for (let i = 0; i < table.rows.n; i++) {
			if (Number.isNaN(table.rows.time[i])) continue;
			const [worker, tid, source, cut, cpu] = read.map((f) => f(i));
			all.push([table.rows.time[i], number(worker, NO_WORKER), shortNumber(tid), number(source), number(cut), table.columns[place]?.[i] >= 0 ? table.columns[place][i] : -1, thread(i) ?? '', cpu !== undefined]);
		}
	}
	all.sort((a, b) => a[0] - b[0]);
	for (const [time, worker, tid, source, cut, stack, thread, switched] of all) {
		samples.time.push(time);
		samples.worker.push(byTid.get(tid) ?? worker);
		samples.tid.push(tid);
		samples.source.push(source);
		samples.stack.push(stack);
		samples.cut.push(cut);
		samples.thread.push(thread);
		samples.switched.push(switched);
	}
	const byId = new Map(trace.workers.map((worker) => [worker.id, worker.polls]));
	samples.worker.forEach((id, i) => {
		const polls = byId.get(id), row = polls ? pollAt(polls, samples.time[i]) : -1;
		if (row >= 0) polls.flags[row] |= POLL.SAMPLED;
	});
	return samples;
}

/** The row of the poll that covers |time|, or -1. */
export function pollAt(polls, time) {
	let row = lowerBound(polls.start, time, polls.n);
	if (row === polls.n || polls.start[row] > time) row--;
	return row >= 0 && polls.start[row] + polls.dur[row] >= time ? row : -1;
}

/** Frames by address, innermost first: [{name, file, line}]. */
function symbolsOf(trace) {
	const symbols = new Map();
	for (const row of rowsNamed(trace, 'SymbolTableEntry', ['addr', 'symbol_name', 'inline_depth', 'source_file', 'source_line'])) {
		const depth = number(row.inline_depth);
		// Those at address 0 say what was recorded in place of a text.
		if (!row.addr || !row.symbol_name || depth >= INLINE_MAX) continue;
		if (!symbols.has(row.addr)) symbols.set(row.addr, []);
		// Of two rows of one depth the first counts.
		symbols.get(row.addr)[depth] ??= { name: row.symbol_name, file: row.source_file ?? '', line: row.source_line ?? 0 };
	}
	for (const [address, frames] of symbols) symbols.set(address, frames.filter(Boolean).reverse());
	return symbols;
}

/** Texts that `dial9 symbolize` has written into events, and the recorded ones in whose place they stand: rows at address 0. */
function recordedTextsOf(trace) {
	return new Map(rowsNamed(trace, 'SymbolTableEntry', ['addr', 'symbol_name', 'source_file']).filter((row) => !row.addr && row.symbol_name && row.source_file)
		.map((row) => [row.symbol_name, row.source_file]));
}

/** Lane groups of metadata: runtime.NAME is a list of ids. */
function nameWorkers(trace) {
	const byId = new Map(trace.workers.map((worker) => [String(worker.id), worker])), sizes = new Map();
	for (const [key, value] of trace.metadata) {
		if (!key.startsWith('runtime.')) continue;
		for (const id of value.split(',')) {
			const worker = byId.get(id.trim());
			if (worker) worker.group ??= key.slice('runtime.'.length);
		}
	}
	for (const worker of trace.workers) worker.name = worker.group ?? (worker.id === NO_WORKER ? 'other threads' : `worker ${worker.id}`);
	for (const { group } of trace.workers) if (group) sizes.set(group, (sizes.get(group) ?? 0) + 1);
	for (const worker of trace.workers) if (sizes.get(worker.group) > 1) worker.name = `${worker.group} ${worker.id}`;
}

/**
 * Read the segments of one process, in their order: |sources| are {name, chunks, bytes}, where chunks() gives an
 * async iterable of Uint8Array of |bytes| together, if that is known.  What is wrong with one of them is told in
 * trace.segments and costs what follows in it.  |options|: bytes of memory; progress({stored, model}), which may
 * return a promise; enough(model): the rest is not wanted.
 */
export async function readTrace(sources, options = {}) {
	const model = new TraceBuilder(options.bytes);
	const total = sources.reduce((sum, { bytes }) => sum + bytes, 0); // NaN where it is not known
	let stored = 0;
	for (const { name, chunks } of sources) {
		const decoder = new Decoder(model), segment = { name, events: 0, cut: false, unread: null, error: null, offset: 0, last: null };
		const before = countEvents(model);
		let used = 0;
		model.segments.push(segment);
		try {
			for await (const piece of unpack(chunks(), options.unpacked)) {
				decoder.push(piece.bytes);
				used = piece.stored;
				if (stored + used >= SHARE_FROM) model.budget.share = Math.min(1, (stored + used) / total) || 0;
				await options.progress?.({ stored: stored + used, model });
				if (options.enough?.(model)) break;
			}
			Object.assign(segment, decoder.end());
		} catch (error) {
			tellError(segment, decoder, error);
		}
		stored += used;
		segment.events = countEvents(model) - before;
		// One that is being written may have nothing yet.
		if (segment.cut && !segment.events && !name.endsWith('.active')) segment.unread = 'cut before its first event';
		segment.last = decoder.base + decoder.since;
		if (segment.full) break;
	}
	return model.finish();
}

function countEvents(model) {
	let n = 0;
	for (const table of model.tables.values()) n += table.count;
	return n;
}

/** What ended a segment before its end. */
function tellError(segment, decoder, error) {
	const what = error instanceof RangeError || error instanceof LimitError;
	if (!what && !(error instanceof TraceError)) throw error;
	segment.offset = error.offset ?? decoder.offset + decoder.at;
	segment.cut = error instanceof Truncated;
	segment.full = what;
	if (segment.cut) return;
	segment.error = error.message;
}
