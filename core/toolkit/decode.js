// SPDX-License-Identifier: Apache-2.0
// The quick decoder of TRC 1: frames of pieces of a stream, into columns.
//
// Written from FORMAT.md.  The five events of a loop's hot path have readers of their own, chosen when a
// schema begins with exactly their fields; everything else is read field by field.  Times are doubles in ns
// since the trace's origin, exact for 104 days of trace.  frames.js says the same slowly, and tests hold the
// two against each other.

import { TraceError, Truncated, TAG, TYPE, isFieldType } from './frames.js';
import { PollWakes } from './poll_wakes.js';
import { wideNumber } from './table.js';

const HEADER = [0x54, 0x52, 0x43, 0x00];
const NESTING_MAX = 64;
const ELEMENT_BYTES = 32; // of a list or map, as it is kept
const OPTIONAL_BIT = 0x80;
const HOT_BYTES = 80; // the longest hot event has 57; reading behind the end of a typed array gives undefined
const WIDE = 2 ** 32;
const NEAR_IDS = 1 << 16; // pool ids below that are kept in an array
const SAFE_UPPER = 0x200000;

export const WAKE_FIELDS = [['waker_task_id', TYPE.VARINT], ['woken_task_id', TYPE.VARINT], ['target_worker', TYPE.U8], ['reason', TYPE.U8]]
	.map(([name, type]) => ({ name, type, optional: false })); // as recorders define it
const TOLD_AT = 4; // the field of a PollStart that tells its wake
const HOT = { POLL_START: 1, POLL_END: 2, PARK: 3, UNPARK: 4, WAKE: 5 };
const HOT_SHAPES = [
	[HOT.POLL_START, 'PollStartEvent', 'worker_id:9 local_queue:11 task_id:9 spawn_loc:7'],
	[HOT.POLL_END, 'PollEndEvent', 'worker_id:9'],
	[HOT.PARK, 'WorkerParkEvent', 'worker_id:9 local_queue:11 cpu_time_ns:9 tid:13'],
	[HOT.UNPARK, 'WorkerUnparkEvent', 'worker_id:9 local_queue:11 cpu_time_ns:9 sched_wait_ns:9 tid:13'],
	[HOT.WAKE, 'WakeEventEvent', 'waker_task_id:9 woken_task_id:9 target_worker:11'],
];

function hotKind(name, fields) {
	const shape = fields.map((f) => `${f.name}:${f.type | (f.optional ? OPTIONAL_BIT : 0)}`).join(' ');
	for (const [kind, hotName, hotShape] of HOT_SHAPES)
		if (name === hotName && fields.every((field) => isFieldType(field.type)) && `${shape} `.startsWith(`${hotShape} `)) {
			const more = fields.slice(hotShape.split(' ').length);
			const reason = kind === HOT.WAKE && more[0]?.name === 'reason' && more[0].type === TYPE.U8 && !more[0].optional;
			// An event whose reason has another type, or does not come first, is read field by field.
			if (kind === HOT.WAKE && !reason && more.some((field) => field.name === 'reason')) break;
			const told = kind === HOT.POLL_START && more[0]?.name === 'wake' && more[0].type === TYPE.VARINT && !more[0].optional;
			return { hot: kind, reason, told, more: reason || told ? more.slice(1) : more };
		}
	return { hot: 0, reason: false, told: false, more: [] };
}

/**
 * Decodes what push() is given into |model| (see trace.js), whose interners name pooled texts and stacks.
 * push() returns nothing and keeps what is no whole frame yet; end() tells how it ended.  Both throw a
 * TraceError on damage, after everything before it was handed over.
 */
export class Decoder {
	constructor(model) {
		this.model = model;
		this.bytes = new Uint8Array(0);
		this.offset = 0; // of bytes[0] in the stream
		this.at = 0;
		this.wanted = 1; // try again only when so many bytes are there
		this.begun = false;
		this.decoder = new TextDecoder('utf-8', { ignoreBOM: true });
		this.newBatch();
	}

	newBatch() {
		this.schemas = new Map();
		this.strings = [];
		this.farStrings = new Map();
		this.stacks = new Map();
		this.wakes = null; // of polls, where these tell them
		this.setBase(0, 0);
	}

	/** The model's number of a pooled string, -1 if it was never defined. */
	stringOf(id) {
		return (id < NEAR_IDS ? this.strings[id] : this.farStrings.get(id)) ?? -1;
	}

	/** The base of times: relative to the origin, and how far it is from where 64 bits end. */
	setBase(lower, upper) {
		const model = this.model;
		if (model.origin === null && (lower || upper)) model.origin = [lower, upper];
		const [originLower, originUpper] = model.origin ?? [0, 0];
		this.base = (upper - originUpper) * WIDE + (lower - originLower);
		this.since = 0; // ns from the base to the last event
		this.room = (WIDE - 1 - upper) * WIDE + (WIDE - lower);
		this.zero = lower || upper ? NaN : this.base; // rows of symbols have time 0, which is no time
	}

