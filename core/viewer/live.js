// SPDX-License-Identifier: Apache-2.0
// What is being written, followed: the newest segments are read again as they grow, and the view keeps its right edge
// at the newest event until the reader looks at something.  Then nothing changes under them until they resume.

import { showDuration, showName } from '../toolkit/show.js';
import { byId } from './dom.js';
import { fetchReport, readSources } from './load.js';
import { Model } from './model.js';
import { isPanelOpen } from './scope.js';
import { clampView, listen, state, update } from './state.js';

const LIVE_BYTES = 4 * 2 ** 20; // of segments that are shown at once: they are decoded again as they grow
const LIVE_SEGMENTS = 64;
const ASK_EVERY_MS = 1000, REST_FACTOR = 2; // resting for twice as long as the reading took
const REPORT_EVERY_MS = 15000, REPORT_AGAIN_MS = 2000; // where it failed: a segment has another name by now
const FAILURES_MAX = 5;

let held = new Map(); // what was fetched, by name: {blob, bytes, modified}
let report = null, reportAt = -Infinity;
let viewLength = 10e9; // that the view has where there is so much
let ownUpdate = false; // the change that listeners hear of is made here, not by the reader
let ended = false; // another trace was opened instead
let known = ''; // the listing that is shown
let wake = null; // ends the rest

/** The newest of |segments|, in their order: one in any case, then as many as there is room for. */
function newestSegments(segments) {
	let bytes = 0;
	const chosen = new Set([...segments].reverse().sort((a, b) => b.modified_ms - a.modified_ms).slice(0, LIVE_SEGMENTS)
		.filter((segment, i) => (bytes += segment.bytes) <= LIVE_BYTES || i === 0));
	return segments.filter((segment) => chosen.has(segment));
}

/** The bytes of a segment: of one that has grown only what is new is fetched. */
async function fetchGrown(segment) {
	const old = held.get(segment.name);
	if (old && old.bytes === segment.bytes && old.modified === segment.modified_ms) return old;
	const begun = old && old.blob.size <= segment.bytes ? old.blob : new Blob([]);
	const response = await fetch(`${segment.url}?from=${begun.size}`);
	if (!response.ok) throw new Error(`${segment.name}: ${await response.text()}`);
	return { blob: new Blob([begun, await response.blob()]), bytes: segment.bytes, modified: segment.modified_ms };
}

/** The model of what |listing| has, or null: a segment has another name by now, or nothing is there. */
async function readNewest(listing, told) {
	const chosen = newestSegments(listing.segments), fresh = new Map(), sources = [];
	for (const segment of chosen) {
		const piece = await fetchGrown(segment);
		fresh.set(segment.name, piece);
		sources.push({ name: segment.name, file: piece.blob, bytes: piece.blob.size, modified_ms: segment.modified_ms });
	}
	held = fresh;
	const traces = await readSources(sources, told, true);
	const model = new Model(traces, { name: listing.name, shown: chosen.length, segments: listing.segments.length, served: true, room: LIVE_BYTES, live: true,
		active: listing.segments.some((segment) => segment.active) });
	if (report) model.takeReport(report);
	return model;
}

async function askListing() {
	const response = await fetch('api/segments');
	if (!response.ok) throw new Error(await response.text());
	return response.text();
}

/** The report on the segments that are shown; the one before stays where this one fails, as when a segment was renamed. */
async function askReport(shown) {
	reportAt = Infinity;
	const chosen = [...held.keys()].map((name) => `trace=segment/${encodeURIComponent(name)}`);
	let failed = null;
	try {
		report = await fetchReport(`?${chosen.join('&')}`);
	} catch (error) {
		failed = String(error.message ?? error);
	}
	reportAt = performance.now() - (failed ? REPORT_EVERY_MS - REPORT_AGAIN_MS : 0);
	const { model } = state;
	// What the reader looks at stays as it is, unless they still wait for it.
	if (ended || (!state.following && model.reportState !== 'coming')) return;
	if (report) model.takeReport(report);
	else model.goWithoutReport(failed);
	shown();
}

