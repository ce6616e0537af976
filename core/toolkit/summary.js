// SPDX-License-Identifier: Apache-2.0
// What `dial9 report --json` tells, as far as it can be told without the rules of its findings: the same keys.

import { redFlags } from './analyze.js';
import { firesOf } from './fired.js';
import { blockingCalls } from './profile.js';
import { showName } from './show.js';
import { nameOfSpan } from './spans.js';
import { namesOfLocation } from './stacks.js';
import { Durations, longLimit } from './statistics.js';
import { partsOfCall } from './time.js';
import { PARK, POLL, absoluteTime, pollAt, rowsNamed } from './trace.js';
import { recordedOf } from './trust.js';
import { BY_TIMER, WAKE_REASONS, eachWokenCall } from './waking.js';

const MS = 1e6, LONGEST = 100, WORST = 20;
const NO_WORKER_FROM = 254;

function quantiles(durations) {
	const at = (q) => (durations.n ? durations.quantile(q) : 0);
	return { count: durations.n, sum_ns: durations.sum, min_ns: durations.n ? durations.min : 0, p50_ns: at(0.5), p90_ns: at(0.9),
		p99_ns: at(0.99), p999_ns: at(0.999), max_ns: durations.max };
}

/* ---- calls: pieces put together, and what each waited ---- */

/**
 * Every call: {worker, row, pieces, start, ns, task, site, wake, delay, flags, samples}; delay NaN: no wake was seen.
 * Nested loops cut a call into several polls.
 */
export function joinedCalls(trace) {
	const calls = [], newest = new Map();
	eachWokenCall(trace, (w, row, { wake, ready, resumed }) => {
		const { polls } = trace.workers[w], task = polls.task[row], cut = newest.get(task);
		if (resumed) {
			cut.ns += polls.dur[row];
			cut.pieces++;
			cut.flags |= polls.flags[row];
			return;
		}
		const call = { worker: w, row, pieces: 1, start: polls.start[row], ns: polls.dur[row], task, site: polls.site[row], wake, delay: polls.start[row] - ready,
			flags: polls.flags[row], onCpu: 0, offCpu: 0 };
		calls.push(call);
		newest.set(task, call);
	});
	countSamples(trace, calls);
	return calls;
}

function countSamples(trace, calls) {
	const index = new Map(trace.workers.map((worker, w) => [worker.id, w])), keyOf = (w, row) => w * 2 ** 32 + row, { samples } = trace, byCall = new Map();
	samples.time.forEach((time, i) => {
		const w = index.get(samples.worker[i]), row = w === undefined ? -1 : pollAt(trace.workers[w].polls, time);
		if (row < 0) return;
		if (!byCall.has(keyOf(w, row))) byCall.set(keyOf(w, row), { onCpu: 0, offCpu: 0 });
		byCall.get(keyOf(w, row))[samples.source[i] === 1 ? 'offCpu' : 'onCpu']++;
	});
	if (byCall.size) for (const call of calls) Object.assign(call, byCall.get(keyOf(call.worker, call.row)));
}

/* ---- the parts of the object ---- */

class Times {
	constructor(trace) {
		this.trace = trace;
	}

	/** The keys of a time. */
	at(time) {
		const wall = this.trace.wallOffset === null ? null : this.wall(absoluteTime(this.trace, time) + this.trace.wallOffset);
		return { time_ns: absoluteTime(this.trace, time), offset_ns: Math.round(time - this.trace.start), wall };
	}

	wall(ns) {
		return `${new Date(Number(ns / 1000000000n) * 1000).toISOString().slice(0, 19)}.${String(ns % 1000000000n).padStart(9, '0')}Z`;
	}
}

/** Parts of the time of calls with the keys of the object. */
function timeOf(parts) {
	return { total_ns: parts.total, on_cpu_ns: parts.on_cpu, ready_ns: parts.ready, blocked_ns: parts.blocked,
		unknown_ns: parts.unknown, by_period_ns: parts.by_period, by_period: parts.by_period > 0,
		samples: parts.samples, by_samples: parts.by_samples, too_few_samples: parts.too_few_samples };
}

function addTime(sum, parts) {
	for (const [key, value] of Object.entries(parts))
		sum[key] = typeof value === 'boolean' ? sum[key] || value : (sum[key] ?? 0) + value;
}

function nameOf(trace, site) {
	return showName(namesOfLocation(trace, trace.strings[site] ?? '?')[0]);
}

