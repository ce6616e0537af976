// SPDX-License-Identifier: Apache-2.0
// What the page shows: lanes of all processes on one axis, names of callbacks, findings with their places.
//
// Times on the axis are ns since the first event of the first process, as doubles.

import { callOfTask, firesOf, isTime } from '../toolkit/fired.js';
import { wakeOf } from '../toolkit/index.js';
import { prepareTrace } from '../toolkit/prepare.js';
import { blockingCalls } from '../toolkit/profile.js';
import { showDuration, showName, splitLocation } from '../toolkit/show.js';
import { isFunction } from '../toolkit/spans.js';
import { addressOfPlace, namesOfLocation } from '../toolkit/stacks.js';
import { partsOfCall } from '../toolkit/time.js';
import { POLL, absoluteTime, outsideOf, pollAt } from '../toolkit/trace.js';
import { lowerBound } from '../toolkit/table.js';
import { clockOf } from '../toolkit/trust.js';
import { waitersOf } from '../toolkit/waking.js';
import { takeWeights } from '../toolkit/weights.js';

const SAME_CLOCK_NS = 1e8; // wall clocks that differ by less are of one machine
const SKEW_TOLD_NS = 1e6;
const FUNCTIONS_MAX = 4;

/**
 * How a process's times come onto the first one's axis: {shift, by, skew, drift} in ns.  Processes of one
 * machine share CLOCK_MONOTONIC, and |skew| is by how much their wall clocks disagree.  Others are placed by
 * their wall clocks, which went by |drift| against CLOCK_MONOTONIC while both recorded: so far they may be off.
 */
function placeOnAxis(first, trace) {
	const apart = Number(absoluteTime(trace, 0) - absoluteTime(first, 0));
	if (first === trace) return { shift: 0, by: 'first', skew: 0, drift: 0 };
	if (first.wallOffset === null || trace.wallOffset === null) return { shift: apart, by: 'none', skew: 0, drift: 0 };
	const skew = Number(trace.wallOffset - first.wallOffset), [here, there] = [first, trace].map((t) => t.metadata.get('host'));
	if (Math.abs(skew) < SAME_CLOCK_NS && (here === there || !here || !there)) return { shift: apart, by: 'same', skew, drift: 0 };
	return { shift: apart + skew, by: 'wall', skew, drift: clockOf(first).drift + clockOf(trace).drift };
}

// Findings about times outside of calls: a call beside such a time is not what they mean.
const OUTSIDE_CALLS = /^(between-rounds|sleeps-between|stopped|inside-library)$/;

/** Functions at addresses, innermost first, that the trace does not tell itself; trace.found has them for what is saved. */
function takeSymbols(trace, frames) {
	if (!trace) return;
	trace.found ??= new Map();
	for (const [text, found] of Object.entries(frames)) {
		const wide = BigInt(text), address = wide <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(wide) : wide;
		if (trace.symbols.has(address)) continue;
		trace.symbols.set(address, found.map((f) => ({ name: f.function, file: f.file ?? '', line: Number(f.line) })));
		trace.found.set(address, trace.symbols.get(address));
	}
}

/** "hello.c:52" as {file, line}. */
function placeInSource(text) {
	const [, file, line] = /^(.*):(\d+)$/.exec(text ?? '') ?? [];
	return { file: file ?? '', line: Number(line ?? 0) };
}

/** The function of a callback, and the one that registered it, at the addresses of its location "server+0x1a2b0 @ server+0x9f04". */
function takePlaces(trace, { location, name, source, site, internal }) {
	const [, caller, from] = /^(\S+) (\S+:\d+)$/.exec(site ?? '') ?? [], frames = {};
	const [callback, registered] = splitLocation(location).map((place) => addressOfPlace(trace, place));
	if (callback !== null && name && !internal && !name.includes('+0x')) frames[callback] = [{ function: name, ...placeInSource(source) }];
	if (registered !== null && caller) frames[registered] = [{ function: caller, ...placeInSource(from) }];
	takeSymbols(trace, frames);
}

