// SPDX-License-Identifier: Apache-2.0
// Tracks of things that happened: spans, timers, events of the program, helper threads, and what was lost.

import { addItem, finishItems, newItems, packItems } from '../toolkit/items.js';
import { showCount, showDuration, showName } from '../toolkit/show.js';
import { SPAN_EVENT, nameOfSpan, spanRoles } from '../toolkit/spans.js';
import { framesOf } from '../toolkit/stacks.js';
import { absoluteTime, fieldReader, knownReader, tablesNamed } from '../toolkit/trace.js';
import { makeTrack } from './track.js';
import { showValue } from './track_lines.js';

const LATE_NS = 5e6; // a timer that is later has something to say
const NAMES_SHOWN = 40, FIELDS_TOLD = 8;

// Events that have tracks, panels or meanings of their own.
const BUILT_IN = /^(ClockSync|SegmentMetadata|PollStart|PollEnd|WorkerPark|WorkerUnpark|QueueSample|RuntimeMetrics|TaskSpawn|TaskTerminate|TaskDump|WakeEvent|CpuSample|Alloc|Free|MemoryProfileOverflow|ProcessResourceUsage|ProcessState|DumpTrigger|TcpAcceptQueue|SpanMisuse|RecorderLoss|RecorderHealth|RecorderLog|Module|LoopTasks|LoopWake|LoopSample|HelperRun|HelperQueued|StuckPoll|LastSign|OffCpu|BlockingCall|SourceTime|LoopOutside|StaleTimer|TaskIo|ProcessStopped|RunQueue|BoundThread)Event$|^SymbolTableEntry$/;

/** Whether the program, and not the recorder, tells events of that name. */
export function isCustom(table) {
	return table.hasTime && !BUILT_IN.test(table.name) && !SPAN_EVENT.test(table.name);
}

/** The process in front of a name, where there are several. */
export function processName(model, trace) {
	return model.traces.length > 1 ? `${showName(trace.metadata.get('service') || trace.folder || `process ${trace.number + 1}`)} ` : '';
}

const counted = (n, what) => `${showCount(n)} ${what}${n === 1 ? '' : 's'}`;
const processKey = (model, trace) => (model.traces.length > 1 ? `${trace.number}.` : '');

/** Names by how often they are, as numbers: Map. */
function ranked(counts) {
	return new Map([...counts].sort((a, b) => b[1] - a[1]).map(([name], i) => [name, i]));
}

/** Fields of an event's row: [[name, text]]. */
function fieldTexts(trace, table, row) {
	return table.fields.map(({ name }, i) => {
		const value = fieldReader(trace, table, name)(row), unit = table.annotations.findLast(([field, key]) => field === i && key === 'unit')?.[2] ?? '';
		if (value === undefined) return [name, 'absent'];
		if (Array.isArray(value)) return [name, `${value.length} entries`];
		return [name, typeof value === 'number' || typeof value === 'bigint' ? showValue(value, showName(unit, 16)) : showName(value)];
	});
}

function tellFields(trace, table, row) {
	const told = fieldTexts(trace, table, row).filter(([, text]) => text !== 'absent');
	return told.slice(0, FIELDS_TOLD).map(([name, text]) => `${showName(name)} ${text}`).join(', ') + (told.length > FIELDS_TOLD ? ', …' : '');
}

// ---- spans ----

const SPAN_FIELDS = /^(span_id|span_instance_id|span_name|start_timestamp_ns|first_enter_timestamp_ns|active_ns|attributes|worker_id|tid)$/; // told in other words

/** Of each name the length that |percent| of its spans are below: Map by name. */
function spanFloors(trace, percent) {
	const byName = new Map(), { lives } = trace;
	for (let i = 0; i < lives.n; i++) {
		const name = nameOfSpan(trace, i);
		if (!byName.has(name)) byName.set(name, []);
		byName.get(name).push(lives.end[i] - lives.start[i]);
	}
	return new Map([...byName].map(([name, lengths]) => {
		lengths.sort((a, b) => a - b);
		return [name, lengths[Math.min(lengths.length - 1, Math.floor(lengths.length * percent / 100))]];
	}));
}

