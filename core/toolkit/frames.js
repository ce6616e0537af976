// SPDX-License-Identifier: Apache-2.0
// Every frame and value of TRC 1, exactly: written from FORMAT.md alone, independent of the decoder in C
// and of decode.js, which is the quick one.
//
// Times, counters and ids are BigInt where the format allows 64 bits, so nothing is rounded; callers
// convert what they know to be small.

const MAGIC = [0x54, 0x52, 0x43, 0x00];
const OPTIONAL = 0x80;
const DELTA_LIMIT = 1n << 64n;
const MAX_DEPTH = 64;

export const TAG = { SCHEMA: 1, EVENT: 2, STRINGS: 3, STACKS: 4, RESET: 5, ANNOTATIONS: 6 };
export const TYPE = {
	I64: 1, F64: 2, BOOL: 3, STRING: 4, BYTES: 5, POOLED_STACK: 6, POOLED_STRING: 7, STACK: 8,
	VARINT: 9, STRING_MAP: 10, U8: 11, U16: 12, U32: 13, LIST: 14, MAP: 15,
};

/** Whether |type|, without the bit that makes it optional, is one that events have. */
export function isFieldType(type) {
	return type >= TYPE.I64 && type <= TYPE.MAP;
}

/** Damage: where it is and what it is. */
export class TraceError extends Error {
	constructor(offset, what) {
		super(`offset ${offset}: ${what}`);
		this.offset = offset;
	}
}

/** The input ends inside a frame: normal for a file that was being written. */
export class Truncated extends TraceError {}

class Cursor {
	constructor(bytes) {
		this.bytes = bytes;
		this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
		this.at = 0;
	}

	need(n) {
		if (n > this.bytes.length - this.at) throw new Truncated(this.at, `${n} bytes expected`);
		const at = this.at;
		this.at += n;
		return at;
	}

	u8() { return this.bytes[this.need(1)]; }
	u16() { return this.view.getUint16(this.need(2), true); }
	u24() { const at = this.need(3); return this.view.getUint16(at, true) | this.bytes[at + 2] << 16; }
	u32() { return this.view.getUint32(this.need(4), true); }
	u64() { return this.view.getBigUint64(this.need(8), true); }
	i64() { return this.view.getBigInt64(this.need(8), true); }
	f64() { return this.view.getFloat64(this.need(8), true); }

	uleb() {
		let value = 0n;
		for (let i = 0; i < 10; i++) {
			const byte = this.u8();
			if (i === 9 && byte > 1) throw new TraceError(this.at - 1, 'varint does not fit in 64 bits');
			value |= BigInt(byte & 0x7f) << BigInt(7 * i);
			if (byte < 0x80) {
				this.shortest = i === 0 || byte !== 0;
				return value;
			}
		}
		throw new TraceError(this.at, 'varint of more than 10 bytes');
	}

	blob(n) { const at = this.need(n); return this.bytes.subarray(at, at + n); }
	text(n) { return new TextDecoder().decode(this.blob(n)); }

	// A count of elements of at least |size| bytes each that the rest of the input can hold.
	count(size) {
		const at = this.at, n = this.u32();
		if (n * size > this.bytes.length - this.at) throw new Truncated(at, `count ${n} exceeds the input`);
		return n;
	}
}

/**
 * Call the handlers of |visit| for each frame of |bytes| in order.
 *
 *   header(offset, batch)             a batch begins
 *   schema(schema, offset)            {id, name, hasTime, fields: [{name, type, optional}]}
 *   annotations(id, entries, offset)  [{field, key, value}]
 *   strings(entries, offset)          [[id, text]]; of two of one id the first counts
 *   stacks(entries, offset)           [[id, [address]]]
 *   reset(base, offset)
 *   event(event, offset)              {schema, time, values: {name: value}, raw: [{id, shortest}]}
 *
 * Returns the offset behind the last whole frame.  Throws TraceError on damage; a cut tail throws
 * Truncated after everything before it was delivered.
 */
