// SPDX-License-Identifier: Apache-2.0
// The flame graph of a folded tree: outermost frames on top, width is weight, order is by size.  What is narrower
// than a pixel is drawn as one grey rest, which opens like a frame.

import { childrenOf, matchesOf, nodeAt, pathOf, weightOf } from '../toolkit/fold.js';
import { fitName, showName, showShare } from '../toolkit/show.js';
import { byId, element, prepareCanvas } from './dom.js';
import { colours } from './theme.js';

const ROW_HEIGHT = 20, LETTER_WIDTH = 7.23, LEAST = 1;
const REST_PAGE = 250, REST_SHARE = 0.1; // of an opened rest so many frames, and behind them the next rest, so wide
const REST = '\u2026';

/** The tone of a name: neighbours differ. */
function toneOf(name, n) {
	let hash = 7;
	for (let i = 0; i < name.length; i++) hash = Math.imul(hash, 31) + name.charCodeAt(i) | 0;
	return 1 + Math.abs(hash) % n;
}

export const FRAME_KINDS = { own: 'the program', lib: 'a library', kernel: 'the kernel', unknown: 'no name is known', note: 'a note of the recorder' };

/**
 * A flame graph in |box|.  show() takes {tree, names, zoom, find, amount(weight), title, inverted}, and of two sides difference(node)
 * and sides, [{name, amount(weight)}]; |onZoom|(path) hears
 * where to, |onFocus|(node) which frame has the focus.
 */
export class Flame {
	constructor({ onZoom, onFocus, label }) {
		this.canvas = element('canvas', { 'aria-hidden': 'true' });
		this.item = element('div', { class: 'hidden-text', role: 'img', id: `${label}-item` });
		this.box = element('div', { class: 'flame', tabindex: '0', role: 'application', 'aria-roledescription': 'flame graph',
			'aria-label': 'Flame graph: arrows move between frames, Enter zooms in, Backspace zooms out. The call tree has the same frames.', 'aria-activedescendant': this.item.id }, this.canvas, this.item);
		Object.assign(this, { onZoom, onFocus, shown: null, rects: [], focused: 0 });
		this.box.addEventListener('pointermove', (event) => this.hover(event));
		this.box.addEventListener('pointerleave', () => this.leave());
		this.box.addEventListener('click', (event) => this.click(event));
		this.box.addEventListener('contextmenu', (event) => {
			event.preventDefault();
			this.zoomOut();
		});
		this.box.addEventListener('keydown', (event) => this.key(event));
		new ResizeObserver(() => this.shown && this.draw()).observe(this.box);
	}

	show(shown) {
		const other = this.shown?.tree !== shown.tree;
		this.shown = shown;
		const { tree, names, find } = shown, text = find.toLowerCase();
		// A rest is the children of a node behind its largest ones.
		this.rest = Boolean(shown.zoom.at(-1)?.startsWith(REST));
		this.top = nodeAt(tree, names, shown.zoom.filter((key) => !key.startsWith(REST)));
		this.skip = this.rest ? Number(shown.zoom.at(-1).slice(1)) || 0 : 0;
		this.found = text ? (frame) => names.list[frame].name.toLowerCase().includes(text) : null;
		this.matches = this.found ? matchesOf(tree, this.found) : null;
		if (other) this.focused = this.top;
		if (!this.isBelowTop(this.focused)) this.focused = this.top;
		this.draw();
		this.tell();
	}

	isBelowTop(node) {
		return node >= this.top && node < this.shown.tree.end[this.top];
	}

	/** Rectangles in sight: {node, rest, x, width, row, weight}; node -1 for a rest, which has its parent and how many to skip. */
	layout(width) {
		const { tree } = this.shown, rects = [], path = [];
		for (let node = this.top; node >= 0; node = tree.parent[node]) path.unshift(node);
		path.forEach((node, row) => rects.push({ node, x: 0, width, row, weight: weightOf(tree, node), above: node !== this.top }));
		const visit = (node, x, space, row, skip) => {
			const opened = node === this.top && this.rest, children = childrenOf(tree, node).slice(skip), end = x + space;
			const page = opened ? children.slice(0, REST_PAGE) : children, more = page.length < children.length;
			const whole = opened ? page.reduce((sum, child) => sum + weightOf(tree, child), 0) / (more ? 1 - REST_SHARE : 1) : weightOf(tree, node);
			for (let i = 0; i < children.length; i++) {
				const weight = weightOf(tree, children[i]), w = weight / whole * space;
				if (w < LEAST || i >= page.length) {
					const left = children.slice(i).reduce((sum, child) => sum + weightOf(tree, child), 0);
					if (left) rects.push({ node: -1, parent: node, skip: skip + i, n: children.length - i, x, width: opened ? end - x : Math.max(2, left / whole * space), row, weight: left });
					break;
				}
				rects.push({ node: children[i], x, width: w, row, weight });
				visit(children[i], x, w, row + 1, 0);
				x += w;
			}
		};
		visit(this.top, 0, width, path.length, this.skip);
		return rects;
	}

