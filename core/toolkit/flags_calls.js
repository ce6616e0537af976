// SPDX-License-Identifier: Apache-2.0
// Red flags of calls: those that never ended, that sleep, that compute; by the rules of `dial9 report`.

import { countNames, functionOf } from './census.js';
import { newFlag, siteName } from './flags.js';
import { blockingCalls } from './profile.js';
import { showCount, showDuration, showName } from './show.js';
import { Durations, longLimit } from './statistics.js';
import { lowerBound } from './table.js';
import { partsOfCall } from './time.js';
import { POLL, relativeTime, rowsNamed } from './trace.js';
import { waitersOf } from './waking.js';

const LONG_LEAST = 1e6, HUNG_NS = 1e9, CALLS_KEPT = 5, CALLS_TOLD = 3, FEW_SAMPLES = 3, BRIEF_MAX = 55, TOLD_SHARE = 0.005;
const LOOP_LIBRARY = /^(?:libevent|libev\.so|libev-|libglib-|libgio-).* @ /;
const SLOW_NS = 1e7, VERY_SLOW_NS = 5e7, WAITED_NS = 5e6;

/** Long calls of a callback that the kernel may have made so: at most one in so many, and so long. */
const RARE_CALLS = 200, PREEMPTED_MOST = 2e7;

/** Functions that wait for another thread, and what for. */
const WAITS_FOR = [['pthread_mutex_', 'a lock'], ['pthread_rwlock_', 'a lock'], ['pthread_cond_', 'a condition'], ['sem_', 'a semaphore'], ['pthread_join', 'the end of a thread']];

/* ---- calls that had not ended ---- */

const HUNG_ADVICE = {
	lock: 'See who holds the lock, while the program still hangs: `gdb -p PID -batch -ex \'thread apply all bt\'`. Nobody gives it back: a deadlock if the holder waits for this loop or for itself.',
	computing: 'Look for a loop in it whose condition never becomes false: it is on the CPU and does not come to an end. While the program still runs, `gdb -p PID -batch -ex bt` shows where.',
	other: 'Let the loop wait for it (a descriptor, a timer, a child\'s end), or give the call a time limit. While the program still hangs, `gdb -p PID -batch -ex bt` shows who called it.',
};

/** " in pause()", " waiting for a lock", " computing", or "": by what StuckPollEvent tells. */
function whereabouts({ syscall = '', running = 0, wchan = '' }) {
	if (syscall.startsWith('futex: ')) return ` waiting for ${showName(syscall.slice('futex: '.length))}`;
	if (syscall) return ` in ${showName(syscall)}`;
	return running ? ' computing' : wchan ? ` asleep in the kernel's ${showName(wchan)}` : '';
}

/** The latest of what was told of each worker, whose rows are in order of time. */
function latestByWorker(rows) {
	return new Map(rows.map((row) => [row.worker_id, row]));
}

/** When the last thing of a worker ended that has an end. */
function lastEndOf({ polls, parks }) {
	const poll = polls.n ? polls.start[polls.n - 1] + polls.dur[polls.n - 1] : -Infinity;
	return Math.max(poll, parks.n ? parks.end[parks.n - 1] : -Infinity);
}

/** What was still open when the trace ended, as the recorder told once a second: {id, task, site, since, until, where, looks}. */
function hungWorkers(trace) {
	const signs = latestByWorker(rowsNamed(trace, 'LastSignEvent', ['worker_id', 'task_id', 'since_ns', 'span'])), looks = rowsNamed(trace, 'StuckPollEvent', ['worker_id', 'task_id', 'syscall', 'running', 'wchan']);
	return [...signs].flatMap(([id, sign]) => {
		const { task_id: task, time } = sign, worker = trace.workers.find((one) => one.id === id), unended = worker?.unended;
		const told = sign.since_ns === undefined ? time : relativeTime(trace, sign.since_ns), open = unended && unended.task === task && time >= unended.start;
		const since = open ? Math.min(told, unended.start) : told;
		// Whatever ended or began since then says that it went on.
		if (time < since || (!open && worker && (unended || lastEndOf(worker) > since))) return [];
		const seen = looks.filter((look) => look.worker_id === id && look.task_id === task && look.time >= since), look = seen.at(-1) ?? {};
		const site = open && !sign.span ? unended.site : trace.strings.indexOf(sign.span || trace.tasks.get(task)?.location);
		return [{ id, task, site, since, until: Math.max(time, look.time ?? time), look, looks: seen.length }];
	});
}