/** The events that close spans, by id and time: Map of {table, row}. */
function closesOf(trace) {
	if (trace.spanCloses) return trace.spanCloses;
	trace.spanCloses = new Map();
	for (const table of trace.tables) {
		if (!/^SpanClose/.test(table.name)) continue;
		const id = knownReader(trace, table, 'span_id');
		for (let row = 0; row < table.rows.n; row++) trace.spanCloses.set(`${id(row)}@${table.rows.time[row]}`, { table, row });
	}
	return trace.spanCloses;
}

/** |floor|: only spans at or above that percentile of their name. */
export function spansTrack(model, floor = 0) {
	const items = newItems(), counts = new Map();
	for (const trace of model.traces)
		for (let i = 0; i < trace.lives.n; i++) {
			const name = nameOfSpan(trace, i);
			counts.set(name, (counts.get(name) ?? 0) + 1);
		}
	const kinds = ranked(counts);
	let all = 0;
	model.traces.forEach((trace, t) => {
		const { lives } = trace, floors = floor ? spanFloors(trace, floor) : null;
		all += lives.n;
		for (let i = 0; i < lives.n; i++) {
			const name = nameOfSpan(trace, i);
			if (floors && lives.end[i] - lives.start[i] < floors.get(name)) continue;
			addItem(items, lives.start[i] + trace.shift, lives.end[i] + trace.shift, 0, t, i, Math.min(65535, kinds.get(name)));
		}
	});
	if (!all) return null;
	const done = finishItems(items, packItems(items));
	const of = (i) => [model.traces[done.source[i]], done.ref[i]];
	const nameOf = (i) => showName(nameOfSpan(...of(i)));
	const closeOf = (i) => {
		const [trace, life] = of(i);
		return closesOf(trace).get(`${trace.lives.ids[life]}@${trace.lives.end[life]}`) ?? null;
	};
	return makeTrack({
		id: 'spans', title: 'spans', prefix: 'span', items: done, opens: true, least: 84, // the filter has its place
		plain: 'Spans: stretches of work that the program names, such as one request. They may pass through several callbacks.',
		figure: `${showCount(done.n)}${floor ? ` of ${showCount(all)}` : ''}, ${counted(kinds.size, 'name')}`,
		tone: (i) => done.kind[i], label: nameOf,
		tell(i) {
			const [trace] = of(i), close = closeOf(i), active = close && knownReader(trace, close.table, 'active_ns')(close.row);
			return `span ${processName(model, trace)}${nameOf(i)}${active === undefined || active === null ? '' : `, inside for ${showDuration(Number(active))}`}`;
		},
		facts(i) {
			const [trace, life] = of(i), close = closeOf(i);
			if (!close) return trace.lives.ids[life] ? [['close', 'not recorded']] : [];
			const read = (name) => knownReader(trace, close.table, name)(close.row), active = read('active_ns'), attributes = read('attributes');
			return [...(active === undefined ? [] : [['inside', showDuration(Number(active))]]), ...(Array.isArray(attributes) ? attributes : []).map(([name, value]) => [showName(name), showName(value)]),
				...fieldTexts(trace, close.table, close.row).filter(([name, text]) => !SPAN_FIELDS.test(name) && text !== 'absent')];
		},
		key(i) {
			const [trace, life] = of(i), id = trace.lives.ids[life];
			// One that a single event tells has no id: its time is its name.
			return processKey(model, trace) + (id ? BigInt(id).toString(16) : `@${absoluteTime(trace, trace.lives.end[life])}`);
		},
	});
}

// ---- timers ----

