// SPDX-License-Identifier: Apache-2.0
// Columns that grow, and byte strings that are kept once.

const FIRST_ROWS = 256;
const GROWTH_MIN = 1.25, GROWTH_MAX = 32;
const ROOM_MORE = 1.1; // what is to come may be a little denser than what has come

/** What decoding may take, in bytes; take() throws when it is used up.  |share|: how much of the input has been read, 0 where that says nothing yet. */
export class Budget {
	constructor(bytes) {
		this.left = bytes;
		this.share = 0;
	}

	/**
	 * For how many rows a table that is full with |n| gets room: as many as all of the input has, where one can tell, for
	 * to copy what there is costs more than to read it; else twice as many.
	 */
	rowsFor(n, rowBytes) {
		const size = this.share ? Math.ceil(n * Math.max(GROWTH_MIN, Math.min(GROWTH_MAX, ROOM_MORE / this.share))) : 2 * n;
		return Math.max(FIRST_ROWS, (size - n) * rowBytes <= this.left ? size : 2 * n);
	}

	take(bytes) {
		this.left -= bytes;
		if (this.left < 0) throw new RangeError('the trace takes more memory than allowed');
	}
}

/**
 * Equally long typed arrays under the names of |shape|: {start: Float64Array, ...}; |n| rows of them are
 * used.  Plain data, so that it can be handed to another thread.
 */
export function newTable(shape) {
	const table = { n: 0, size: 0 };
	for (const [name, type] of Object.entries(shape)) table[name] = new type(0);
	return table;
}

/** Columns of |shape| for |rows|, objects of it. */
export function tableOf(shape, rows) {
	const table = newTable(shape);
	for (const [name, type] of Object.entries(shape)) table[name] = type.from(rows, (row) => row[name]);
	table.n = table.size = rows.length;
	return table;
}

/** Make room for more rows, in |more| columns beside the table, too. */
export function growTable(table, budget, more = []) {
	const names = Object.keys(table).filter((name) => ArrayBuffer.isView(table[name]));
	const rowBytes = [...names.map((name) => table[name]), ...more].reduce((sum, column) => sum + column.BYTES_PER_ELEMENT, 0);
	const size = budget.rowsFor(table.size, rowBytes);
	const grow = (column) => {
		const grown = new column.constructor(size);
		grown.set(column.subarray(0, table.n));
		return grown;
	};
	budget.take((size - table.size) * rowBytes);
	for (const name of names) table[name] = grow(table[name]);
	more.forEach((column, i) => { more[i] = grow(column); });
	table.size = size;
}

/**
 * Rows 0 to |n| in the order of |keys|, stable.  Batches of threads follow each other in a trace, so that there are
 * runs that are in order, which are merged: much quicker than to compare by a function.
 */
export function orderOf(keys, n) {
	let order = new Uint32Array(n), other = new Uint32Array(n), runs = [0];
	for (let i = 0; i < n; i++) {
		order[i] = i;
		if (i && keys[i] < keys[i - 1]) runs.push(i);
	}
	while (runs.length > 1) {
		const merged = [];
		for (let r = 0; r < runs.length; r += 2) {
			const middle = runs[r + 1] ?? n, end = runs[r + 2] ?? n;
			merged.push(runs[r]);
			for (let a = runs[r], b = middle, to = a; to < end; to++)
				other[to] = b >= end || (a < middle && keys[order[a]] <= keys[order[b]]) ? order[a++] : order[b++];
		}
		[order, other, runs] = [other, order, merged];
	}
	return order;
}

/** Put rows in the order of |key|, stable; columns keep their size. */
export function sortTable(table, key) {
	const order = orderOf(table[key], table.n);
	for (const [name, column] of Object.entries(table)) {
		if (!ArrayBuffer.isView(column)) continue;
		const sorted = new column.constructor(table.size);
		for (let i = 0; i < table.n; i++) sorted[i] = column[order[i]];
		table[name] = sorted;
	}
	return order;
}

/** The first of |n| rows whose |key| is not below |value|. */
export function lowerBound(keys, value, n = keys.length, from = 0) {
	let low = from, high = n;
	while (low < high) {
		const middle = low + high >>> 1;
		if (keys[middle] < value) low = middle + 1;
		else high = middle;
	}
	return low;
}

/** The same from |from| on, for what is probably near it. */
export function lowerBoundNear(keys, value, n, from) {
	if (from >= n || keys[from] >= value) return from;
	let stride = 1;
	while (from + stride < n && keys[from + stride] < value) stride *= 2;
	return lowerBound(keys, value, Math.min(n, from + stride + 1), from + (stride >> 1));
}

/** Byte strings by number, each kept once. */
export class Interner {
	constructor(budget) {
		this.budget = budget;
		this.byHash = new Map();
		this.blobs = [];
	}

	same(id, bytes, from, to) {
		const blob = this.blobs[id];
		if (blob.length !== to - from) return false;
		for (let i = 0; i < blob.length; i++) if (blob[i] !== bytes[from + i]) return false;
		return true;
	}

	id(bytes, from, to) {
		let hash = 0x811c9dc5;
		for (let i = from; i < to; i++) hash = Math.imul(hash ^ bytes[i], 0x01000193);
		const known = this.byHash.get(hash);
		if (known !== undefined)
			for (const id of known) if (this.same(id, bytes, from, to)) return id;
		this.budget.take(to - from + 64);
		const id = this.blobs.push(bytes.slice(from, to)) - 1;
		if (known !== undefined) known.push(id);
		else this.byHash.set(hash, [id]);
		return id;
	}

	text(text) {
		const bytes = new TextEncoder().encode(text);
		return this.id(bytes, 0, bytes.length);
	}

	/** All of them as texts; what is not UTF-8 becomes U+FFFD. */
	texts() {
		const decoder = new TextDecoder('utf-8', { ignoreBOM: true });
		return this.blobs.map((blob) => decoder.decode(blob));
	}

	/** All of them as lists of addresses of 8 bytes: numbers, above 2^53 BigInt. */
	stacks() {
		return this.blobs.map((blob) => {
			const view = new DataView(blob.buffer, blob.byteOffset, blob.length), stack = [];
			for (let at = 0; at < blob.length; at += 8)
				stack.push(wideNumber(view.getUint32(at, true), view.getUint32(at + 4, true)));
			return stack;
		});
	}
}

/** A 64-bit number of its halves: a number where that is exact, else a BigInt. */
export function wideNumber(lower, upper) {
	return upper < 0x200000 ? upper * 2 ** 32 + lower : BigInt(upper) << 32n | BigInt(lower);
}