function traceObject(process, number) {
	const { trace, folder, files } = process, times = new Times(trace), events = Object.create(null);
	for (const table of trace.tables) if (table.count) events[table.name] = (events[table.name] ?? 0) + table.count;
	const loss = Object.create(null);
	for (const row of rowsNamed(trace, 'RecorderLossEvent', ['cause', 'events'])) loss[row.cause ?? 'unknown'] = (loss[row.cause ?? 'unknown'] ?? 0) + Number(row.events ?? 0);
	const dropped = (field) => rowsNamed(trace, 'MemoryProfileOverflowEvent', [field]).reduce((sum, row) => sum + Number(row[field] ?? 0), 0);
	const metadata = Object.fromEntries(trace.metadata);
	return { start_ns: absoluteTime(trace, trace.start), end_ns: absoluteTime(trace, trace.end), duration_ns: Math.round(trace.end - trace.start),
		start_wall: times.at(trace.start).wall, wall_offset_ns: trace.wallOffset, segments: trace.segments.length, total_events: trace.events,
		events: Object.fromEntries(Object.entries(events).sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1))), loss, lost_events: trace.lost,
		dropped_allocs: dropped('dropped_allocs'), dropped_frees: dropped('dropped_frees'), fired: firesOf(trace, number).map((fire) => ({ ...fire, time_wall: times.at(Number(fire.time_ns - absoluteTime(trace, 0))).wall })),
		files: trace.segments.map((segment, i) => ({ path: files[i].path, process: number, container: files[i].container, stored_bytes: files[i].stored,
			events: segment.events, active: files[i].path.endsWith('.active'), truncated: segment.cut, error: segment.error })),
		metadata, processes: [{ number, boot_id: metadata.boot_id ?? null, folder, metadata }] };
}

/** How long a worker was awake: from the end of each wait, or from entering its loop, to the next wait or its last call. */
function awakeOf({ polls, parks, entries }) {
	const entered = entries.n && (!parks.n || entries.time[0] <= parks.start[0]) ? entries.time[0] : NaN, last = parks.n ? parks.end[parks.n - 1] : entered;
	let awake = 0;
	for (let i = 0; i < parks.n; i++) {
		const from = i ? parks.end[i - 1] : entered;
		if (!Number.isNaN(from) && !(parks.flags[i] & PARK.OTHER_BEFORE)) awake += parks.start[i] - from;
	}
	const end = polls.n ? polls.start[polls.n - 1] + polls.dur[polls.n - 1] : -Infinity;
	return awake + (end > last ? end - last : 0);
}

function workerObject(trace, worker, w, calls, number) {
	const { polls, parks } = worker, own = calls.filter((call) => call.worker === w), lengths = new Durations(), waits = new Durations();
	for (const call of own) lengths.add(call.ns);
	let parked = 0, waited = 0, pollNs = 0, longest = 0;
	for (let i = 0; i < parks.n; i++) {
		// What lies between two threads belongs to neither.
		if (parks.flags[i] & PARK.OTHER_AFTER) continue;
		waited++;
		parked += parks.end[i] - parks.start[i];
		if (parks.wait[i] > 0) waits.add(parks.wait[i]);
	}
	for (let row = 0; row < polls.n; row++) {
		pollNs += polls.dur[row];
		longest = Math.max(longest, polls.ready[row]);
	}
	const seen = (off) => trace.samples.worker.filter((id, i) => id === worker.id && (trace.samples.source[i] === 1) === off).length;
	const awake = awakeOf(worker), total = awake + parked, issued = trace.wakes.by.subarray(0, trace.wakes.n).filter((by) => by === worker.id && by < NO_WORKER_FROM).length;
	return { id: worker.id, process: number, name: worker.group ?? trace.samples.thread.find((name, i) => name && trace.samples.worker[i] === worker.id) ?? null, tid: worker.tid,
		polls: own.length + (worker.running ? 1 : 0), resumptions: polls.n - own.length, open_ended_polls: own.filter((call) => call.flags & POLL.OPEN_ENDED).length, poll_ns: pollNs,
		parks: waited, parked_ns: parked, awake_ns: awake, busy: total > 0 ? Math.min(1, pollNs / total) : 0,
		long_call_ns: longLimit(lengths.n ? lengths.quantile(0.99) : 0), wakes_issued: issued, local_queue_max: longest,
		kernel_waits: quantiles(waits),
		samples: { on_cpu: seen(false), off_cpu: seen(true) } };
}