export function timersTrack(model) {
	const items = newItems();
	const tables = model.traces.map((trace) => trace.timers);
	let worst = 0;
	model.traces.forEach((trace, t) => {
		const timers = tables[t];
		for (let i = 0; i < timers.n; i++) {
			addItem(items, timers.due[i] + trace.shift, timers.ran[i] + trace.shift, 0, t, i);
			worst = Math.max(worst, timers.ran[i] - timers.due[i]);
		}
	});
	if (!items.n) return null;
	const done = finishItems(items, packItems(items));
	const callOf = (i) => {
		const trace = model.traces[done.source[i]], timers = tables[done.source[i]];
		const lane = model.lanes.find((l) => l.trace === trace && l.worker === trace.workers[timers.worker[done.ref[i]]]);
		return lane ? { lane, row: timers.row[done.ref[i]] } : null;
	};
	const nameOf = (i) => {
		const call = callOf(i);
		return call ? model.label(call.lane, call.row).name : 'timer';
	};
	const accused = () => new Set(model.findings.filter((f) => f.severity !== 'info' && /^timer|late/.test(f.check)).flatMap((f) => f.evidence).filter((p) => p.lane && p.row >= 0).map((p) => `${p.lane.number}/${p.row}`));
	let known = null, knownOf = null;
	return makeTrack({
		id: 'timers', title: 'timers', prefix: 'timer', items: done, opens: worst >= LATE_NS, arrows: true, rowHeight: 32,
		plain: 'Timers: a mark where each was due, an arrow to where its callback ran. A long arrow is a late timer.',
		figure: worst > 0 ? `${showDuration(worst)} late` : 'none late',
		/** The figure whole, with the name where there is room for both. */
		label(i, room = Infinity) {
			const late = `${showDuration(done.length[i])} late`, whole = `${nameOf(i)}, ${late}`;
			return whole.length <= room ? whole : late.length <= room ? late : '';
		},
		/** In the colour of findings only if one names it. */
		alarmed(i) {
			if (knownOf !== model.findings) [known, knownOf] = [accused(), model.findings];
			const call = known.size ? callOf(i) : null;
			return Boolean(call) && known.has(`${call.lane.number}/${call.row}`);
		},
		tell: (i) => `timer ${nameOf(i)}, ${showDuration(done.length[i])} late`,
		call: callOf,
		key: (i) => `${processKey(model, model.traces[done.source[i]])}${callOf(i)?.lane.worker.id ?? 0}@${absoluteTime(model.traces[done.source[i]], done.start[i] - model.traces[done.source[i]].shift)}`,
	});
}

// ---- events of the program ----

export function eventsTrack(model) {
	const items = newItems(), counts = new Map(), tables = [];
	for (const trace of model.traces)
		for (const table of trace.tables) {
			if (!table.rows.n || !isCustom(table) || spanRoles(table)) continue;
			counts.set(table.name, (counts.get(table.name) ?? 0) + table.rows.n);
			tables.push({ trace, table });
		}
	if (!tables.length) return null;
	const kinds = ranked(counts);
	tables.forEach(({ trace, table }, source) => {
		const kind = kinds.get(table.name);
		for (let row = 0; row < table.rows.n; row++) addItem(items, table.rows.time[row] + trace.shift, table.rows.time[row] + trace.shift, kind, source, row, Math.min(65535, kind));
	});
	const names = [...kinds.keys()].map((name) => showName(name)), done = finishItems(items, names.length);
	return makeTrack({
		id: 'events', title: 'events', prefix: 'event', items: done, rowNames: names, rowHeight: 16,
		plain: 'Events that the program itself records, one tick each, by their names.',
		figure: names.length > NAMES_SHOWN ? `${showCount(names.length)} kinds` : `${showCount(done.n)} of ${counted(names.length, 'kind')}`,
		tone: (i) => done.kind[i], label: (i) => names[done.row[i]],
		tell(i) {
			const { trace, table } = tables[done.source[i]];
			return `event ${processName(model, trace)}${names[done.row[i]]}: ${tellFields(trace, table, done.ref[i])}`;
		},
		facts(i) {
			const { trace, table } = tables[done.source[i]];
			return fieldTexts(trace, table, done.ref[i]);
		},
		call(i) {
			const { trace, table } = tables[done.source[i]], worker = fieldReader(trace, table, 'worker_id')(done.ref[i]);
			return worker === undefined ? null : model.callOfWorker(trace, worker, done.start[i] - trace.shift);
		},
		key(i) {
			const { trace, table } = tables[done.source[i]];
			return `${processKey(model, trace)}${table.name}@${absoluteTime(trace, done.start[i] - trace.shift)}`;
		},
	});
}

// ---- helper threads ----

const NO_LOOP = 255;