	draw() {
		const width = Math.max(100, this.box.clientWidth);
		this.rects = this.layout(width);
		const depth = this.rects.reduce((most, rect) => Math.max(most, rect.row), 0) + 1;
		const context = prepareCanvas(this.canvas, width, depth * ROW_HEIGHT);
		context.textBaseline = 'middle';
		for (const rect of this.rects) this.drawRect(context, rect);
	}

	fill(rect, palette) {
		const { tree, names, difference } = this.shown;
		if (rect.node < 0) return [palette['line-2'], palette.text, 1];
		if (rect.node === 0) return [palette.raised, palette.text, 1];
		const frame = names.list[tree.frame[rect.node]];
		if (this.found?.(tree.frame[rect.node])) return [palette.accent, palette.bg, 1];
		if (difference) {
			const change = Math.max(-1, Math.min(1, difference(rect.node) / 0.3));
			if (Math.abs(change) < 0.02) return [palette['f-lib1'], palette.text, 1];
			return [change > 0 ? palette.alarm : palette.accent, Math.abs(change) > 0.5 ? palette.bg : palette.text, 0.16 + Math.abs(change) * 0.62];
		}
		if (frame.kind === 'own') return [palette[`f-own${toneOf(frame.name, 3)}`], palette.text, 1];
		if (frame.kind === 'kernel') return [palette[`f-ker${toneOf(frame.name, 2)}`], palette.text, 1];
		return [palette[`f-lib${toneOf(frame.name, 2)}`], palette.text, 1];
	}

	nameOf(rect) {
		const { tree, names, title } = this.shown;
		if (rect.node < 0) return `${rect.n} narrower`;
		return rect.node === 0 ? title : showName(names.list[tree.frame[rect.node]].name);
	}

	drawRect(context, rect) {
		const { tree, difference } = this.shown, palette = colours(), y = rect.row * ROW_HEIGHT;
		const x = Math.round(rect.x), width = Math.max(1, Math.round(rect.x + rect.width) - x - 1), [fill, ink, strength] = this.fill(rect, palette);
		context.globalAlpha = strength * (rect.above ? 0.6 : 1);
		context.fillStyle = fill;
		context.fillRect(x, y, width, ROW_HEIGHT - 1);
		context.globalAlpha = 1;
		const room = Math.floor((width - 8) / LETTER_WIDTH), name = this.nameOf(rect), label = room < 3 ? '' : fitName(name, room);
		if (label) {
			context.font = rect.node === 0 ? `600 ${colours().mono}` : colours().mono;
			context.fillStyle = ink;
			context.fillText(label, x + 4, y + ROW_HEIGHT / 2);
			const change = difference && rect.node > 0 ? difference(rect.node) * 100 : 0;
			const share = difference ? Math.abs(change) < 0.05 ? '' : `${change > 0 ? '+' : '−'}${Math.abs(change).toFixed(1)}` : showShare(rect.weight, weightOf(tree, 0));
			if (label === name && share && room > name.length + share.length + 2) {
				context.font = colours().mono;
				context.textAlign = 'right';
				context.fillText(share, x + width - 5, y + ROW_HEIGHT / 2);
				context.textAlign = 'left';
			}
		}
		if (rect.node !== this.focused || rect.node < 0) return;
		context.strokeStyle = palette.text;
		context.lineWidth = 1;
		context.strokeRect(x + 0.5, y + 0.5, Math.max(1, width - 1), ROW_HEIGHT - 2);
	}