function hungFlag(trace, { id, task, site, since, until, look, looks }) {
	const ns = until - since, where = whereabouts(look), name = site >= 0 ? siteName(trace, site) : null, length = showDuration(ns);
	const message = task ? `${name ?? 'a callback'} stuck for ${length}${where}, on worker ${id}, until the trace ended.`
		: `The loop of worker ${id} stood still for ${length}${name ? ` in ${name}` : ''}${where}, outside of all callbacks, until the trace ended.`;
	return newFlag('stuck-callback', 'critical', ns, message, { name, site, brief: task ? `stuck for ${length}${where}` : `stuck for ${length}${where}, outside of callbacks`,
		advice: HUNG_ADVICE[look.syscall === 'futex: a lock' ? 'lock' : look.running && !look.syscall ? 'computing' : 'other'],
		evidence: [{ text: `began, and had not ended when the process was last seen${looks > 1 ? `; looked at ${showCount(looks)} times, at the end${where}` : ''}`, time: since, duration: ns, worker: id, ...(task && { task }) }] });
}

/** Calls and loops that stood still at the end; what is long there and was not told so was just cut, or is an end by exit(). */
export function openFlags(trace) {
	const hung = hungWorkers(trace).filter(({ since, until }) => until - since >= HUNG_NS), { metadata } = trace;
	const ended = metadata.get('segment.complete') === 'true' && metadata.get('segment.sealed_clean') !== 'false';
	const running = trace.workers.filter((worker) => worker.running && !hung.some(({ id, task }) => id === worker.id && task) && trace.end - worker.unended.start >= HUNG_NS);
	return [...hung.map((one) => hungFlag(trace, one)), ...running.map(({ id, unended: { start, task, site } }) => {
		const name = siteName(trace, site), ns = trace.end - start;
		return newFlag('running-at-end', ended ? 'info' : 'warning', ns, `${name} was still running on worker ${id} when the trace ended, for ${showDuration(ns)} at least.`, { name, site,
			brief: `still ran when the trace ended, for ${showDuration(ns)}`, advice: 'Look here if the program hung or was killed then: the call did not end, and its length is in no figure.',
			evidence: [{ text: 'began and did not end', time: start, duration: ns, worker: id, task }] });
	})];
}

/* ---- long calls ---- */

/** Places of callbacks that are the loop library's own, by their numbers. */
export function librarySites(trace) {
	const own = new Set([...trace.tasks.values()].filter(({ kind }) => kind === 'internal' || kind === 'listener').map(({ location }) => location));
	return trace.strings.map((text) => LOOP_LIBRARY.test(text) || own.has(text));
}

/** The place of a call and its length: of the program's function inside a library's callback, if that took most of it. */
function culpritOf(trace, library, worker, row) {
	const { polls } = worker, start = polls.start[row], end = start + polls.dur[row], spans = library[polls.site[row]] && trace.spans.get(worker.id);
	for (let i = spans ? lowerBound(spans.start, start, spans.n) : Infinity; spans && i < spans.n && spans.start[i] < end; i++) {
		const ns = Math.min(spans.end[i], end) - spans.start[i];
		if (2 * ns >= end - start && trace.strings[spans.name[i]]?.includes(' @ ')) return { site: spans.name[i], ns };
	}
	return { site: polls.site[row], ns: end - start };
}