	push(piece) {
		if (this.at < this.bytes.length) {
			const rest = this.bytes.length - this.at, joined = new Uint8Array(rest + piece.length);
			joined.set(this.bytes.subarray(this.at));
			joined.set(piece, rest);
			this.offset += this.at;
			this.bytes = joined;
		} else {
			this.offset += this.bytes.length;
			this.bytes = piece;
		}
		this.at = 0;
		if (this.bytes.length >= this.wanted) this.run();
	}

	/** Decode whole frames; what is none yet waits for more. */
	run() {
		const { bytes } = this;
		this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
		for (;;) {
			if (bytes.length - this.at > HOT_BYTES && this.begun) this.hot();
			if (this.at >= bytes.length) break;
			const start = this.at, { since } = this;
			try {
				this.frame(start);
			} catch (error) {
				this.at = start;
				this.since = since;
				if (!(error instanceof Truncated)) throw error;
				// Frames may be long: look again when there is twice as much.
				this.wanted = 2 * (bytes.length - start);
				return;
			}
		}
		this.wanted = 1;
	}

	/** The end of the input: {offset, cut}: behind the last whole frame, and whether something follows it. */
	end() {
		this.wanted = 1;
		if (this.at < this.bytes.length) this.run();
		const cut = this.at < this.bytes.length || !this.begun;
		return { offset: this.offset + this.at, cut };
	}

	fail(at, what) {
		throw new TraceError(this.offset + at, what);
	}

	need(n) {
		const { at } = this;
		if (n > this.bytes.length - at) throw new Truncated(this.offset + at, `${n} bytes expected`);
		this.at = at + n;
		return at;
	}

	u8() { return this.bytes[this.need(1)]; }
	u16() { return this.view.getUint16(this.need(2), true); }
	u32() { return this.view.getUint32(this.need(4), true); }

	/** A varint: a number where that is exact, else a BigInt. */
	uleb() {
		let value = 0, scale = 1;
		for (let i = 0; i < 7; i++) {
			const byte = this.u8();
			value += (byte & 0x7f) * scale;
			if (byte < 0x80) return value;
			scale *= 128;
		}
		let upper = 0n, shift = 49n;
		for (let i = 7; i < 10; i++) {
			const byte = this.u8();
			if (i === 9 && byte > 1) this.fail(this.at - 1, 'varint does not fit in 64 bits');
			upper |= BigInt(byte & 0x7f) << shift;
			if (byte < 0x80) {
				const whole = upper | BigInt(value);
				return whole <= Number.MAX_SAFE_INTEGER ? Number(whole) : whole;
			}
			shift += 7n;
		}
		return this.fail(this.at, 'varint of more than 10 bytes');
	}

	count(size) {
		const n = this.u32();
		if (n * size > this.bytes.length - this.at) throw new Truncated(this.offset + this.at, `count ${n} exceeds the input`);
		return n;
	}

	/** The count of a list or a map: two bytes of it become dozens in memory. */
	elements(size) {
		const n = this.count(size);
		this.model.budget?.take(n * ELEMENT_BYTES);
		return n;
	}

	text(n) {
		const at = this.need(n);
		return this.decoder.decode(this.bytes.subarray(at, at + n));
	}

