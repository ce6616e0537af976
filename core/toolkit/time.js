// SPDX-License-Identifier: Apache-2.0
// Where elapsed time went, by the rules of `dial9 report` (REPORT-JSON.md, "time"): five parts that sum to it.
//
//	{on_cpu, ready, blocked, unknown, waiting?, total}	in ns; waiting of ranges and spans only
//	{by_period, samples, by_samples, too_few_samples}	how it is known
//
// Of readings the one that takes from a callback counts first: ready, then blocked, then the CPU.  What no
// reading covers is unknown, and is not spread over the others.

import { rowsIn, wakeOf } from './index.js';
import { rowsOfRun } from './runs.js';
import { lowerBound } from './table.js';
import { PARK, pollAt, relativeTime, rowsNamed } from './trace.js';

const LONG_CALL = 1e6; // such calls have readings of their own
const CPU_STEP = 4096; // CPU times are written in steps of so much
const OPEN_LEAST = 100e6; // of an open call's time, from here on, looks and samples are believed
const SAMPLES_FEW = 3; // of fewer no share is told
const RESUMPTION = 8; // the reason of the wake of a call that goes on behind a loop inside it

const over = (a, b) => Math.max(0, a - b);

/* ---- what a trace knows, by worker; found once ---- */

const timeFacts = new WeakMap();

function rowsByWorker(trace, name, fields) {
	const byWorker = new Map();
	for (const row of rowsNamed(trace, name, ['worker_id', 'task_id', ...fields])) {
		for (const field of fields) if (typeof row[field] === 'bigint') row[field] = Number(row[field]);
		if (!byWorker.has(row.worker_id)) byWorker.set(row.worker_id, []);
		byWorker.get(row.worker_id).push(row);
	}
	return byWorker;
}

/** CPU time for which a sample stands, in ns; 0: not told. */
export function sampleNs(trace) {
	const hz = Math.trunc(Number(trace.metadata.get('cpu.sample_hz') ?? trace.metadata.get('cpu.profile.frequency_hz')));
	return hz > 0 ? Math.floor(1e9 / hz) : 0;
}

/** The highest CPU time that a worker's thread has had when each of its waits ended: those at unparks are rounded down. */
function highest(parks) {
	const high = new Float64Array(parks.n);
	let most = 0;
	for (let i = 0; i < parks.n; i++) {
		most = parks.flags[i] & PARK.OTHER_BEFORE ? parks.cpuBefore[i] : Math.max(most, parks.cpuBefore[i]);
		most = parks.flags[i] & PARK.OTHER_AFTER ? parks.cpuAfter[i] : Math.max(most, parks.cpuAfter[i]);
		high[i] = most;
	}
	return high;
}

function factsOf(trace, worker) {
	if (!timeFacts.has(trace))
		timeFacts.set(trace, { workers: new WeakMap(), sampleNs: sampleNs(trace),
			readings: rowsByWorker(trace, 'OffCpuEvent', ['blocked_ns', 'run_queue_ns', 'voluntary_switches', 'user_cpu_ns', 'system_cpu_ns']),
			looks: rowsByWorker(trace, 'StuckPollEvent', ['running']),
			told: rowsByWorker(trace, 'BlockingCallEvent', ['duration_ns', 'held_ns', 'held_ready_ns']),
			ready: rowsByWorker(trace, 'RunQueueEvent', ['from_ns', 'wait_ns']), outside: rowsByWorker(trace, 'LoopOutsideEvent', ['from_ns', 'to_ns']),
			sources: rowsByWorker(trace, 'SourceTimeEvent', ['total_ns']) });
	const facts = timeFacts.get(trace), { samples } = trace, waits = facts.ready.get(worker.id) ?? [];
	// More than there was since the reading before: it waited behind the stamp, in the park that begins there.
	const isBehind = (row) => row.wait_ns > row.time - relativeTime(trace, row.from_ns ?? 0);
	if (!facts.workers.has(worker))
		facts.workers.set(worker, { sampleNs: facts.sampleNs, high: highest(worker.parks), last: null,
			cut: worker.running ? null : worker.unended ?? null, looks: facts.looks.get(worker.id) ?? [],
			readings: facts.readings.get(worker.id) ?? [], told: facts.told.get(worker.id) ?? [],
			ready: waits.filter((row) => !isBehind(row)), readyBehind: new Map(waits.filter(isBehind).map((row) => [row.time, row.wait_ns])),
			outside: facts.outside.get(worker.id) ?? [], sources: facts.sources.get(worker.id) ?? [],
			samples: samples.time.filter((_, i) => samples.worker[i] === worker.id && samples.source[i] !== 1) });
	return facts.workers.get(worker);
}