/** How often each place was called, as a function of its number. */
function callCounts(trace) {
	const counts = new Float64Array(trace.strings.length + 1);
	for (const { polls } of trace.workers) for (let row = 0; row < polls.n; row++) counts[polls.site[row] + 1]++;
	for (const { name, n } of trace.spans.values()) for (let i = 0; i < n; i++) counts[name[i] + 1]++;
	return (site) => counts[site + 1];
}

/**
 * Calls of 1 ms and more by worker, Map from the row to {w, worker, row, start, ns, own (without what the kernel took), site,
 * limit, parts, asleep}.
 */
export function longCalls(trace, library) {
	return trace.workers.map((worker, w) => {
		const { polls } = worker, lengths = new Durations(), found = new Map();
		for (let row = 0; row < polls.n; row++) lengths.add(polls.dur[row]);
		const limit = longLimit(lengths.n ? lengths.quantile(0.99) : 0);
		for (let row = 0; row < polls.n; row++) {
			// A call that has no end of its own was cut by a loss, a crash or a missing segment: how long it took is not known.
			if (polls.dur[row] < LONG_LEAST || polls.flags[row] & POLL.OPEN_ENDED) continue;
			const parts = partsOfCall(trace, worker, row), { site, ns } = culpritOf(trace, library, worker, row), left = parts.total - parts.ready;
			found.set(row, { w, worker, row, start: polls.start[row], ns, own: ns * left / parts.total, site, limit, parts, asleep: 2 * parts.blocked >= left && 2 * parts.blocked >= LONG_LEAST });
		}
		return found;
	});
}

/** Of parts of the time, in words: "62 % on CPU, 38 % blocked in fsync", most first. */
function partsText(calls, blocking) {
	const sum = (key) => calls.reduce((all, { parts }) => all + parts[key], 0), total = sum('total'), few = calls.some(({ parts }) => parts.too_few_samples);
	const words = [[sum('on_cpu'), calls.some(({ parts }) => parts.by_samples) ? 'on CPU by samples' : 'on CPU'], [sum('ready'), 'ready'], [sum('unknown'), few ? `unknown: too few samples (${sum('samples')})` : 'unknown']];
	let blocked = sum('blocked');
	for (const { name, ns } of blocking) {
		words.push([Math.min(ns, blocked), `blocked in ${name}`]);
		blocked -= Math.min(ns, blocked);
	}
	words.push([blocked, blocking.length ? 'blocked elsewhere' : 'blocked']);
	return sum('unknown') === total && !few ? null : words.filter(([ns]) => ns > 0 && ns >= TOLD_SHARE * total).sort((a, b) => b[0] - a[0]).map(([ns, text]) => `${Math.max(1, 100 * ns / total).toFixed(0)} % ${text}`).join(', ');
}

/** What calls block in: [{name, text, lock, n, ns}], most time first. */
function blockingInside(trace, calls) {
	const { rows } = blockingCalls(trace), times = rows.map(({ time }) => time), sums = new Map();
	for (const { worker, start, row } of calls)
		for (let i = lowerBound(times, start); i < rows.length && rows[i].time < start + worker.polls.dur[row]; i++) {
			const { worker: id, name, fd, dur } = rows[i];
			if (id !== worker.id) continue;
			const lock = WAITS_FOR.find(([prefix]) => name.startsWith(prefix))?.[1], text = lock ?? `${showName(name)}(${fd ?? ''})`;
			if (!sums.has(text)) sums.set(text, { name: showName(name), text, lock: Boolean(lock), n: 0, ns: 0 });
			sums.get(text).n++;
			sums.get(text).ns += dur;
		}
	return [...sums.values()].sort((a, b) => b.ns - a.ns);
}

