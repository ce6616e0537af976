// SPDX-License-Identifier: Apache-2.0
// What the page shows: lanes of all processes on one axis, names of callbacks, findings with their places.
//
// Times on the axis are ns since the first event of the first process, as doubles.

import { redFlags, waitersOf } from '../toolkit/analyze.js';
import { histogramBin, indexPolls, pyramidOf, rowsIn, statsBySite, wakeOf } from '../toolkit/index.js';
import { showName, splitLocation } from '../toolkit/show.js';
import { POLL, absoluteTime, pollAt, rowsNamed } from '../toolkit/trace.js';
import { lowerBound } from '../toolkit/table.js';

const SAME_CLOCK_NS = 1e8; // wall clocks that differ by less are of one machine

/** Wall clock minus CLOCK_MONOTONIC tells machines apart; one machine's processes share the latter. */
function shiftOf(first, trace) {
	const apart = Number(absoluteTime(trace, 0) - absoluteTime(first, 0));
	if (first.wallOffset === null || trace.wallOffset === null) return apart;
	const skew = Number(trace.wallOffset - first.wallOffset);
	return Math.abs(skew) < SAME_CLOCK_NS ? apart : apart + skew;
}

export class Model {
	constructor(traces, source) {
		this.source = source;
		this.traces = traces;
		this.lanes = [];
		this.findings = [];
		this.reportState = 'coming';
		this.times = new Map();
		this.names = traces.map(() => new Map());
		for (const [number, trace] of traces.entries()) {
			trace.number = number;
			trace.shift = shiftOf(traces[0], trace);
			trace.stats = statsBySite(trace, histogramBin);
			for (const worker of trace.workers) this.addLane(trace, worker);
		}
		this.first = Math.min(...traces.map((trace) => trace.start + trace.shift));
		this.last = Math.max(...traces.map((trace) => trace.end + trace.shift));
		if (!(this.last > this.first)) this.last = this.first + 1e6;
		this.charts = traces.flatMap((trace) => chartsOf(trace));
	}

	addLane(trace, worker) {
		const { polls } = worker;
		if (!polls.n && !worker.parks.n) return;
		let busy = 0, peak = 0;
		for (let i = 0; i < polls.n; i++) {
			busy += polls.dur[i];
			if (polls.ready[i] > peak) peak = polls.ready[i];
		}
		this.lanes.push({ trace, worker, polls, index: indexPolls(polls), ready: pyramidOf(polls.ready, polls.n), shift: trace.shift,
			busy, peak, number: this.lanes.length, spans: trace.spans.get(worker.id) });
	}

	get main() {
		return this.traces[0];
	}

	get title() {
		const services = new Set(this.traces.map((trace) => trace.metadata.get('service')).filter(Boolean));
		return showName(services.size === 1 ? [...services][0] : this.source.name);
	}

	/** ns since 1970 at a time of the axis, or null. */
	wall(time) {
		const { main } = this;
		return main.wallOffset === null ? null : absoluteTime(main, time - main.shift) + main.wallOffset;
	}

	/** The names that the report has resolved, and its findings. */
	takeReport(report) {
		this.report = report;
		this.reportState = 'there';
		const ofProcess = new Map((report.trace.processes ?? []).map((process) => [process.number, this.traceOf(process)]));
		for (const callback of report.callbacks ?? []) {
			const trace = ofProcess.get(callback.process);
			if (trace) this.names[trace.number].set(callback.location, callback);
		}
		this.takeTimes(report, ofProcess);
		this.findings = (report.findings ?? []).map((finding) => this.place(finding, ofProcess.get(finding.process)));
	}

	/** Where the time of the longest calls went, by the call. */
	takeTimes(report, ofProcess) {
		const parts = report.processes ?? [{ ...report, number: report.trace.processes?.[0]?.number }];
		for (const { number, polls } of parts)
			for (const call of polls?.longest ?? []) {
				const trace = ofProcess.get(number);
				if (trace && call.time) this.times.set(`${trace.number}/${call.worker}/${call.time_ns}`, call.time);
			}
	}

	reportFailed(why) {
		this.reportState = 'failed';
		this.why = why;
		this.useRedFlags();
	}

	/** Findings of the page's own: there is no report for a file that was dropped on it. */
	useRedFlags() {
		if (this.reportState === 'coming') this.reportState = 'none';
		this.findings = this.traces.flatMap((trace) => redFlags(trace).map((finding) => this.place(finding, trace)));
	}

	traceOf(process) {
		const folder = String(process.folder ?? '').replace(/\/[^/]*\.bin[^/]*$/, '');
		return this.traces.find((trace) => process.boot_id && trace.metadata.get('boot_id') === process.boot_id)
			?? this.traces.find((trace) => trace.folder && folder.endsWith(`/${trace.folder}`)) ?? (this.traces.length === 1 ? this.main : null);
	}

