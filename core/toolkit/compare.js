// SPDX-License-Identifier: Apache-2.0
// Two traces, or two parts of one, against each other: which callback got slower, and whether that is real.
//
// Calls of a loop are not independent: load drifts.  So each side is cut into blocks of time, blocks are drawn
// again and again (block bootstrap, fixed seed), and what is told is the 95 % interval of the ratio B / A.

import { eachRun } from './runs.js';
import { identityOf } from './stacks.js';
import { bucketOf, middleOf } from './statistics.js';
import { eachWokenCall } from './waking.js';

const BLOCKS_LEAST = 20, BLOCKS_MOST = 40, BLOCK_NS = 1e9, CALLS_OF_BLOCK = 10, BLOCKS_FEW = 5;
const RESAMPLES = 1000, SEED = 0x9d1a19;
const RATIO_LEAST = 1.1, NS_LEAST = 20000, CORE_LEAST = 0.001, P99_CALLS = 300, RATE_OF_DISCOVERY = 0.05;
const LIKENESS_MOST = 0.8;
const COARSE = 2; // 32 buckets for each power of two are enough here

/** What bounds of the comparison are told beside it. */
export const COMPARE_RULES = { resamples: RESAMPLES, ratio: RATIO_LEAST, ns: NS_LEAST, core: CORE_LEAST, p99Calls: P99_CALLS };

/** A name as it is in each build: without what the compiler and the linker have added. */
export function plainName(name) {
	return name.replace(/(\.(constprop|isra|part|lto_priv)\.\d+|\.cold(\.\d+)?)+$/, '').replace(/@plt$|@@?[A-Z][\w.]*$/, '');
}

/** A place without its line, for edits move lines. */
export function plainPlace(place) {
	return plainName(place.replace(/:\d+(:\d+)?$/, ''));
}

/** What a callback is matched by. */
export function callbackKey({ name, site }) {
	return `${plainName(name)} @ ${plainPlace(site)}`;
}

const delaysByTrace = new WeakMap();

/** How long each poll waited, from ready to running: Map from each worker to an array like its polls, with the one that has not ended, NaN where it did not or where that is not known. */
export function delaysOf(trace) {
	if (delaysByTrace.has(trace)) return delaysByTrace.get(trace);
	const { workers } = trace, delays = new Map(workers.map((worker) => [worker, new Float64Array(worker.polls.n + (worker.running ? 1 : 0)).fill(NaN)]));
	eachWokenCall(trace, (w, row, { ready, resumed }) => {
		const delay = workers[w].polls.start[row] - ready;
		if (!resumed && delay > 0) delays.get(workers[w])[row] = delay;
	}, true);
	delaysByTrace.set(trace, delays);
	return delays;
}

/** Values of one callback on one side, by block of time. */
class Blocks {
	constructor(n) {
		this.counts = Array.from({ length: n }, () => null);
		this.ns = new Float64Array(n);
		this.sums = new Float64Array(n);
		this.n = this.sum = this.max = 0;
	}

	add(block, value) {
		const counts = this.counts[block] ??= new Map(), bucket = bucketOf(value) >> COARSE;
		counts.set(bucket, (counts.get(bucket) ?? 0) + 1);
		this.ns[block]++;
		this.sums[block] += value;
		this.n++;
		this.sum += value;
		if (value > this.max) this.max = value;
	}
}

/** How long the intervals of a side are together, in ns. */
export function lengthOf(side) {
	return side.intervals.reduce((sum, [from, to]) => sum + to - from, 0);
}

/**
 * Callbacks of a side by what they match by: Map of {name, place, trace, site, calls, waits}.  |side| is {traces, intervals,
 * nameOf(trace, site), keep(trace, worker)}: intervals of the axis, nameOf() gives {name, site}, keep() says which workers count.
 */
function collectSide(side, blocks) {
	const found = new Map(), keys = new Map(), length = lengthOf(side);
	for (const trace of side.traces) {
		const delays = delaysOf(trace), shift = trace.shift ?? 0;
		keys.set(trace, new Map());
		for (const worker of trace.workers) {
			if (side.keep && !side.keep(trace, worker)) continue;
			const delay = delays.get(worker);
			let before = 0;
			for (const [from, to] of side.intervals) {
				eachRun(trace, worker, from - shift, to - shift, ({ site, row, caller, start: began, ns }) => {
					const start = began + shift;
					// A call is of the interval in which it began; that of one that did not end is not known.
					if (start < from || Number.isNaN(ns)) return;
					const entry = entryOf(found, keys.get(trace), side, trace, site, blocks);
					const block = Math.min(blocks - 1, Math.floor((before + start - from) / length * blocks));
					entry.calls.add(block, ns);
					if (caller < 0 && delay[row] >= 0) entry.waits.add(block, delay[row]);
				});
				before += to - from;
			}
		}
	}
	return found;
}

