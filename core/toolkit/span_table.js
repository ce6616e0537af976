// SPDX-License-Identifier: Apache-2.0
// Spans as wholes: from what their close event says, else from their enters and exits.

import { growTable, newTable } from './table.js';
import { absoluteTime, fieldReader } from './trace.js';

const SPAN_SHAPE = { start: Float64Array, end: Float64Array, active: Float64Array, name: Int32Array, table: Int32Array, row: Uint32Array, flags: Uint8Array };
const UNLIMITED = { take() {} };
const ENTER = /^SpanEnter(:|__|Event$)/, EXIT = /^SpanExit(:|__|Event$)/, CLOSE = /^SpanClose(Event$|__)/;

/** Whether events of that name say that spans begin, are inside of a thread, or end. */
export function isSpanEvent(name) {
	return ENTER.test(name) || EXIT.test(name) || CLOSE.test(name);
}

/** Flags of a span. */
export const SPAN = { NO_END: 1, NO_START: 2 };

const UNITS = { ns: 1, us: 1e3, ms: 1e6, s: 1e9 };

/** The roles of an event that is a span by itself: {start, duration, name} by field number, or null. */
export function spanRoles(table) {
	const roles = new Map(table.annotations.filter(([, key]) => key === 'dial9.role').map(([field, , role]) => [role, field]));
	const start = roles.get('span.start'), duration = roles.get('span.duration');
	if ((start === undefined) === (duration === undefined)) return null;
	const timed = start ?? duration, unit = UNITS[table.annotations.find(([f, key]) => f === timed && key === 'unit')?.[2] ?? 'ns'];
	return unit ? { start, duration, name: roles.get('span.name'), unit } : null;
}

class SpanTable {
	constructor(trace) {
		this.trace = trace;
		this.zero = absoluteTime(trace, 0);
		this.spans = Object.assign(newTable(SPAN_SHAPE), { ids: [] });
		this.closed = new Set();
	}

	relative(ns) {
		return ns === undefined ? NaN : Number(BigInt(ns) - this.zero);
	}

	add(id, start, end, name, table, row, flags, active = NaN) {
		const { spans } = this;
		if (spans.n === spans.size) growTable(spans, UNLIMITED);
		const i = spans.n++;
		Object.entries({ start, end, active, name, table, row, flags }).forEach(([key, value]) => {
			spans[key][i] = value;
		});
		spans.ids.push(id);
		return i;
	}

	/** Closes that tell everything. */
	takeCloses(table, number) {
		const read = (name) => fieldReader(this.trace, table, name), id = read('span_id'), start = read('start_timestamp_ns'), active = read('active_ns'), name = textColumn(table, 'span_name');
		for (let row = 0; row < table.rows.n; row++) {
			this.closed.add(id(row));
			this.add(id(row), this.relative(start(row)), table.rows.time[row], name(row), number, row, 0, Number(active(row) ?? NaN));
		}
	}

	/** Spans without such a close, in the order of what happened: ids are used again after a close. */
	takeRest(tables) {
		const rows = [], open = new Map();
		for (const { table, number } of tables) {
			const id = fieldReader(this.trace, table, 'span_id'), name = textColumn(table, 'span_name');
			for (let row = 0; row < table.rows.n; row++)
				if (!this.closed.has(id(row))) rows.push({ time: table.rows.time[row], id: id(row), name: name(row), table, number, row });
		}
		rows.sort((a, b) => a.time - b.time);
		const { spans } = this;
		for (const { time, id, name, table, number, row } of rows) {
			let i = open.get(id);
			if (CLOSE.test(table.name)) {
				if (i === undefined) continue;
				spans.end[i] = time;
				spans.flags[i] &= ~SPAN.NO_END;
				open.delete(id);
				continue;
			}
			const enter = ENTER.test(table.name);
			if (i === undefined) open.set(id, i = this.add(id, enter ? time : NaN, NaN, name, number, row, SPAN.NO_END));
			if (!enter) spans.end[i] = time;
		}
	}

	/** Events that are spans by themselves. */
	takeSingle(table, number) {
		const roles = spanRoles(table);
		if (!roles) return;
		const timed = fieldReader(this.trace, table, table.fields[roles.start ?? roles.duration].name);
		for (let row = 0; row < table.rows.n; row++) {
			const end = table.rows.time[row], value = timed(row);
			if (value === undefined) continue;
			const start = roles.start === undefined ? end - Number(value) * roles.unit : this.relative(BigInt(value) * BigInt(roles.unit));
			if (start <= end) this.add(`${number}.${row}`, start, end, roles.name === undefined ? -1 : table.columns[roles.name][row], number, row, 0);
		}
	}
}

function textColumn(table, field) {
	const i = table.fields.findIndex(({ name }) => name === field);
	return i < 0 ? () => -1 : (row) => table.columns[i][row];
}

/**
 * {n, start, end, active, name (number of a text, -1: none), table, row (of the event that tells most), flags,
 * ids}, in no order.  Times are relative to the trace's origin.
 */
export function spanTable(trace) {
	const made = new SpanTable(trace), { spans } = made, told = [], rest = [];
	trace.tables.forEach((table, number) => {
		if (!table.rows.n || !table.hasTime) return;
		if (CLOSE.test(table.name) && table.fields.some(({ name }) => name === 'start_timestamp_ns')) made.takeCloses(table, number);
		else if (isSpanEvent(table.name)) rest.push({ table, number });
		else told.push({ table, number });
	});
	made.takeRest(rest);
	for (const { table, number } of told) made.takeSingle(table, number);
	for (let i = 0; i < spans.n; i++) {
		if (Number.isNaN(spans.end[i])) spans.end[i] = trace.end;
		if (!Number.isNaN(spans.start[i])) continue;
		spans.start[i] = Math.min(trace.start, spans.end[i]);
		spans.flags[i] |= SPAN.NO_START;
	}
	return spans;
}

/** The name of span |i|. */
export function spanName(trace, spans, i) {
	return trace.strings[spans.name[i]] || trace.tables[spans.table[i]].name;
}

/** Of each name the length that |percent| of its spans are below: Map by name number. */
export function spanFloors(spans, percent) {
	const byName = new Map(), floors = new Map();
	for (let i = 0; i < spans.n; i++) {
		if (!byName.has(spans.name[i])) byName.set(spans.name[i], []);
		byName.get(spans.name[i]).push(spans.end[i] - spans.start[i]);
	}
	for (const [name, lengths] of byName) {
		lengths.sort((a, b) => a - b);
		floors.set(name, lengths[Math.min(lengths.length - 1, Math.floor(lengths.length * percent / 100))]);
	}
	return floors;
}
