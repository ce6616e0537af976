// SPDX-License-Identifier: Apache-2.0
// Lines of tracks: from series of values, from readings of CPU time, and from the calls of lanes.

import { readingAt, seriesAt, seriesColumns } from '../toolkit/series.js';
import { pollAt } from '../toolkit/trace.js';
import { lowerBound } from '../toolkit/table.js';
import { NS_OF_UNIT, showCount, showDuration, showShare, showSize } from '../toolkit/show.js';
import { gridColumns, readyColumns } from './lod.js';

const DECIMALS = 3;

/** A value with its unit, as a person reads it; BigInt in full. */
export function showValue(value, unit = '') {
	if (typeof value === 'bigint') return `${value}${unit && `\u2009${unit}`}`;
	if (NS_OF_UNIT.has(unit)) return showDuration(value * NS_OF_UNIT.get(unit));
	if (unit === 'bytes') return showSize(Math.round(value));
	const text = Number.isInteger(value) && Math.abs(value) < 1e4 ? String(value) : Math.abs(value) >= 1e4 ? showCount(value) : String(Number(value.toPrecision(DECIMALS)));
	return unit ? `${text}\u2009${unit}` : text;
}

/** A line of makeSeries(); |shift|: of its times on the axis. */
export function seriesLine(name, series, shift, unit) {
	const text = (i) => (i < 0 ? '' : showValue(series.exact.get(i) ?? series.value[i], unit));
	return {
		name, unit, high: series.high, low: series.low, resets: series.resets, n: series.n,
		columns: (from, to, width) => seriesColumns(series, from - shift, to - shift, width),
		at: (time) => series.value[seriesAt(series, time - shift)] ?? NaN,
		text: (time) => text(seriesAt(series, time - shift)),
		since: (time) => {
			const i = seriesAt(series, time - shift);
			return i < 0 ? -Infinity : series.from[i] + shift;
		},
		next: (time, direction) => {
			const i = lowerBound(series.from, time - shift + (direction > 0 ? 0.5 : -0.5), series.n) - (direction > 0 ? 0 : 1);
			return i < 0 || i >= series.n ? direction * Infinity : series.from[i] + shift;
		},
		last: series.n ? text(series.n - 1) : '',
	};
}

/** Readings of the CPU time of a lane's thread: before and behind each of its waits. */
function cpuReadings(lane) {
	const { parks } = lane.worker, n = parks.n * 2, times = new Float64Array(n), cpu = new Float64Array(n);
	for (let i = 0; i < parks.n; i++) {
		times[2 * i] = parks.start[i];
		cpu[2 * i] = parks.cpuBefore[i];
		times[2 * i + 1] = parks.end[i];
		// The last wait may not have ended.
		cpu[2 * i + 1] = parks.cpuAfter[i] || parks.cpuBefore[i];
	}
	return { n, times, cpu };
}

/** Share of a CPU that a lane's thread had; made when it is first shown. */
export function threadLine(name, lane) {
	let made = null;
	const readings = () => (made ??= cpuReadings(lane));
	const reading = (time) => readingAt(readings().times, readings().cpu, time - lane.shift, readings().n);
	const stretch = (time) => lowerBound(readings().times, time - lane.shift, readings().n);
	const at = (time) => {
		const i = stretch(time), { n, times, cpu } = readings();
		return i === 0 || i >= n ? NaN : (cpu[i] - cpu[i - 1]) / Math.max(1, times[i] - times[i - 1]);
	};
	return {
		name, unit: 'cores', high: 1, low: 0, resets: 0, n: lane.worker.parks.n, at,
		columns(from, to, width) {
			const most = new Float64Array(width).fill(NaN), step = (to - from) / width;
			let before = reading(from);
			for (let x = 0; x < width; x++) {
				const now = reading(from + (x + 1) * step);
				most[x] = Math.max(0, Math.min(1, (now - before) / step));
				before = now;
			}
			return { least: most, most };
		},
		text: (time) => (Number.isNaN(at(time)) ? '' : showShare(at(time), 1)),
		since: (time) => (stretch(time) > 0 ? readings().times[stretch(time) - 1] + lane.shift : -Infinity),
		next: (time, direction) => {
			const { n, times } = readings(), i = lowerBound(times, time - lane.shift + direction * 0.5, n) - (direction > 0 ? 0 : 1);
			return i < 0 || i >= n ? direction * Infinity : times[i] + lane.shift;
		},
	};
}

/** The most callbacks that were ready on any one of |lanes|. */
export function readyLine(name, lanes) {
	const readyAt = (lane, time) => {
		const { polls } = lane, row = pollAt(polls, time - lane.shift);
		return row < 0 ? 0 : polls.ready[row];
	};
	const at = (time) => lanes.reduce((most, lane) => Math.max(most, readyAt(lane, time)), 0);
	return {
		name, unit: '', low: 0, high: lanes.reduce((most, lane) => Math.max(most, lane.peak), 0), resets: 0, n: lanes.length, at,
		columns(from, to, width) {
			const most = new Float64Array(width);
			for (const lane of lanes) gridColumns(lane, 'ready', readyColumns, from - lane.shift, to - lane.shift, width).most.forEach((v, x) => {
				if (v > most[x]) most[x] = v;
			});
			return { least: most, most };
		},
		text: (time) => `${at(time)} ready`,
		since: (time) => Math.max(...lanes.map((lane) => {
			const i = lowerBound(lane.polls.start, time - lane.shift + 0.5, lane.polls.n) - 1;
			return i < 0 ? -Infinity : lane.polls.start[i] + lane.shift;
		})),
		next: (time, direction) => lanes.reduce((best, lane) => {
			const { polls, shift } = lane, i = lowerBound(polls.start, time - shift + direction * 0.5, polls.n) - (direction > 0 ? 0 : 1);
			if (i < 0 || i >= polls.n) return best;
			return direction > 0 ? Math.min(best, polls.start[i] + shift) : Math.max(best, polls.start[i] + shift);
		}, direction * Infinity),
	};
}

/** A band of |lines| that share a scale; without lines, nothing. */
export function bandOf(name, lines, options = {}) {
	const kept = lines.filter((line) => line.n);
	if (!kept.length) return [];
	const sum = options.stacked ? kept.reduce((all, line) => all + line.high, 0) : Math.max(...kept.map((line) => line.high));
	const guides = options.guides ?? [], low = Math.min(0, ...kept.map((line) => line.low));
	// A limit is in the picture if values come near it.
	const near = guides.map(({ value }) => value).filter((value) => value <= 2 * sum);
	return [{ name, height: 40, lines: kept, low, high: Math.max(sum, ...near, low + 1e-9), stacked: false, guides, ...options }];
}