/** The first of |rows|, which are in order of time, that is not before |time|. */
function firstRow(rows, time) {
	let low = 0, high = rows.length;
	while (low < high) {
		const middle = low + high >>> 1;
		if (rows[middle].time < time) low = middle + 1;
		else high = middle;
	}
	return low;
}

/** The sum of what |valueOf| tells of the |rows| behind |from|, up to |to|. */
function sumIn(rows, from, to, valueOf) {
	let sum = 0;
	for (let i = firstRow(rows, from); i < rows.length && rows[i].time <= to; i++) sum += rows[i].time > from ? valueOf(rows[i]) : 0;
	return sum;
}

/* ---- one active period: from an unpark to the next park ---- */

/** How long a call that blocked waited for a lock whose holder had no CPU, for most of the time: that is the machine's. */
function heldUp({ duration_ns: ns = 0, held_ns: held = 0, held_ready_ns: ready = 0 }) {
	return held && 2 * ready >= held ? Math.floor(ns * Math.min(1, ready / held)) : 0;
}

/** What was told of a call to block in [from, to], which lies in it: {told, heldUp}. */
function toldOf(facts, polls, row, from, to) {
	const sum = { told: 0, heldUp: 0 };
	for (let i = firstRow(facts.told, from); i < facts.told.length && facts.told[i].time <= to; i++) {
		if (facts.told[i].task_id !== polls.task[row]) continue;
		const ns = heldUp(facts.told[i]);
		sum.heldUp += ns;
		sum.told += Number(facts.told[i].duration_ns ?? 0) - ns;
	}
	return sum;
}

/** The reading at the end of a call, or null: it is told between that and the next call. */
function readingOf(trace, facts, polls, row) {
	const end = polls.start[row] + polls.dur[row], next = row + 1 < polls.n ? polls.start[row + 1] : Infinity;
	for (let i = firstRow(facts.readings, end); i < facts.readings.length && facts.readings[i].time <= next; i++) {
		const reading = facts.readings[i];
		if (reading.task_id !== polls.task[row]) continue;
		if (polls.dur[row] < LONG_CALL && wakeOf(trace, reading.task_id, polls.start[row], polls.start[row] - 1)?.reason !== RESUMPTION) return null;
		return reading;
	}
	return null;
}

/** Of the call that the end of the trace cut: by looks, which stand for the time before them, and by samples; else null. */
function cutReading(facts, polls, row, told) {
	const { cut, looks, sampleNs: each } = facts, start = polls.start[row], ns = polls.dur[row];
	if (cut?.start !== start || cut.task !== polls.task[row]) return null;
	let asleep = 0, before = start, running = true;
	for (let i = firstRow(looks, start); i < looks.length; i++) {
		if (looks[i].task_id !== cut.task) continue;
		running = Boolean(looks[i].running);
		if (!running) asleep += looks[i].time - before;
		before = looks[i].time;
	}
	if (!running) asleep += start + ns - before;
	const used = Math.min(ns, each * samplesBetween(facts, start, start + ns)), blocked = Math.min(ns - used, Math.max(asleep, told));
	return used + blocked < OPEN_LEAST ? null : { blocked_ns: blocked, user_cpu_ns: used };
}

/** The parts of a call by its own reading. */
function callByReading(call, reading, heldUpNs) {
	let left = call.ns, ready = reading.run_queue_ns ?? 0, blocked = reading.blocked_ns ?? 0;
	// A thread that sleeps gives up the CPU itself: if this one never did, the machine took it.
	if (reading.voluntary_switches === 0) {
		ready += blocked;
		blocked = 0;
	}
	heldUpNs = Math.min(heldUpNs, blocked);
	ready += heldUpNs;
	blocked -= heldUpNs;
	call.read = true;
	left -= call.ready = Math.min(left, ready);
	left -= call.blocked = Math.min(left, blocked);
	call.onCpu = reading.user_cpu_ns === undefined ? left : Math.min(left, reading.user_cpu_ns + (reading.system_cpu_ns ?? 0) + CPU_STEP);
	call.told = Math.min(call.told, call.blocked);
}