	/** What a frame has, as lines of text. */
	describe(rect) {
		const { tree, names, amount, sides, inverted } = this.shown, whole = weightOf(tree, 0);
		if (rect.node < 0) return [`${rect.n} frames narrower than a pixel`, `${amount(rect.weight)}, ${showShare(rect.weight, whole)}`, 'opens by a click'];
		const own = tree.own.reduce((sum, side) => sum + side[rect.node], 0), frame = rect.node ? names.list[tree.frame[rect.node]] : null;
		const lines = [this.nameOf(rect)];
		if (sides) lines.push(...sides.map((side, i) => `${side.name}: ${showShare(tree.total[i][rect.node], tree.total[i][0])}, ${side.amount(tree.total[i][rect.node])}`));
		else if (inverted && tree.depth[rect.node] !== 1) lines.push(`${amount(rect.weight)}, ${showShare(rect.weight, whole)}${rect.node ? ', on the way to what is above' : ''}`);
		else lines.push(`${amount(rect.weight)}, ${showShare(rect.weight, whole)}, itself ${amount(inverted ? rect.weight : own)}`);
		if (frame) lines.push([FRAME_KINDS[frame.kind], showName(frame.where)].filter(Boolean).join(', '));
		return lines;
	}

	rectAt(event) {
		const { left, top } = this.canvas.getBoundingClientRect(), x = event.clientX - left, row = Math.floor((event.clientY - top) / ROW_HEIGHT);
		return this.rects.find((rect) => rect.row === row && x >= rect.x && x < rect.x + rect.width);
	}

	hover(event) {
		const tooltip = byId('tooltip'), rect = this.shown && this.rectAt(event);
		this.canvas.style.cursor = rect ? 'pointer' : 'default';
		tooltip.hidden = !rect;
		if (!rect) return;
		const [first, ...rest] = this.describe(rect);
		tooltip.replaceChildren(element('div', { class: 'code' }, first), ...rest.map((line) => element('div', { class: 'small' }, line)));
		const { width, height } = tooltip.getBoundingClientRect();
		tooltip.style.left = `${Math.max(4, Math.min(event.clientX + 12, innerWidth - width - 8))}px`;
		tooltip.style.top = `${event.clientY + 18 + height > innerHeight ? event.clientY - height - 12 : event.clientY + 18}px`;
	}

	leave() {
		byId('tooltip').hidden = true;
	}

	click(event) {
		const rect = this.rectAt(event);
		if (!rect) return;
		this.leave();
		this.zoomTo(rect);
	}

	zoomTo(rect) {
		if (rect.node >= 0) {
			this.focused = rect.node;
			this.onZoom(this.keysOf(rect.node));
		} else if (rect.parent === this.top) {
			this.onZoom([...this.keysOf(rect.parent), `${REST}${rect.skip}`]);
		} else {
			this.onZoom(this.keysOf(rect.parent));
		}
	}

	keysOf(node) {
		const { tree, names } = this.shown;
		return pathOf(tree, node).map((frame) => names.list[frame].key);
	}

	zoomOut() {
		if (this.rest) this.onZoom(this.keysOf(this.top));
		else if (this.top > 0) this.onZoom(this.keysOf(this.shown.tree.parent[this.top]));
	}

	/** Frames whose parent is that of the focused one, from the left. */
	neighbours() {
		const at = this.rects.find((rect) => rect.node === this.focused), row = at ? at.row : 0;
		return this.rects.filter((rect) => rect.row === row && rect.node >= 0).sort((a, b) => a.x - b.x);
	}

	key(event) {
		if (!this.shown || event.ctrlKey || event.metaKey || event.altKey) return;
		const { tree } = this.shown, inSight = (node) => this.rects.some((rect) => rect.node === node);
		if (event.key === 'ArrowDown') {
			const child = childrenOf(tree, this.focused).find(inSight);
			if (child !== undefined) this.focused = child;
		} else if (event.key === 'ArrowUp') {
			this.focused = Math.max(0, tree.parent[this.focused]);
		} else if (event.key === 'ArrowRight' || event.key === 'ArrowLeft') {
			const row = this.neighbours(), at = row.findIndex((rect) => rect.node === this.focused);
			this.focused = row[at + (event.key === 'ArrowRight' ? 1 : -1)]?.node ?? this.focused;
		} else if (event.key === 'Enter') {
			const rest = this.rects.find((rect) => rect.node < 0 && rect.parent === this.focused);
			// On the frame that fills the width, Enter opens what is too narrow to be seen.
			if (this.focused === this.top && rest) this.zoomTo(rest);
			else this.onZoom(this.keysOf(this.focused));
		} else if (event.key === 'Backspace') {
			this.zoomOut();
		} else if (event.key === 'Home') {
			this.onZoom([]);
		} else {
			return;
		}
		event.preventDefault();
		event.stopPropagation();
		this.draw();
		this.tell();
	}

	tell() {
		const rect = this.rects.find((r) => r.node === this.focused) ?? this.rects[0];
		this.item.setAttribute('aria-label', this.describe(rect).join(', '));
		this.onFocus?.(this.focused, this.describe(rect));
	}
}