export function decode(bytes, visit) {
	const c = new Cursor(bytes);
	let schemas, strings, stacks, base, batch = -1;
	const call = (name, ...args) => visit[name]?.(...args);

	const header = () => {
		const start = c.at;
		for (const byte of MAGIC)
			if (c.u8() !== byte) throw new TraceError(start, 'not a TRC stream');
		const version = c.u8();
		if (version !== 1) throw new TraceError(start + 4, `version ${version}, only 1 is known`);
		schemas = new Map();
		strings = new Map();
		stacks = new Map();
		base = 0n;
		call('header', start, ++batch);
	};

	const value = (type, depth, notes) => {
		if (depth > MAX_DEPTH) throw new TraceError(c.at, 'containers nested too deeply');
		switch (type) {
		case TYPE.I64: return c.i64();
		case TYPE.F64: return c.f64();
		case TYPE.BOOL: { const b = c.u8(); notes.bool = Math.max(notes.bool, b); return b !== 0; }
		case TYPE.STRING: return c.text(c.u32());
		case TYPE.BYTES: return c.blob(c.u32());
		case TYPE.POOLED_STACK: {
			const id = c.u32();
			if (!stacks.has(id)) notes.undefinedIds.push(`stack ${id}`);
			return stacks.get(id) ?? [];
		}
		case TYPE.POOLED_STRING: {
			const id = c.u32();
			if (!strings.has(id)) notes.undefinedIds.push(`string ${id}`);
			return strings.get(id) ?? `<unresolved pool#${id}>`;
		}
		case TYPE.STACK: { const list = []; for (let n = c.count(8); n > 0; n--) list.push(c.u64()); return list; }
		case TYPE.VARINT: { const v = c.uleb(); notes.shortest &&= c.shortest; return v; }
		case TYPE.STRING_MAP: {
			const map = [];
			for (let n = c.count(8); n > 0; n--) map.push([c.text(c.u32()), c.text(c.u32())]);
			return map;
		}
		case TYPE.U8: return BigInt(c.u8());
		case TYPE.U16: return BigInt(c.u16());
		case TYPE.U32: return BigInt(c.u32());
		case TYPE.LIST: {
			const list = [];
			for (let n = c.count(2); n > 0; n--) list.push(value(inner(c.u8(), notes), depth + 1, notes));
			return list;
		}
		case TYPE.MAP: {
			const map = [];
			for (let n = c.count(4); n > 0; n--) {
				const key = value(inner(c.u8(), notes), depth + 1, notes);
				map.push([key, value(inner(c.u8(), notes), depth + 1, notes)]);
			}
			return map;
		}
		default: throw new TraceError(c.at, `field type ${type}`);
		}
	};

	const inner = (tag, notes) => {
		if (tag === TYPE.POOLED_STACK || tag === TYPE.POOLED_STRING) notes.badInner = true;
		return tag;
	};

	const event = (start) => {
		const id = c.u16(), schema = schemas.get(id);
		if (!schema) throw new TraceError(start, `event of unknown type ${id}`);
		const strange = schema.fields.find((field) => !isFieldType(field.type));
		if (strange) throw new TraceError(start, `event ${schema.name}: its field ${strange.name} has the unknown type ${strange.type}`);
		let time = null;
		if (schema.hasTime) {
			time = base + BigInt(c.u24());
			if (time >= DELTA_LIMIT) throw new TraceError(start, 'time exceeds 64 bits');
		}
		const notes = { shortest: true, bool: 0, undefinedIds: [], badInner: false };
		const values = {};
		for (const field of schema.fields) {
			if (field.optional) {
				const presence = c.u8();
				notes.bool = Math.max(notes.bool, presence);
				if (!presence) { values[field.name] = undefined; continue; }
			}
			values[field.name] = value(field.type, 0, notes);
		}
		if (time !== null) base = time;
		call('event', { schema, time, values, notes, batch }, start);
	};

	const frames = {
		[TAG.SCHEMA]: (start) => {
			const id = c.u16(), name = c.text(c.u16()), hasTime = c.u8() !== 0, fields = [];
			for (let n = c.u16(); n > 0; n--) {
				const field = c.text(c.u16()), tag = c.u8();
				fields.push({ name: field, type: tag & ~OPTIONAL, optional: (tag & OPTIONAL) !== 0 });
			}
			const schema = { id, name, hasTime, fields }, old = schemas.get(id);
			if (old && JSON.stringify({ ...old, seen: 0 }) !== JSON.stringify({ ...schema, seen: 0 }))
				throw new TraceError(start, `type ${id} defined twice, differently`);
			if (!old) schemas.set(id, schema);
			call('schema', schema, start, Boolean(old));
		},
		[TAG.EVENT]: event,
		[TAG.STRINGS]: (start) => {
			const entries = [];
			for (let n = c.count(8); n > 0; n--) {
				const id = c.u32();
				entries.push([id, c.text(c.u32())]);
			}
			call('strings', entries, start, strings);
			for (const [id, text] of entries) if (!strings.has(id)) strings.set(id, text);
		},
		[TAG.STACKS]: (start) => {
			const entries = [];
			for (let n = c.count(8); n > 0; n--) {
				const id = c.u32(), stack = [];
				for (let depth = c.count(8); depth > 0; depth--) stack.push(c.u64());
				entries.push([id, stack]);
			}
			call('stacks', entries, start, stacks);
			for (const [id, stack] of entries) if (!stacks.has(id)) stacks.set(id, stack);
		},
		[TAG.RESET]: (start) => { base = c.u64(); call('reset', base, start); },
		[TAG.ANNOTATIONS]: (start) => {
			const id = Number(c.uleb()), entries = [];
			for (let n = c.u16(); n > 0; n--)
				entries.push({ field: c.u16(), key: c.text(c.u16()), value: c.text(c.u32()) });
			call('annotations', id, entries, start, schemas.has(id));
		},
	};

	header();
	let done = c.at;
	while (c.at < bytes.length) {
		const start = c.at, tag = bytes[start];
		if (tag === MAGIC[0]) {
			header();
		} else {
			const frame = frames[tag];
			if (!frame) throw new TraceError(start, `unknown frame tag 0x${tag.toString(16)}`);
			c.at++;
			frame(start);
		}
		done = c.at;
	}
	return done;
}
