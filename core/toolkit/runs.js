// SPDX-License-Identifier: Apache-2.0
// Runs of callbacks, counted as `dial9 report` counts them: a function that a loop library calls inside a callback of its own
// has runs of its own, of which the library's callback keeps the rest; a call that a loop inside cut into polls is one run.

import { rowsIn } from './index.js';
import { isFunction } from './spans.js';
import { lowerBound, tableOf } from './table.js';
import { POLL, pollAt } from './trace.js';
import { BY_RESUMPTION, WAKE_REASONS } from './waking.js';

const RUN_COLUMNS = { site: Int32Array, row: Int32Array, caller: Int32Array, start: Float64Array, end: Float64Array, ns: Float64Array };
const STRETCHES = { start: Float64Array, end: Float64Array, run: Int32Array };
const USERS = { start: Float64Array, end: Float64Array, run: Int32Array };

/** When calls go on behind a loop inside them, by task. */
function resumptionsOf({ wakes }) {
	const byTask = new Map();
	for (let i = 0; i < wakes.n; i++) {
		const reason = wakes.reason[i], task = wakes.woken[i];
		if (wakes.waker[i] !== task || (reason !== BY_RESUMPTION && reason < WAKE_REASONS.length)) continue;
		if (!byTask.has(task)) byTask.set(task, new Set());
		byTask.get(task).add(wakes.time[i]);
	}
	return byTask;
}

/** The polls of |worker| as runs: {runs, ofRow: number of the run of each poll, pieces: rows of those that have several}. */
function callRuns({ polls }, resumptions) {
	const runs = [], ofRow = new Int32Array(polls.n), pieces = new Map(), newest = new Map();
	for (let row = 0; row < polls.n; row++) {
		const task = polls.task[row], start = polls.start[row], end = start + polls.dur[row], before = newest.get(task);
		if (before !== undefined && resumptions.get(task)?.has(start)) {
			if (!pieces.has(before)) pieces.set(before, [runs[before].row]);
			pieces.get(before).push(row);
			runs[before].ns += polls.dur[row];
			runs[before].end = end;
			ofRow[row] = before;
			continue;
		}
		ofRow[row] = runs.push({ site: polls.site[row], row, caller: -1, start, end, ns: polls.dur[row] }) - 1;
		newest.set(task, ofRow[row]);
	}
	return { runs, ofRow, pieces };
}

/** The parts of [from, to) that lie in polls of |rows|. */
function inPieces({ polls }, rows, from, to) {
	return rows.map((row) => [Math.max(from, polls.start[row]), Math.min(to, polls.start[row] + polls.dur[row])]).filter(([a, b]) => b > a);
}

/** Runs of |worker| where some are no polls: {runs, ofRow and pieces as of callRuns(), stretches of their own time, users: functions that no other function is around}. */
function mixedRuns(trace, worker, functions, resumptions) {
	const byStart = (a, b) => a.start - b.start;
	const { polls } = worker, { runs, ofRow, pieces } = callRuns(worker, resumptions), stretches = [], users = [], taken = new Map();
	let outer = { end: -Infinity, call: -1 };
	for (const { start, end, name } of functions) {
		const row = pollAt(polls, start), call = row < 0 ? -1 : ofRow[row], rows = pieces.get(call);
		const parts = rows ? inPieces(worker, rows, start, end) : [[start, end]], run = runs.length;
		runs.push({ site: name, row, caller: row < 0 ? -1 : polls.site[row], start, end, ns: parts.reduce((sum, [a, b]) => sum + b - a, 0) });
		for (const [a, b] of parts.length ? parts : [[start, start]]) stretches.push({ start: a, end: b, run });
		if (call >= 0 && call === outer.call && start < outer.end) continue;
		outer = { end, call };
		for (const [a, b] of parts) users.push({ start: a, end: b, run });
		if (call < 0) continue;
		runs[call].ns -= runs[run].ns;
		if (!taken.has(call)) taken.set(call, []);
		taken.get(call).push(...parts);
	}
	for (let row = 0; row < polls.n; row++) {
		const run = ofRow[row], end = polls.start[row] + polls.dur[row];
		let at = polls.start[row];
		for (const [a, b] of taken.get(run) ?? []) {
			if (b <= at || a >= end) continue;
			if (a > at) stretches.push({ start: at, end: a, run });
			at = b;
		}
		if (at < end || !polls.dur[row]) stretches.push({ start: at, end, run });
	}
	return { runs: tableOf(RUN_COLUMNS, runs), ofRow, pieces, stretches: tableOf(STRETCHES, stretches.sort(byStart)), users: tableOf(USERS, users.sort(byStart)),
		longest: stretches.reduce((most, { start, end }) => Math.max(most, end - start), 0) };
}

