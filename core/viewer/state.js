// SPDX-License-Identifier: Apache-2.0
// The one state of the page.  update() changes it and tells who listens; nothing else does.

import { CLOSED_PANEL } from './scope.js';
import { NO_CHOICES } from './tracks.js';

const listeners = [];

/**
 * view: [from, to] of the axis; selected: {lane, row} or null; finding: number or -1; fire: the number of a trigger that
 * fired, or -1; range: [from, to] or
 * null; pointer: {time, lane, x, y} or null; panel: as CLOSED_PANEL; thing: see thing.js; item: of a track, {track, i, time}, or null:
 * never with selected; track: the id of the track that keys walk in, or null; tracks: see tracks.js;
 * following: the view goes with what is written, see live.js.
 */
export const state = { model: null, view: [0, 1], selected: null, thing: null, finding: -1, fire: -1, range: null, pointer: null, clock: 'rel', query: '',
	rangeStart: null, panel: CLOSED_PANEL, rangeLast: false, item: null, track: null, tracks: NO_CHOICES, following: false };

/** |listener|(changed): an object that has the changed keys. */
export function listen(listener) {
	listeners.push(listener);
}

export function update(patch) {
	// One thing at a time is looked at.
	if (patch.thing) patch = { selected: null, item: null, track: null, finding: -1, range: null, ...patch };
	else if ('selected' in patch || patch.item || patch.range) patch = { thing: null, ...patch };
	if ('finding' in patch || patch.item) patch = { fire: -1, ...patch };
	if (patch.selected) patch = { item: null, track: null, ...patch };
	else if ('selected' in patch) patch = { item: null, ...patch };
	else if (patch.item) patch = { selected: null, finding: -1, ...patch };
	Object.assign(state, patch);
	for (const listener of listeners) listener(patch);
}

// Of how many steps of a double a view has to be, so that its pixels have times of their own.
const STEPS_LEAST = 256 * Number.EPSILON;

/** Keep a view between the ends of the trace and no narrower than 100 ns. */
export function clampView(model, from, to) {
	const whole = model.last - model.first, margin = whole * 0.05, far = Math.max(Math.abs(model.first), Math.abs(model.last));
	const length = Math.min(Math.max(to - from, 100, far * STEPS_LEAST), whole + 2 * margin);
	const middle = (from + to) / 2;
	const start = Math.min(Math.max(middle - length / 2, model.first - margin), model.last + margin - length);
	return [start, start + length];
}

export function setView(from, to) {
	update({ view: clampView(state.model, from, to) });
}

/** Show [start, start + length) with four times as much around it. */
function frameTime(start, length) {
	const around = Math.max(length * 5, 1000);
	setView(start - (around - length) * 0.4, start + length + (around - length) * 0.6);
}

/** Select a call, and show it if it is out of sight. */
export function selectCall(lane, row, frame = false) {
	const start = lane.polls.start[row] + lane.shift, length = lane.polls.dur[row];
	const [from, to] = state.view;
	update({ selected: { lane, row } });
	if (frame) frameTime(start, length);
	else if (start + length < from || start > to) setView(start - (to - from) / 2, start + (to - from) / 2);
}

// The track that shows what a finding is about that names no call.
const TRACK_OF = { 'memory-growth': 'memory', 'leak-by-site': 'memory', 'descriptor-growth': 'descriptors', 'task-leak': 'tasks', 'accept-queue': 'accept', 'queue-depth': 'queue',
	'short-of-cpu': 'cpu', 'cpu-contention': 'cpu', 'timer-late': 'timers', 'helper-queue': 'helpers', 'incomplete-data': 'loss' };

/** The rows chosen, with the track of |finding| open, or the group of its lane. */
function openFor(finding, choices) {
	const id = TRACK_OF[finding.check], lane = finding.first?.lane, of = lane ? [`p${lane.trace.number}`, `g${lane.trace.number}.${lane.worker.group ?? ''}`] : [];
	return { ...choices, open: id ? { ...choices.open, [id]: true } : choices.open, folded: choices.folded.filter((key) => !of.includes(key)) };
}

/** Go to finding |number|: its place, five times as long; without a call, and if it was |asked| for, its track, too. */
export function selectFinding(number, asked = true) {
	const finding = state.model.findings[number];
	if (!finding) return;
	const place = finding.first, selected = place?.lane && place.row >= 0 ? { lane: place.lane, row: place.row } : null;
	update({ finding: number, range: null, selected, ...(selected || !asked ? {} : { track: TRACK_OF[finding.check] ?? null, tracks: openFor(finding, state.tracks) }) });
	if (state.selected) frameTime(place.lane.polls.start[place.row] + place.lane.shift, place.lane.polls.dur[place.row]);
	else if (place) frameTime(place.at, Math.max(place.length, 1e6));
}

/** Go to the moment at which a trigger fired, and to the callback that made it. */
export function selectFire(number) {
	const fire = state.model.fires[number];
	if (!fire) return;
	update({ fire: number, finding: -1, range: null, selected: fire.call });
	if (fire.call) frameTime(fire.call.lane.polls.start[fire.call.row] + fire.call.lane.shift, fire.length);
	else if (fire.at !== undefined) frameTime(fire.at - fire.length, Math.max(fire.length, 1e6));
}