	/** Events of the hot path, one after another, while a whole one is certainly there. */
	hot() {
		const { bytes, view, model } = this, last = bytes.length - HOT_BYTES;
		let { at } = this;
		const varint = () => {
			let byte = bytes[at++];
			if (byte < 0x80) return byte;
			let value = byte & 0x7f, scale = 128;
			for (let i = 1; i < 7; i++) {
				byte = bytes[at++];
				value += (byte & 0x7f) * scale;
				if (byte < 0x80) return value;
				scale *= 128;
			}
			return -1; // long ones are for uleb()
		};
		// Fields that were appended to those we know are read and forgotten.
		const skip = (fields) => {
			this.at = at;
			for (const field of fields) if (!field.optional || this.u8()) this.value(field.type, 0);
			at = this.at;
		};
		while (at <= last && bytes[at] === TAG.EVENT) {
			const schema = this.schemas.get(bytes[at + 1] | bytes[at + 2] << 8);
			if (schema === undefined || schema.hot === 0) break;
			const start = at, { more } = schema, since = this.since + (bytes[at + 3] | bytes[at + 4] << 8 | bytes[at + 5] << 16);
			const time = this.base + since;
			if (since >= this.room || time === this.zero || model.origin === null) break;
			at += 6;
			const first = varint();
			let a = 0, b = 0, c = 0, d = 0, told = 0;
			if (schema.hot === HOT.POLL_START) {
				a = bytes[at++];
				b = varint();
				c = view.getUint32(at, true);
				at += 4;
				if (schema.told) told = varint();
			} else if (schema.hot === HOT.WAKE) {
				b = varint();
				a = bytes[at++];
				if (schema.reason) d = bytes[at++];
			} else if (schema.hot !== HOT.POLL_END) {
				a = bytes[at++];
				b = varint();
				if (schema.hot === HOT.UNPARK) d = varint();
				c = view.getUint32(at, true);
				at += 4;
			}
			if (first < 0 || b < 0 || d < 0 || told < 0) {
				at = start;
				break;
			}
			if (more.length) {
				try {
					skip(more);
				} catch (error) {
					// The exact reader says what is wrong with it.
					this.at = start;
					return;
				}
			}
			if (this.wakes) this.seeWake(schema, first, time, b, told);
			switch (schema.hot) {
			case HOT.POLL_START: model.pollStart(first, time, a, b, this.stringOf(c)); break;
			case HOT.POLL_END: model.pollEnd(first, time); break;
			case HOT.PARK: model.park(first, time, b, c); break;
			case HOT.UNPARK: model.unpark(first, time, b, d, c); break;
			default: model.wake(time, first, b, a, d);
			}
			schema.table.count++;
			this.since = since;
			this.at = at;
		}
	}

	/** Where wakes count that polls tell: with those that are events. */
	wakeTable() {
		return this.countsWakes ??= this.model.table(JSON.stringify(['WakeEventEvent', true, WAKE_FIELDS]), 'WakeEventEvent', WAKE_FIELDS, true);
	}

	/** A poll that tells its wake, or what others refer to. */
	seeWake(schema, worker, time, task, told) {
		if (schema.told && this.wakes.start(this.model, worker, time, task, told)) this.wakeTable().count++;
		else if (schema.hot === HOT.POLL_END) this.wakes.end(worker, time);
		else if (schema.hot === HOT.UNPARK) this.wakes.unpark(worker, time);
	}

	frame(start) {
		const tag = this.bytes[start];
		if (!this.begun || tag === HEADER[0]) {
			this.header(start);
			return;
		}
		this.at = start + 1;
		switch (tag) {
		case TAG.EVENT: this.event(start); break;
		case TAG.SCHEMA: this.schema(start); break;
		case TAG.STRINGS: this.stringPool(); break;
		case TAG.STACKS: this.stackPool(); break;
		case TAG.RESET: {
			const at = this.need(8);
			this.setBase(this.view.getUint32(at, true), this.view.getUint32(at + 4, true));
			break;
		}
		case TAG.ANNOTATIONS: this.annotations(); break;
		default: this.fail(start, `unknown frame tag 0x${tag.toString(16)}`);
		}
	}

	header(start) {
		for (let i = 0; i < HEADER.length; i++)
			if (this.u8() !== HEADER[i]) this.fail(start, 'not a TRC stream');
		const version = this.u8();
		if (version !== 1) this.fail(start + 4, `version ${version}, only 1 is known`);
		this.begun = true;
		this.newBatch();
	}

	schema(start) {
		const id = this.u16(), name = this.text(this.u16()), hasTime = this.u8() !== 0, fields = [];
		for (let n = this.u16(); n > 0; n--) {
			const field = this.text(this.u16()), tag = this.u8();
			fields.push({ name: field, type: tag & ~OPTIONAL_BIT, optional: (tag & OPTIONAL_BIT) !== 0 });
		}
		const shape = JSON.stringify([name, hasTime, fields]), old = this.schemas.get(id);
		if (old) {
			if (old.shape !== shape) this.fail(start, `type ${id} defined twice, differently`);
			return;
		}
		const hot = hotKind(hasTime ? name : '', fields);
		if (hot.told) this.wakes ??= new PollWakes();
		this.schemas.set(id, { id, shape, hasTime, fields, ...hot,
			strange: fields.find((field) => !isFieldType(field.type)), values: new Array(fields.length), table: this.model.table(shape, name, fields, hasTime) });
	}

	stringPool() {
		const entries = [];
		for (let n = this.count(8); n > 0; n--) {
			const id = this.u32(), length = this.u32(), at = this.need(length);
			entries.push(id, this.model.strings.id(this.bytes, at, at + length));
		}
		for (let i = 0; i < entries.length; i += 2) {
			// Of two definitions of an id the first counts.
			if (entries[i] < NEAR_IDS) this.strings[entries[i]] ??= entries[i + 1];
			else if (!this.farStrings.has(entries[i])) this.farStrings.set(entries[i], entries[i + 1]);
		}
	}