/** Calls of [first, last) that are long, or of which more is told: Map of rows; adds their sums to |period|. */
function callsOf(trace, facts, polls, first, last, period) {
	const calls = new Map();
	for (let row = first; row < last; row++) {
		const ns = polls.dur[row], end = polls.start[row] + ns;
		period.inCalls += ns;
		if (ns < LONG_CALL && !facts.told.length && !facts.readings.length) continue;
		const { told, heldUp: heldUpNs } = toldOf(facts, polls, row, polls.start[row], end), call = { ns, told, read: false };
		const ended = readingOf(trace, facts, polls, row), reading = ended ?? cutReading(facts, polls, row, told);
		if (ns < LONG_CALL && !reading && !call.told) continue;
		calls.set(row, call);
		if (reading) {
			callByReading(call, reading, ended ? heldUpNs : 0);
			period.readNs += ns;
			period.ready += call.ready;
			period.blocked += call.blocked;
			period.onCpu += call.onCpu;
		} else {
			call.told = Math.min(call.told, ns);
			period.told += call.told;
			if (ns >= LONG_CALL) period.longNs += ns - call.told;
		}
	}
	return calls;
}

/** When the period before park |i| began, and the CPU time then: {start, cpu, high}; null: nobody saw it begin. */
function beginning(worker, facts, i) {
	const { parks, entries } = worker, until = i < parks.n ? parks.start[i] : Infinity;
	const before = i > 0 && !Number.isNaN(parks.end[i - 1]) ? { start: parks.end[i - 1], cpu: parks.cpuAfter[i - 1], high: facts.high[i - 1] } : null;
	let entry = lowerBound(entries.time, until, entries.n);
	if (entry < entries.n && entries.time[entry] === until) entry++;
	if (--entry < 0 || (before && entries.time[entry] < before.start)) return before;
	return { start: entries.time[entry], cpu: entries.cpu[entry], high: Math.max(before?.high ?? 0, entries.cpu[entry]) };
}

/** By row, before it: how long calls that ran a loop were open between their pieces, and no other call was. */
function nestedOf(trace, facts, polls) {
	if (facts.nested) return facts.nested;
	const nested = facts.nested = new Float64Array(polls.n + 1), left = new Map(); // task -> what was when its newest piece ended
	let called = 0;
	for (let row = 0; row < polls.n; row++) {
		const task = polls.task[row], start = polls.start[row], before = left.get(task);
		nested[row + 1] = nested[row];
		if (before && wakeOf(trace, task, start, start - 1)?.reason === RESUMPTION) nested[row + 1] += over(start - before.end, called - before.called + nested[row] - before.nested);
		called += polls.dur[row];
		left.set(task, { end: start + polls.dur[row], called, nested: nested[row + 1] });
	}
	return nested;
}

/** How long a thread that left its loop slept outside, where |own| ns of a period are known to be none of that. */
function sleptOf(trace, facts, polls, { start, end, wall, inCalls, first, last }, own) {
	const outside = sumIn(facts.outside, start, end, (row) => over(Number(row.to_ns), Number(row.from_ns)));
	if (outside) return Math.min(outside, over(wall, own));
	if (wall < 1e6 || 2 * inCalls >= wall || 2 * own >= wall) return 0;
	const nested = nestedOf(trace, facts, polls), inside = inCalls + nested[last] - nested[first] + sumIn(facts.sources, start, end, (row) => Number(row.total_ns));
	return 2 * inside < wall ? wall - Math.max(inside, own) : 0;
}

/**
 * The period before park |i|, or behind the last one: how long the worker was awake in it and where that went,
 * and what CPU time those |shorts| |shared| that have no reading of their own.
 */
function periodOf(trace, worker, i) {
	const facts = factsOf(trace, worker), { parks, polls, running } = worker;
	if (facts.last?.i === i) return facts.last;
	const isLast = i === parks.n, began = beginning(worker, facts, i);
	const changed = !isLast && (parks.flags[i] & PARK.OTHER_BEFORE) !== 0;
	const from = began?.start ?? (i > 0 ? parks.end[i - 1] : -Infinity), end = isLast ? Infinity : parks.start[i];
	const first = lowerBound(polls.start, from, polls.n), last = lowerBound(polls.start, end, polls.n, first);
	const period = { i, start: from, first, last, inCalls: 0, readNs: 0, ready: 0, blocked: 0, onCpu: 0, told: 0, longNs: 0 };
	if (isLast) period.end = running ? trace.end : last > first ? polls.start[last - 1] + polls.dur[last - 1] : from;
	else period.end = end;
	period.calls = callsOf(trace, facts, polls, first, last, period);
	period.known = began !== null && !changed;
	period.wall = period.known ? Math.max(0, period.end - from) : 0;
	const seen = !isLast && period.known && Math.max(facts.high[i], parks.cpuBefore[i]) > 0;
	const used = seen ? over(parks.cpuBefore[i], began.cpu) : 0, cpu = seen ? over(parks.cpuBefore[i], began.high) : null;
	const own = used + period.ready + period.blocked + period.told;
	// Ready without a CPU, in no call with a reading: what does not fit was in waits before.
	period.untold = seen ? Math.min(over(period.wall, own), sumIn(facts.ready, from, period.end, (row) => Number(row.wait_ns))) : 0;
	period.awake = period.wall - (seen ? sleptOf(trace, facts, polls, period, own + period.untold) : 0);
	shareCpu(period, cpu);
	facts.last = period;
	return period;
}

