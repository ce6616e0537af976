// SPDX-License-Identifier: Apache-2.0
// A range of a trace as a trace of its own: its events as they are, byte for byte but for the distance in
// time to the event before, with the schemas, texts and stacks that they use, and what lived before it.

import { Decoder, WAKE_FIELDS } from './decode.js';
import { TAG, TYPE, TraceError } from './frames.js';
import { unpack } from './unpack.js';

const CUT_CHUNK = 1 << 20;
const DELTA_MAX = 0xffffff;
const MAGIC_BYTES = [0x54, 0x52, 0x43, 0, 1];
const utf8 = new TextEncoder();
const WAKE_TYPE = 0xffff;
const SYMBOL_FIELDS = [['addr', TYPE.VARINT], ['size', TYPE.VARINT], ['symbol_name', TYPE.STRING], ['inline_depth', TYPE.VARINT], ['source_file', TYPE.STRING], ['source_line', TYPE.VARINT]];

/** Bytes that are written one after another, in chunks. */
class ByteWriter {
	constructor(size = CUT_CHUNK) {
		this.chunks = [];
		this.bytes = new Uint8Array(size);
		this.at = 0;
	}

	/** Room for |n| bytes in a row. */
	room(n) {
		if (this.at + n <= this.bytes.length) return;
		this.chunks.push(this.bytes.subarray(0, this.at));
		this.bytes = new Uint8Array(Math.max(n, CUT_CHUNK));
		this.at = 0;
	}

	put(bytes) {
		this.room(bytes.length);
		this.bytes.set(bytes, this.at);
		this.at += bytes.length;
	}

	u8(n) { this.put([n]); }
	u16(n) { this.put([n & 255, n >> 8]); }
	u32(n) { this.put([n & 255, n >> 8 & 255, n >> 16 & 255, n >>> 24]); }

	u64(n) {
		this.u32(Number(n & 0xffffffffn));
		this.u32(Number(n >> 32n));
	}

	uleb(n) {
		for (; n >= 0x80n; n >>= 7n) this.u8(Number(n & 0x7fn) | 0x80);
		this.u8(Number(n));
	}

	text16(text) {
		const bytes = utf8.encode(text);
		this.u16(bytes.length);
		this.put(bytes);
	}

	text32(text) {
		const bytes = utf8.encode(text);
		this.u32(bytes.length);
		this.put(bytes);
	}

	finish() {
		return [...this.chunks, this.bytes.subarray(0, this.at)];
	}
}

/** What a batch of the input has defined, as it stands there. */
function newDefinitions() {
	return { schemas: new Map(), strings: new Map(), stacks: new Map() };
}

/** Writes events of batches of the input; what they use is defined once in each batch of the output. */
class CutWriter {
	constructor(origin) {
		this.origin = BigInt(origin[1]) << 32n | BigInt(origin[0]);
		this.out = new ByteWriter();
		this.batch = null;
		this.events = 0;
	}

	begin(batch) {
		this.out.put(MAGIC_BYTES);
		this.batch = batch;
		this.told = { schemas: new Set(), strings: new Set(), stacks: new Set() };
		this.time = NaN;
	}

	/** Definitions of |ids| that this batch of the output does not have yet. */
	define(tag, kind, ids) {
		const told = this.told[kind], fresh = [];
		for (const id of ids) {
			// An id that the input never defined stays undefined.
			if (told.has(id) || !this.batch[kind].has(id)) continue;
			told.add(id);
			fresh.push(this.batch[kind].get(id));
		}
		if (!fresh.length) return;
		this.out.u8(tag);
		this.out.u32(fresh.length);
		for (const entry of fresh) this.out.put(entry);
	}

	reset(ns) {
		this.out.u8(TAG.RESET);
		this.out.u64(ns);
	}

