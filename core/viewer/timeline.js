// SPDX-License-Identifier: Apache-2.0
// The timeline: its rows, what of them is in sight, and the items of tracks that are selected and walked over.

import { byId } from './dom.js';
import { fillGutter, layoutRows } from './lane_rows.js';
import { drawMarks, drawRows } from './lanes.js';
import { sentenceOf } from './detail.js';
import { chooseLane } from './panel.js';
import { selectCall, setView, state, update } from './state.js';
import { stepInTrack, tellItem, timeOfItem } from './track.js';
import { addField, findTrack, foldGroup, moveTrack, removeField, storeChoices, toggleTrack } from './tracks.js';

let laidOut = [];

export function timelineRows() {
	return laidOut;
}

/** What is drawn: the canvases are as high as what is in sight, not as the rows are together. */
function sight() {
	const box = byId('scroll'), whole = laidOut.length ? laidOut.at(-1).top + laidOut.at(-1).height : 1;
	return { width: Math.max(1, byId('lanes').clientWidth), height: Math.max(1, Math.min(whole, box.clientHeight || whole)), top: Math.min(box.scrollTop, Math.max(0, whole - 1)) };
}

export function drawTimeline() {
	const { width, height, top } = sight();
	drawRows(byId('lane-canvas'), state, laidOut, width, height, top);
	drawMarks(byId('mark-canvas'), state, laidOut, width, height, top);
}

/** Only what follows the pointer. */
export function drawTimelineMarks() {
	const { width, height, top } = sight();
	drawMarks(byId('mark-canvas'), state, laidOut, width, height, top);
}

function takeChoices(choices) {
	storeChoices(choices);
	update({ tracks: choices });
}

const actions = {
	toggle: (id, open) => takeChoices(toggleTrack(state.tracks, id, open)),
	fold: (key) => takeChoices(foldGroup(state.tracks, key)),
	move: (id, by) => takeChoices(moveTrack(state.model, state.tracks, id, by)),
	floor: (floor) => takeChoices({ ...state.tracks, floor }),
	chart: (field) => takeChoices(addField(state.tracks, field)),
	remove: (id) => takeChoices(removeField(state.tracks, id)),
	focus: (id) => update({ track: id }),
	lane: chooseLane,
	/** The track is let go with its top at |y| of the rows. */
	drop(id, y) {
		const tracks = laidOut.filter((row) => row.kind === 'track'), from = tracks.findIndex((row) => row.track.id === id);
		const to = tracks.filter((row) => row.track.id !== id && row.top + row.height / 2 < y).length;
		takeChoices(moveTrack(state.model, state.tracks, id, to - from));
	},
};

/** Lay the rows out for the state as it is. */
export function layTimeline() {
	laidOut = layoutRows(state.model, state.tracks);
	fillGutter(byId('gutter'), state.model, laidOut, state.tracks, actions);
}

/** What is selected, as a sentence. */
export function tellSelection() {
	if (state.item) return tellItem(state.model, state.item, state.clock);
	return state.selected ? sentenceOf(state.selected) : '';
}

/** Scroll to what is selected or focused. */
export function bringIntoSight() {
	const box = byId('scroll'), lane = state.selected?.lane ?? (state.track ? null : state.model.findings[state.finding]?.first?.lane);
	const row = laidOut.find((r) => (state.item ? r.track === state.item.track : lane ? r.lane === lane : r.kind === 'track' && r.track.id === state.track));
	if (!row) return;
	if (row.top < box.scrollTop || row.top + row.height > box.scrollTop + box.clientHeight) box.scrollTop = Math.max(0, row.top - 80);
}

// ---- items ----

/** Select an item of a track, and show it if it is out of sight. */
export function selectItem(item) {
	const [start, end] = timeOfItem(item), [from, to] = state.view;
	update({ item, track: item.track.id });
	if (end < from || start > to) setView(start - (to - from) / 2, start + (to - from) / 2);
}

/** Left and right in the focused track; whether there is one. */
export function stepItem(direction) {
	const track = state.track && findTrack(state.model, state.tracks, state.track);
	if (!track) return false;
	const item = state.item?.track.id === track.id ? state.item : null;
	const next = stepInTrack(track, item, direction, state.pointer?.time ?? (direction > 0 ? state.view[0] : state.view[1]));
	if (next) selectItem(next);
	return true;
}

/**
 * Up and down among tracks, from the last lane on; whether that was a step among tracks.  |lastLane|: the
 * selected call's lane is the last one in that direction.
 */
export function stepTrack(direction, lastLane) {
	const tracks = laidOut.filter((row) => row.kind === 'track').map((row) => row.track), at = tracks.findIndex(({ id }) => id === state.track);
	if (at < 0 && !(direction > 0 && lastLane)) return false;
	const next = tracks[at + direction];
	if (at + direction < 0) {
		const lane = state.model.lanes.findLast((l) => l.polls.n);
		if (!lane) return true;
		const time = state.item ? timeOfItem(state.item)[0] : (state.view[0] + state.view[1]) / 2;
		const row = state.model.callBefore(lane, time);
		update({ track: null });
		selectCall(lane, Math.max(0, row));
	} else if (next) {
		const time = state.item ? timeOfItem(state.item)[0] : state.selected ? state.selected.lane.polls.start[state.selected.row] + state.selected.lane.shift : state.view[0];
		const item = stepInTrack(next, null, 1, time) ?? stepInTrack(next, null, -1, time);
		update({ track: next.id, item });
	}
	return true;
}

/** Frame the selected item; whether there is one. */
export function framePickedItem() {
	if (!state.item) return false;
	const [start, end] = timeOfItem(state.item), around = Math.max((end - start) * 5, (state.view[1] - state.view[0]) / 5, 1000);
	setView((start + end - around) / 2, (start + end + around) / 2);
	return true;
}