const runsByTrace = new WeakMap();

/** What is known of the runs of |worker|; null: each is a poll. */
function runsOf(trace, worker) {
	if (!runsByTrace.has(trace)) runsByTrace.set(trace, { resumptions: resumptionsOf(trace), workers: new Map() });
	const { resumptions, workers } = runsByTrace.get(trace);
	if (workers.has(worker)) return workers.get(worker);
	const spans = trace.spans.get(worker.id), functions = [], { polls } = worker;
	for (let i = 0; i < (spans?.n ?? 0); i++)
		if (isFunction(trace.strings[spans.name[i]])) functions.push({ start: spans.start[i], end: spans.end[i], name: spans.name[i] });
	let cut = false;
	for (let row = 0; resumptions.size && !cut && row < polls.n; row++) cut = resumptions.get(polls.task[row])?.has(polls.start[row]) ?? false;
	workers.set(worker, functions.length || cut ? mixedRuns(trace, worker, functions, resumptions) : null);
	return workers.get(worker);
}

function eachPollRun({ polls }, from, to, visit) {
	const [first, last] = rowsIn(polls, from, to);
	for (let row = first; row < last; row++) {
		const start = polls.start[row], ns = polls.dur[row];
		visit({ site: polls.site[row], row, run: row, caller: -1, start, ns, part: Math.min(start + ns, to) - Math.max(start, from), openEnded: (polls.flags[row] & POLL.OPEN_ENDED) !== 0 });
	}
}

function eachMixedRun({ polls }, { runs, stretches, longest }, from, to, visit) {
	const parts = new Map();
	for (let i = lowerBound(stretches.start, from - longest, stretches.n); i < stretches.n && stretches.start[i] < to; i++) {
		const start = stretches.start[i], end = stretches.end[i], run = stretches.run[i];
		if (end > from || start >= from) parts.set(run, (parts.get(run) ?? 0) + Math.min(end, to) - Math.max(start, from));
	}
	for (const [run, part] of parts) {
		const row = runs.row[run];
		visit({ site: runs.site[run], row, run, caller: runs.caller[run], start: runs.start[run], ns: runs.ns[run], part,
			openEnded: row >= 0 && runs.caller[run] < 0 && (polls.flags[row] & POLL.OPEN_ENDED) !== 0 });
	}
}

/**
 * Call |visit|({site, row, run, caller, start, ns, part, openEnded}) for the runs of |worker| of trace.workers that touch [from, to): the place of the
 * function, the poll that it began in (-1: none), |run| for rowsOfRun(), the place of the library's callback that called it (-1: the loop did), how long it
 * ran (NaN: the trace ended first) and for how long of it in the range.
 */
export function eachRun(trace, worker, from, to, visit) {
	const mixed = runsOf(trace, worker), { unended, running } = worker;
	if (mixed) eachMixedRun(worker, mixed, from, to, visit);
	else eachPollRun(worker, from, to, visit);
	// Those that had not ended have no length.
	const began = (site, caller, start) => start >= from && start < to && visit({ site, row: -1, run: -1, caller, start, ns: NaN, part: 0, openEnded: false });
	if (running && unended) began(unended.site, -1, unended.start);
	for (const { worker: id, name, time } of trace.inside) if (id === worker.id) began(name, unended?.site ?? -1, time);
}

