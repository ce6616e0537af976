// SPDX-License-Identifier: Apache-2.0
// Wakes matched with calls, as `dial9 report` does: a call takes the newest wake of its task that no earlier one has used.

import { lowerBound, orderOf } from './table.js';
import { relativeTime, rowsNamed } from './trace.js';

/** What a wake tells as its reason, by number. */
export const WAKE_REASONS = ['unknown', 'fd', 'timer', 'signal', 'active', 'cross_thread', 'deferred', 'internal', 'resumption'];
export const BY_TIMER = 2, BY_RESUMPTION = 8;
const LOOK_BACK = 1e9;

/** One task, as time goes on: its wakes that no call has used, and its latest call. */
class Waking {
	constructor() {
		Object.assign(this, { told: -1, newest: -1, before: -1, carried: false, resume: NaN, start: NaN, end: NaN, wake: -1, ready: NaN, resumed: false });
	}

	add(wakes, row) {
		const reason = wakes.reason[row];
		if (wakes.waker[row] === wakes.woken[row] && (reason === BY_RESUMPTION || reason >= WAKE_REASONS.length)) this.resume = wakes.time[row];
		if (reason === BY_RESUMPTION) return;
		// A timer's next deadline can pass before its overdue call: both calls need theirs.
		if (reason === BY_TIMER && this.newest >= 0 && wakes.reason[this.newest] === BY_TIMER) this.before = this.newest;
		this.newest = this.told = row;
		this.carried = false;
	}

	/** The row of the wake of a call that begins at |start|, or -1. */
	take(wakes, start) {
		if (this.newest < 0) return -1;
		if (this.before >= 0) {
			const row = this.before;
			this.before = -1;
			this.carried = true;
			return row;
		}
		const row = this.newest, used = wakes.time[row] <= this.start && !this.carried;
		this.newest = -1;
		this.carried = false;
		return used || wakes.time[row] > start ? -1 : row;
	}

	begin(wakes, start, ns, lost) {
		this.resumed = this.resume === start && !Number.isNaN(this.start);
		if (!this.resumed) {
			this.wake = this.take(wakes, start);
			// The call that used the wake may be lost.
			if (this.wake >= 0 && lost?.to > wakes.time[this.wake] && lost.from < start) this.wake = -1;
			const woken = this.wake < 0 ? NaN : wakes.time[this.wake];
			this.ready = this.end > woken ? this.end : woken;
		}
		this.start = start;
		this.end = start + ns;
	}
}

/** Times of which events are lost, in order, by the id of their worker: [{time, from, to}]. */
function lossesByWorker(trace) {
	const byWorker = new Map(), relative = (ns) => relativeTime(trace, ns ?? 0n);
	for (const row of rowsNamed(trace, 'RecorderLossEvent', ['worker_id', 'events', 'from_ns', 'to_ns'])) {
		const losses = byWorker.get(Number(row.worker_id)) ?? [], loss = { time: row.time, from: relative(row.from_ns), to: relative(row.to_ns) };
		if (!row.events || losses.at(-1)?.to > loss.to) continue;
		losses.push(loss);
		byWorker.set(Number(row.worker_id), losses);
	}
	return byWorker;
}

/**
 * The polls of all workers, in order of their starts: next() goes to the next one, and says whether there is one.
 * Then |w| is the number in trace.workers, |row| that of the poll, and |waking| its task's until the next poll: wake
 * and told, rows of trace.wakes (that of the call and the newest, -1: none), ready, when it was ready to run (NaN: no
 * wake was seen), and resumed: it goes on with a call that a loop inside had cut.
 */
export class WokenCalls {
	/** |unended|: those that had not ended when the trace did are among them, each behind the others of its worker. */
	constructor(trace, unended = false) {
		const { workers } = trace, lengthOf = ({ polls, running }) => polls.n + (unended && running ? 1 : 0), total = workers.reduce((sum, worker) => sum + lengthOf(worker), 0);
		Object.assign(this, { trace, at: 0, seen: 0, tasks: new Map(), firsts: [], starts: new Float64Array(total), owner: new Uint16Array(total) });
		let n = 0;
		workers.forEach((worker, w) => {
			this.firsts.push(n);
			this.starts.set(worker.polls.start.subarray(0, lengthOf(worker)), n);
			this.owner.fill(w, n, n += lengthOf(worker));
		});
		this.order = orderOf(this.starts, total);
		this.losses = lossesByWorker(trace);
	}

	/** The newest time before |start| of which events of this worker are lost. */
	lostBefore(start) {
		const losses = this.losses.get(this.trace.workers[this.w].id);
		while (losses?.[1]?.time <= start) losses.shift();
		return losses?.[0].time <= start ? losses[0] : undefined;
	}

	wakingOf(task) {
		let waking = this.tasks.get(task);
		if (!waking) this.tasks.set(task, waking = new Waking());
		return waking;
	}

	next() {
		if (this.at === this.order.length) return false;
		const { trace: { wakes, workers } } = this, at = this.order[this.at++], start = this.starts[at];
		this.w = this.owner[at];
		this.row = at - this.firsts[this.w];
		const { polls } = workers[this.w];
		for (; this.seen < wakes.n && wakes.time[this.seen] <= start; this.seen++) this.wakingOf(wakes.woken[this.seen]).add(wakes, this.seen);
		this.waking = this.wakingOf(polls.task[this.row]);
		this.waking.begin(wakes, start, polls.dur[this.row], this.lostBefore(start));
		return true;
	}
}

/** Call |visit|(w, row, waking) for all of WokenCalls. */
export function eachWokenCall(trace, visit, unended = false) {
	const calls = new WokenCalls(trace, unended);
	while (calls.next()) visit(calls.w, calls.row, calls.waking);
}

/** Callbacks that were ready at |time| on a worker, before a call there ended at |end|, and ran after it. */
export function waitersOf(trace, worker, time, end) {
	const { polls } = worker, waiting = new Map(), { wakes } = trace;
	for (let i = lowerBound(wakes.time, time - LOOK_BACK, wakes.n); i < wakes.n && wakes.time[i] < end; i++) waiting.set(wakes.woken[i], wakes.time[i]);
	// What ran before the call has used its wake, and so has the call itself.
	for (let i = lowerBound(polls.start, time - LOOK_BACK, polls.n); i < polls.n && polls.start[i] <= time; i++)
		if (waiting.get(polls.task[i]) <= polls.start[i]) waiting.delete(polls.task[i]);
	const found = [];
	for (let i = lowerBound(polls.start, end, polls.n); i < polls.n && waiting.size && polls.start[i] < end + LOOK_BACK; i++) {
		const ready = waiting.get(polls.task[i]);
		if (ready === undefined) continue;
		waiting.delete(polls.task[i]);
		found.push({ row: i, task: polls.task[i], site: polls.site[i], delay: polls.start[i] - ready });
	}
	return found;
}
