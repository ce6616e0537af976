// SPDX-License-Identifier: Apache-2.0
// flame_dom.js FILE.svg: runs the script of test_profile.sh's flame graph on as much of a document as it uses: a click
// zooms, a search marks and tells a share in which nothing counts twice, Escape undoes both.
'use strict';
const assert = require('assert');
const svg = require('fs').readFileSync(process.argv[2], 'utf8');

function element(text) {
	const classes = new Set();
	return {
		attributes: {}, listeners: {}, parts: {}, style: {}, classes, textContent: text,
		classList: { toggle: (name, on) => (on ? classes.add(name) : classes.delete(name)) },
		setAttribute(name, value) { this.attributes[name] = value; },
		getAttribute(name) { return this.attributes[name]; },
		querySelector(name) { return this.parts[name]; },
		addEventListener(event, f) { this.listeners[event] = f; },
	};
}

const pattern = /<g class="[^"]*" data-x="(\d+)" data-w="(\d+)" data-d="(\d+)"><title>([^<]*)<\/title>/g;
const boxes = [...svg.matchAll(pattern)].map((found) => {
	const box = element('');
	box.attributes = { 'data-x': found[1], 'data-w': found[2], 'data-d': found[3] };
	box.parts = { title: element(found[4]), rect: element(''), text: element('') };
	return box;
});
const byId = { found: element(''), reset: element(''), search: element('') };
let answer = '';

global.document = {
	documentElement: { querySelectorAll: () => boxes },
	getElementById: (id) => byId[id],
};
global.window = element('');
global.prompt = () => answer;
eval(svg.match(/<!\[CDATA\[([^]*)\]\]>/)[1]);

const named = (name) => boxes.filter((box) => box.parts.title.textContent.startsWith(name + ' ('));
const widthOf = (box) => box.parts.rect.attributes.width;

named('main')[0].listeners.click();
assert.strictEqual(widthOf(boxes[0]), 1180);
assert(boxes[0].classes.has('up') && !named('main')[0].classes.has('up'));
assert.strictEqual(widthOf(named('main')[0]), 1180);
assert.strictEqual(Math.round(widthOf(named('on_timer')[0])), Math.round(1180 / 6));
assert.strictEqual(named('[no stack]')[0].style.display, 'none');
assert.strictEqual(byId.reset.style.display, '');

answer = 'on_request|read_line';
byId.search.listeners.click();
assert.strictEqual(byId.found.textContent, 'matched: 62.5 %');
assert.strictEqual(boxes.filter((box) => box.classes.has('m')).length, 4);

answer = '[no';
byId.search.listeners.click();
assert.strictEqual(byId.found.textContent, 'matched: 12.5 %');

global.window.listeners.keydown({ key: 'Escape' });
assert.strictEqual(byId.found.textContent, '');
assert.strictEqual(byId.reset.style.display, 'none');
assert.strictEqual(named('[no stack]')[0].style.display, '');
