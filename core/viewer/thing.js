// SPDX-License-Identifier: Apache-2.0
// Things that can be looked at beside calls: a task or a span, as state.thing: {kind, trace, id}; of a span
// |id| is its row in trace.lives.

import { lifeOf } from '../toolkit/chain.js';
import { showCount, showDuration, showName } from '../toolkit/show.js';
import { nameOfSpan } from '../toolkit/spans.js';
import { absoluteTime } from '../toolkit/trace.js';
import { state, update, setView } from './state.js';

const THING_ITEM = /^(task|span):(?:(\d+)\.)?([\da-f]{1,20})(?:@(\d{1,20}))?$/;

/** Look at it; its life comes into view if |frame|. */
export function selectThing(kind, trace, id, frame = false) {
	update({ thing: { kind, trace, id } });
	if (!frame) return;
	const [from, to] = timeOfThing(state.thing), around = Math.max(to - from, 1000) * 0.1;
	setView(from - around, to + around);
}

/** [from, to] of the axis. */
export function timeOfThing({ kind, trace, id }) {
	if (kind === 'span') return [trace.lives.start[id] + trace.shift, trace.lives.end[id] + trace.shift];
	const task = trace.tasks.get(id), { calls } = lifeOf(trace, id), edge = (call, end) => (call ? trace.workers[call[0]].polls.start[call[1]] + (end ? trace.workers[call[0]].polls.dur[call[1]] : 0) : NaN);
	const pick = (...times) => times.find((time) => !Number.isNaN(time) && time !== undefined);
	return [pick(task?.born, edge(calls[0], false), trace.start) + trace.shift, pick(task?.died, edge(calls.at(-1), true), trace.end) + trace.shift];
}

/** What a task is called: its own name, or that of the callback it was made with. */
export function taskTitle(model, trace, id) {
	const task = trace.tasks.get(id);
	if (task?.name) return showName(task.name);
	if (task?.location) return model.callbackAt(trace, task.location).name;
	const [call] = lifeOf(trace, id).calls;
	return call ? model.callback(trace, trace.workers[call[0]].polls.site[call[1]]).name : 'task';
}

/** The span that an item of the track of spans is, or null. */
export function spanOfItem(item) {
	if (!item || item.track.id !== 'spans' || item.i < 0) return null;
	const { items } = item.track;
	return { kind: 'span', trace: state.model.traces[items.source[item.i]], id: items.ref[item.i] };
}

export function sentenceOfThing(thing) {
	const { kind, trace, id } = thing, [from, to] = timeOfThing(thing);
	if (kind === 'span') return `span ${showName(nameOfSpan(trace, id))}, ${showDuration(to - from)}`;
	return `task ${id}, ${taskTitle(state.model, trace, id)}, ${showCount(lifeOf(trace, id).calls.length)} calls`;
}

/** As an item of the URL; spans by their id, and by their time where one is used again. */
export function writeThing(model, { kind, trace, id }) {
	const process = model.traces.length > 1 ? `${trace.number}.` : '';
	if (kind === 'task') return `task:${process}${id}`;
	const own = trace.lives.ids[id], first = trace.lives.ids.indexOf(own) === id;
	return `span:${process}${BigInt(own).toString(16)}${first ? '' : `@${absoluteTime(trace, trace.lives.start[id])}`}`;
}

/** The inverse, or null. */
export function readThing(model, text) {
	const [, kind, process = 0, id, ns] = THING_ITEM.exec(text) ?? [], trace = model.traces[Number(process)];
	if (!kind || !trace) return null;
	if (kind === 'task') {
		if (!/^\d+$/.test(id)) return null;
		const wide = BigInt(id), task = wide <= Number.MAX_SAFE_INTEGER ? Number(wide) : wide;
		return trace.tasks.has(task) || lifeOf(trace, task).calls.length ? { kind, trace, id: task } : null;
	}
	const wanted = BigInt(`0x${id}`), life = trace.lives.ids.findIndex((own, i) => BigInt(own) === wanted && (ns === undefined || absoluteTime(trace, trace.lives.start[i]) === BigInt(ns)));
	return life < 0 ? null : { kind, trace, id: life };
}
