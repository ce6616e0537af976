// SPDX-License-Identifier: Apache-2.0
// The load worker: reads one trace, process by process, and hands the columns over to the page; or cuts a
// range out of one process's segments.

import { cutTrace } from '../toolkit/cut.js';
import { prepareTrace } from '../toolkit/prepare.js';
import { durationClass } from '../toolkit/show.js';
import { groupByFolder, groupByProcess } from '../toolkit/processes.js';
import { readTrace } from '../toolkit/trace.js';

const TOLD_EVERY_MS = 100, PREVIEW_EVERY_MS = 250;
const PREVIEW_COLUMNS = 512, PREVIEW_ROWS = 100000; // of each worker: more are looked at here and there

/** All buffers of a trace, to be moved and not copied. */
function buffersOf(value, found = new Set(), seen = new Set()) {
	if (ArrayBuffer.isView(value)) {
		found.add(value.buffer);
	} else if (value && typeof value === 'object' && !seen.has(value)) {
		seen.add(value);
		const parts = value instanceof Map ? value.values() : Object.values(value);
		for (const part of parts) buffersOf(part, found, seen);
	}
	return found;
}

async function* chunksOf(source) {
	const stream = source.file ? source.file.stream() : (await fetchSegment(source)).body;
	const reader = stream.getReader();
	for (;;) {
		const { done, value } = await reader.read();
		if (done) return;
		yield value;
	}
}

async function fetchSegment(source) {
	const response = await fetch(source.url);
	if (!response.ok) throw new Error(`${source.name}: the server answers ${response.status}`);
	return response;
}

/** The longest call of each column of what has been read so far, as its class + 1; 0: none. */
function previewOf(workers) {
	const columns = new Uint8Array(PREVIEW_COLUMNS), tables = [...workers.values()].map(({ polls }) => polls).filter((polls) => polls.n);
	const from = Math.min(...tables.map((polls) => polls.start[0])), to = Math.max(...tables.map((polls) => polls.start[polls.n - 1])), scale = PREVIEW_COLUMNS / Math.max(1, to - from);
	for (const { start, dur, n } of tables)
		for (let row = 0, step = Math.ceil(n / PREVIEW_ROWS); row < n; row += step) {
			const x = Math.max(0, Math.min(PREVIEW_COLUMNS - 1, Math.floor((start[row] - from) * scale)));
			columns[x] = Math.max(columns[x], durationClass(dur[row]) + 1);
		}
	return columns;
}

/** |sources| by process.  What the server has lies in a folder for each, and would come twice if one looked. */
async function groupSources(sources) {
	const found = sources.map((source) => ({ ...source, folder: source.name.slice(0, Math.max(0, source.name.lastIndexOf('/'))), chunks: () => chunksOf(source) }));
	return found.every(({ file }) => file) ? groupByProcess(found) : groupByFolder(found);
}

async function openSources(load, sources, limits) {
	const traces = [], groups = await groupSources(sources);
	let before = 0, told = 0, previewed = 0;
	for (const group of groups) {
		let stored = 0;
		const progress = (state) => {
			stored = state.stored;
			if (performance.now() - told < TOLD_EVERY_MS) return;
			told = performance.now();
			let events = 0;
			for (const table of state.model.tables.values()) events += table.count;
			const preview = told - previewed >= PREVIEW_EVERY_MS;
			if (preview) previewed = told;
			postMessage({ type: 'progress', load, stored: before + stored, events, preview: preview ? previewOf(state.model.workers) : null });
		};
		const trace = await readTrace(group.sources, { ...limits, progress });
		prepareTrace(trace);
		trace.folder = group.folder;
		traces.push(trace);
		before += stored;
	}
	const members = groups.map((group) => group.sources.map(({ chunks, folder, ...source }) => source));
	postMessage({ type: 'trace', load, traces, sources: members }, [...buffersOf(traces)]);
}

/** [from, to) of one process as a segment, packed. */
async function cutSources(sources, range) {
	let told = 0;
	const { chunks, events } = await cutTrace(sources.map((source) => ({ chunks: () => chunksOf(source) })), range, (stored) => {
		if (performance.now() - told < TOLD_EVERY_MS) return;
		told = performance.now();
		postMessage({ type: 'progress', stored });
	});
	const bytes = await new Response(new Blob(chunks).stream().pipeThrough(new CompressionStream('gzip'))).arrayBuffer();
	postMessage({ type: 'cut', bytes, events }, [bytes]);
}

onmessage = ({ data }) => {
	if (data.cut) {
		cutSources(data.sources, data.cut).catch((error) => postMessage({ type: 'failed', what: String(error.message ?? error) }));
		return;
	}
	openSources(data.load, data.sources, data.limits)
		.catch((error) => postMessage({ type: 'failed', load: data.load, what: String(error.message ?? error) }));
};
