// SPDX-License-Identifier: Apache-2.0
// Traces for tests from names and values: the types of fields say how they are written.

import { HEADER, reset, schema, str32, stream, u16, u32, u64, uleb, utf8 } from './trace_bytes.mjs';

const OPTIONAL = 128;
const ENCODE = {
	1: (v) => u64(BigInt.asUintN(64, BigInt(v))), 2: (v) => [...new Uint8Array(Float64Array.of(v).buffer)], 3: (v) => [Number(v)], 4: str32, 9: uleb, 11: (v) => [v], 12: u16, 13: u32,
	5: (v) => [...u32(v.length), ...v], 8: (v) => [...u32(v.length), ...v.flatMap(u64)],
	14: (v) => [...u32(v.length), ...v.flatMap((n) => [9, ...uleb(n)])], 15: (v) => [...u32(v.length), ...v.flatMap((pair) => pair.flatMap((n) => [9, ...uleb(n)]))],
	10: (v) => u32(Object.keys(v).length).concat(...Object.entries(v).map(([key, text]) => str32(key).concat(str32(String(text))))),
};

/** Events may be added in any order of time; finish() gives the bytes. */
export class TraceWriter {
	constructor() {
		this.types = [];
		this.rows = [];
		this.texts = new Map();
		this.chains = [];
	}

	/** |fields|: [[name, type, annotations]]; the number of the type. */
	type(name, fields, hasTime = 1) {
		return this.types.push({ name, fields, hasTime });
	}

	at(time, type, values) {
		this.rows.push({ time, type, values, order: this.rows.length });
	}

	text(value) {
		if (!this.texts.has(value)) this.texts.set(value, this.texts.size);
		return u32(this.texts.get(value));
	}

	stack(addresses) {
		return u32(this.chains.push(addresses) - 1);
	}

	bytesOf(type, value) {
		if (type & OPTIONAL) return value === undefined ? [0] : [1, ...this.bytesOf(type & ~OPTIONAL, value)];
		if (type === 7) return this.text(value);
		return type === 6 ? this.stack(value) : ENCODE[type](value);
	}

	finish() {
		const pieces = [];
		this.rows.sort((a, b) => a.time - b.time || a.order - b.order);
		let before = null;
		for (const { time, type, values } of this.rows) {
			const { fields } = this.types[type - 1], body = [].concat(...fields.map(([name, kind]) => this.bytesOf(kind, values[name])));
			const delta = before === null || time - before > 0xffffff ? null : time - before;
			if (delta === null) pieces.push(reset(time));
			pieces.push([2, ...u16(type), (delta ?? 0) & 255, (delta ?? 0) >> 8 & 255, (delta ?? 0) >> 16].concat(body));
			before = time;
		}
		const shapes = this.types.flatMap(({ name, fields, hasTime }, i) => {
			const notes = fields.flatMap(([, , more], field) => Object.entries(more ?? {}).map(([key, value]) => [...u16(field), ...u16(utf8(key).length), ...utf8(key), ...str32(String(value))]));
			return [schema(i + 1, name, fields, hasTime), ...(notes.length ? [[6, ...uleb(i + 1), ...u16(notes.length), ...notes.flat()]] : [])];
		});
		const pool = [3, ...u32(this.texts.size)].concat([...this.texts].flatMap(([value, id]) => u32(id).concat(str32(value))));
		const stacks = [4, ...u32(this.chains.length), ...this.chains.flatMap((chain, id) => [...u32(id), ...u32(chain.length), ...chain.flatMap(u64)])];
		return stream(HEADER, ...shapes, pool, stacks, ...pieces);
	}
}