/** The functions that samples on the CPU found inside of calls: "93 % in draw_row", or null. */
function hotText(trace, calls) {
	const { samples } = trace, names = [];
	for (const { worker, start, row } of calls)
		for (let i = lowerBound(samples.time, start); i < samples.time.length && samples.time[i] < start + worker.polls.dur[row]; i++)
			if (samples.worker[i] === worker.id && samples.source[i] !== 1) names.push(showName(functionOf(trace, samples.stack[i])));
	return countNames(names).filter(([, n]) => n >= FEW_SAMPLES).slice(0, CALLS_TOLD).map(([name, n]) => `${(100 * n / names.length).toFixed(0)} % in ${name}`).join(', ') || null;
}

function longSeverity(ns, calls, waited) {
	return ns > VERY_SLOW_NS ? 'critical' : ns > SLOW_NS || (calls >= 3 && waited >= WAITED_NS) ? 'warning' : 'info';
}

function takenText(ns) {
	return ns >= LONG_LEAST ? ` (${showDuration(ns)} preempted)` : '';
}

/** ", mostly on the CPU", if what is known of a call's time says so. */
function mostlyText({ total, on_cpu: onCpu, ready, blocked }) {
	const left = total - ready;
	if (5 * (onCpu + blocked) < 3 * left) return '';
	return 5 * blocked >= 3 * left ? ', mostly off the CPU' : 5 * blocked <= 2 * left ? ', mostly on the CPU' : ', partly on the CPU';
}

const LONG_ADVICE = {
	preempted: 'Run fewer programs on this machine, give it more cores or this program a higher priority, and leave the callback as it is: the kernel ran something else in the middle of it, as it seems.',
	computing: 'Cut the work into pieces that yield to the loop, or move it to a thread: it computes.',
	unknown: 'Look for a blocking call in it (sleep, file or database access, name resolution, a lock) or for long computation; cut it into pieces, make it asynchronous, or move it to a thread.',
};
const ASLEEP_ADVICE = 'Let the loop wait instead (an event for the answer, a timer for the pause), or move it to a thread: it sleeps inside the callback, and its loop with it.';

/** One callback's long calls, the longest first: what all flags of it share. */
class LongSite {
	constructor(trace, site, calls, count, library) {
		const byOwn = [...calls].sort((a, b) => b.own - a.own), name = siteName(trace, site);
		const kept = byOwn.slice(0, CALLS_KEPT), blocking = blockingInside(trace, kept), inAll = blockingInside(trace, calls), ns = calls.reduce((sum, call) => sum + call.ns, 0);
		const waiters = kept.slice(0, CALLS_TOLD).flatMap(({ worker, start, row }) => waitersOf(trace, worker, start, start + worker.polls.dur[row]));
		Object.assign(this, { trace, site, calls, kept, count, name, inAll, title: library[site] ? `${name} (the library's own callback)` : name, waited: waiters.reduce((most, { delay }) => Math.max(most, delay), 0) });
		this.more = { name, site, time: partsText(kept, blocking), on_cpu: hotText(trace, kept),
			blocked: inAll.filter((one) => 10 * one.ns >= ns).slice(0, CALLS_TOLD).map(({ text, n, ns: sum }) => `${text}, ${showCount(n)} time${n === 1 ? '' : 's'}, ${showDuration(sum)} in all`).join('; ') || null };
		this.behind = this.waited > 0 ? `; others waited up to ${showDuration(this.waited)} behind it` : '';
	}

	evidence(calls, textOf) {
		return calls.slice(0, CALLS_TOLD).map((call) => ({ text: textOf(call), time: call.start, duration: call.ns, worker: call.worker.id, task: call.worker.polls.task[call.row] }));
	}