/**
 * Call |visit|({row, start, end, ns, part}) for the calls that the loop of |worker| made and that touch [from, to), with all that was called inside of them:
 * |ns| without the loops that they ran, |end| behind these; |part| is what lies in the range.
 */
export function eachCall(trace, worker, from, to, visit) {
	const mixed = runsOf(trace, worker), { polls } = worker, [first, last] = rowsIn(polls, from, to), cut = new Map();
	for (let row = first; row < last; row++) {
		const start = polls.start[row], end = start + polls.dur[row], part = Math.min(end, to) - Math.max(start, from), run = mixed?.ofRow[row];
		if (!mixed || !mixed.pieces.has(run)) visit({ row, start, end, ns: polls.dur[row], part });
		else cut.set(run, (cut.get(run) ?? 0) + part);
	}
	for (const [run, part] of cut) {
		const rows = mixed.pieces.get(run), ns = rows.reduce((sum, row) => sum + polls.dur[row], 0);
		visit({ row: rows[0], start: polls.start[rows[0]], end: polls.start[rows.at(-1)] + polls.dur[rows.at(-1)], ns, part });
	}
}

/** What |run|, as eachRun() tells it, had of each poll that it ran in: [{row, ns, parts: [[from, to]]}]. */
export function rowsOfRun(trace, worker, { run, row, ns }) {
	const mixed = runsOf(trace, worker), { polls } = worker;
	if (!mixed) return [{ row, ns, parts: [[polls.start[row], polls.start[row] + polls.dur[row]]] }];
	const { stretches } = mixed, byRow = new Map();
	for (let i = lowerBound(stretches.start, mixed.runs.start[run], stretches.n); i < stretches.n && stretches.start[i] <= mixed.runs.end[run]; i++) {
		if (stretches.run[i] !== run) continue;
		const at = pollAt(polls, stretches.start[i]);
		if (!byRow.has(at)) byRow.set(at, { row: at, ns: 0, parts: [] });
		byRow.get(at).ns += stretches.end[i] - stretches.start[i];
		byRow.get(at).parts.push([stretches.start[i], stretches.end[i]]);
	}
	return [...byRow.values()];
}

/** The places of all functions that ran: those that loops called, and those that their libraries called inside of these. */
export function placesOf(trace) {
	const places = new Set(trace.stats.keys());
	for (const { name, n } of trace.spans.values())
		for (let i = 0; i < n; i++) if (!places.has(name[i]) && isFunction(trace.strings[name[i]])) places.add(name[i]);
	return places;
}

/** The place of the function that ran on |worker| in the poll |row| (-1: none, or the one that has not ended) at |time|, or -1. */
export function functionAt(trace, worker, row, time) {
	const mixed = runsOf(trace, worker), { polls, running, unended } = worker;
	if (row < 0) return running && time >= unended.start ? trace.inside.find((of) => of.worker === worker.id && of.time <= time)?.name ?? unended.site : -1;
	if (!mixed) return polls.site[row];
	const { users, runs } = mixed, i = lowerBound(users.start, time + 0.5, users.n) - 1;
	return i >= 0 && users.end[i] > time && users.start[i] >= polls.start[row] ? runs.site[users.run[i]] : polls.site[row];
}

/** Whether a function of the place |site| ran in the poll |row| of |worker|: as it, or called by the library inside of it. */
export function ranIn(trace, worker, row, site) {
	const mixed = runsOf(trace, worker), { polls } = worker, end = polls.start[row] + polls.dur[row];
	if (polls.site[row] === site) return true;
	const { runs, stretches } = mixed ?? { stretches: { n: 0, start: [] } };
	for (let i = lowerBound(stretches.start, polls.start[row], stretches.n); i < stretches.n && stretches.start[i] <= end; i++)
		if (runs.site[stretches.run[i]] === site && runs.row[stretches.run[i]] === row) return true;
	return false;
}
