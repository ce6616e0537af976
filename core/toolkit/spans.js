// SPDX-License-Identifier: Apache-2.0
// The program's spans: named pieces of work that threads enter and leave any number of times, or that one
// event tells whole.

import { TYPE } from './frames.js';
import { placeOfField } from './known.js';
import { nameOfLocation } from './stacks.js';
import { tableOf } from './table.js';

const SPAN_STAYS = { start: Float64Array, end: Float64Array, span: Float64Array, name: Int32Array, life: Int32Array, task: Float64Array };
const SPAN_LIVES = { name: Int32Array, start: Float64Array, end: Float64Array };
const NOBODY = 255;

/** Names of events that tell of spans: enters, exits and closes, those that live where a segment begins, and functions that a loop library called. */
export const SPAN_EVENT = /^Span(Enter|Exit)(?::|__|Event$)|^Span(Close)(?:__|Event$)|^Span(Open)Event$|^SpanCall:/;
const ROLE_TYPES = { 'span.start': [TYPE.I64, TYPE.VARINT, TYPE.U8, TYPE.U16, TYPE.U32], 'span.name': [TYPE.STRING, TYPE.POOLED_STRING] };
for (const role of ['span.duration', 'thread_id', 'tokio.task_id', 'tokio.worker_id']) ROLE_TYPES[role] = ROLE_TYPES['span.start'];
const TIME_UNITS = { ns: 1n, us: 1000n, ms: 1000000n, s: 1000000000n };

/**
 * The roles of a schema's fields: {role: {field, unit}}; null: its events are no spans, as no field has the
 * start or the length, or as what is said of its fields contradicts itself.
 */
export function spanRoles(table) {
	if (isCall(table)) return null; // later readers of the original go by its roles
	const roles = {};
	for (const [field, key, role] of table.annotations) {
		if (key !== 'dial9.role' || !Object.hasOwn(ROLE_TYPES, role)) continue;
		const units = new Set(table.annotations.filter((a) => a[0] === field && a[1] === 'unit').map((a) => a[2]));
		const other = table.annotations.some((a) => a[0] === field && a[1] === key && a[2] !== role && Object.hasOwn(ROLE_TYPES, a[2]));
		const timed = role === 'span.start' || role === 'span.duration', [unit = 'ns'] = units;
		if (other || (roles[role] && roles[role].field !== field) || !ROLE_TYPES[role].includes(table.fields[field]?.type)) return null;
		if (timed && (units.size > 1 || !Object.hasOwn(TIME_UNITS, unit))) return null;
		roles[role] = { field, unit: timed ? TIME_UNITS[unit] : null };
	}
	if (!roles['span.start'] && !roles['span.duration']) return null;
	return table.hasTime || (roles['span.start'] && roles['span.duration']) ? roles : null;
}

/** Whether each event tells a function that a loop library called inside its own callback, when it returned. */
export const isCall = (table) => table.known && table.hasTime && table.name.startsWith('SpanCall:');

const U64_END = 1n << 64n;

/** A function (row) => ns in the field of |role|; null where it is absent, negative, or longer than 64 bits. */
function timeReader(trace, table, read, role) {
	if (!role) return () => null;
	const value = read(trace, table, table.fields[role.field].name);
	return (row) => {
		const n = value(row), ns = n === undefined || n < 0 ? null : BigInt(n) * role.unit;
		return ns < U64_END ? ns : null;
	};
}

/** Spans that one event tells: |found| gets {start, end, name, worker, task, id}. */
function wholeSpans(trace, table, read, origin, found) {
	const roles = spanRoles(table);
	if (!roles) return;
	const at = (role) => {
		const value = roles[role] ? read(trace, table, table.fields[roles[role].field].name) : () => undefined;
		return (row) => (value(row) < 0 ? undefined : value(row));
	};
	const start = timeReader(trace, table, read, roles['span.start']), length = timeReader(trace, table, read, roles['span.duration']), name = at('span.name');
	const thread = at('thread_id'), task = at('tokio.task_id'), worker = at('tokio.worker_id');
	for (let i = 0; i < table.rows.n; i++) {
		if (table.hasTime && Number.isNaN(table.rows.time[i])) continue;
		const began = start(i), took = length(i);
		const end = table.hasTime ? BigInt(Math.round(table.rows.time[i])) + origin : began === null || took === null ? null : began + took;
		if (end === null || (began === null && took === null)) continue;
		const from = began ?? (took > end ? 0n : end - took);
		if (from > end || end >= U64_END) continue;
		const text = roles['span.name'] ? table.columns[roles['span.name'].field][i] : -1;
		found.push({ start: Number(from - origin), end: Number(end - origin), name: name(i)?.trim() ? text : -1, schema: table.name,
			worker: Number(worker(i) ?? trace.workers.find((w) => w.tids.includes(Number(thread(i))))?.id ?? NOBODY), task: Number(task(i) || NaN) });
	}
}

