// SPDX-License-Identifier: Apache-2.0
// What is compared: the range with the rest, two ranges, two processes, or this trace with another one.
//
// In the URL (cmp=): "rest", an interval like that of r=, "p0~p1" (numbers of processes), "file:NAME"; behind
// a "!" A and B are swapped.  B is what the panel is about, A is what it is held against.

import { callbackKey } from '../toolkit/compare.js';
import { foldProfiles } from '../toolkit/fold.js';
import { PROFILE_KINDS, WHOLE, profileOf } from '../toolkit/profile.js';
import { placesOf } from '../toolkit/runs.js';
import { showDuration, showName, showTime } from '../toolkit/show.js';
import { frameNames } from './folded.js';
import { threadsOf } from './scope.js';
import { intervalOfText, textOfInterval } from './url.js';

let otherTrace = null; // the model of the other trace, and the name of its file

export function setOther(model, name) {
	otherTrace = { model, name };
}

function sideIn(model, traces, intervals, label, keep = null) {
	return { model, traces, intervals, label, keep, nameOf: (trace, site) => model.callback(trace, site) };
}

function rangeLabel({ model, clock }, [from, to]) {
	const time = (t) => showTime(t - model.first, model.wall(t), clock, 3);
	return `${time(from)} to ${time(to)}`;
}

/** The thread that the panel is about, as keep() of a side. */
function keepThread(state) {
	const chosen = state.panel.thread ? threadsOf(state.model).find((t) => t.key === state.panel.thread) : null;
	return chosen ? (trace, worker) => trace === chosen.trace && chosen.workers.has(worker.id) : null;
}

/** {a, b} of |compare|, or {ask}: what is still missing, as a sentence. */
export function sidesOf(state, compare) {
	const { model, range } = state, swapped = compare.startsWith('!'), what = swapped ? compare.slice(1) : compare;
	const found = findSides(state, what, model, range, keepThread(state));
	return swapped && found.a ? { a: found.b, b: found.a } : found;
}

function findSides(state, what, model, range, keep) {
	const whole = [model.first, model.last + 1], here = range ?? whole;
	const own = () => sideIn(model, model.traces, [here], range ? rangeLabel(state, range) : 'the whole trace', keep);
	if (what === 'rest') {
		if (!range) return { ask: 'Select a range: it is compared with the rest of the trace.' };
		const rest = [[whole[0], range[0]], [range[1], whole[1]]].filter(([from, to]) => to > from);
		return { a: sideIn(model, model.traces, rest, 'the rest of the trace', keep), b: own() };
	}
	const processes = /^p(\d+)~p(\d+)$/.exec(what);
	if (processes) {
		const [a, b] = processes.slice(1).map((number) => model.traces[Number(number)]);
		if (!a || !b) return { ask: 'This trace does not have that many processes.' };
		const side = (trace) => sideIn(model, [trace], [[trace.start + trace.shift, trace.end + trace.shift + 1]], nameOfProcess(trace));
		return { a: side(a), b: side(b) };
	}
	if (what.startsWith('file:')) {
		if (otherTrace?.name !== what.slice(5)) return { ask: `Open ${showName(what.slice(5))} again: a page cannot read a file that nobody has chosen.` };
		const other = otherTrace.model;
		return { a: sideIn(other, other.traces, [[other.first, other.last + 1]], showName(otherTrace.name)), b: own() };
	}
	const interval = what ? intervalOfText(model, what) : null;
	if (!interval) return { ask: 'Compare with the rest of the trace, with another range, or with another trace.' };
	const a = sideIn(model, model.traces, [interval], rangeLabel(state, interval), keep);
	if (!range || textOfInterval(model, range) === what) return { ask: `A is ${a.label}, ${showDuration(interval[1] - interval[0])}. Now select the range that it is compared with.` };
	return { a, b: own() };
}

export function nameOfProcess(trace) {
	return showName(trace.folder || trace.metadata.get('service') || `process ${trace.number + 1}`);
}

/** Stacks of a side: [{trace, weights}], their sum in |unit|, and how many samples; |key|: of one callback. */
function stacksOfSide(side, kind, key) {
	const profiles = [];
	let samples = 0, sum = 0, { unit } = PROFILE_KINDS[kind];
	for (const trace of side.traces) {
		const sites = key ? [...placesOf(trace)].filter((site) => callbackKey(side.nameOf(trace, site)) === key) : [-1];
		const workers = side.keep ? trace.workers.filter((worker) => side.keep(trace, worker)) : null;
		const threads = workers ? { workers: new Set(workers.map((w) => w.id)), tids: new Set(workers.flatMap((w) => w.tids)) } : {};
		for (const site of sites)
			for (const [from, to] of side.intervals) {
				const profile = profileOf(trace, kind, { ...WHOLE, ...threads, from: from - trace.shift, to: to - trace.shift, site });
				samples += profile.samples;
				({ unit } = profile);
				for (const weight of profile.weights.values()) sum += weight;
				profiles.push({ trace, weights: profile.weights });
			}
	}
	return { profiles, samples, sum, unit };
}

/** Both sides' stacks in one tree, each as shares of its whole: {tree, names, unit, a, b}. */
export function foldSides({ a, b }, kind, key, inverted) {
	const names = frameNames(b.model), both = [a, b].map((side) => stacksOfSide(side, kind, key));
	const shares = both.map(({ profiles, sum }) => profiles.map(({ trace, weights }) => ({ trace, weights: new Map([...weights].map(([stack, weight]) => [stack, weight / sum])) })));
	return { tree: foldProfiles(shares, names, { inverted }), names, unit: both[1].unit, a: both[0], b: both[1] };
}