/** |cpu| ns of CPU were used in a period, null: not known; calls with readings and what was told have theirs. */
function shareCpu(period, cpu) {
	const others = over(period.awake, period.readNs + period.told);
	let left = period.awake;
	left -= period.sumReady = Math.min(left, period.ready);
	left -= period.untold = Math.min(left, period.untold);
	period.sumReady += period.untold;
	period.cpuLeft = cpu === null ? null : Math.min(over(cpu, period.onCpu), others);
	period.others = others;
	const shorts = over(others, period.longNs), shared = cpu === null ? 0 : Math.min(over(period.cpuLeft, period.longNs), shorts);
	Object.assign(period, { shorts, shared, sharedReady: Math.min(over(period.untold, period.longNs), shorts - shared) });
	left -= period.sumBlocked = Math.min(left, period.blocked + period.told);
	period.sumOnCpu = Math.min(left, cpu ?? period.onCpu);
}

const nothing = () => ({ onCpu: 0, ready: 0, blocked: 0, waiting: 0, byPeriod: 0, samples: 0, sharing: null, shortNs: 0 });

/** Add what |ns| of short calls had of what those of their period share. */
function addShares(sum, { shared, sharedReady, shorts }, ns) {
	const part = (all) => (shorts ? Math.floor(all * Math.min(ns, shorts) / shorts) : 0);
	sum.onCpu += part(shared);
	sum.ready += part(sharedReady);
}

/** Short calls of one period share its CPU time together, or each would lose a part of a nanosecond; null: there are no more. */
function addShort(sum, period, ns) {
	if (sum.sharing !== period) {
		if (sum.sharing) addShares(sum, sum.sharing, sum.shortNs);
		Object.assign(sum, { sharing: period, shortNs: 0 });
	}
	sum.shortNs += ns;
}

/** Add what |ns| of a call, of them |told| as blocked, have for certain: of each part, what the rest of it cannot have had. */
function addOfCall(sum, period, row, ns, told) {
	const call = period.calls.get(row);
	if (call?.read) {
		told = Math.min(told, ns, call.told);
		const rest = over(call.ns - call.told, ns - told);
		sum.blocked += told + over(call.blocked - call.told, rest);
		sum.ready += over(call.ready, rest);
		sum.onCpu += over(call.onCpu, rest);
		return;
	}
	told = Math.min(told, ns);
	ns -= told;
	sum.blocked += told;
	if (period.cpuLeft === null) return;
	sum.byPeriod += ns;
	if (call && call.ns >= LONG_CALL) {
		sum.onCpu += Math.min(ns, over(period.cpuLeft, over(period.others, ns)));
		sum.ready += over(period.untold, over(period.others, ns));
	} else {
		addShort(sum, period, ns);
	}
}

/** The five parts; |samples| stand for |sampleNs| each. */
function partsOf(sum, total, sampled, waits) {
	const parts = { total };
	let unknown = total;
	addShort(sum, null, 0);
	const take = (ns) => {
		const taken = Math.min(unknown, ns);
		unknown -= taken;
		return taken;
	};
	const waiting = take(sum.waiting), elapsed = unknown;
	if (waits) parts.waiting = waiting;
	parts.ready = take(sum.ready);
	parts.blocked = take(sum.blocked);
	parts.on_cpu = take(sum.onCpu);
	Object.assign(parts, { by_period: Math.min(sum.byPeriod, total), samples: sum.samples, by_samples: false, too_few_samples: false });
	if (sampled && unknown > 0) {
		if (elapsed < SAMPLES_FEW * sampled) {
			parts.too_few_samples = 20 * unknown > elapsed;
		} else {
			const more = take(over(sum.samples * sampled, parts.on_cpu));
			parts.on_cpu += more;
			parts.by_samples = more > 0;
		}
	}
	parts.unknown = unknown;
	return parts;
}