// A stay, or a span, of no length begins before it ends; a block that is left exits and closes its span at one time.
const ORDER_OF_ONE_TIME = { Open: 0, Enter: 1, Exit: 2, Close: 3 };

/** The two rows of each call; of one that began before the trace the second. */
function* callRows(trace, table, known) {
	const worker = known(trace, table, 'worker_id'), length = known(trace, table, 'duration_ns'), id = known(trace, table, 'span_instance_id');
	const name = placeOfField(table.name, table.fields, 'span_name');
	for (let i = 0; i < table.rows.n; i++) {
		const time = table.rows.time[i], start = time - Number(length(i)), own = id(i) ?? 0;
		if (Number.isNaN(time)) continue;
		// Nothing refers to one without an id, so that any will do to find its own two.
		const row = { worker: Number(worker(i)), span: own || `${table.name}@${i}`, own, name: name < 0 || !(table.columns[name][i] >= 0) ? -1 : table.columns[name][i], call: true };
		if (start >= trace.start) yield { ...row, kind: 'Enter', time: start };
		yield { ...row, kind: 'Exit', time };
	}
}

/** Enters, exits and closes in the order of their times. */
function spanRows(trace, known) {
	const rows = [];
	for (const table of trace.tables) {
		if (isCall(table)) {
			for (const row of callRows(trace, table, known)) rows.push(row);
			continue;
		}
		const told = SPAN_EVENT.exec(table.name), kind = told?.[1] ?? told?.[2] ?? told?.[3];
		if (!kind || !table.rows.n || spanRoles(table)) continue;
		const worker = known(trace, table, 'worker_id'), span = known(trace, table, 'span_id'), began = known(trace, table, 'start_timestamp_ns');
		const first = known(trace, table, 'first_enter_timestamp_ns');
		const name = placeOfField(table.name, table.fields, 'span_name');
		for (let i = 0; i < table.rows.n; i++) {
			if (Number.isNaN(table.rows.time[i])) continue;
			rows.push({ time: table.rows.time[i], kind, worker: Number(worker(i) ?? NOBODY), span: span(i) ?? 0, began: began(i),
				unentered: first(i) === undefined, name: name < 0 || !(table.columns[name][i] >= 0) ? -1 : table.columns[name][i] });
		}
	}
	return rows.sort((a, b) => a.time - b.time || ORDER_OF_ONE_TIME[a.kind] - ORDER_OF_ONE_TIME[b.kind]);
}

/** Whether a span's name is a place: a loop's adapter tells a function of the program by it, the program tells its work. */
export const isFunction = (name) => (name ?? '').includes(' @ ');

/**
 * {stays, lives, inside}: by worker the times that its thread was inside of spans, in order of their start, and the spans:
 * |life| of a stay is its row among these.  |inside|: functions that were never left, {worker, name, time}.  A stay belongs to the worker that entered; an id may be used again
 * behind a close.  |read|, |known|: fieldReader() and knownReader() of trace.js.
 */