	asleepFlags() {
		const asleep = this.calls.filter((call) => call.asleep).sort((a, b) => b.parts.blocked - a.parts.blocked), [most] = asleep.filter(({ parts, limit }) => parts.blocked > limit);
		if (!most) return [];
		// Calls that computed for longer than they slept are told as long ones.
		const long = this.kept.filter(({ own }) => own > most.limit), all = (valueOf) => long.reduce((before, call) => before + valueOf(call), 0);
		if (all(({ own }) => own) > 2 * all(({ parts }) => parts.blocked)) return [];
		const over = asleep.filter(({ parts }) => parts.blocked > most.limit).length, sum = asleep.reduce((all, { parts }) => all + parts.blocked, 0), [top] = this.inAll, known = top && 2 * this.inAll.reduce((all, { ns }) => all + ns, 0) >= sum;
		const longest = showDuration(most.parts.blocked), times = `, ${showCount(over)} of ${showCount(this.count)} calls`;
		const place = known ? `${top.lock ? 'for' : 'in'} ${top.text}` : 'for something', begin = known ? `${top.lock ? 'waits' : 'blocks'} ${longest} ${place}` : `sleeps ${longest} inside`;
		return [newFlag('blocked-callback', longSeverity(most.parts.blocked, over, this.waited), most.parts.blocked,
			`${this.title} waited ${longest} ${place} while worker ${most.worker.id} could run nothing else (${showCount(over)} of ${showCount(this.count)} calls did for over ${
				showDuration(most.limit)}; ${showDuration(sum)} in all)${this.behind}.`,
			{ ...this.more, brief: begin.length + times.length > BRIEF_MAX ? begin : begin + times, advice: ASLEEP_ADVICE,
				evidence: this.evidence(this.kept.filter((call) => call.asleep), ({ parts, ns }) => `slept for ${showDuration(parts.blocked)} of ${showDuration(ns)}`) })];
	}

	longFlags(switches) {
		const [worst] = this.kept, long = this.calls.filter((call) => call.own > worst.limit);
		// What the kernel took from it is the machine's.
		if (!long.length || this.kept.every((call) => call.own <= worst.limit || call.asleep)) return [];
		const preempted = worst.own <= PREEMPTED_MOST && long.length * RARE_CALLS <= this.count && switches >= 2 * long.length && !this.kept.some(({ parts }) => mostlyText(parts) === ', mostly on the CPU');
		const taken = (call) => takenText(call.ns - call.own), of = `${showCount(long.length)} of ${showCount(this.count)} calls`;
		return [newFlag('long-callback', preempted ? 'info' : longSeverity(worst.own, long.length, this.waited), worst.own,
			`${this.title} blocked worker ${worst.worker.id} for ${showDuration(preempted ? worst.ns : worst.own)}${!preempted && taken(worst) ? ` of its own, ${showDuration(worst.ns)} in all` : ''}${taken(worst)} (${of} took over ${showDuration(worst.limit)})${this.behind}.`,
			{ ...this.more, brief: preempted ? `took ${showDuration(worst.ns)}, preempted as it seems, ${of}` : `blocks the loop ${showDuration(worst.own)}, ${of}`,
				advice: LONG_ADVICE[preempted ? 'preempted' : mostlyText(worst.parts) === ', mostly on the CPU' ? 'computing' : 'unknown'],
				evidence: this.evidence(this.kept.filter((call) => call.own > worst.limit), (call) => `ran for ${showDuration(call.ns)}${taken(call) || mostlyText(call.parts)}`) })];
	}
}

/** |long|: longCalls(); |switches|: how often the kernel took the CPU from the process. */
export function longFlags(trace, library, long, switches) {
	const bySite = new Map(), counts = callCounts(trace);
	for (const calls of long)
		for (const call of calls.values()) {
			if (!bySite.has(call.site)) bySite.set(call.site, []);
			bySite.get(call.site).push(call);
		}
	return [...bySite].flatMap(([site, calls]) => {
		const told = new LongSite(trace, site, calls, counts(site), library);
		const asleep = told.asleepFlags();
		return asleep.length ? asleep : told.longFlags(switches);
	});
}