function callbackObjects(trace, calls, number) {
	const bySite = new Map();
	for (const call of calls) {
		if (!bySite.has(call.site)) bySite.set(call.site, { lengths: new Durations(), delays: new Durations(), lateness: new Durations(), over: [0, 0, 0], open: 0, onCpu: 0, offCpu: 0, time: {} });
		const stats = bySite.get(call.site);
		stats.lengths.add(call.ns);
		[1, 10, 50].forEach((ms, i) => { stats.over[i] += call.ns > ms * MS; });
		if (call.delay > 0) stats.delays.add(call.delay);
		if (call.wake >= 0 && trace.wakes.reason[call.wake] === BY_TIMER) stats.lateness.add(call.start - trace.wakes.time[call.wake]);
		stats.open += (call.flags & POLL.OPEN_ENDED) > 0;
		stats.onCpu += call.onCpu;
		stats.offCpu += call.offCpu;
		addTime(stats.time, partsOfCall(trace, trace.workers[call.worker], call.row));
	}
	// A call that had not ended counts as one, and has no length.
	const open = trace.workers.filter((worker) => worker.running).map(({ polls }) => polls.site[polls.n]);
	return [...bySite].sort((a, b) => b[1].lengths.sum - a[1].lengths.sum).map(([site, stats]) => {
		const location = trace.strings[site] ?? '', [, place] = namesOfLocation(trace, location), tasks = [...trace.tasks.values()].filter((task) => task.location === location), q = quantiles(stats.lengths);
		const kinds = [...new Set(tasks.map((task) => task.kind).filter(Boolean))];
		return { process: number, name: nameOf(trace, site), location, way: nameOf(trace, site), source: null, site: place || null, kind: kinds.join('+'),
			polls: q.count + open.filter((of) => of === site).length, total_ns: q.sum_ns, min_ns: q.min_ns, p50_ns: q.p50_ns, p90_ns: q.p90_ns, p99_ns: q.p99_ns, max_ns: q.max_ns,
			over_1ms: stats.over[0], over_10ms: stats.over[1], over_50ms: stats.over[2], open_ended: stats.open, time: timeOf(stats.time),
			tasks_spawned: tasks.length, tasks_ended: tasks.filter((task) => !Number.isNaN(task.died)).length,
			on_cpu_samples: stats.onCpu, off_cpu_samples: stats.offCpu, delays: quantiles(stats.delays), lateness: quantiles(stats.lateness) };
	});
}

/** Spans by name, most active time first; a length is from the first enter to the last exit. */
function spanObjects(trace) {
	const lives = new Map(), byName = new Map();
	for (const table of trace.spans.values())
		for (let i = 0; i < table.n; i++) {
			if (!lives.has(table.life[i])) lives.set(table.life[i], { first: Infinity, last: -Infinity, active: 0 });
			const life = lives.get(table.life[i]);
			life.first = Math.min(life.first, table.start[i]);
			life.last = Math.max(life.last, table.end[i]);
			life.active += table.end[i] - table.start[i];
		}
	for (const [number, { first, last, active }] of lives) {
		const name = nameOfSpan(trace, number);
		if (!byName.has(name)) byName.set(name, { lengths: new Durations(), active: 0 });
		byName.get(name).lengths.add(last - first);
		byName.get(name).active += active;
	}
	// What a loop library calls inside a callback of its own is told as a callback.
	return [...byName].filter(([name]) => !name.includes(' @ ')).sort((a, b) => b[1].active - a[1].active)
		.map(([name, { lengths, active }]) => ({ name: showName(name), active_ns: active, ...quantiles(lengths) }));
}

function blockingObjects(trace) {
	const sums = new Map();
	for (const row of blockingCalls(trace).rows) {
		const callback = nameOfTask(trace, row.task), key = `${row.name}/${callback}`;
		if (row.dur < MS) continue;
		if (!sums.has(key)) sums.set(key, { function: showName(row.name), fd: row.fd, callback, calls: 0, total_ns: 0, longest_ns: 0, worker: row.worker, task: row.task });
		const sum = sums.get(key);
		sum.calls++;
		sum.total_ns += row.dur;
		if (sum.fd !== row.fd) sum.fd = null;
		if (row.dur > sum.longest_ns) Object.assign(sum, { longest_ns: row.dur, longest_at_ns: absoluteTime(trace, row.time), worker: row.worker, task: row.task });
	}
	return [...sums.values()].sort((a, b) => b.total_ns - a.total_ns);
}

