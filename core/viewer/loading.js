// SPDX-License-Identifier: Apache-2.0
// What is said while a trace loads, with a first picture of it, and when it cannot be shown.

import { showName } from '../toolkit/show.js';
import { byId, element, prepareCanvas } from './dom.js';
import { cancelLoad } from './load.js';
import { state } from './state.js';
import { colours } from './theme.js';

const PREVIEW_WIDTH = 512, PREVIEW_HEIGHT = 40;

/** Show |children| over the page, or below the trace that is there: it stays until another one is whole. */
function showMessage(...children) {
	const box = byId('message');
	box.replaceChildren(...children);
	box.hidden = !children.length;
	box.classList.toggle('slim', Boolean(state.model));
}

export function hideMessage() {
	showMessage();
}

/** The longest callback in each column of what has been read, by class + 1. */
function drawPreview(canvas, preview) {
	const context = prepareCanvas(canvas, PREVIEW_WIDTH, PREVIEW_HEIGHT);
	preview.forEach((kind, x) => {
		if (!kind) return;
		context.fillStyle = colours().classes[kind - 1];
		context.fillRect(x, PREVIEW_HEIGHT - 6 - (kind - 1) * 5, 1, 6 + (kind - 1) * 5);
	});
}

export function showProgress(text, share, preview) {
	const box = byId('message');
	if (!box.querySelector('progress')) {
		showMessage(element('p', {}, 'Reading the trace'), element('canvas', { class: 'preview', 'aria-hidden': 'true', hidden: true }), element('progress', { 'aria-label': 'Loading', max: '1', value: '0' }),
			element('p', { class: 'small' }), element('button', { class: 'boxed', onclick: cancelLoad }, 'Cancel'));
	}
	box.querySelector('progress').value = share;
	box.querySelector('p.small').textContent = text;
	if (!preview) return;
	box.querySelector('canvas').hidden = false;
	drawPreview(box.querySelector('canvas'), preview);
}

/** In words, with what can be done. */
function adviceOf({ message, far }) {
	if (/^cancelled$/.test(message)) return ['Loading was cancelled.', 'Open another trace, or reload the page to begin again.'];
	if (/Failed to fetch|NetworkError|network error/i.test(message)) return ['The server does not answer.', 'Is `dial9 serve` still running?  A new one has a new address.'];
	if (far) return ['The store does not give it.', `${showName(message, 400)}.  Reload the page to ask again; the map, one page back, shows what is known of it.`];
	if (/version \d+, only/.test(message)) return ['A newer dial9 wrote this trace.', showName(message, 400)];
	if (/memory|allocation/i.test(message)) return ['The trace does not fit into the page.', 'Give it fewer segments, or save a range of it; `dial9 report` reads all of it.'];
	return ['The trace cannot be shown.', `${showName(message, 400)}.  A trace is a file that dial9 has written, trace.*.bin*: drop one here, or run \`dial9 serve DIR\`.`];
}

export function showFailure(error) {
	const [what, advice] = adviceOf(error), close = state.model && element('button', { class: 'boxed', onclick: hideMessage }, 'Close');
	showMessage(element('p', { class: 'strong' }, what), element('p', {}, advice), close || element('button', { class: 'boxed', onclick: () => byId('picker').click() }, 'Open a trace'));
	byId('speech').textContent = `${what} ${advice}`;
}
