// SPDX-License-Identifier: Apache-2.0
// Elements out of plain texts: what a trace says never becomes markup.

import { showCount } from '../toolkit/show.js';

const MORE_AT_ONCE = 200;

/** An element of |tag| with classes, attributes and children; texts become text nodes. */
export function element(tag, attributes = {}, ...children) {
	const made = document.createElement(tag);
	for (const [name, value] of Object.entries(attributes)) {
		if (value === undefined || value === null || value === false) continue;
		if (name === 'class') made.className = value;
		else if (name === 'onclick') made.addEventListener('click', value);
		else made.setAttribute(name, value === true ? '' : value);
	}
	made.append(...children.filter((child) => child !== null && child !== undefined && child !== false));
	return made;
}

/** A button that copies |text|; |denied|() is called where the browser does not allow it. */
export function copyButton(text, attributes = {}, denied = () => {}) {
	const button = element('button', { class: 'small', ...attributes, onclick: async () => {
		try {
			await navigator.clipboard.writeText(text);
			button.textContent = 'Copied';
		} catch {
			denied();
		}
	} }, 'Copy');
	return button;
}

/**
 * What make(item, i) gives for the first |shown| of |items|, and a button that shows the others, which are called |what|: nothing
 * is left out for good.  |inTable|: the button has a row of its own.
 */
export function firstOf(items, shown, make, what, inTable = false) {
	const made = items.slice(0, shown).flatMap(make);
	if (items.length <= shown) return made;
	let next = shown;
	const words = () => (items.length - next > MORE_AT_ONCE ? `${MORE_AT_ONCE} more of ${showCount(items.length)} ${what}` : `all ${showCount(items.length)} ${what}`);
	const button = element('button', { class: 'link small', onclick: () => {
		const from = next, around = holder.closest('[tabindex]');
		next = Math.min(items.length, from + MORE_AT_ONCE);
		holder.before(...items.slice(from, next).flatMap((item, i) => make(item, from + i)));
		button.textContent = words();
		if (next < items.length) return;
		holder.remove();
		around?.focus({ preventScroll: true });
	} }, words()), holder = inTable ? element('tr', {}, element('td', { class: 'more', colspan: '9' }, button)) : element('p', {}, button);
	return [...made, holder];
}

export function byId(id) {
	return document.getElementById(id);
}

/** A canvas of |width| x |height| CSS pixels, cleared, as a context whose unit is one of these. */
export function prepareCanvas(canvas, width, height) {
	const ratio = Math.min(2, devicePixelRatio || 1);
	if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
		canvas.width = Math.round(width * ratio);
		canvas.height = Math.round(height * ratio);
		canvas.style.width = `${width}px`;
		canvas.style.height = `${height}px`;
	}
	const context = canvas.getContext('2d');
	context.setTransform(ratio, 0, 0, ratio, 0, 0);
	context.clearRect(0, 0, width, height);
	return context;
}

export function drawTriangle(context, x, y, colour, size = 4) {
	context.fillStyle = colour;
	context.beginPath();
	context.moveTo(x - size, y);
	context.lineTo(x + size, y);
	context.lineTo(x, y + size * 1.5);
	context.fill();
}

/** A pole from |top| to |bottom| with a pennant, |at| below its top: to its right, or where the canvas ends, to its left. */
export function drawFlag(context, x, top, bottom, colour, at = 0) {
	const last = context.canvas.clientWidth - 1, pole = x === last + 1 ? last : x, from = pole + 8 > last ? pole + 1 : pole;
	context.fillStyle = colour;
	context.fillRect(pole, top, 1, bottom - top);
	context.beginPath();
	context.moveTo(from, top + at);
	context.lineTo(from + (from > pole ? -8 : 8), top + at + 3.5);
	context.lineTo(from, top + at + 7);
	context.fill();
}

export function drawHatch(context, x, y, width, height, colour, step = 5) {
	// A wait may be millions of times as long as the view: only what is in sight is drawn.
	const left = Math.max(x, -step), right = Math.min(x + width, context.canvas.width);
	if (!(right > left)) return;
	context.save();
	context.beginPath();
	context.rect(left, y, right - left, height);
	context.clip();
	context.strokeStyle = colour;
	context.lineWidth = 1.5;
	context.beginPath();
	for (let at = left - height - (left - x) % step; at < right + height; at += step) {
		context.moveTo(at, y + height);
		context.lineTo(at + height, y);
	}
	context.stroke();
	context.restore();
}