	/** |event|: {batch, schema, strings, stacks, hasTime, time, bytes}; |time| relative to the origin, NaN for 0. */
	event(event) {
		const { out } = this;
		if (event.batch !== this.batch) this.begin(event.batch);
		if (!this.told.schemas.has(event.schema)) {
			this.told.schemas.add(event.schema);
			out.put(this.batch.schemas.get(event.schema));
		}
		this.define(TAG.STRINGS, 'strings', event.strings);
		this.define(TAG.STACKS, 'stacks', event.stacks);
		let delta = event.time - this.time;
		if (event.hasTime && !(delta >= 0 && delta <= DELTA_MAX)) {
			this.reset(Number.isNaN(event.time) ? 0n : this.origin + BigInt(event.time));
			delta = 0;
		}
		out.room(event.bytes.length);
		out.put(event.bytes);
		if (event.hasTime) {
			const at = out.at - event.bytes.length + 3;
			out.bytes[at] = delta & 255;
			out.bytes[at + 1] = delta >> 8 & 255;
			out.bytes[at + 2] = delta >> 16;
			this.time = event.time;
		}
		this.events++;
	}

	metadata(time, entries) {
		const { out } = this;
		this.begin(newDefinitions());
		out.u8(TAG.SCHEMA);
		out.u16(1);
		out.text16('SegmentMetadataEvent');
		out.u8(1);
		out.u16(1);
		out.text16('entries');
		out.u8(TYPE.STRING_MAP);
		this.reset(this.origin + BigInt(time));
		out.put([TAG.EVENT, 1, 0, 0, 0, 0]);
		out.u32(entries.length);
		for (const part of entries.flat()) out.text32(part);
	}

	/** Rows of functions that the input does not name, in the batch of the metadata; |symbols|: [[address, frames]], innermost first. */
	symbols(symbols) {
		const { out } = this;
		if (!symbols.length) return;
		out.u8(TAG.SCHEMA);
		out.u16(2);
		out.text16('SymbolTableEntry');
		out.u8(1);
		out.u16(SYMBOL_FIELDS.length);
		for (const [name, type] of SYMBOL_FIELDS) {
			out.text16(name);
			out.u8(type);
		}
		this.reset(0n);
		for (const [address, frames] of symbols) frames.forEach((frame, i) => this.symbol(address, frame, frames.length - 1 - i));
	}

	symbol(address, { name, file, line }, depth) {
		const { out } = this;
		out.put([TAG.EVENT, 2, 0, 0, 0, 0]);
		out.uleb(BigInt(address));
		out.uleb(0n);
		out.text32(name);
		out.uleb(BigInt(depth));
		out.text32(file ?? '');
		out.uleb(BigInt(line ?? 0));
		this.events++;
	}
}

/** Reads one segment and hands what belongs to the range to a Cut. */
class CutDecoder extends Decoder {
	newBatch() {
		super.newBatch();
		this.batch = newDefinitions();
		this.usedStrings = [];
		this.usedStacks = [];
	}

	/** The definition of a wake that was told by a poll: the batch's own, or one more. */
	wakeSchema() {
		const { schemas } = this.batch;
		for (const { id, hot, reason, more } of this.schemas.values()) if (hot && reason && !more.length) return id;
		if (!schemas.has(WAKE_TYPE)) {
			const out = new ByteWriter(128);
			out.u8(TAG.SCHEMA);
			out.u16(WAKE_TYPE);
			out.text16('WakeEventEvent');
			out.u8(1);
			out.u16(WAKE_FIELDS.length);
			for (const { name, type } of WAKE_FIELDS) {
				out.text16(name);
				out.u8(type);
			}
			schemas.set(WAKE_TYPE, out.finish()[0].slice());
		}
		return WAKE_TYPE;
	}

	/** A wake as an event: that of a poll which was just decoded. */
	wake(time, waker, woken, by, reason) {
		const out = new ByteWriter(64), schema = this.wakeSchema();
		out.u8(TAG.EVENT);
		out.u16(schema);
		out.put([0, 0, 0]);
		out.uleb(BigInt(waker));
		out.uleb(BigInt(woken));
		out.u8(by);
		out.u8(reason);
		return { batch: this.batch, schema, strings: [], stacks: [], hasTime: true, time, bytes: out.finish()[0].slice() };
	}