/** Threads that run no loop: their samples, and work that loops handed to them. */
export function helpersTrack(model) {
	const items = newItems(), rows = [], sources = [];
	let samples = 0, runs = 0;
	for (const trace of model.traces) {
		const byTid = new Map(), names = threadNames(trace), source = sources.push({ trace, samples: true }) - 1;
		for (let i = 0; i < trace.samples.time.length; i++) {
			if (trace.samples.worker[i] !== NO_LOOP) continue;
			const tid = trace.samples.tid[i], time = trace.samples.time[i] + trace.shift;
			if (!byTid.has(tid)) byTid.set(tid, rows.push(`${processName(model, trace)}${showName(names.get(tid) ?? 'thread')} ${tid}`) - 1);
			addItem(items, time, time, byTid.get(tid), source, i, trace.samples.source[i] ? 3 : 0);
			samples++;
		}
		for (const table of tablesNamed(trace, 'HelperRunEvent')) {
			const at = sources.push({ trace, table }) - 1, read = knownReader(trace, table, 'run_ns'), work = newItems();
			for (let i = 0; i < table.rows.n; i++) {
				const end = table.rows.time[i] + trace.shift;
				addItem(work, end - Number(read(i) ?? 0), end, 0, at, i, 1);
			}
			const packed = packItems(work), base = rows.length;
			for (let r = 0; r < packed; r++) rows.push(`${processName(model, trace)}work${packed > 1 ? ` ${r + 1}` : ''}`);
			for (let i = 0; i < work.n; i++) addItem(items, work.start[i], work.end[i], base + work.row[i], at, work.ref[i], 1);
			runs += work.n;
		}
	}
	if (!items.n) return null;
	const done = finishItems(items, rows.length);
	const placeOf = (i) => {
		const { trace, table } = sources[done.source[i]];
		return model.callbackAt(trace, knownReader(trace, table, 'function')(done.ref[i]) ?? '').name;
	};
	const frameOf = (i) => showName(framesOf(sources[done.source[i]].trace, sources[done.source[i]].trace.samples.stack[done.ref[i]])[0]?.name ?? 'no stack');
	const isSample = (i) => sources[done.source[i]].samples;
	return makeTrack({
		id: 'helpers', title: 'helpers', prefix: 'sample', items: done, rowNames: rows,
		plain: 'Threads that run no loop: a tick for each sample of what they did, a bar for each piece of work that a loop handed to them.',
		figure: [runs && counted(runs, 'run'), samples && counted(samples, 'sample')].filter(Boolean).join(', '),
		tone: (i) => done.kind[i], label: (i) => (isSample(i) ? frameOf(i) : placeOf(i)),
		tell(i) {
			if (isSample(i)) return `${rows[done.row[i]]} ${done.kind[i] ? 'left the CPU' : 'was on the CPU'} in ${frameOf(i)}`;
			const { trace, table } = sources[done.source[i]], waited = knownReader(trace, table, 'wait_ns')(done.ref[i]);
			return `${placeOf(i)} ran on a helper thread${waited === undefined ? '' : `, after ${showDuration(waited)} in its queue`}`;
		},
		key: (i) => {
			const { trace, samples: sampled } = sources[done.source[i]];
			return `${processKey(model, trace)}${sampled ? trace.samples.tid[done.ref[i]] : 'work'}@${absoluteTime(trace, done.start[i] - trace.shift)}`;
		},
	});
}

/** Names of threads by tid, of those whose samples tell one. */
function threadNames({ samples }) {
	const names = new Map();
	samples.thread.forEach((name, i) => name && !names.has(samples.tid[i]) && names.set(samples.tid[i], name));
	return names;
}

// ---- the recorder's own log ----

const LOG_LEVELS = ['error', 'warning', 'info'];

