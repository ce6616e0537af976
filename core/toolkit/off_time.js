// SPDX-License-Identifier: Apache-2.0
// How long a thread was off the CPU in a switch that a sample tells, as `dial9 report` counts it (REPORT-JSON.md, `off_cpu_ns`):
// until the thread's next sign, which is a sample of it or an event of its loop.  Calls that blocked tell their own length.

import { lowerBound } from './table.js';
import { POLL } from './trace.js';
import { switchShare } from './weights.js';

const SWITCH_SLICE = 100e6; // with sched.switch_duty switches are told in slices so long
const TOLD_CALL = 1e6; // switches in such a call that blocked are of the same sleep

const switchTimes = new WeakMap();

/** When a call of |polls| begins or ends next, at |time| or later; Infinity: never. */
function nextCall({ start, dur, flags, n }, time) {
	const row = lowerBound(start, time, n), last = row - 1;
	const end = last >= 0 && !(flags[last] & POLL.OPEN_ENDED) ? start[last] + dur[last] : -Infinity;
	return Math.min(row < n ? start[row] : Infinity, end >= time ? end : Infinity);
}

/** The same of a wait of |parks|. */
function nextWait({ start, end, n }, time) {
	const row = lowerBound(start, time, n);
	return Math.min(row < n ? start[row] : Infinity, row && end[row - 1] >= time ? end[row - 1] : Infinity);
}

/** {away, sliced}: the length of each switch by the number of its sample, and as much of it as lies in its slice; 0: it is none. */
function measureSwitches(trace, blocked) {
	const { samples } = trace, away = new Float64Array(samples.time.length), sliced = new Float64Array(samples.time.length);
	const workers = new Map(trace.workers.map((worker) => [worker.id, worker]));
	const told = blocked.rows.filter(({ dur }) => dur >= TOLD_CALL), toldUntil = new Map(); // worker -> the end of its newest such call
	const latest = new Map(); // tid -> its newest sample, if that is of a switch, and when the slice ends
	let slice = -Infinity, call = 0;
	const back = (tid, sign) => {
		const { i, until } = latest.get(tid), worker = workers.get(samples.worker[i]), time = samples.time[i];
		const end = worker ? Math.min(sign, nextCall(worker.polls, time), nextWait(worker.parks, time)) : sign;
		if (end < Infinity) [away[i], sliced[i]] = [end - time, Math.max(0, Math.min(end, until) - time)];
		latest.delete(tid);
	};
	for (let i = 0; i < samples.time.length; i++) {
		const time = samples.time[i], tid = samples.tid[i], id = samples.worker[i];
		for (; call < told.length && told[call].time <= time; call++) toldUntil.set(told[call].worker, told[call].time + told[call].dur);
		if (latest.has(tid)) back(tid, time);
		if (samples.source[i] !== 1 || blocked.byStamp.has(`${time}/${id}`) || time <= toldUntil.get(id)) continue;
		if (samples.switched[i] && time > slice + SWITCH_SLICE) slice = time;
		latest.set(tid, { i, until: samples.switched[i] ? slice + SWITCH_SLICE : -Infinity });
	}
	for (const tid of [...latest.keys()]) back(tid, Infinity);
	return { away, sliced };
}

/** The time off the CPU that a sample of |trace| stands for, as a function (its number) => ns; null: the trace tells none. */
export function offTimes(trace, blocked) {
	if (!switchTimes.has(trace)) switchTimes.set(trace, measureSwitches(trace, blocked));
	const share = switchShare(trace), of = switchTimes.get(trace)[share < 1 ? 'sliced' : 'away'];
	return of.some((ns) => ns > 0) ? (i) => of[i] / share : null;
}
