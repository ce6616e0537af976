// SPDX-License-Identifier: Apache-2.0
// XXH64, the checksum of zstd frames, in 32-bit halves: what a frame says is its lower half.

const XXH_P1 = [0x9e3779b1, 0x85ebca87], XXH_P2 = [0xc2b2ae3d, 0x27d4eb4f], XXH_P3 = [0x165667b1, 0x9e3779f9];
const XXH_P4 = [0x85ebca77, 0xc2b2ae63], XXH_P5 = [0x27d4eb2f, 0x165667c5];

/** The lower half of a * b, for 32-bit numbers, is Math.imul(); this is the upper one. */
function upperProduct(a, b) {
	const al = a & 0xffff, ah = a >>> 16, bl = b & 0xffff, bh = b >>> 16;
	const middle = ah * bl + (al * bl / 65536 >>> 0);
	const cross = al * bh + middle % 65536;
	return ah * bh + Math.floor(middle / 65536) + Math.floor(cross / 65536) >>> 0;
}

/** A 64-bit number as [upper, lower], changed in place. */
function multiply(x, p) {
	const upper = upperProduct(x[1], p[1]) + Math.imul(x[0], p[1]) + Math.imul(x[1], p[0]);
	x[1] = Math.imul(x[1], p[1]) >>> 0;
	x[0] = upper >>> 0;
}

function addPair(x, upper, lower) {
	const sum = x[1] + lower;
	x[1] = sum >>> 0;
	x[0] = x[0] + upper + (sum > 0xffffffff ? 1 : 0) >>> 0;
}

function rotateLeft(x, n) {
	let [upper, lower] = n >= 32 ? [x[1], x[0]] : x;
	n &= 31;
	if (n) [upper, lower] = [upper << n | lower >>> 32 - n, lower << n | upper >>> 32 - n];
	x[0] = upper >>> 0;
	x[1] = lower >>> 0;
}

function xorShiftRight(x, n) {
	const upper = n >= 32 ? 0 : x[0] >>> n;
	const lower = n >= 32 ? x[0] >>> n - 32 : x[1] >>> n | x[0] << 32 - n;
	x[0] = (x[0] ^ upper) >>> 0;
	x[1] = (x[1] ^ lower) >>> 0;
}

function xxhRound(lane, upper, lower) {
	const input = [upper, lower];
	multiply(input, XXH_P2);
	addPair(lane, ...input);
	rotateLeft(lane, 31);
	multiply(lane, XXH_P1);
}

function mergeLane(hash, lane) {
	const folded = [0, 0];
	xxhRound(folded, ...lane);
	hash[0] = (hash[0] ^ folded[0]) >>> 0;
	hash[1] = (hash[1] ^ folded[1]) >>> 0;
	multiply(hash, XXH_P1);
	addPair(hash, ...XXH_P4);
}

/** The hash of bytes that come in pieces, with seed 0. */
export class Xxh64 {
	constructor() {
		const first = [...XXH_P1], negative = [0, 0];
		addPair(first, ...XXH_P2);
		addPair(negative, ~XXH_P1[0] >>> 0, ~XXH_P1[1] >>> 0);
		addPair(negative, 0, 1);
		this.lanes = [first, [...XXH_P2], [0, 0], negative];
		this.rest = new Uint8Array(32);
		this.kept = 0;
		this.total = 0;
	}

	block(view, at) {
		for (let i = 0; i < 4; i++)
			xxhRound(this.lanes[i], view.getUint32(at + 8 * i + 4, true), view.getUint32(at + 8 * i, true));
	}

	push(bytes) {
		let at = 0;
		this.total += bytes.length;
		if (this.kept) {
			at = Math.min(32 - this.kept, bytes.length);
			this.rest.set(bytes.subarray(0, at), this.kept);
			this.kept += at;
			if (this.kept < 32) return;
			this.block(new DataView(this.rest.buffer), 0);
			this.kept = 0;
		}
		const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
		for (; at + 32 <= bytes.length; at += 32) this.block(view, at);
		this.rest.set(bytes.subarray(at));
		this.kept = bytes.length - at;
	}

	start() {
		if (this.total < 32) return [...XXH_P5];
		const hash = [0, 0];
		[1, 7, 12, 18].forEach((n, i) => {
			const turned = [...this.lanes[i]];
			rotateLeft(turned, n);
			addPair(hash, ...turned);
		});
		for (const lane of this.lanes) mergeLane(hash, lane);
		return hash;
	}

	/** [upper, lower] */
	digest() {
		const hash = this.start(), view = new DataView(this.rest.buffer);
		const mix = (upper, lower, turn, by, plus) => {
			hash[0] = (hash[0] ^ upper) >>> 0;
			hash[1] = (hash[1] ^ lower) >>> 0;
			rotateLeft(hash, turn);
			multiply(hash, by);
			addPair(hash, ...plus);
		};
		let at = 0;
		addPair(hash, Math.floor(this.total / 2 ** 32), this.total >>> 0);
		for (; at + 8 <= this.kept; at += 8) {
			const lane = [0, 0];
			xxhRound(lane, view.getUint32(at + 4, true), view.getUint32(at, true));
			mix(...lane, 27, XXH_P1, XXH_P4);
		}
		if (at + 4 <= this.kept) {
			const word = [0, view.getUint32(at, true)];
			multiply(word, XXH_P1);
			mix(...word, 23, XXH_P2, XXH_P3);
			at += 4;
		}
		for (; at < this.kept; at++) {
			const byte = [0, this.rest[at]];
			multiply(byte, XXH_P5);
			mix(...byte, 11, XXH_P1, [0, 0]);
		}
		xorShiftRight(hash, 33);
		multiply(hash, XXH_P2);
		xorShiftRight(hash, 29);
		multiply(hash, XXH_P3);
		xorShiftRight(hash, 32);
		return hash;
	}
}