export class Model {
	constructor(traces, source) {
		this.source = source;
		this.traces = traces;
		this.lanes = [];
		this.findings = [];
		this.fires = []; // of triggers
		this.reportState = 'coming';
		this.names = traces.map(() => new Map());
		for (const [number, trace] of traces.entries()) {
			trace.number = number;
			trace.clock = placeOnAxis(traces[0], trace);
			trace.shift = trace.clock.shift;
			prepareTrace(trace);
			// Workers are numbered as their threads came; by their names they lie alike in all runs of a program.
			for (const worker of [...trace.workers].sort((a, b) => !a.group - !b.group || a.name.localeCompare(b.name, 'en', { numeric: true }) || a.id - b.id)) this.addLane(trace, worker);
		}
		this.first = Math.min(...traces.map((trace) => trace.start + trace.shift));
		this.last = Math.max(...traces.map((trace) => trace.end + trace.shift));
		if (!(this.last > this.first)) this.last = this.first + 1e6;
	}

	addLane(trace, worker) {
		const { polls } = worker;
		if (!polls.n && !worker.parks.n) return;
		const { index, ready, waits, busy, peak } = worker;
		this.lanes.push({ trace, worker, polls, index, ready, waits, busy, peak, shift: trace.shift, number: this.lanes.length, spans: trace.spans.get(worker.id) });
	}

	laneName({ trace, worker }) {
		if (this.traces.length === 1) return showName(worker.name);
		const service = trace.metadata.get('service'), alone = this.traces.filter((t) => t.metadata.get('service') === service).length === 1;
		return showName(`${service && alone ? service : trace.folder || service} ${worker.name}`);
	}

	/** On which host a process is, and how its clock stands to the first one's. */
	clockNote(trace) {
		const { clock } = trace, host = showName(trace.metadata.get('host') ?? '');
		const told = clock.by === 'first' ? '' : clock.by === 'wall' ? `placed by its wall clock, ±${showDuration(clock.drift)}`
			: clock.by === 'none' ? 'its wall clock is not told' : Math.abs(clock.skew) >= SKEW_TOLD_NS ? `wall clock ${showDuration(Math.abs(clock.skew))} ${clock.skew > 0 ? 'ahead' : 'behind'}` : 'same clock';
		return [host, told].filter(Boolean).join(', ');
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
		for (const [number, trace] of ofProcess)
			if (trace) takeWeights(trace, (report.callbacks ?? []).filter(({ process }) => process === number), (report.workers ?? []).filter(({ process }) => process === number), ofProcess.size === 1 ? report.samples?.switches_measured : undefined);
		for (const { process, frames } of report.symbols ?? []) takeSymbols(ofProcess.get(process), frames);
		for (const callback of report.callbacks ?? []) if (ofProcess.get(callback.process)) takePlaces(ofProcess.get(callback.process), callback);
		this.findings = (report.findings ?? []).map((finding) => this.place(finding, ofProcess.get(finding.process)));
		this.fires = (report.trace.fired ?? []).map((fire) => this.placeFire(fire, ofProcess.get(fire.process)));
	}

	/** There is no report: |why|, or '' where there is nobody to ask for one.  What fired the trace tells itself. */
	goWithoutReport(why) {
		this.reportState = why ? 'failed' : 'none';
		this.why = why;
		this.findings = [];
		this.fires = this.traces.flatMap((trace) => firesOf(trace).map((fire) => this.placeFire(fire, trace)));
	}

	/** Take the |report| that is promised. */
	awaitReport(report) {
		return report.then((found) => this.takeReport(found)).catch((error) => this.goWithoutReport(String(error.message ?? error)));
	}

	traceOf(process) {
		const folder = String(process.folder ?? '').replace(/\/[^/]*\.bin[^/]*$/, '');
		return this.traces.find((trace) => process.boot_id && trace.metadata.get('boot_id') === process.boot_id)
			?? this.traces.find((trace) => trace.folder && folder.endsWith(`/${trace.folder}`)) ?? (this.traces.length === 1 ? this.main : null);
	}

