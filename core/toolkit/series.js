// SPDX-License-Identifier: Apache-2.0
// Values over time for charts: intervals in which each holds, never smoothed, 64 bits where it counts.
//
// A gauge holds from its event to the next one, the last to the end of the trace.  A counter is what it grew by
// between two events, and stands for [previous, current); where it went back it was reset: nothing is known of
// that interval.  A value that is missing is a gap, too.

import { greatestOf, pyramidOf } from './index.js';
import { lowerBound, lowerBoundNear } from './table.js';

/**
 * Of points in order of time, {time, value} with value a number, BigInt or undefined: {n, from, to, value,
 * exact, resets, ...}.  |kind|: gauge, updown-counter (a level, too), counter (growth), or rate (growth per ns
 * times |scale|).  |end|: where the last value of a level ends.
 */
export function makeSeries(points, kind, end, scale = 1) {
	const from = [], to = [], value = [], exact = new Map();
	let resets = 0;
	const add = (a, b, v) => {
		if (!(b > a) || (typeof v === 'number' && !Number.isFinite(v))) return;
		if (typeof v === 'bigint') exact.set(value.length, v);
		from.push(a);
		to.push(b);
		value.push(Number(v));
	};
	const level = kind === 'gauge' || kind === 'updown-counter';
	for (let i = 0; i < points.length; i++) {
		const point = points[i], next = points[i + 1];
		if (point.value === undefined) continue;
		if (level) {
			add(point.time, next ? next.time : Math.max(end, point.time + 1), point.value);
			continue;
		}
		if (next?.value === undefined) continue;
		// The difference of two numbers that no double holds is exact only before they are rounded.
		const wide = typeof point.value === 'bigint' || typeof next.value === 'bigint';
		const grown = wide ? BigInt(next.value) - BigInt(point.value) : next.value - point.value;
		if (grown < 0) resets++;
		else if (kind === 'rate') add(point.time, next.time, Number(grown) / (next.time - point.time) * scale);
		else add(point.time, next.time, wide && grown <= Number.MAX_SAFE_INTEGER ? Number(grown) : grown);
	}
	return indexSeries({ n: value.length, from: Float64Array.from(from), to: Float64Array.from(to), value: Float64Array.from(value), exact, resets });
}

function indexSeries(series) {
	const { n, value } = series;
	let low = Infinity, high = -Infinity;
	for (let i = 0; i < n; i++) {
		if (value[i] < low) low = value[i];
		if (value[i] > high) high = value[i];
	}
	// The pyramid knows no negative numbers.
	const above = value.map((v) => v - low), below = value.map((v) => high - v);
	return Object.assign(series, { low: n ? low : 0, high: n ? high : 0, above, below, most: pyramidOf(above, n), least: pyramidOf(below, n) });
}

/** The interval that holds at |time|, or -1. */
export function seriesAt(series, time) {
	const i = lowerBound(series.from, time + 0.5, series.n) - 1;
	return i >= 0 && series.to[i] > time ? i : -1;
}

/** Least and greatest value in each of |width| columns over [from, to); NaN where none holds. */
export function seriesColumns(series, from, to, width) {
	const least = new Float64Array(width).fill(NaN), most = new Float64Array(width).fill(NaN), step = (to - from) / width;
	let row = Math.max(0, lowerBound(series.from, from, series.n) - 1);
	for (let x = 0; x < width; x++) {
		const a = from + x * step, b = a + step;
		while (row < series.n && series.to[row] <= a) {
			row = Math.max(row + 1, lowerBoundNear(series.from, a, series.n, row) - 1);
		}
		if (row >= series.n) break;
		if (series.from[row] >= b) continue;
		const end = Math.max(row + 1, lowerBoundNear(series.from, b, series.n, row));
		most[x] = series.low + greatestOf(series.above, series.most, row, end);
		least[x] = series.high - greatestOf(series.below, series.least, row, end);
	}
	return { least, most };
}

/** A cumulative reading between its points, as if it had grown evenly: for shares of columns. */
export function readingAt(times, values, time, n = times.length) {
	const i = lowerBound(times, time, n);
	if (i === 0 || i === n) return NaN;
	return values[i - 1] + (values[i] - values[i - 1]) * (time - times[i - 1]) / Math.max(1, times[i] - times[i - 1]);
}
