// SPDX-License-Identifier: Apache-2.0
// Where a trace comes from: the server that gave this page, or files that were dropped on it.

import { showCount, showSize } from '../toolkit/show.js';
import { Model } from './model.js';

const LIMITS = { bytes: 1.5 * 2 ** 30, unpacked: 2 ** 30 };
const STORED_MAX = 256 * 2 ** 20; // more than that is not fetched: the newest segments are
// In a page that is one file the worker's text lies beside it.
const WORKER_TEXT = globalThis.document?.getElementById('embedded-worker')?.textContent;
const WORKER_URL = WORKER_TEXT ? URL.createObjectURL(new Blob(["'use strict';\n", WORKER_TEXT], { type: 'text/javascript' })) : new URL('worker.js', import.meta.url).href;

// A page that is one file has nobody to ask.
const HAS_SERVER = !WORKER_TEXT;
const PIECE_BYTES = 2 ** 18; // of a file that is sent: the server takes no more at once
const PAGE_ID = globalThis.crypto?.randomUUID?.() ?? String(Math.random()).slice(2);

let lastReport = Promise.resolve(); // on files of the reader's
let shownFiles = null; // ends the report on those that are shown
let loadNumber = 0;
let loadWorker = null;
let rejectLoad = null;
let idleWorker = null; // of a load before, for the next one

/** The one script URL that this page may start. */
const scriptPolicy = globalThis.trustedTypes?.createPolicy('dial9', {
	createScriptURL(url) {
		if (url !== WORKER_URL) throw new TypeError('not the worker of this page');
		return url;
	},
});

