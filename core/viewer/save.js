// SPDX-License-Identifier: Apache-2.0
// Save the range, or what is in view: as a trace of its own that every reader takes, or as a page that shows it.

import { showDuration, showName, showShare, showSize } from '../toolkit/show.js';
import { pollAt } from '../toolkit/trace.js';
import { element } from './dom.js';
import { isEmbedded } from './embedded.js';
import { startWorker } from './load.js';
import { state } from './state.js';

const PAGE_BLOCK = 3 << 20; // bytes of one block of base64: no text comes near the longest that a browser holds
const TEXT_AT_ONCE = 1 << 15;

/** The range with whole calls at its ends. */
function wholeCalls(model, [from, to]) {
	let first = from, last = to;
	for (const { polls, shift } of model.lanes) {
		const before = pollAt(polls, from - shift), after = pollAt(polls, to - shift);
		if (before >= 0) first = Math.min(first, polls.start[before] + shift);
		if (after >= 0) last = Math.max(last, polls.start[after] + polls.dur[after] + shift);
	}
	return [first, last];
}

/** What cutTrace() wants to know of [from, to) of the axis. */
function cutRangeOf(trace, from, to) {
	const range = { origin: trace.origin, from: from - trace.shift, to: to - trace.shift, metadata: trace.metadata, tasks: new Set(), symbols: [...trace.found ?? []] };
	for (const [id, task] of trace.tasks) if (!(task.died < range.from) && !(task.born > range.to)) range.tasks.add(id);
	return range;
}

/** A segment of [from, to) of one process: {bytes, events}, packed with gzip. */
function cutInWorker(trace, from, to, told) {
	const worker = startWorker(), total = trace.sources.reduce((sum, source) => sum + source.bytes, 0);
	return new Promise((resolve, reject) => {
		worker.onerror = (event) => reject(new Error(event.message || 'the worker could not start'));
		worker.onmessage = ({ data }) => {
			if (data.type === 'progress') told(data.stored / total);
			else if (data.type === 'cut') resolve(data);
			else reject(new Error(data.what));
		};
		worker.postMessage({ cut: cutRangeOf(trace, from, to), sources: trace.sources });
	}).finally(() => worker.terminate());
}

function downloadFile(name, bytes, type) {
	const url = URL.createObjectURL(new Blob([bytes], { type })), link = element('a', { href: url, download: name });
	link.click();
	setTimeout(() => URL.revokeObjectURL(url), 60000);
}

function fileNameOf(name, end) {
	return `${name.replace(/[^\w.-]+/g, '_').slice(0, 80)}${end}`;
}

function cutFileName(trace) {
	return fileNameOf(trace.metadata.get('service') || trace.folder || 'trace', `${state.model.traces.length > 1 ? `-${trace.number + 1}` : ''}-cut.bin.gz`);
}

/** [{trace, bytes, events}], one for each process that has something in the range. */
async function cutTraces(range, status) {
	const { traces, lanes } = state.model, [from, to] = wholeCalls(state.model, range), cuts = [];
	for (const trace of traces.filter((t) => (t.start + t.shift <= to && t.end + t.shift >= from) || !lanes.length))
		cuts.push({ trace, ...await cutInWorker(trace, from, to, (share) => {
			status.textContent = `Reading the trace again: ${showShare(share, 1)}`;
		}) });
	if (!cuts.length) throw new Error('there is nothing in it');
	return cuts;
}

async function saveTraces(range, status) {
	for (const { trace, bytes, events } of await cutTraces(range, status)) {
		downloadFile(cutFileName(trace), bytes, 'application/gzip');
		status.textContent = `Saved ${cutFileName(trace)}: ${events} events, ${showSize(bytes.byteLength)}.`;
	}
}

/** |bytes| as base64, in blocks of the page. */
function base64Blocks(bytes) {
	const blocks = [], view = new Uint8Array(bytes);
	for (let block = 0; block < view.length; block += PAGE_BLOCK) {
		const end = Math.min(view.length, block + PAGE_BLOCK), letters = [];
		for (let i = block; i < end; i += TEXT_AT_ONCE) letters.push(String.fromCharCode(...view.subarray(i, Math.min(end, i + TEXT_AT_ONCE))));
		blocks.push(btoa(letters.join('')));
	}
	return blocks;
}

