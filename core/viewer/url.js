// SPDX-License-Identifier: Apache-2.0
// The state of the page as the fragment of its URL, and back.  Times and ids in it are those of the trace,
// never numbers of rows, so that a link holds when segments are added.

import { absoluteTime, pollAt } from '../toolkit/trace.js';
import { readThing, writeThing } from './thing.js';
import { readPanelItem, writePanel } from './panel_url.js';
import { CLOSED_PANEL } from './scope.js';
import { NO_CHOICES, isChoice, readChoice, readItem, writeChoices, writeItem } from './tracks.js';

const VIEW_ITEM = /^m(\d{1,20})~(\d{1,20})$/;
const WALL_ITEM = /^w(\d{1,15})~(\d{1,12})$/; // ms since 1970: of pages that do not know the trace's clock
const CALL_ITEM = /^poll:(?:(\d+)\.)?(\d+)@(\d{1,20})$/;

/** ns of the first process's clock at a time of the axis, as text. */
function textOfTime(model, time) {
	return String(absoluteTime(model.main, time - model.main.shift));
}

function timeOfText(model, text) {
	return Number(BigInt(text) - absoluteTime(model.main, 0)) + model.main.shift;
}

export function textOfInterval(model, [from, to]) {
	return `m${textOfTime(model, from)}~${Math.round(to - from)}`;
}

/** [from, to] of the axis by the clock of the wall; null where the trace does not tell it. */
function intervalOfWall(model, text) {
	const [, from, length] = WALL_ITEM.exec(text) ?? [], zero = from === undefined ? null : model.wall(0);
	if (zero === null) return null;
	const start = Number(BigInt(from) * 1000000n - zero);
	return [Math.max(model.first, start), Math.min(model.last + 1, start + Number(length) * 1e6)];
}

export function intervalOfText(model, text) {
	const wall = intervalOfWall(model, text);
	if (wall) return wall[1] > wall[0] ? wall : null;
	const [, from, length] = VIEW_ITEM.exec(text) ?? [];
	if (from === undefined) return null;
	const start = timeOfText(model, from);
	return [start, start + Number(length)];
}

/** [from, to] of the axis that "?start=NS&end=NS" asks for, either of them or both; else null. */
export function intervalOfQuery(model, search) {
	const query = new URLSearchParams(search), told = ['start', 'end'].map((key) => (/^\d{1,20}$/.test(query.get(key) ?? '') ? timeOfText(model, query.get(key)) : null));
	return told.some((time) => time !== null) ? [told[0] ?? model.first, told[1] ?? model.last] : null;
}

/** The fragment without its #.  |kept|: items of others, which are written back. */
export function writeFragment(state, kept = []) {
	const { model } = state, items = state.following ? [] : [`v=${textOfInterval(model, state.view)}`];
	if (state.selected) {
		const { lane, row } = state.selected, process = model.traces.length > 1 ? `${lane.trace.number}.` : '';
		items.push(`s=poll:${process}${lane.worker.id}@${absoluteTime(lane.trace, lane.polls.start[row])}`);
	}
	if (state.thing) items.push(`s=${writeThing(model, state.thing)}`);
	const item = state.item && writeItem(state.item);
	if (item) items.push(`s=${item}`);
	if (state.finding >= 0) items.push(`f=${model.findings[state.finding]?.check}.${state.finding + 1}`);
	if (state.fire >= 0) items.push(`t=${encodeURIComponent(model.fires[state.fire]?.trigger)}.${state.fire + 1}`);
	if (state.range) items.push(`r=${textOfInterval(model, state.range)}`);
	if (state.clock !== 'rel') items.push(`c=${state.clock}`);
	if (state.query) items.push(`q=${encodeURIComponent(state.query)}`);
	return [...items, ...writeChoices(state.tracks ?? NO_CHOICES), ...writePanel(state), ...kept].join('&');
}

function readCall(model, text) {
	const [, process = 0, worker, ns] = CALL_ITEM.exec(text) ?? [];
	const lane = model.lanes.find((l) => l.trace.number === Number(process) && String(l.worker.id) === worker);
	if (!lane) return null;
	const row = pollAt(lane.polls, Number(BigInt(ns) - absoluteTime(lane.trace, 0)));
	return row < 0 ? null : { lane, row };
}

/** What a fragment says: {patch, kept, wrong}; |wrong| are items that are known and make no sense. */
export function readFragment(model, fragment) {
	const patch = {}, kept = [], wrong = [];
	for (const item of fragment.split('&').filter(Boolean)) {
		const at = item.indexOf('='), key = item.slice(0, at), value = item.slice(at + 1);
		if (key === 'v' || key === 'r') {
			const interval = intervalOfText(model, value);
			if (interval) patch[key === 'v' ? 'view' : 'range'] = interval;
			else wrong.push(item);
		} else if (key === 's') {
			const selected = readCall(model, value), found = selected ? null : readItem(model, patch.tracks ?? NO_CHOICES, value), thing = selected || found ? null : readThing(model, value);
			if (selected) patch.selected = selected;
			else if (found) Object.assign(patch, { item: found, track: found.track.id });
			else if (thing) patch.thing = thing;
			else wrong.push(item);
		} else if (isChoice(key)) {
			const tracks = readChoice(patch.tracks ?? NO_CHOICES, key, value);
			if (tracks) patch.tracks = tracks;
			else wrong.push(item);
		} else if (key === 'f' || key === 't') {
			const number = Number(value.split('.').at(-1)) - 1;
			if (Number.isInteger(number) && number >= 0) patch[key === 'f' ? 'finding' : 'fire'] = number;
			else wrong.push(item);
		} else if (key === 'c') {
			if (['rel', 'local', 'utc'].includes(value)) patch.clock = value;
			else wrong.push(item);
		} else if (key === 'q') {
			try {
				patch.query = decodeURIComponent(value);
			} catch {
				wrong.push(item);
			}
		} else {
			const panel = readPanelItem(key, value);
			if (panel) patch.panel = { ...(patch.panel ?? CLOSED_PANEL), ...panel };
			else if (panel === null) wrong.push(item);
			else kept.push(item);
		}
	}
	// A range opens the panel by itself, and closes it.
	if (patch.range && patch.panel) patch.panel.open = false;
	return { patch, kept, wrong };
}