/** JSON whose integers of 16 digits and more become texts, for doubles cannot hold them all. */
export function parseWideJson(text) {
	return JSON.parse(text.replace(/"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g, (part) => (/^-?\d{16,}$/.test(part) ? `"${part}"` : part)));
}

/** A worker that reads or cuts traces: see worker.js. */
export function startWorker() {
	return new Worker(scriptPolicy ? scriptPolicy.createScriptURL(WORKER_URL) : WORKER_URL, { type: WORKER_TEXT ? 'classic' : 'module' });
}

/** Read |sources| in the worker: the traces, or an error.  What is still being read is cancelled.  |again|: there will be more. */
export function readSources(sources, told, again = false) {
	cancelLoad();
	loadWorker = idleWorker ?? startWorker();
	idleWorker = null;
	const load = ++loadNumber, total = sources.reduce((sum, source) => sum + source.bytes, 0);
	return new Promise((resolve, reject) => {
		rejectLoad = reject;
		loadWorker.onerror = (event) => reject(new Error(event.message || 'the load worker could not start'));
		loadWorker.onmessage = ({ data }) => {
			if (data.load !== loadNumber) return;
			if (data.type === 'progress') {
				told(`${showCount(data.events)} events, ${showSize(data.stored)} of ${showSize(total)}`, total ? data.stored / total : 0, data.preview);
			} else {
				if (again) idleWorker = loadWorker;
				else loadWorker.terminate();
				loadWorker = null;
				// What they are made of, to cut a range out of it.
				data.traces?.forEach((trace, i) => { trace.sources = data.sources[i]; });
				if (data.type === 'trace') resolve(data.traces);
				else reject(new Error(data.what));
			}
		};
		loadWorker.postMessage({ load, sources, limits: LIMITS });
	});
}

/** End what is being loaded: it fails with "cancelled". */
export function cancelLoad() {
	loadWorker?.terminate();
	loadWorker = null;
	rejectLoad?.(new Error('cancelled'));
}

/** The newest of |sources| that are not too many bytes together. */
function newest(sources) {
	let left = STORED_MAX;
	return [...sources].sort((a, b) => b.modified_ms - a.modified_ms).filter((source) => (left -= source.bytes) >= 0)
		.sort((a, b) => sources.indexOf(a) - sources.indexOf(b));
}

/** The segments that the query asks for by "trace=segment/NAME", all where it names none. */
function askedSegments(segments) {
	const wanted = new Set(new URLSearchParams(location.search).getAll('trace'));
	if (!wanted.size) return segments;
	const asked = segments.filter((segment) => wanted.has(`segment/${segment.name}`));
	if (asked.length < wanted.size) throw new Error(`${wanted.size - asked.length} of the segments that the address names are not here any more`);
	return asked;
}

/** What `dial9 report` says of the segments of |query|, of all without one. */
export async function fetchReport(query) {
	const response = await fetch(`api/report${query}`), text = await response.text();
	if (!response.ok) throw new Error(text);
	return parseWideJson(text);
}

/** Of a bucket: no other file would help. */
function farError(text) {
	return Object.assign(new Error(text), { far: true });
}

/**
 * What the server has: {model, reported}, a Model as soon as the events are there, and a promise that is
 * kept when it has its findings.  |told|(text, share) hears how it goes.
 * Where it is being written, that of |loadLive|(text of the listing, told).
 */
export async function loadServed(told, loadLive) {
	const response = await fetch(`api/segments${location.search}`), text = await response.text();
	if (!response.ok) throw response.status === 502 ? farError(text) : new Error(text);
	const listing = JSON.parse(text);
	if (listing.live && !new URLSearchParams(location.search).has('trace')) return loadLive(text, told);
	const asked = askedSegments(listing.segments), chosen = newest(asked);
	if (!chosen.length) throw listing.far ? farError('nothing that was chosen is stored any more') : new Error('there is no segment that a page could hold');
	const report = fetchReport(listing.far || asked.length < listing.segments.length ? location.search : '');
	// It is awaited below; a failure before that is not unhandled.
	report.catch(() => {});
	const traces = await readSources(chosen.map((source) => ({ ...source, url: new URL(source.url, document.baseURI).href })), told);
	const model = new Model(traces, { name: listing.name, shown: chosen.length, segments: asked.length, served: true, room: STORED_MAX });
	return { model, reported: model.awaitReport(report) };
}

/** Send files of the reader's to the server, in pieces: the report on them. */
async function sendFiles(sources, signal) {
	const bytes = sources.reduce((sum, source) => sum + source.bytes, 0);
	let at = 0, text = '';
	for (const [file, { name, file: content }] of sources.filter((source) => source.bytes).entries())
		for (let from = 0; from < content.size; from += PIECE_BYTES) {
			const body = content.slice(from, from + PIECE_BYTES), query = new URLSearchParams({ upload: PAGE_ID, bytes, at, file, name: name.slice(name.lastIndexOf('/') + 1) });
			const response = await fetch(`api/report?${query}`, { method: 'POST', body, signal });
			text = await response.text();
			if (!response.ok) throw new Error(text);
			at += body.size;
		}
	return parseWideJson(text);
}

/** The report on files of the reader's, one after the other. */
function reportOnFiles(sources, signal) {
	return lastReport = lastReport.catch(() => {}).then(() => sendFiles(sources, signal));
}

/** As loadServed(), of files of the reader's: |files| are File.  |aside|: beside what is shown, else in place of it. */
export async function loadFiles(files, told, aside = false) {
	const sources = [...files].map((file) => ({ name: file.webkitRelativePath || file.name, file, bytes: file.size, modified_ms: file.lastModified }))
		.sort((a, b) => a.name.localeCompare(b.name, 'en', { numeric: true }));
	const traces = await readSources(sources, told), broken = traces.flatMap((trace) => trace.segments).find((segment) => (segment.error && !segment.full) || segment.unread);
	// What is no trace at all does not take the place of one.
	if (broken && traces.every((trace) => !trace.events)) throw new Error(`${broken.name}: ${broken.error ?? broken.unread}`);
	const model = new Model(traces, { name: sources[0].name, shown: sources.length, segments: sources.length, served: false });
	if (!HAS_SERVER) {
		model.goWithoutReport('');
		return { model, reported: Promise.resolve() };
	}
	if (!aside) shownFiles?.abort();
	if (!aside) shownFiles = new AbortController();
	return { model, reported: model.awaitReport(reportOnFiles(sources, aside ? undefined : shownFiles.signal)) };
}