	/** A finding with the lane, row and time of each piece of its evidence. */
	place(finding, trace) {
		const evidence = (finding.evidence ?? []).map((piece) => {
			if (!trace || piece.time_ns === undefined) return { ...piece, lane: null };
			const time = Number(BigInt(piece.time_ns) - absoluteTime(trace, 0));
			const lane = this.lanes.find((l) => l.trace === trace && l.worker.id === piece.worker) ?? null;
			const row = lane && !OUTSIDE_CALLS.test(finding.check) ? pollAt(lane.polls, time) : -1;
			return { ...piece, lane, row, at: time + trace.shift, length: Number(piece.duration_ns ?? 0) || (row >= 0 ? lane.polls.dur[row] : 0) };
		});
		return { ...finding, evidence, trace, first: evidence.find((piece) => piece.lane && piece.row >= 0)
			?? evidence.find((piece) => piece.at !== undefined) ?? null };
	}

	/** A trigger that fired, with its time on the axis, how long what it saw had lasted, and the call: {at, length, lane, call}; |at| undefined: it is not in what is shown. */
	placeFire(fire, trace) {
		const time = trace ? Number(BigInt(fire.time_ns) - absoluteTime(trace, 0)) : NaN, at = time + trace?.shift, task = Number(fire.task);
		if (!(at >= this.first && at <= this.last)) return { ...fire, trace, lane: null, call: null, length: 0 };
		const lanes = this.lanes.filter((lane) => lane.trace === trace), found = task ? callOfTask(lanes.map((lane) => ({ polls: lane.polls, lane })), task, time) : null;
		const call = found && { lane: found.worker.lane, row: found.row };
		return { ...fire, trace, at, call, lane: call?.lane ?? lanes.find(({ worker }) => fire.worker !== null && worker.id === Number(fire.worker)) ?? null,
			length: call ? call.lane.polls.dur[call.row] : isTime(fire.text) ? Number(fire.value) : 0 };
	}

	/** What a trigger that fired is told by: its condition's value and threshold, and the callback. */
	tellFire({ measure, callback, trace }) {
		return [measure ? showName(measure) : '', callback && trace ? `in ${this.callbackAt(trace, callback).name}` : ''].filter(Boolean).join(', ');
	}

	/** {name, site, source} of a place by its number in the trace. */
	callback(trace, site) {
		return this.callbackAt(trace, trace.strings[site] ?? '');
	}

	callbackAt(trace, location) {
		const known = this.names[trace.number].get(location), [name, where] = namesOfLocation(trace, location);
		return { name: showName(known?.name || name || 'callback'), source: known?.source ? showName(known.source) : '',
			site: showName(known?.site || where), location };
	}

	/** The program's function that the loop library called inside a call and that took most of its time: a place, or -1.  Spans of the program name work, not functions. */
	innerFunction({ spans, polls, trace }, row) {
		if (!spans) return -1;
		const start = polls.start[row], end = start + polls.dur[row];
		for (let i = lowerBound(spans.start, start, spans.n); i < spans.n && spans.start[i] < end; i++)
			if (spans.end[i] <= end && spans.end[i] - spans.start[i] > polls.dur[row] / 2 && isFunction(trace.strings[spans.name[i]])) return spans.name[i];
		return -1;
	}

	/** A callback at |site|, which the library's at |caller| called (-1: the loop did), named as the report's table does: "bufferevent read > render". */
	wayTo(trace, site, caller) {
		const callback = this.callback(trace, site);
		if (caller < 0) return callback;
		// Of a stripped library its module says more than an offset.
		return { ...callback, name: `${this.callback(trace, caller).name.replace(/\+0x[\da-f]+$/, '')} > ${callback.name}` };
	}