	/** All events go the exact way: what they use has to be seen. */
	hot() {}

	value(type, depth) {
		if (type !== TYPE.POOLED_STRING && type !== TYPE.POOLED_STACK) return super.value(type, depth);
		const id = this.u32();
		(type === TYPE.POOLED_STRING ? this.usedStrings : this.usedStacks).push(id);
		return id;
	}

	event(start) {
		this.usedStrings.length = this.usedStacks.length = 0;
		this.eventStart = start;
		this.eventSchema = this.bytes[start + 1] | this.bytes[start + 2] << 8;
		super.event(start);
	}

	/** The event that was just decoded, to be written now or later. */
	taken(table, time) {
		return { batch: this.batch, schema: this.eventSchema, strings: [...this.usedStrings], stacks: [...this.usedStacks], hasTime: table.hasTime, time,
			bytes: this.schemas.get(this.eventSchema).told ? this.untold() : this.bytes.slice(this.eventStart, this.at) };
	}

	/** A poll without its wake, which is an event of its own: what it refers to may not be in the range. */
	untold() {
		let end = this.fifth;
		while (this.bytes[end++] >= 0x80);
		const head = this.bytes.subarray(this.eventStart, this.fifth), rest = this.bytes.subarray(end, this.at);
		const bytes = new Uint8Array(head.length + 1 + rest.length);
		bytes.set(head);
		bytes.set(rest, head.length + 1);
		return bytes;
	}

	frame(start) {
		super.frame(start);
		const { bytes, batch, at } = this;
		switch (bytes[start]) {
		case TAG.SCHEMA: this.keepSchema(bytes.subarray(start, at)); break;
		case TAG.ANNOTATIONS: this.keepAnnotations(bytes.subarray(start, at)); break;
		case TAG.STRINGS: this.keepEntries(start, batch.strings, 1); break;
		case TAG.STACKS: this.keepEntries(start, batch.stacks, 8); break;
		default:
		}
	}

	keepSchema(raw) {
		const { schemas } = this.batch, id = raw[1] | raw[2] << 8;
		if (!schemas.has(id)) schemas.set(id, raw.slice());
	}

	/** Facts about fields go with their schema. */
	keepAnnotations(raw) {
		const id = (raw[1] & 0x7f) + (raw[1] > 0x7f ? (raw[2] & 0x7f) * 128 + (raw[2] > 0x7f ? raw[3] * 16384 : 0) : 0);
		const { schemas } = this.batch, schema = schemas.get(id);
		if (!schema) return;
		const joined = new Uint8Array(schema.length + raw.length);
		joined.set(schema);
		joined.set(raw, schema.length);
		schemas.set(id, joined);
	}

	/** Entries of a pool: id, length in units of |unit| bytes, and what is so long. */
	keepEntries(start, entries, unit) {
		const { view, bytes } = this;
		let at = start + 5;
		for (let n = view.getUint32(start + 1, true); n > 0; n--) {
			const id = view.getUint32(at, true), end = at + 8 + unit * view.getUint32(at + 4, true);
			if (!entries.has(id)) entries.set(id, bytes.slice(at, end));
			at = end;
		}
	}
}

/** Decides what belongs to the range; stands where the decoder expects a model. */
class Cut {
	constructor({ origin, from, to, tasks, metadata, symbols = [] }) {
		Object.assign(this, { origin, tasks, from: Math.floor(from), to: Math.ceil(to) });
		this.strings = this.stacks = { id: () => 0 };
		this.tables = new Map();
		this.writer = new CutWriter(origin);
		this.begun = new Map(); // calls that have not ended, by worker: of one that reaches into the range its start is wanted
		this.told = new Set();
		this.clock = null;
		const skip = /^(recovered|segment\.prior_sealed_clean|cut\..*)$/;
		this.writer.metadata(this.from, [...[...metadata].filter(([key]) => !skip.test(key)),
			['cut.from_ns', String(this.writer.origin + BigInt(this.from))], ['cut.to_ns', String(this.writer.origin + BigInt(this.to))]]);
		this.writer.symbols(symbols);
	}