/** True if |text| is a module and an offset: it means something within one build. */
function isMerePlace(text) {
	return /\+0x[\da-f]+$/.test(text);
}

function entryOf(found, keys, side, trace, site, blocks) {
	let entry = keys.get(site);
	if (entry) return entry;
	const { name, site: place } = side.nameOf(trace, site), identity = identityOf(trace, trace.strings[site] ?? '');
	const key = identity && isMerePlace(name) ? identity : callbackKey({ name, site: place });
	entry = found.get(key);
	if (!entry) found.set(key, entry = { key, name, place, trace, site, identity, calls: new Blocks(blocks), waits: new Blocks(blocks) });
	keys.set(site, entry);
	return entry;
}

/** Numbers that look like chance and are the same each time. */
function random(seed) {
	return () => {
		seed = seed + 0x6d2b79f5 | 0;
		let t = Math.imul(seed ^ seed >>> 15, 1 | seed);
		t = t + Math.imul(t ^ t >>> 7, 61 | t) ^ t;
		return ((t ^ t >>> 14) >>> 0) / 4294967296;
	};
}

/** Counts of all blocks over the buckets that there are, as a matrix, and the buckets' values. */
function matrixOf(measured) {
	const buckets = [...new Set(measured.counts.flatMap((counts) => (counts ? [...counts.keys()] : [])))].sort((a, b) => a - b);
	const place = new Map(buckets.map((bucket, i) => [bucket, i])), width = buckets.length, cells = new Float64Array(measured.counts.length * width);
	measured.counts.forEach((counts, block) => counts?.forEach((n, bucket) => {
		cells[block * width + place.get(bucket)] = n;
	}));
	return { cells, width, values: buckets.map((bucket) => middleOf((bucket << COARSE) + (1 << COARSE - 1))) };
}

function quantileIn(counts, values, n, q) {
	let left = Math.ceil(q * n);
	for (let i = 0; i < counts.length; i++) {
		left -= counts[i];
		if (left <= 0) return values[i];
	}
	return values.at(-1) ?? NaN;
}

/** p50, p99 and mean of blocks that were drawn |times|[block] times. */
function statisticsOf(measured, matrix, times) {
	const { cells, width, values } = matrix, counts = new Float64Array(width);
	let n = 0, sum = 0;
	for (let block = 0; block < times.length; block++) {
		if (!times[block]) continue;
		n += times[block] * measured.ns[block];
		sum += times[block] * measured.sums[block];
		for (let i = 0, at = block * width; i < width; i++, at++) counts[i] += times[block] * cells[at];
	}
	return { p50: quantileIn(counts, values, n, 0.5), p99: quantileIn(counts, values, n, 0.99), mean: n ? sum / n : NaN };
}

function drawBlocks(measured, next) {
	const times = new Uint8Array(measured.counts.length);
	for (let i = 0; i < times.length; i++) times[Math.floor(next() * times.length)]++;
	return times;
}

/** The chance of a value at least as far from 0 under a normal distribution. */
function chanceOf(z) {
	const x = Math.abs(z) / Math.SQRT2, t = 1 / (1 + 0.3275911 * x);
	return (((((1.061405429 * t - 1.453152027) * t) + 1.421413741) * t - 0.284496736) * t + 0.254829592) * t * Math.exp(-x * x);
}

/**
 * How much wider an interval is because a block is like the one before it: blocks that are shorter than the drift are
 * no independent draws.
 */
function widening(measured) {
	const means = [...measured.ns].map((n, i) => (n ? Math.log(measured.sums[i] / n) : null)).filter((mean) => mean !== null && Number.isFinite(mean));
	const middle = means.reduce((sum, x) => sum + x, 0) / means.length;
	let own = 0, next = 0;
	for (let i = 0; i < means.length; i++) {
		own += (means[i] - middle) ** 2;
		if (i) next += (means[i] - middle) * (means[i - 1] - middle);
	}
	const likeness = own > 0 ? Math.min(LIKENESS_MOST, Math.max(0, next / own)) : 0;
	return (1 + likeness) / (1 - likeness);
}