	/** What a bar of a lane is called. */
	label(lane, row) {
		const inner = this.innerFunction(lane, row);
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

	/** Where the time of a call went, as partsOfCall() tells; null for one that took none. */
	parts(lane, row) {
		return lane.polls.dur[row] ? partsOfCall(lane.trace, lane.worker, row) : null;
	}

	/** The functions in which a call was told to block, first that which took most. */
	blockedIn(lane, row) {
		const calls = this.blocking(lane), byName = new Map();
		for (const i of this.blockingIn(lane, row)) byName.set(calls.names[i], (byName.get(calls.names[i]) ?? 0) + calls.dur[i]);
		return [...byName].sort((a, b) => b[1] - a[1]).slice(0, FUNCTIONS_MAX).map(([name]) => showName(name));
	}

	/** The next call of a lane after |row| in a direction, of |least| ns or more; the row or -1. */
	neighbour(lane, row, step, least = 0) {
		for (let i = row + step; i >= 0 && i < lane.polls.n; i += step) if (lane.polls.dur[i] >= least) return i;
		return -1;
	}

	/** The call that worker |id| of |trace| ran at |time| of the trace: {lane, row} or null. */
	callOfWorker(trace, id, time) {
		const lane = this.lanes.find((l) => l.trace === trace && l.worker.id === id), row = lane ? pollAt(lane.polls, time) : -1;
		return row < 0 ? null : { lane, row };
	}

	/** The last call of a lane that began at or before |time| of the axis, or -1. */
	callBefore(lane, time) {
		return lowerBound(lane.polls.start, time - lane.shift + 0.5, lane.polls.n) - 1;
	}

	/** Times of the samples of a lane's thread, by source: {n, times: [on the CPU, leaving it]}. */
	samplesOf(lane) {
		if (lane.sampled) return lane.sampled;
		const { samples } = lane.trace, times = [[], []];
		for (let i = 0; i < samples.time.length; i++)
			if (samples.worker[i] === lane.worker.id) times[samples.source[i] ? 1 : 0].push(samples.time[i]);
		return lane.sampled = { n: times[0].length + times[1].length, times: times.map((list) => Float64Array.from(list)) };
	}

	/** Calls that blocked a lane's thread, in order: {n, start, dur, inside (of a callback), around (its length), names, longest}. */
	blocking(lane) {
		if (lane.blocked) return lane.blocked;
		const { trace, polls } = lane, calls = blockingCalls(trace).rows.filter((call) => call.worker === lane.worker.id).map((call) => {
			const row = pollAt(polls, call.time), ends = call.time + call.dur <= (row < 0 ? 0 : polls.start[row] + polls.dur[row]) + 1000;
			return { ...call, row: row >= 0 && ends ? row : -1 };
		});
		return lane.blocked = { n: calls.length, start: Float64Array.from(calls, (c) => c.time), dur: Float64Array.from(calls, (c) => c.dur), inside: calls.map((c) => c.row >= 0),
			around: calls.map((c) => (c.row < 0 ? 0 : polls.dur[c.row])), names: calls.map((c) => c.name), longest: calls.reduce((most, c) => Math.max(most, c.dur), 0) };
	}

	/** Those inside of one call: [index]. */
	blockingIn(lane, row) {
		const calls = this.blocking(lane), start = lane.polls.start[row], end = start + lane.polls.dur[row], found = [];
		for (let i = lowerBound(calls.start, start, calls.n); i < calls.n && calls.start[i] < end; i++) if (calls.inside[i]) found.push(i);
		return found;
	}

	/** The wait for events of a lane's loop at |time| of its trace: {start, dur}, or null. */
	waitAt(lane, time) {
		const { parks } = lane.worker, i = lowerBound(parks.end, time, parks.n);
		return i < parks.n && parks.start[i] <= time ? { start: parks.start[i], dur: parks.end[i] - parks.start[i] } : null;
	}

	/** Times of a lane outside of its rounds, as outsideOf() tells them. */
	outside(lane) {
		return lane.outside ??= outsideOf(lane.trace, lane.worker.id);
	}

	/** The time outside of rounds at |time|, a stop first: {kind, start, dur}, or null. */
	outsideAt(lane, time) {
		const { n, start, dur, kind, longest } = this.outside(lane);
		let found = null;
		for (let i = lowerBound(start, time, n) - (start[lowerBound(start, time, n)] === time ? 0 : 1); i >= 0 && start[i] + longest >= time; i--)
			if (start[i] + dur[i] > time && (!found || kind[i] === 'stopped')) found = { kind: kind[i], start: start[i], dur: dur[i] };
		return found;
	}

	openEnded(lane, row) {
		return (lane.polls.flags[row] & POLL.OPEN_ENDED) !== 0;
	}
}
