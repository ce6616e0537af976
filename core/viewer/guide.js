// SPDX-License-Identifier: Apache-2.0
// The guide to reading traces, core/doc/ANALYSIS.md, in the page.  Of Markdown only what the guide uses is known.

import { byId, copyButton, element } from './dom.js';

/** Of a page that is one file the guide lies in it. */
async function guideText() {
	const embedded = byId('embedded-guide');
	if (embedded) return JSON.parse(embedded.textContent).text;
	const response = await fetch('doc/ANALYSIS.md');
	if (!response.ok) throw new Error(`the server says ${response.status}`);
	return response.text();
}

/** {kind, text} of headings, paragraphs, numbered steps, and blocks of commands or of what they print. */
function guideBlocks(markdown) {
	const blocks = [], lines = markdown.split('\n');
	let open = false; // whether the next line goes on with the last block
	for (let i = 0; i < lines.length; i++) {
		const [, fence] = lines[i].match(/^```(\w+)$/) ?? [], [, marks, title] = lines[i].match(/^(#+) (.*)$/) ?? [];
		if (fence) {
			const end = lines.indexOf('```', i + 1);
			blocks.push({ kind: fence === 'sh' ? 'commands' : 'output', text: lines.slice(i + 1, end).join('\n') });
			i = end;
		} else if (marks) {
			blocks.push({ kind: marks.length === 1 ? 'title' : 'heading', text: title });
		} else if (lines[i] && open) {
			blocks.at(-1).text += ` ${lines[i]}`;
		} else if (lines[i]) {
			blocks.push({ kind: /^\d+\. /.test(lines[i]) ? 'step' : 'paragraph', text: lines[i] });
		}
		open = Boolean(lines[i]) && !fence && !marks;
	}
	return blocks;
}

/** Code and emphasis. */
function guideWords(text) {
	return text.split(/(`[^`]+`|\*[^*]+\*)/).map((part) => (/^`.+`$/.test(part) ? element('code', {}, part.slice(1, -1)) :
		/^\*.+\*$/.test(part) ? element('em', {}, part.slice(1, -1)) : part));
}

function guideElement({ kind, text }) {
	if (kind === 'heading') return element('h3', { tabindex: '-1' }, ...guideWords(text));
	if (kind === 'step') return element('p', { class: 'step' }, ...guideWords(text));
	if (kind === 'paragraph') return element('p', {}, ...guideWords(text));
	const written = element('pre', { tabindex: '0' }, text);
	return kind === 'output' ? written : element('div', { class: 'commands' }, written, copyButton(text, {}, () => getSelection().selectAllChildren(written)));
}

/** What the dialog holds below its head: the questions as a table of contents, and the guide. */
function guideBody(blocks) {
	const shown = blocks.filter(({ kind }) => kind !== 'title').map(guideElement);
	const contents = shown.filter(({ tagName }) => tagName === 'H3').map((heading) => element('li', {}, element('button', { class: 'link', onclick: () => {
		heading.scrollIntoView();
		heading.focus({ preventScroll: true });
	} }, heading.textContent)));
	return [element('nav', { 'aria-label': 'Contents' }, element('ul', {}, ...contents)), ...shown];
}

export async function openGuide() {
	const dialog = byId('guide'), title = element('h2', {}, 'Guide');
	byId('keys').close();
	dialog.showModal();
	if (dialog.hasChildNodes()) return;
	dialog.append(element('div', { class: 'head' }, title, element('button', { onclick: () => dialog.close() }, 'Close')));
	try {
		const blocks = guideBlocks(await guideText());
		title.textContent = blocks.find(({ kind }) => kind === 'title').text;
		dialog.append(...guideBody(blocks));
	} catch (error) {
		dialog.append(element('p', { class: 'quiet' }, `The guide cannot be read: ${error.message}. It is also in ANALYSIS.md, beside the other documents of dial9.`));
	}
}

export function guideButton() {
	return element('button', { onclick: openGuide }, 'Guide');
}