function samplesBetween(facts, from, to) {
	return lowerBound(facts.samples, to) - lowerBound(facts.samples, from);
}

/** The number of the period in which the call in |row| ran: that before the next park. */
function periodAt({ parks }, time) {
	const i = lowerBound(parks.start, time, parks.n);
	return i < parks.n && parks.start[i] === time ? i + 1 : i;
}

/** Where the time of one call went: of |worker| of trace.workers the poll in |row|. */
export function partsOfCall(trace, worker, row) {
	const { polls } = worker, facts = factsOf(trace, worker), sum = nothing(), ns = polls.dur[row], start = polls.start[row];
	const period = periodOf(trace, worker, periodAt(worker, start));
	addOfCall(sum, period, row, ns, period.calls.get(row)?.told ?? 0);
	sum.samples = samplesBetween(facts, start, start + ns);
	return partsOf(sum, ns, facts.sampleNs, false);
}

/** The parts of runs of a callback together: add() them in their order, as eachRun() of runs.js tells them. */
export class RunParts {
	constructor(trace) {
		Object.assign(this, { trace, total: 0, sum: nothing(), sampleNs: 0 });
	}

	add(worker, run) {
		this.sampleNs = factsOf(this.trace, worker).sampleNs;
		this.total += run.ns;
		addRun(this.sum, this.trace, worker, run);
	}

	parts() {
		return partsOf(this.sum, this.total, this.sampleNs, false);
	}
}

function addRun(sum, trace, worker, run) {
	const facts = factsOf(trace, worker), { polls } = worker;
	for (const { row, ns, parts } of rowsOfRun(trace, worker, run)) {
		if (row < 0) continue;
		const whole = polls.dur[row], period = periodOf(trace, worker, periodAt(worker, polls.start[row]));
		const told = ns === whole ? period.calls.get(row)?.told ?? 0 : parts.reduce((all, [from, to]) => all + toldOf(facts, polls, row, from, to).told, 0);
		addOfCall(sum, period, row, ns, told);
		for (const [from, to] of parts) sum.samples += samplesBetween(facts, from, to);
	}
}

/* ---- ranges ---- */

/** Of the wait |i| what lies in [from, to): ready is its end, as long as the kernel let the thread wait for a CPU. */
function addPark(sum, worker, facts, i, from, to) {
	const { parks } = worker, start = parks.start[i], end = parks.end[i];
	if (parks.flags[i] & PARK.OTHER_AFTER) return;
	const high = Math.max(i > 0 && !(parks.flags[i] & PARK.OTHER_BEFORE) ? facts.high[i - 1] : 0, parks.cpuBefore[i]);
	const readyAt = end - Math.min(end - start, (parks.wait[i] || 0) + (facts.readyBehind.get(start) ?? 0)), used = Math.min(over(parks.cpuAfter[i], high), readyAt - start);
	const a = Math.max(from, start), b = Math.min(to, end), ready = over(b, Math.max(a, readyAt)), rest = b - a - ready;
	const onCpu = over(used, readyAt - start - rest);
	sum.ready += ready;
	sum.onCpu += onCpu;
	sum.waiting += rest - onCpu;
}

/** Of a period what lies in [from, to), a part of it: of calls that the range cuts, what is certain. */
function addCutPeriod(sum, trace, worker, facts, period, from, to) {
	const { polls } = worker, cut = nothing(), free = period.wall - period.inCalls;
	const [first, last] = rowsIn(polls, from, to);
	let gap = to - from;
	for (let row = Math.max(first, period.first); row < Math.min(last, period.last); row++) {
		const ns = Math.min(to, polls.start[row] + polls.dur[row]) - Math.max(from, polls.start[row]);
		addOfCall(cut, period, row, ns, over(period.calls.get(row)?.told ?? 0, polls.dur[row] - ns));
		gap -= ns;
	}
	if (period.known && free > 0 && gap > 0) {
		const awake = gap * over(period.awake, period.inCalls) / free;
		cut.waiting = Math.floor(gap - awake);
		addShares(cut, period, awake);
		cut.byPeriod += period.cpuLeft === null ? 0 : Math.floor(awake);
	}
	cut.samples = samplesBetween(facts, from, to);
	return partsOf(cut, to - from, facts.sampleNs, true);
}