	/** A finding with the lane, row and time of each piece of its evidence. */
	place(finding, trace) {
		const evidence = (finding.evidence ?? []).map((piece) => {
			if (!trace || (piece.time_ns === undefined && piece.time === undefined)) return { ...piece, lane: null };
			const time = piece.time ?? Number(BigInt(piece.time_ns) - absoluteTime(trace, 0));
			const lane = this.lanes.find((l) => l.trace === trace && l.worker.id === piece.worker) ?? null;
			const row = lane ? pollAt(lane.polls, time) : -1;
			return { ...piece, lane, row, at: time + trace.shift, length: Number(piece.duration_ns ?? piece.duration ?? 0) || (row >= 0 ? lane.polls.dur[row] : 0) };
		});
		return { ...finding, evidence, trace, first: evidence.find((piece) => piece.lane && piece.row >= 0)
			?? evidence.find((piece) => piece.at !== undefined) ?? null };
	}

	/** {name, site, source} of a place by its number in the trace. */
	callback(trace, site) {
		return this.callbackAt(trace, trace.strings[site] ?? '');
	}

	callbackAt(trace, location) {
		const known = this.names[trace.number].get(location), [name, where] = splitLocation(location);
		return { name: showName(known?.name || name || 'callback'), source: known?.source ? showName(known.source) : '',
			site: showName(known?.site || where), location };
	}

	/** The place of a call: of the function inside it that took most of its time, if the trace tells one. */
	inner(lane, row) {
		const { spans, polls } = lane;
		if (!spans) return -1;
		const start = polls.start[row], end = start + polls.dur[row];
		for (let i = lowerBound(spans.start, start, spans.n); i < spans.n && spans.start[i] < end; i++)
			if (spans.end[i] <= end && spans.end[i] - spans.start[i] > polls.dur[row] / 2) return spans.name[i];
		return -1;
	}

	/** What a bar of a lane is called. */
	label(lane, row) {
		const inner = this.inner(lane, row);
		return this.callback(lane.trace, inner >= 0 ? inner : lane.polls.site[row]);
	}

	/** Functions called inside a call, in order: [{name, start, dur}]. */
	inside(lane, row) {
		const { spans, polls, trace } = lane, found = [];
		if (!spans) return found;
		const start = polls.start[row], end = start + polls.dur[row];
		for (let i = lowerBound(spans.start, start, spans.n); i < spans.n && spans.start[i] < end; i++)
			found.push({ ...this.callback(trace, spans.name[i]), start: spans.start[i], dur: Math.min(spans.end[i], end) - spans.start[i] });
		return found;
	}

	/** Who made a call run: {time, delay, waker: {lane, row} or null, reason}, or null. */
	wake(lane, row) {
		const { polls, trace } = lane, start = polls.start[row];
		let before = -Infinity;
		for (let i = row - 1; i >= 0 && i > row - 4096; i--) {
			if (polls.task[i] !== polls.task[row]) continue;
			before = polls.start[i];
			break;
		}
		const wake = wakeOf(trace, polls.task[row], start, Math.max(before, start - 1e10));
		if (!wake) return null;
		let waker = null;
		for (const other of this.lanes) {
			if (!wake.waker || other.trace !== trace) continue;
			const at = pollAt(other.polls, wake.time);
			if (at >= 0 && other.polls.task[at] === wake.waker) waker = { lane: other, row: at };
		}
		return { ...wake, at: wake.time + lane.shift, delay: start - wake.time, waker };
	}

	/** Callbacks that a call kept waiting, by name: [{name, n, longest, total}], most first. */
	waiters(lane, row) {
		const start = lane.polls.start[row], byName = new Map();
		for (const waiter of waitersOf(lane.trace, lane.worker, start, start + lane.polls.dur[row])) {
			const { name } = this.callback(lane.trace, waiter.site);
			const sum = byName.get(name) ?? { name, n: 0, longest: 0, total: 0, row: waiter.row };
			sum.n++;
			sum.total += waiter.delay;
			if (waiter.delay > sum.longest) Object.assign(sum, { longest: waiter.delay, row: waiter.row });
			byName.set(name, sum);
		}
		return [...byName.values()].sort((a, b) => b.total - a.total);
	}

	/** Samples by stack that were taken in [from, to) of a lane's worker: Map. */
	stacksIn(lane, from, to, source = 0) {
		const { samples } = lane.trace, counts = new Map();
		for (let i = lowerBound(samples.time, from); i < samples.time.length && samples.time[i] < to; i++)
			if (samples.worker[i] === lane.worker.id && samples.source[i] === source) counts.set(samples.stack[i], (counts.get(samples.stack[i]) ?? 0) + 1);
		return counts;
	}

