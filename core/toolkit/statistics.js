// SPDX-License-Identifier: Apache-2.0
// Durations counted in buckets, with the quantiles that `dial9 report` gives.

const SUB_BITS = 7, SUBS = 1 << SUB_BITS;
const BUCKETS = (53 - SUB_BITS + 1) * SUBS;

/** The bucket of |value|: 128 for each power of two, exact below 128 ns. */
export function bucketOf(value) {
	if (value < SUBS) return Math.max(0, Math.floor(value));
	const high = value >= 2 ** 32 ? 63 - Math.clz32(value / 2 ** 32) : 31 - Math.clz32(value), shift = high - SUB_BITS;
	return Math.min(BUCKETS - 1, shift * SUBS + Math.floor(value / 2 ** shift));
}

/** The value in the middle of a bucket. */
export function middleOf(bucket) {
	const octave = Math.floor(bucket / SUBS), sub = bucket % SUBS;
	if (!octave) return sub;
	const width = 2 ** (octave - 1);
	return (SUBS + sub) * width + Math.floor((width - 1) / 2);
}

/** Counts of durations: add() them, then ask. */
export class Durations {
	constructor() {
		this.counts = new Uint32Array(BUCKETS);
		this.n = this.sum = this.max = 0;
		this.min = Infinity;
	}

	add(value) {
		this.counts[bucketOf(value)]++;
		this.n++;
		this.sum += value;
		if (value < this.min) this.min = value;
		if (value > this.max) this.max = value;
	}

	/** The duration that a share |q| is not above; NaN without any. */
	quantile(q) {
		const rank = Math.ceil(q * this.n);
		if (!this.n) return NaN;
		if (rank <= 1) return this.min;
		if (rank >= this.n) return this.max;
		let seen = 0, bucket = 0;
		while (bucket < BUCKETS && (seen += this.counts[bucket]) < rank) bucket++;
		return Math.min(this.max, Math.max(this.min, middleOf(bucket)));
	}
}