/** Where the time of |worker| of trace.workers in [from, to) went. */
export function partsOfRange(trace, worker, from, to) {
	const { parks, polls } = worker, facts = factsOf(trace, worker), sum = nothing();
	let bySamples = false, tooFew = false;
	for (let i = Math.max(0, lowerBound(parks.end, from, parks.n) - 1); i <= parks.n; i++) {
		if (i > 0 && parks.end[i - 1] >= to) break;
		const period = periodOf(trace, worker, i);
		const start = Math.max(from, Number.isFinite(period.start) ? period.start : polls.n ? polls.start[0] : period.end), end = Math.min(to, period.end);
		if (period.known && from <= period.start && to >= period.end) {
			sum.onCpu += period.sumOnCpu;
			sum.ready += period.sumReady;
			sum.blocked += period.sumBlocked;
			sum.waiting += period.wall - period.awake;
			sum.byPeriod += period.cpuLeft === null ? 0 : over(period.awake, period.readNs + period.told);
			sum.samples += samplesBetween(facts, period.start, period.end);
		} else if (start < end) {
			const cut = addCutPeriod(sum, trace, worker, facts, period, start, end);
			for (const [key, of] of [['onCpu', 'on_cpu'], ['ready', 'ready'], ['blocked', 'blocked'], ['waiting', 'waiting'], ['byPeriod', 'by_period'], ['samples', 'samples']])
				sum[key] += cut[of];
			bySamples ||= cut.by_samples;
			tooFew ||= cut.too_few_samples;
		}
		if (i < parks.n && parks.start[i] < to && parks.end[i] > from) addPark(sum, worker, facts, i, from, to);
	}
	const parts = partsOf(sum, Math.max(0, to - from), 0, true);
	return Object.assign(parts, { by_samples: bySamples, too_few_samples: tooFew && 20 * parts.unknown > parts.total - parts.waiting });
}

/* ---- spans ---- */

/** Of a stay that lies in calls of |task| (undefined: outside of calls) add its share in each: |pieces| by worker and row. */
function addStay(pieces, facts, worker, task, stay) {
	const { polls } = worker, [first, last] = rowsIn(polls, stay.start, stay.end);
	for (let row = first; row < last; row++) {
		if (polls.task[row] !== task) continue;
		const from = Math.max(stay.start, polls.start[row]), to = Math.min(stay.end, polls.start[row] + polls.dur[row]);
		if (to <= from) continue;
		if (!pieces.has(row)) pieces.set(row, { ns: 0, told: 0, samples: 0 });
		const piece = pieces.get(row);
		piece.ns += to - from;
		piece.told += toldOf(facts, polls, row, from, to).told;
		piece.samples += samplesBetween(facts, from, to);
	}
}

/**
 * Where the time of spans went, from their creation to their end: |span| as spanOf() of spans.js gives it, or one with the
 * stays of several of one task.  They wait outside of the calls of the task that began them.
 */
export function partsOfSpan(trace, span) {
	const sum = nothing(), byWorker = new Map();
	let inside = 0, active = 0;
	const workerOf = (id) => trace.workers.find((worker) => worker.id === id);
	const owner = workerOf(span.stays[0]?.worker), own = owner ? pollAt(owner.polls, span.stays[0].start) : -1;
	for (const stay of span.stays) {
		const worker = workerOf(stay.worker), task = stay.task ?? (own < 0 ? undefined : owner.polls.task[own]);
		active += stay.end - stay.start;
		if (task === undefined || !worker) {
			inside += stay.end - stay.start;
			if (worker) addOutside(sum, trace, worker, stay);
			continue;
		}
		if (!byWorker.has(worker)) byWorker.set(worker, new Map());
		addStay(byWorker.get(worker), factsOf(trace, worker), worker, task, stay);
	}
	for (const [worker, pieces] of byWorker)
		for (const [row, piece] of pieces) {
			addOfCall(sum, periodOf(trace, worker, periodAt(worker, worker.polls.start[row])), row, piece.ns, piece.told);
			sum.samples += piece.samples;
			inside += piece.ns;
		}
	const total = Math.max(span.end - span.start, active);
	sum.waiting = over(total, inside);
	return partsOf(sum, total, timeFacts.get(trace)?.sampleNs ?? 0, true);
}

/** A stay outside of calls shares the reading of its period, if it lies in one. */
function addOutside(sum, trace, worker, stay) {
	const period = periodOf(trace, worker, periodAt(worker, stay.start));
	if (!period.known || stay.start < period.start || stay.end > period.end || pollAt(worker.polls, stay.end) >= 0) return;
	addOfCall(sum, period, -1, stay.end - stay.start, 0);
}
