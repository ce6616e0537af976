// SPDX-License-Identifier: Apache-2.0
// The triggers that fired and made the recorder keep a trace, with the keys of trace.fired in `dial9 report --json`.

import { showDuration } from './show.js';
import { absoluteTime, pollAt, rowsNamed } from './trace.js';

const FIRED_MAX = 100; // of more, the first
const CONDITION = /^\s*(?:[\w.-]+\s*:)?\s*([a-z]+)\s*>\s*[\d.]+\s*(ns|us|ms|s|m|h|\/s)?(?![a-z])(?:\s+for\s+([\d.]+[a-z]+))?/;

/** Whether the value of a trigger with that text is a time, which ended or was at least so long when it fired. */
export function isTime(text) {
	return /^[a-z]/.test(CONDITION.exec(text ?? '')?.[2] ?? '');
}

/** "poll 182 ms, over 50 ms", null of one without a condition. */
function measureOf(text, value, threshold) {
	const [, kind, unit, during] = CONDITION.exec(text ?? '') ?? [], show = isTime(text) ? showDuration : (n) => `${n}${unit ?? ''}`;
	return kind ? `${kind} ${show(value)}, over ${show(threshold)}${during ? ` for ${during}` : ''}` : null;
}

/** The call of |task| that ran, or ended, at |time| on one of |workers|: {worker, row} or null.  The next one may begin with its end. */
export function callOfTask(workers, task, time) {
	for (const worker of workers) {
		const { polls } = worker, last = pollAt(polls, time);
		for (let row = last; row >= 0 && row > last - 2; row--)
			if (polls.task[row] === task && polls.start[row] + polls.dur[row] >= time) return { worker, row };
	}
	return null;
}

/** The triggers that fired, in the order of their times; |process|: the number of the process. */
export function firesOf(trace, process = 0) {
	return rowsNamed(trace, 'DumpTriggerEvent', ['trigger', 'value', 'threshold', 'dump_id', 'task_id']).slice(0, FIRED_MAX).map((row) => {
		const [value, threshold, task] = [row.value, row.threshold, row.task_id].map((n) => Number(n ?? 0)), text = trace.metadata.get(`trigger.${row.trigger}`) ?? null;
		const call = task ? callOfTask(trace.workers, task, row.time) : null, site = call?.worker.polls.site[call.row] ?? -1;
		return { trigger: row.trigger ?? '', text, dump_id: row.dump_id ?? '', process, time_ns: absoluteTime(trace, row.time), value, threshold, measure: measureOf(text, value, threshold), task, worker: call?.worker.id ?? null,
			callback: trace.strings[site] ?? trace.tasks.get(task)?.location ?? null };
	});
}