	table(shape, name, fields, hasTime) {
		let table = this.tables.get(shape);
		if (!table) {
			const at = (field) => fields.findIndex((f) => f.name === field);
			this.tables.set(shape, table = { name, hasTime, count: 0, worker: at('worker_id'), task: at('task_id'),
				length: name.startsWith('SpanCall:') ? at('duration_ns') : -1 });
		}
		return table;
	}

	annotate() {}

	/** Which way an event goes, by its name. */
	event(table, time, values) {
		switch (table.name) {
		case 'SegmentMetadataEvent': break;
		case 'SymbolTableEntry': this.write(table, time); break;
		case 'ModuleEvent':
			if (!(time > this.to)) this.write(table, time);
			break;
		case 'ClockSyncEvent': this.clockEvent(table, time); break;
		case 'TaskSpawnEvent': this.spawn(table, time, values[table.task]); break;
		case 'PollStartEvent': this.pollStart(table, time, values[table.worker]); break;
		case 'PollEndEvent': this.pollEnd(table, time, values[table.worker]); break;
		default:
			// A function that a library called is told when it returned: it belongs to the range if a part of it does.
			if (!(time < this.from || time - Number(values[table.length] ?? 0) > this.to)) this.write(table, time);
		}
	}

	/** The decoder tells it in front of its poll. */
	wake(time, waker, woken, by, reason) {
		if (time >= this.from && time <= this.to) this.writer.event(this.decoder.wake(time, waker, woken, by, reason));
	}

	write(table, time) {
		this.writer.event(this.decoder.taken(table, time));
	}

	/** The first one, for wall time, and those of the range. */
	clockEvent(table, time) {
		if (this.clock && (time < this.from || time > this.to)) return;
		this.clock = true;
		this.write(table, time);
	}

	/** A task that lives is told again at the beginning, as at the beginning of every segment. */
	spawn(table, time, task) {
		if (time > this.to || (time < this.from && (!this.tasks.has(task) || this.told.has(task)))) return;
		this.told.add(task);
		this.write(table, Math.max(time, this.from));
	}

	pollStart(table, time, worker) {
		const event = this.decoder.taken(table, time), inside = time >= this.from && time <= this.to;
		this.begun.set(worker, { event, inside });
		if (inside) this.writer.event(event);
	}

	/** A call that reaches over an end of the range is written whole. */
	pollEnd(table, time, worker) {
		const begun = this.begun.get(worker);
		this.begun.delete(worker);
		if (begun && !begun.inside && (time < this.from || begun.event.time > this.to)) return;
		if (!begun && (time < this.from || time > this.to)) return;
		if (begun && !begun.inside) this.writer.event(begun.event);
		this.write(table, time);
	}
}

/**
 * Cut one process's trace: |sources| as for readTrace(); |range|: {origin, from, to} with times as those of
 * its trace, |tasks|: Set of ids that live in it, |metadata|: Map, |symbols|: [[address, frames]] that are known from
 * elsewhere.  {chunks, events}: the bytes of a segment,
 * plain, and how many events it has.  What follows damage in a segment is left out, as it is by readTrace().
 */
export async function cutTrace(sources, range, progress = () => {}) {
	const cut = new Cut(range);
	let stored = 0;
	for (const { chunks } of sources) {
		const decoder = cut.decoder = new CutDecoder(cut);
		let used = 0;
		try {
			for await (const piece of unpack(chunks())) {
				decoder.push(piece.bytes);
				used = piece.stored;
				await progress(stored + used);
			}
			decoder.end();
		} catch (error) {
			if (!(error instanceof TraceError)) throw error;
		}
		stored += used;
	}
	return { chunks: cut.writer.out.finish(), events: cut.writer.events };
}