	/** The parts of a call's time: {cpu, ready, blocked, unknown, functions}; null where nothing was measured. */
	parts(lane, row) {
		const { polls, trace } = lane, told = this.times.get(`${trace.number}/${lane.worker.id}/${absoluteTime(trace, polls.start[row])}`);
		if (!told) return this.partsOfEvent(lane, row);
		const [cpu, ready, blocked, unknown] = ['on_cpu_ns', 'ready_ns', 'blocked_ns', 'unknown_ns'].map((key) => Number(told[key] ?? 0));
		return { cpu, ready, blocked, unknown, functions: (told.blocked_in ?? []).map((f) => showName(f.function)) };
	}

	/** As the recorder tells them of each call of 1 ms and more. */
	partsOfEvent(lane, row) {
		const { polls, trace } = lane, end = polls.start[row] + polls.dur[row], whole = polls.dur[row];
		trace.offCpu ??= rowsNamed(trace, 'OffCpuEvent', ['worker_id', 'task_id', 'blocked_ns', 'run_queue_ns', 'user_cpu_ns', 'system_cpu_ns']);
		const told = trace.offCpu.find((event) => event.worker_id === lane.worker.id && event.task_id === polls.task[row]
			&& Math.abs(event.time - end) < 1e5);
		if (!told) return null;
		const blocked = Math.min(told.blocked_ns ?? 0, whole), ready = Math.min(told.run_queue_ns ?? 0, whole - blocked);
		return { cpu: whole - blocked - ready, ready, blocked, unknown: 0, functions: [] };
	}

	/** Calls by callback in [from, to) of the axis over all lanes: [{name, source, n, total, longest, lane, row}]. */
	callbacksIn(from, to) {
		const byName = new Map();
		for (const lane of this.lanes) {
			const [first, last] = rowsIn(lane.polls, from - lane.shift, to - lane.shift);
			for (let row = first; row < last; row++) {
				const site = lane.polls.site[row], key = `${lane.trace.number}/${site}`;
				let sum = byName.get(key);
				if (!sum) byName.set(key, sum = { ...this.callback(lane.trace, site), n: 0, total: 0, longest: -1, lane, row });
				const start = Math.max(lane.polls.start[row], from - lane.shift);
				const part = Math.min(lane.polls.start[row] + lane.polls.dur[row], to - lane.shift) - start;
				sum.n++;
				sum.total += part;
				if (lane.polls.dur[row] > sum.longest) Object.assign(sum, { longest: lane.polls.dur[row], lane, row });
			}
		}
		return [...byName.values()].sort((a, b) => b.total - a.total);
	}

	/** Callbacks whose name or place holds |text|, most time first: [{name, n, total, longest, lane, row}]. */
	search(text) {
		const wanted = text.toLowerCase(), found = [];
		for (const trace of this.traces)
			for (const stats of trace.stats.values()) {
				const callback = this.callback(trace, stats.site);
				if (![callback.name, callback.source, callback.site, callback.location].some((part) => part.toLowerCase().includes(wanted))) continue;
				const lane = this.lanes.find((l) => l.trace === trace && l.worker === trace.workers[stats.at[0]]);
				found.push({ ...callback, n: stats.n, total: stats.total, longest: stats.longest, lane, row: stats.at[1] });
			}
		return found.sort((a, b) => b.total - a.total);
	}

	/** The next call of a lane after |row| in a direction, of |least| ns or more; the row or -1. */
	neighbour(lane, row, step, least = 0) {
		for (let i = row + step; i >= 0 && i < lane.polls.n; i += step) if (lane.polls.dur[i] >= least) return i;
		return -1;
	}

	openEnded(lane, row) {
		return (lane.polls.flags[row] & POLL.OPEN_ENDED) !== 0;
	}
}

/** Charts of the process: [{name, points: [[time, value]], show}]. */
function chartsOf(trace) {
	const charts = [], MIB = 2 ** 20;
	const add = (name, points, unit) => {
		if (points.length > 1) charts.push({ name, trace, points, unit });
	};
	const usage = rowsNamed(trace, 'ProcessResourceUsageEvent', ['user_cpu_ns', 'system_cpu_ns']);
	add('CPU', usage.slice(1).map((row, i) => [row.time, (row.user_cpu_ns + row.system_cpu_ns - usage[i].user_cpu_ns - usage[i].system_cpu_ns)
		/ Math.max(1, row.time - usage[i].time)]), 'cores');
	const state = rowsNamed(trace, 'ProcessStateEvent', ['resident_bytes', 'descriptors', 'threads']);
	add('memory', state.map((row) => [row.time, row.resident_bytes / MIB]), 'MiB');
	add('descriptors', state.map((row) => [row.time, row.descriptors]), '');
	return charts;
}