function nameOfTask(trace, task) {
	return showName(namesOfLocation(trace, trace.tasks.get(task)?.location || '?')[0]);
}

function longestObjects(trace, calls, times) {
	return calls.filter((call) => call.ns >= MS).sort((a, b) => b.ns - a.ns || a.start - b.start).slice(0, LONGEST).map((call) => {
		const worker = trace.workers[call.worker], time = timeOf(partsOfCall(trace, worker, call.row)), name = nameOf(trace, call.site);
		return { name, location: trace.strings[call.site] ?? '', poll: name, duration_ns: call.ns, worker: worker.id, task: call.task, ...times.at(call.start), pieces: call.pieces,
			on_cpu_samples: call.onCpu, off_cpu_samples: call.offCpu, blocked_ns: time.blocked_ns, run_queue_ns: time.ready_ns, time };
	});
}

function pollsObject(trace, calls, recorded, times) {
	const lengths = new Durations(), over = (ms) => calls.filter((call) => call.ns > ms * MS).length;
	for (const call of calls) lengths.add(call.ns);
	return { recorded: recorded.poll, ...quantiles(lengths), over_1ms: over(1), over_10ms: over(10), over_50ms: over(50),
		with_samples: calls.filter((call) => call.onCpu + call.offCpu).length, uninstrumented: calls.filter((call) => trace.tasks.get(call.task)?.uninstrumented).length,
		longest: longestObjects(trace, calls, times) };
}

function worstObjects(trace, calls, times, waitOf) {
	return [...calls].sort((a, b) => waitOf(b) - waitOf(a)).slice(0, WORST).map((call) => ({
		name: nameOf(trace, call.site), location: trace.strings[call.site] ?? '', delay_ns: waitOf(call), task: call.task, waker_task: trace.wakes.waker[call.wake],
		worker: trace.workers[call.worker].id, reason: WAKE_REASONS[trace.wakes.reason[call.wake]] ?? 'unknown', ...times.at(call.start - waitOf(call)) }));
}

function waitsObject(trace, calls, recorded, times) {
	const delays = new Durations(), late = calls.filter((call) => call.delay > 0), reasons = {};
	for (const call of late) delays.add(call.delay);
	for (let i = 0; i < trace.wakes.n; i++) {
		const name = WAKE_REASONS[trace.wakes.reason[i]] ?? 'unknown';
		reasons[name] = (reasons[name] ?? 0) + 1;
	}
	const over = (us) => late.filter((call) => call.delay > us * 1000).length;
	return { recorded: recorded.wake, ...quantiles(delays), over_100us: over(100), over_1ms: over(1000), over_5ms: over(5000), over_10ms: over(10000), over_50ms: over(50000),
		wakes: trace.wakes.n, by_reason: reasons, worst: worstObjects(trace, late, times, (call) => call.delay) };
}

function timersObject(trace, calls, recorded, times) {
	const lateness = new Durations(), waitOf = (call) => call.start - trace.wakes.time[call.wake];
	const timed = calls.filter((call) => call.wake >= 0 && trace.wakes.reason[call.wake] === BY_TIMER);
	for (const call of timed) lateness.add(waitOf(call));
	const over = (ms) => timed.filter((call) => waitOf(call) > ms * MS).length;
	return { recorded: trace.wakes.reason.subarray(0, trace.wakes.n).some((reason) => reason) ? recorded.lateness : 'none', lateness: quantiles(lateness), over_1ms: over(1), over_10ms: over(10), over_50ms: over(50), worst: worstObjects(trace, timed.filter((call) => waitOf(call) > MS), times, waitOf) };
}

function gauge(values) {
	const sum = values.reduce((a, b) => a + b, 0);
	return { samples: values.length, max: values.reduce((a, b) => Math.max(a, b), 0), mean: values.length ? sum / values.length : 0, last: values.at(-1) ?? 0 };
}

/** Rows of polls, with the one that has not ended. */
const begunPolls = (polls, running) => polls.n + (running ? 1 : 0);

function queuesObject(trace, recorded) {
	const column = (event, field) => rowsNamed(trace, event, [field]).map((row) => Number(row[field] ?? 0));
	let max = 0, sum = 0, n = 0;
	for (const { polls, running } of trace.workers)
		for (let i = 0; i < begunPolls(polls, running); i++, n++) {
			sum += polls.ready[i];
			max = Math.max(max, polls.ready[i]);
		}
	return { global: gauge([...column('QueueSampleEvent', 'global_queue'), ...column('RuntimeMetricsEvent', 'global_queue_depth')]),
		local: { recorded: recorded.depth, samples: n, max, sum, mean: n ? sum / n : 0 }, registered_tasks: gauge(column('LoopTasksEvent', 'tasks')) };
}