	stackPool() {
		const entries = [];
		for (let n = this.count(8); n > 0; n--) {
			const id = this.u32(), depth = this.count(8), at = this.need(8 * depth);
			entries.push(id, this.model.stacks.id(this.bytes, at, at + 8 * depth));
		}
		for (let i = 0; i < entries.length; i += 2) if (!this.stacks.has(entries[i])) this.stacks.set(entries[i], entries[i + 1]);
	}

	annotations() {
		const id = Number(this.uleb()), entries = [];
		for (let n = this.u16(); n > 0; n--)
			entries.push([this.u16(), this.text(this.u16()), this.text(this.u32())]);
		const schema = this.schemas.get(id);
		if (schema) for (const [field, key, value] of entries) this.model.annotate(schema.table, field, key, value);
	}

	event(start) {
		const id = this.u16(), schema = this.schemas.get(id);
		if (!schema) this.fail(start, `event of unknown type ${id}`);
		if (schema.strange) this.fail(start, `event ${schema.table.name}: its field ${schema.strange.name} has the unknown type ${schema.strange.type}`);
		let since = NaN;
		if (schema.hasTime) {
			const at = this.need(3);
			since = this.since + (this.bytes[at] | this.bytes[at + 1] << 8 | this.bytes[at + 2] << 16);
			if (since >= this.room) this.fail(start, 'time exceeds 64 bits');
			// Without a reset before it, times count from 0.
			this.model.origin ??= [0, 0];
		}
		const { values, fields } = schema;
		for (let i = 0; i < fields.length; i++) {
			const field = fields[i];
			if (i === TOLD_AT) this.fifth = this.at;
			values[i] = field.optional && !this.u8() ? undefined : this.value(field.type, 0);
		}
		if (schema.hasTime) this.since = since;
		schema.table.count++;
		const time = this.base + since;
		if (this.wakes && schema.hot && time !== this.zero) {
			this.seeWake(schema, Number(values[0]), time, Number(values[2]), Number(values[TOLD_AT]));
			if (schema.told) values[TOLD_AT] = undefined;
		}
		this.model.event(schema.table, time === this.zero ? NaN : time, values);
	}

	/** Texts and stacks are numbers of the model's interners; -1 for an id that was never defined. */
	value(type, depth) {
		if (depth > NESTING_MAX) this.fail(this.at, 'containers nested too deeply');
		switch (type) {
		case TYPE.I64: {
			const at = this.need(8), upper = this.view.getInt32(at + 4, true);
			return Math.abs(upper) < SAFE_UPPER ? upper * WIDE + this.view.getUint32(at, true) : this.view.getBigInt64(at, true);
		}
		case TYPE.F64: return this.view.getFloat64(this.need(8), true);
		case TYPE.BOOL: return this.u8() ? 1 : 0;
		case TYPE.STRING: {
			const n = this.u32(), at = this.need(n);
			return this.model.strings.id(this.bytes, at, at + n);
		}
		case TYPE.BYTES: {
			const n = this.u32(), at = this.need(n);
			return this.bytes.slice(at, at + n);
		}
		case TYPE.POOLED_STACK: return this.stacks.get(this.u32()) ?? -1;
		case TYPE.POOLED_STRING: return this.stringOf(this.u32());
		case TYPE.STACK: {
			const n = this.count(8), at = this.need(8 * n);
			return this.model.stacks.id(this.bytes, at, at + 8 * n);
		}
		case TYPE.VARINT: return this.uleb();
		case TYPE.STRING_MAP: {
			const map = [];
			for (let n = this.elements(8); n > 0; n--) map.push([this.text(this.u32()), this.text(this.u32())]);
			return map;
		}
		case TYPE.U8: return this.u8();
		case TYPE.U16: return this.u16();
		case TYPE.U32: return this.u32();
		case TYPE.LIST: {
			const list = [];
			for (let n = this.elements(2); n > 0; n--) list.push(this.inner(depth));
			return list;
		}
		case TYPE.MAP: {
			const map = [];
			for (let n = this.elements(4); n > 0; n--) map.push([this.inner(depth), this.inner(depth)]);
			return map;
		}
		default: return this.fail(this.at, `field type ${type}`);
		}
	}

	/** A value in a list or map, where texts are texts and stacks lists. */
	inner(depth) {
		const type = this.u8();
		if (type === TYPE.STRING) return this.text(this.u32());
		if (type === TYPE.STACK) {
			const list = [];
			for (let n = this.count(8); n > 0; n--) list.push(wideNumber(this.u32(), this.u32()));
			return list;
		}
		return this.value(type, depth + 1);
	}
}