/**
 * What the report says of what is cut out: all names, and the findings that have their evidence in it, without evidence and effects
 * from elsewhere.  Figures of the whole trace would be wrong there.  null where there is no report.
 */
function reportOfRange(model, range) {
	const { report, findings, fires } = model, [from, to] = wholeCalls(model, range), isIn = (piece) => piece.at >= from && piece.at + piece.length <= to, isOutside = (piece) => piece.at !== undefined && !isIn(piece);
	if (!report) return null;
	const found = findings.map((finding, i) => {
		const { evidence, effects, ...told } = report.findings[i], placed = (effect) => model.place(effect, finding.trace).evidence;
		return finding.first && isIn(finding.first) ? { ...told, evidence: evidence.filter((_, j) => !isOutside(finding.evidence[j])), effects: effects.filter((effect) => !placed(effect).some(isOutside)) } : null;
	}).filter(Boolean);
	return { trace: { processes: report.trace.processes, fired: (report.trace.fired ?? []).filter((_, i) => fires[i].at >= from && fires[i].at <= to) }, symbols: report.symbols, findings: found,
		callbacks: (report.callbacks ?? []).map(({ process, location, name, source, site, internal }) => ({ process, location, name, source, site, internal })) };
}

/** |value| in the element |id| of a page; no '<' stands in it, so that nothing ends the element. */
function fillElement(page, id, value) {
	const start = page.indexOf(`id="${id}">`) + `id="${id}">`.length;
	return page.slice(0, start) + JSON.stringify(value).replaceAll('<', '\\u003c') + page.slice(page.indexOf('<', start));
}

/** Into the page without a trace that the server gives. */
async function savePage(range, status) {
	const cuts = await cutTraces(range, status), response = await fetch('api/page');
	if (!response.ok) throw new Error(await response.text());
	const segments = cuts.map(({ trace, bytes }) => ({ name: `${trace.folder ? `${trace.folder}/` : ''}${cutFileName(trace)}`, bytes: bytes.byteLength, modified_ms: Date.now(), blocks: Math.ceil(bytes.byteLength / PAGE_BLOCK) }));
	const page = fillElement(fillElement(await response.text(), 'embedded', { name: state.model.title, segments, cut: true }), 'embedded-report', reportOfRange(state.model, range));
	const blocks = cuts.flatMap(({ bytes }) => base64Blocks(bytes)).map((text) => `<script type="application/vnd.dial9.trace+base64">${text}<\/script>\n`);
	const script = page.indexOf('<script type="module">'), name = fileNameOf(state.model.title, '-cut.html'), whole = new Blob([page.slice(0, script), ...blocks, page.slice(script)]);
	downloadFile(name, whole, 'text/html');
	status.textContent = `Saved ${name}: ${showSize(whole.size)}. A browser opens it from disk, without a network.`;
}

/** The dialog: what would be saved, and how. */
export function openSave() {
	if (!state.model || document.querySelector('dialog.save')) return;
	const range = state.range ?? state.view, [from, to] = range, status = element('p', { class: 'small', role: 'status' });
	const close = element('button', { 'aria-label': 'Close', onclick: () => dialog.close() }, 'Close');
	const choice = (text, save) => element('button', { class: 'boxed', onclick: async () => {
		for (const button of buttons) button.disabled = true;
		try {
			await save(range, status);
		} catch (error) {
			status.textContent = `It could not be saved: ${showName(error.message ?? error, 300)}`;
		}
		for (const button of buttons) button.disabled = false;
	} }, text);
	// A page that is one file has no server that would give it another.
	const buttons = [choice('Save as a trace', saveTraces), ...(isEmbedded() ? [] : [choice('Save as a page', savePage)])];
	const dialog = element('dialog', { class: 'keys save', 'aria-label': 'Save' },
		element('div', { class: 'head' }, element('h2', {}, state.range ? 'Save the range' : 'Save what is in view'), close),
		element('p', { class: 'quiet' }, `${showDuration(to - from)}, with calls at its ends whole: a file that dial9, this page and every reader of the format take.  It has the names, tasks and clock that its events need, and says that it was cut.`),
		isEmbedded() ? null : element('p', { class: 'quiet' }, 'A page is one HTML file with the viewer and that trace in it, to send to somebody.'),
		element('p', { class: 'quiet choices' }, ...buttons), element('div', { class: 'quiet' }, status));
	dialog.addEventListener('close', () => dialog.remove());
	document.body.append(dialog);
	dialog.showModal();
}