/** The view's right edge to the newest event. */
function followEdge() {
	const { model } = state, length = Math.min(viewLength, model.last - model.first);
	ownUpdate = true;
	update({ view: clampView(model, model.last - length, model.last), following: true });
	ownUpdate = false;
}

function showButton() {
	const button = byId('follow');
	button.hidden = ended;
	button.classList.toggle('on', state.following);
	button.textContent = state.following ? 'Live' : 'Paused: follow';
	button.title = state.following ? 'Stop here (l)' : 'Follow what is being written (l)';
}

/** The reader looks at something: it stays as it is. */
function pauseFor(patch) {
	if (!state.following || ownUpdate) return;
	const looks = ['view', 'selected', 'thing', 'item', 'range', 'track', 'query'].some((key) => patch[key]) || (patch.rangeStart ?? null) !== null || isPanelOpen(state);
	if (looks) update({ following: false });
	if (looks) byId('speech').textContent = 'Paused';
}

/** Follow what is written, or pause. */
export function switchFollowing() {
	if (!state.model?.source.live || ended) return;
	if (state.following) {
		update({ following: false });
		return;
	}
	ownUpdate = true;
	update({ selected: null, thing: null, item: null, range: null, rangeStart: null, finding: -1, track: null, query: '', panel: { ...state.panel, open: false } });
	ownUpdate = false;
	byId('search').value = '';
	viewLength = state.view[1] - state.view[0];
	followEdge();
	known = '';
	wake?.();
}

/** The reader's own trace takes the place of what is written. */
export function endFollowing() {
	ended = true;
	state.following = false;
	held = new Map();
	showButton();
}

function rest(ms) {
	return new Promise((resolve) => {
		wake = resolve;
		setTimeout(resolve, ms);
	});
}

/** One look at what is written; |take|(model) shows another state of it. */
async function lookAgain(take, shown) {
	const text = await askListing();
	if (text !== known) {
		const model = await readNewest(JSON.parse(text), () => {});
		if (ended || !state.following) return;
		known = text;
		ownUpdate = true;
		take(model);
		ownUpdate = false;
		followEdge();
	}
	if (performance.now() - reportAt > REPORT_EVERY_MS) askReport(shown);
}

/** Look again until another trace is opened; what fails is tried again, and said. */
async function keepLooking(take, shown) {
	for (let began = 0, took = 0; !ended;) {
		await rest(Math.max(ASK_EVERY_MS, REST_FACTOR * took));
		if (ended || !state.following || document.hidden) continue;
		began = performance.now();
		try {
			await lookAgain(take, shown);
			byId('loaded').classList.remove('alarm');
		} catch (error) {
			if (!state.following) continue;
			byId('loaded').textContent = `not up to date: ${showName(String(error.message ?? error))}`;
			byId('loaded').classList.add('alarm');
		}
		took = performance.now() - began;
	}
}

function startFollowing(take, shown) {
	listen((patch) => {
		pauseFor(patch);
		if ('following' in patch) showButton();
	});
	followEdge();
	askReport(shown);
	keepLooking(take, shown);
}

/**
 * The first model of a listing, |text|, as soon as something is written.  Then follow(take, shown) keeps at it: take(model) shows a
 * newer one in place of it, shown() what its report has told.
 */
export async function loadLive(text, told) {
	for (let failures = 0;; text = await askListing()) {
		const listing = JSON.parse(text);
		try {
			if (listing.segments.length) {
				const model = await readNewest(listing, told);
				known = text;
				return { model, follow: startFollowing };
			}
			told('nothing is written yet: waiting for the first segment', 0);
		} catch (error) {
			// A segment may have another name by now.
			if (error.message === 'cancelled' || ++failures > FAILURES_MAX) throw error;
		}
		await rest(ASK_EVERY_MS);
	}
}

/** What of the recording is shown, for people. */
export function tellLive(model) {
	const { shown, segments, active } = model.source, part = shown < segments ? `, the newest ${shown} of ${segments} segments` : '';
	return `${state.following ? 'following' : 'paused'}${active ? '' : ', nothing is being written now'}: the last ${showDuration(model.last - model.first)}${part}`;
}
