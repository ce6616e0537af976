// SPDX-License-Identifier: Apache-2.0
// The load worker: reads one trace, process by process, and hands the columns over to the page; or cuts a
// range out of one process's segments.

import { cutTrace } from '../toolkit/cut.js';
import { prepareTrace } from '../toolkit/prepare.js';
import { readTrace } from '../toolkit/trace.js';

const TOLD_EVERY_MS = 100;

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

async function openGroups(load, groups, limits) {
	const traces = [];
	let before = 0, told = 0;
	for (const group of groups) {
		let stored = 0;
		const progress = (state) => {
			stored = state.stored;
			if (performance.now() - told < TOLD_EVERY_MS) return;
			told = performance.now();
			let events = 0;
			for (const table of state.model.tables.values()) events += table.count;
			postMessage({ type: 'progress', load, stored: before + stored, events });
		};
		const trace = await readTrace(group.sources.map((source) => ({ name: source.name, chunks: () => chunksOf(source) })),
			{ ...limits, progress });
		prepareTrace(trace);
		trace.folder = group.folder;
		traces.push(trace);
		before += stored;
	}
	postMessage({ type: 'trace', load, traces }, [...buffersOf(traces)]);
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
	openGroups(data.load, data.groups, data.limits)
		.catch((error) => postMessage({ type: 'failed', load: data.load, what: String(error.message ?? error) }));
};