function tasksObject(trace, recorded) {
	const tasks = [...trace.tasks.values()], ended = new Set(rowsNamed(trace, 'TaskTerminateEvent', ['task_id']).map((row) => row.task_id)).size;
	return { recorded: recorded.spawn, spawned: tasks.length, uninstrumented: tasks.filter((task) => task.uninstrumented).length, ended };
}

function samplesObject(trace, calls) {
	const { samples } = trace, on = samples.source.filter((source) => source !== 1).length;
	const workers = new Set(trace.workers.map((worker) => worker.id)), hz = Number(trace.metadata.get('cpu.sample_hz') ?? 0);
	return { on_cpu: on, off_cpu: samples.time.length - on, on_cpu_in_polls: calls.reduce((sum, call) => sum + call.onCpu, 0), off_cpu_in_polls: calls.reduce((sum, call) => sum + call.offCpu, 0),
		off_worker: samples.worker.filter((id) => !workers.has(id)).length, period_ns: hz > 0 ? Math.floor(1e9 / hz) : 0 };
}

/** A red flag as a finding of the report; |number| is the process's. */
function findingObject({ check, severity, message, name, brief, figure, about, effects, evidence, time, on_cpu: onCpu, blocked, advice }, times, number) {
	const told = evidence.map((piece) => ({ text: piece.text, ...(piece.time !== undefined && times.at(piece.time)), ...(piece.duration !== undefined && { duration_ns: Math.round(piece.duration) }),
		...(piece.worker !== undefined && { worker: piece.worker }), ...(piece.task !== undefined && { task: piece.task }) }));
	const under = effects.map((one) => findingObject(one, times, number));
	return { process: number, check, severity, message, name, brief, figure, about, task: told.find(({ task }) => task)?.task ?? 0, effects: under.map((one, i) => ({ check: one.check, severity: one.severity, message: one.message, name: one.name,
		evidence: one.evidence, effect: effects[i].effect })), evidence: told, time: time ?? null, on_cpu: onCpu ?? null, blocked: blocked ?? null, advice };
}

/** Figures and red flags of the process |number|. */
export function summaryOf(process, number = 0) {
	const { trace } = process, recorded = recordedOf(trace), times = new Times(trace), calls = joinedCalls(trace);
	return { trace: traceObject(process, number), recorded,
		degraded: [...trace.metadata].filter(([key, value]) => /^loop\..*\.degraded$/.test(key) && value).map(([key, reasons]) => ({ loop: key.slice(5, -9), reasons, process: number })),
		findings: redFlags(trace).map((flag) => findingObject(flag, times, number)), workers: trace.workers.map((worker, w) => workerObject(trace, worker, w, calls, number)), callbacks: callbackObjects(trace, calls, number),
		polls: pollsObject(trace, calls, recorded, times), wake_to_poll: waitsObject(trace, calls, recorded, times), timers: timersObject(trace, calls, recorded, times),
		queues: queuesObject(trace, recorded), tasks: tasksObject(trace, recorded), spans: spanObjects(trace), blocking_calls: blockingObjects(trace),
		samples: samplesObject(trace, calls) };
}

/** The same of one process or several, as one object. */
export function reportOf(processes) {
	const all = processes.map(summaryOf), head = { version: 1, quantile_error: 0.004, left_out: {} };
	if (all.length === 1) return { ...head, ...all[0] };
	const together = (key) => all.flatMap((one) => one[key]);
	return { ...head, degraded: together('degraded'), findings: together('findings'), workers: together('workers'), callbacks: together('callbacks'),
		processes: all.map((one, number) => ({ number, folder: processes[number].folder, ...one })) };
}

/** JSON in which ns of 64 bits are whole. */
export function exactJson(value) {
	if (typeof value === 'bigint') return String(value);
	if (Array.isArray(value)) return `[${value.map(exactJson).join(',')}]`;
	if (value && typeof value === 'object') return `{${Object.entries(value).filter(([, of]) => of !== undefined).map(([key, of]) => `${JSON.stringify(key)}:${exactJson(of)}`).join(',')}}`;
	return JSON.stringify(Number.isNaN(value) ? null : value);
}
