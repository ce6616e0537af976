// SPDX-License-Identifier: Apache-2.0
// Save the range, or what is in view, as a trace of its own that every reader takes.

import { showDuration, showName, showShare, showSize } from '../toolkit/show.js';
import { pollAt } from '../toolkit/trace.js';
import { element } from './dom.js';
import { startWorker } from './load.js';
import { state } from './state.js';

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
	const range = { origin: trace.origin, from: from - trace.shift, to: to - trace.shift, metadata: trace.metadata, tasks: new Set() };
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

function cutFileName(trace) {
	const name = trace.metadata.get('service') || trace.folder || 'trace', number = state.model.traces.length > 1 ? `-${trace.number + 1}` : '';
	return `${name.replace(/[^\w.-]+/g, '_').slice(0, 80)}${number}-cut.bin.gz`;
}

/** One file for each process that has something in the range. */
async function saveTraces(range, status) {
	const { traces, lanes } = state.model, [from, to] = wholeCalls(state.model, range);
	const wanted = traces.filter((trace) => trace.start + trace.shift <= to && trace.end + trace.shift >= from || !lanes.length);
	for (const trace of wanted) {
		const { bytes, events } = await cutInWorker(trace, from, to, (share) => {
			status.textContent = `Reading the trace again: ${showShare(share, 1)}`;
		});
		downloadFile(cutFileName(trace), bytes, 'application/gzip');
		status.textContent = `Saved ${cutFileName(trace)}: ${events} events, ${showSize(bytes.byteLength)}.`;
	}
	if (!wanted.length) status.textContent = 'There is nothing in it.';
}

/** The dialog: what would be saved, and how. */
export function openSave() {
	if (!state.model || document.querySelector('dialog.save')) return;
	const range = state.range ?? state.view, [from, to] = range, status = element('p', { class: 'small', role: 'status' });
	const close = element('button', { 'aria-label': 'Close', onclick: () => dialog.close() }, 'Close');
	const save = element('button', { class: 'boxed', onclick: async () => {
		save.disabled = true;
		try {
			await saveTraces(range, status);
		} catch (error) {
			status.textContent = `It could not be saved: ${showName(error.message ?? error, 300)}`;
		}
		save.disabled = false;
	} }, 'Save as a trace');
	const dialog = element('dialog', { class: 'keys save', 'aria-label': 'Save' },
		element('div', { class: 'head' }, element('h2', {}, state.range ? 'Save the range' : 'Save what is in view'), close),
		element('p', { class: 'quiet' }, `${showDuration(to - from)}, with calls at its ends whole: a file that dial9, this page and every reader of the format take.  It has the names, tasks and clock that its events need, and says that it was cut.`),
		element('p', { class: 'quiet' }, save), element('div', { class: 'quiet' }, status));
	dialog.addEventListener('close', () => dialog.remove());
	document.body.append(dialog);
	dialog.showModal();
}