export function readSpans(trace, read, known) {
	const lives = [], ids = [], open = new Map(), stays = new Map(), origin = BigInt(trace.origin[1]) << 32n | BigInt(trace.origin[0]);
	const begin = (id, row) => {
		ids.push(row.own ?? id);
		return lives.push({ name: row.name, start: row.start ?? row.time, end: row.end ?? row.time }) - 1;
	};
	const stay = (worker, row) => {
		if (!stays.has(worker)) stays.set(worker, []);
		stays.get(worker).push(row);
	};
	for (const row of spanRows(trace, known)) {
		let span = open.get(row.span);
		if (row.kind === 'Enter') {
			if (!span) open.set(row.span, span = { life: begin(row.span, row), entered: null, again: null });
			// It may have been left at the same time, which is told behind.
			if (span.entered) span.again = row;
			else span.entered = row;
		} else if (row.kind === 'Exit') {
			// Of one that was told nobody knows since when a thread was inside.
			if (span?.told && !span.entered) lives[span.life].end = Math.max(lives[span.life].end, row.time);
			if (!span?.entered) continue;
			const { entered } = span, life = lives[span.life];
			life.end = Math.max(life.end, row.time);
			stay(entered.worker, { start: entered.time, end: row.time, span: Number(row.own ?? row.span), name: entered.name, life: span.life, task: NaN });
			if (row.call) open.delete(row.span);
			span.entered = span.again?.time === row.time ? span.again : null;
			span.again = null;
		} else if (row.kind === 'Open') {
			if (!span) open.set(row.span, { life: begin(row.span, { ...row, start: row.began === undefined ? row.time : Number(BigInt(row.began) - origin), end: row.time }), entered: null, again: null, told: true });
		} else {
			if (!span) {
				// One that nobody was ever inside is known by its close alone.
				if (row.unentered && row.began !== undefined) begin(row.span, { ...row, start: Number(BigInt(row.began) - origin), end: row.time });
				continue;
			}
			const life = lives[span.life];
			life.end = Math.max(life.end, row.time);
			if (row.began !== undefined) life.start = Math.min(life.start, Number(BigInt(row.began) - origin));
			open.delete(row.span);
		}
	}
	// Functions that a call is in that never ended: as long as it was seen.
	const inside = [];
	for (const { life, entered } of open.values()) {
		if (!entered || !isFunction(trace.strings[entered.name])) continue;
		const end = lastSeen(trace, entered);
		if (end < 0) {
			inside.push({ worker: entered.worker, name: entered.name, time: entered.time });
			continue;
		}
		lives[life].end = Math.max(lives[life].end, end);
		stay(entered.worker, { start: entered.time, end, span: 0, name: entered.name, life, task: NaN });
	}
	const whole = [];
	for (const table of trace.tables) wholeSpans(trace, table, read, origin, whole);
	for (const row of whole) stay(row.worker, { start: row.start, end: row.end, span: 0, name: row.name, life: begin(0, row), task: row.task });
	const tables = new Map();
	for (const [worker, list] of stays) tables.set(worker, tableOf(SPAN_STAYS, list.sort((a, b) => a.start - b.start || b.end - a.end)));
	return { stays: tables, inside, lives: Object.assign(tableOf(SPAN_LIVES, lives), { ids, schemas: schemasOf(lives, whole) }) };
}

/** Until when the call was seen in which a span was entered that was not left; -1: it ended. */
function lastSeen(trace, { worker: id, time }) {
	const { polls, unended, running } = trace.workers.find((worker) => worker.id === id) ?? {};
	return unended && !running && time >= unended.start ? polls.start[polls.n - 1] + polls.dur[polls.n - 1] : -1;
}

/** What spans without a name of their own are called: Map from the row of the life to the name of its schema. */
function schemasOf(lives, whole) {
	const first = lives.length - whole.length;
	return new Map(whole.map((row, i) => [first + i, row]).filter(([, row]) => row.name < 0).map(([life, row]) => [life, row.schema]));
}

/** What a span is called: |life| is its row in trace.lives. */
export function nameOfSpan(trace, life) {
	const text = trace.strings[trace.lives.name[life]];
	return text === undefined ? trace.lives.schemas.get(life) ?? 'unknown' : nameOfLocation(trace, text);
}

/** A span by its row in trace.lives, as partsOfSpan() takes it: {start, end, stays: [{worker, start, end, task}]}. */
export function spanOf(trace, life) {
	const stays = [];
	for (const [worker, table] of trace.spans)
		for (let i = 0; i < table.n; i++)
			if (table.life[i] === life)
				stays.push({ worker, start: table.start[i], end: table.end[i], task: Number.isNaN(table.task[i]) ? undefined : table.task[i] });
	return { start: trace.lives.start[life], end: trace.lives.end[life], stays: stays.sort((a, b) => a.start - b.start) };
}
