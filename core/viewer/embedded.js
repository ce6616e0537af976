// SPDX-License-Identifier: Apache-2.0
// The trace of a page that is one file, `dial9 report --html`: it lies in the page as base64, with its report.

import { parseWideJson, readSources } from './load.js';
import { Model } from './model.js';

const BLOCKS = 'script[type="application/vnd.dial9.trace+base64"]';

export function isEmbedded() {
	return document.getElementById('embedded-worker') !== null;
}

function decodeBase64(text) {
	if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
	const letters = atob(text), bytes = new Uint8Array(letters.length);
	for (let i = 0; i < letters.length; i++) bytes[i] = letters.charCodeAt(i);
	return bytes;
}

/** What lies in the element |id|, which is not needed any more. */
function takeText(id) {
	const holder = document.getElementById(id), text = holder.textContent;
	holder.remove();
	return text;
}

/** The segments as blobs, which the browser keeps outside of the page's memory; each block is dropped as it is read. */
async function takeSegments(segments, told) {
	const blocks = document.querySelectorAll(BLOCKS), sources = [];
	let next = 0;
	for (const segment of segments) {
		const parts = [];
		for (let n = segment.blocks; n > 0; n--) {
			const block = blocks[next++];
			parts.push(new Blob([decodeBase64(block.textContent)]));
			block.remove();
			told('unpacking the page', next / blocks.length);
			await new Promise((resolve) => setTimeout(resolve));
		}
		sources.push({ name: segment.name, bytes: segment.bytes, modified_ms: segment.modified_ms, file: new Blob(parts) });
	}
	return sources;
}

/** As loadServed(), of the page itself. */
export async function loadEmbedded(told) {
	const { name, segments, cut } = JSON.parse(takeText('embedded')), report = parseWideJson(takeText('embedded-report'));
	const traces = await readSources(await takeSegments(segments, told), told);
	const model = new Model(traces, { name, shown: segments.length, segments: segments.length, served: false, cut });
	// Nobody has looked at what was cut out where there was nobody to ask.
	if (report) model.takeReport(report);
	else model.goWithoutReport('');
	return { model, reported: Promise.resolve() };
}