export function logTrack(model) {
	const items = newItems(), tables = [], counts = [0, 0, 0];
	for (const trace of model.traces)
		for (const table of tablesNamed(trace, 'RecorderLogEvent')) {
			const source = tables.push({ trace, table, read: (field) => knownReader(trace, table, field) }) - 1, level = knownReader(trace, table, 'level');
			for (let row = 0; row < table.rows.n; row++) {
				const known = LOG_LEVELS.indexOf(level(row)), kind = known < 0 ? 2 : known, time = table.rows.time[row] + trace.shift;
				counts[kind]++;
				addItem(items, time, time, kind, source, row, kind);
			}
		}
	if (!items.n) return null;
	const done = finishItems(items, LOG_LEVELS.length), worst = counts.findIndex(Boolean);
	const read = (i, field) => tables[done.source[i]].read(field)(done.ref[i]);
	const textOf = (i) => {
		const times = Number(read(i, 'times') ?? 1);
		return `${showName(read(i, 'text') ?? '')}${times > 1 ? `, ${showCount(times)} times` : ''}`;
	};
	return makeTrack({
		id: 'log', title: 'recorder log', prefix: 'log', items: done, rowNames: ['errors', 'warnings', 'other lines'], rowHeight: 16,
		plain: 'What the recorder noted of itself: its start and end, what it could not do, when it paused and why, changes of its clock.',
		figure: worst < 2 ? counted(counts[worst], LOG_LEVELS[worst]) : counted(done.n, 'line'),
		alarmed: (i) => done.kind[i] === 0, tone: (i) => done.kind[i], label: textOf,
		tell: (i) => `recorder ${processName(model, tables[done.source[i]].trace)}${LOG_LEVELS[done.kind[i]]}: ${textOf(i)}`,
		key: (i) => `${processKey(model, tables[done.source[i]].trace)}${absoluteTime(tables[done.source[i]].trace, done.start[i] - tables[done.source[i]].trace.shift)}`,
	});
}

// ---- loss and damage ----

/** Never hidden: without loss it says so. */
export function lossTrack(model) {
	const items = newItems(), told = [];
	const add = (trace, from, to, text) => addItem(items, from + trace.shift, to + trace.shift, 0, 0, told.push({ trace, text }) - 1);
	let lost = 0, damaged = 0, cut = 0;
	for (const trace of model.traces) {
		const zero = absoluteTime(trace, 0), name = processName(model, trace);
		for (const table of tablesNamed(trace, 'RecorderLossEvent')) {
			const read = (field) => knownReader(trace, table, field), [from, to, events, cause] = ['from_ns', 'to_ns', 'events', 'cause'].map(read);
			for (let i = 0; i < table.rows.n; i++) {
				const time = table.rows.time[i], a = from(i) ? Number(BigInt(from(i)) - zero) : time, b = to(i) ? Number(BigInt(to(i)) - zero) : time;
				add(trace, Math.min(a, b), Math.max(a, b), `${name}${showCount(Number(events(i) ?? 0))} events lost: ${showName(cause(i) ?? 'cause not known')}`);
				lost += Number(events(i) ?? 0);
			}
		}
		for (const table of tablesNamed(trace, 'MemoryProfileOverflowEvent')) {
			const read = (field) => knownReader(trace, table, field), [allocs, frees] = ['dropped_allocs', 'dropped_frees'].map(read);
			for (let i = 0; i < table.rows.n; i++) {
				const n = Number(allocs(i) ?? 0) + Number(frees(i) ?? 0);
				if (n) add(trace, table.rows.time[i], table.rows.time[i], `${name}${showCount(n)} samples of memory lost`);
				lost += n;
			}
		}
		for (const segment of trace.segments) {
			if (!segment.error && !segment.cut) continue;
			const at = Math.max(trace.start, Math.min(trace.end, segment.last ?? trace.end));
			if (segment.error) damaged++;
			else cut++;
			add(trace, at, at, segment.error ? `${name}${showName(segment.name)} is damaged from byte ${segment.offset} on: ${showName(segment.error)}` : `${name}${showName(segment.name)} ${segment.unread ? `was ${segment.unread}` : 'ends inside an event'}`);
		}
	}
	const rows = Math.max(1, packItems(items)), done = finishItems(items, rows), bad = lost > 0 || damaged > 0;
	return makeTrack({
		id: 'loss', title: 'loss, damage', prefix: 'loss', items: done, opens: bad, loud: bad, hatched: true,
		plain: 'Where events are missing: lost while recording, or unreadable in the file. What is shown there is not everything.',
		figure: [lost && `${showCount(lost)} lost`, damaged && `${counted(damaged, 'segment')} damaged`, cut && `${cut} cut at the end`].filter(Boolean).join(', ') || 'nothing lost',
		alarmed: () => true, label: (i) => told[done.ref[i]].text, tell: (i) => told[done.ref[i]].text,
		key: (i) => `${processKey(model, told[done.ref[i]].trace)}${absoluteTime(told[done.ref[i]].trace, done.start[i] - told[done.ref[i]].trace.shift)}`,
	});
}