/** {a, b, ratio, low, high, chance} for p50, p99 and mean. */
function resample(a, b) {
	const next = random(SEED), ma = matrixOf(a), mb = matrixOf(b), ones = (m) => new Uint8Array(m.counts.length).fill(1);
	const sa = statisticsOf(a, ma, ones(a)), sb = statisticsOf(b, mb, ones(b)), ratios = { p50: [], p99: [], mean: [] };
	for (let i = 0; i < RESAMPLES; i++) {
		const ra = statisticsOf(a, ma, drawBlocks(a, next)), rb = statisticsOf(b, mb, drawBlocks(b, next));
		for (const [name, list] of Object.entries(ratios)) {
			const ratio = rb[name] / ra[name];
			if (ratio > 0 && Number.isFinite(ratio)) list.push(ratio);
		}
	}
	const wider = Math.sqrt((widening(a) + widening(b)) / 2);
	return Object.fromEntries(Object.entries(ratios).map(([name, list]) => {
		list.sort((x, y) => x - y);
		const logs = list.map(Math.log), mean = logs.reduce((sum, x) => sum + x, 0) / logs.length;
		const deviation = wider * Math.sqrt(logs.reduce((sum, x) => sum + (x - mean) ** 2, 0) / Math.max(1, logs.length - 1)), ratio = sb[name] / sa[name];
		const bound = (at) => (list.length ? ratio * (list[at] / ratio) ** wider : NaN);
		return [name, { a: sa[name], b: sb[name], ratio, low: bound(Math.floor(list.length * 0.025)), high: bound(Math.max(0, Math.ceil(list.length * 0.975) - 1)),
			chance: deviation > 0 ? chanceOf(Math.log(ratio) / deviation) : ratio === 1 ? 1 : 0 }];
	}));
}

/** The chance that a value of B is greater than one of A, half of the ties counted: 0.5 is no difference. */
function superiority(a, b) {
	const [ca, cb] = [a, b].map((measured) => {
		const sums = new Map();
		for (const counts of measured.counts) counts?.forEach((n, bucket) => sums.set(bucket, (sums.get(bucket) ?? 0) + n));
		return sums;
	});
	let below = 0, won = 0;
	for (const bucket of [...new Set([...ca.keys(), ...cb.keys()])].sort((x, y) => x - y)) {
		const na = ca.get(bucket) ?? 0, nb = cb.get(bucket) ?? 0;
		won += nb * (below + na / 2);
		below += na;
	}
	return won / (a.n * b.n);
}

/** Whether a change of one statistic is large enough to be of interest. */
function isLarge(change, rate) {
	const times = Math.max(change.ratio, 1 / change.ratio), ns = Math.abs(change.b - change.a);
	return times >= RATIO_LEAST && (ns >= NS_LEAST || ns * rate >= CORE_LEAST);
}

/** Statistics of values on both sides; nothing is judged of too few. */
function compareValues(a, b, rate) {
	const few = Math.min(a.n, b.n) < BLOCKS_FEW * CALLS_OF_BLOCK;
	const result = { few, tested: [], decides: [], a, b, superiority: superiority(a, b), ...resample(a, b) };
	result.p99.bracketed = Math.min(a.n, b.n) < P99_CALLS;
	if (few) return result;
	result.tested = [result.p50, result.mean, ...(result.p99.bracketed ? [] : [result.p99])];
	const outside = result.tested.filter((change) => change.low > 1 || change.high < 1);
	result.differs = outside.length > 0;
	result.decides = outside.filter((change) => isLarge(change, rate));
	return result;
}

/**
 * Benjamini and Hochberg: of many changes those that are no chance, at 5 %.  All that were tested count, for those that
 * look large were chosen by chance, too.
 */
function discover(rows) {
	const measured = rows.flatMap((row) => [row.calls, row.waits].filter(Boolean));
	const all = measured.flatMap((values) => values.tested).sort((x, y) => x.chance - y.chance);
	const last = all.findLastIndex((change, i) => change.chance <= RATE_OF_DISCOVERY * (i + 1) / all.length), real = new Set(all.slice(0, last + 1));
	for (const values of measured) {
		const [by] = values.decides.filter((change) => real.has(change)).sort((x, y) => Math.abs(Math.log(y.ratio)) - Math.abs(Math.log(x.ratio)));
		values.verdict = values.few ? 'too few' : by ? (by.ratio > 1 ? 'slower' : 'faster') : values.differs ? 'small' : 'same';
		values.by = by ? ['p50', 'p99', 'mean'].find((name) => values[name] === by) : null;
	}
}

/** Left-overs that are alike in one of |traits|, and the only ones on their side: [[a, b]]; they are taken out of both lists. */
function pairUp(left, right, traits) {
	const pairs = [];
	for (const of of traits) {
		const once = (entries) => {
			const by = new Map();
			for (const entry of entries) if (of(entry)) by.set(of(entry), by.has(of(entry)) ? null : entry);
			return by;
		};
		const here = once(left), there = once(right);
		for (const [text, entry] of here) {
			const other = there.get(text);
			if (!entry || !other) continue;
			pairs.push([entry, other]);
			left.splice(left.indexOf(entry), 1);
			right.splice(right.indexOf(other), 1);
		}
	}
	return pairs;
}

/** How many blocks a side is cut into. */
function blocksOf(side) {
	return Math.max(BLOCKS_LEAST, Math.min(BLOCKS_MOST, Math.floor(lengthOf(side) / BLOCK_NS)));
}

/**
 * Callbacks of two sides: {rows, blocks, slower, faster, matched}, rows those with most change of loop time first: {name, place, kind
 * (both, new, gone, renamed), a, b, calls, waits, impact}; calls and waits with p50, p99, mean, verdict and by.
 * Where less than half |matched|, that nothing is slower says nothing.
 */
export function compareSides(sideA, sideB) {
	const steps = compareSteps(sideA, sideB);
	for (;;) {
		const { done, value } = steps.next();
		if (done) return value;
	}
}

/** The same in steps of some milliseconds, for a page that must go on meanwhile; yields the share that is done. */
export function* compareSteps(sideA, sideB) {
	const blocks = [blocksOf(sideA), blocksOf(sideB)], a = collectSide(sideA, blocks[0]), b = collectSide(sideB, blocks[1]);
	const seconds = [lengthOf(sideA) / 1e9, lengthOf(sideB) / 1e9], rows = [];
	const add = (x, y, kind) => {
		const of = y ?? x, perSecond = [(x?.calls.sum ?? 0) / seconds[0], (y?.calls.sum ?? 0) / seconds[1]];
		const rate = (y ? y.calls.n / seconds[1] : 0) / 1e9;
		rows.push({ name: of.name, place: of.place, kind, a: x, b: y, perSecond, runs: [(x?.calls.n ?? 0) / seconds[0], (y?.calls.n ?? 0) / seconds[1]], impact: perSecond[1] - perSecond[0],
			calls: x && y ? compareValues(x.calls, y.calls, rate) : null, waits: x?.waits.n && y?.waits.n ? compareValues(x.waits, y.waits, rate) : null });
	};
	const left = [...a.values()].filter((entry) => !b.has(entry.key)), right = [...b.values()].filter((entry) => !a.has(entry.key));
	for (const [key, entry] of a) {
		if (!b.has(key)) continue;
		add(entry, b.get(key), 'both');
		yield rows.length / a.size;
	}
	// One build, of which only one side has names.
	for (const [x, y] of pairUp(left, right, [(entry) => entry.identity])) add(x, y, 'both');
	for (const [x, y] of pairUp(left, right, [(entry) => !isMerePlace(entry.name) && plainName(entry.name), (entry) => !isMerePlace(entry.place) && entry.place])) add(x, y, 'renamed');
	for (const entry of left) add(entry, null, 'gone');
	for (const entry of right) add(null, entry, 'new');
	discover(rows);
	rows.sort((x, y) => Math.abs(y.impact) - Math.abs(x.impact));
	const count = (verdict) => rows.filter((row) => row.calls?.verdict === verdict || row.waits?.verdict === verdict).length;
	return { rows, blocks, slower: count('slower'), faster: count('faster'), matched: matchedOf(rows) };
}

/** The share of the time in callbacks, on the side where it is smaller, that is in callbacks of both sides. */
function matchedOf(rows) {
	return Math.min(...['a', 'b'].map((side) => {
		const sum = (those) => those.reduce((ns, row) => ns + (row[side]?.calls.sum ?? 0), 0), all = sum(rows);
		return all > 0 ? sum(rows.filter((row) => row.kind === 'both')) / all : 0;
	}));
}
