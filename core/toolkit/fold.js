// SPDX-License-Identifier: Apache-2.0
// Stacks folded into one tree: of one profile, or of two beside each other; and what is read off it.
//
// A tree is arrays over its nodes in the order of a walk from the outermost frame: node 0 is the root, the
// children of a node are i + 1 and what follows the end of each child before end[node].

import { FRAMES_MAX, framesOfAddress, shownAddresses } from './stacks.js';

const CUT = '[cut stack]', NONE = '[no stack]';

/** Names of frames, each once: by its number name, where, and kind (own, lib, kernel, unknown, note). */
export class FrameNames {
	constructor() {
		this.byKey = new Map();
		this.list = [];
		this.byTrace = new Map();
	}

	id(name, where, kind) {
		const key = kind === 'kernel' ? `${name}_[k]` : name;
		let id = this.byKey.get(key);
		if (id === undefined) this.byKey.set(key, id = this.list.push({ name, key, where, kind }) - 1);
		return id;
	}

	/** Numbers of the frames of an address, outermost first. */
	ofAddress(trace, address) {
		let known = this.byTrace.get(trace);
		if (!known) this.byTrace.set(trace, known = new Map());
		let ids = known.get(address);
		if (!ids) known.set(address, ids = framesOfAddress(trace, address).map((frame) => this.id(frame.name, frame.where, frame.kind)).reverse());
		return ids;
	}

	/** Numbers of the frames of a stack by its key, outermost first; |root| as of shownAddresses(). */
	ofStack(trace, key, root) {
		if (key < 0) return [this.id(NONE, '', 'note')];
		const all = trace.stacks[key >> 1] ?? [];
		if (!all.length) return [this.id(NONE, '', 'note')];
		const { addresses, rooted, named } = shownAddresses(trace, all.slice(0, FRAMES_MAX), root), path = [];
		if (rooted && !named) path.push(this.id(root, '', 'own'));
		else if (!rooted && (key % 2 || all.length > FRAMES_MAX)) path.push(this.id(CUT, '', 'note'));
		for (let i = addresses.length - 1; i >= 0; i--) path.push(...this.ofAddress(trace, addresses[i]));
		return path;
	}
}

function comparePaths(a, b) {
	const n = Math.min(a.path.length, b.path.length);
	for (let i = 0; i < n; i++) if (a.path[i] !== b.path[i]) return a.path[i] - b.path[i];
	return a.path.length - b.path.length;
}

/**
 * The tree of |sides|, one or two lists of {trace, weights, root}: {n, frame, depth, parent, end, own, total}, own and
 * total with an array for each side.  |inverted|: from the innermost frame.  |keep|(path) says which stacks count.
 */
export function foldProfiles(sides, names, { inverted = false, keep = null } = {}) {
	const paths = [];
	let most = 1;
	for (const [side, profiles] of sides.entries())
		for (const { trace, weights, root = null } of profiles)
			for (const [key, weight] of weights) {
				const path = names.ofStack(trace, key, root);
				if (keep && !keep(path)) continue;
				paths.push({ path: inverted ? [...path].reverse() : path, side, weight });
				most += path.length;
			}
	paths.sort(comparePaths);
	const tree = { n: 1, frame: new Int32Array(most), depth: new Uint16Array(most), parent: new Int32Array(most), end: new Int32Array(most),
		own: sides.map(() => new Float64Array(most)), total: sides.map(() => new Float64Array(most)) };
	tree.frame[0] = tree.parent[0] = -1;
	const open = [0];
	let before = [];
	for (const { path, side, weight } of paths) {
		let same = 0;
		while (same < path.length && same < before.length && path[same] === before[same]) same++;
		while (open.length > same + 1) tree.end[open.pop()] = tree.n;
		for (let i = same; i < path.length; i++) {
			const node = tree.n++;
			tree.frame[node] = path[i];
			tree.depth[node] = i + 1;
			tree.parent[node] = open.at(-1);
			open.push(node);
		}
		tree.own[side][open.at(-1)] += weight;
		before = path;
	}
	while (open.length) tree.end[open.pop()] = tree.n;
	for (let side = 0; side < sides.length; side++)
		for (let i = tree.n - 1; i >= 0; i--) {
			tree.total[side][i] += tree.own[side][i];
			if (i) tree.total[side][tree.parent[i]] += tree.total[side][i];
		}
	return tree;
}

/** The weight of a node over all sides. */
export function weightOf(tree, node) {
	return tree.total.reduce((sum, total) => sum + total[node], 0);
}

/** Children of a node, most weight first. */
export function childrenOf(tree, node) {
	const found = [];
	for (let child = node + 1; child < tree.end[node]; child = tree.end[child]) found.push(child);
	return found.sort((a, b) => weightOf(tree, b) - weightOf(tree, a) || a - b);
}

/** Frames from the root's child to |node|, as numbers. */
export function pathOf(tree, node) {
	const path = [];
	for (let i = node; i > 0; i = tree.parent[i]) path.push(tree.frame[i]);
	return path.reverse();
}

/** The node that |path| of names leads to, as far as it goes: the root where nothing fits. */
export function nodeAt(tree, names, path) {
	let node = 0;
	for (const key of path) {
		const child = childrenOf(tree, node).find((i) => names.list[tree.frame[i]].key === key);
		if (child === undefined) return node;
		node = child;
	}
	return node;
}

/**
 * What each function has itself, and with all it called, on each side: [{frame, own: [], total: []}]; a function
 * that calls itself counts once.
 */
export function functionsOf(tree) {
	const byFrame = new Map(), open = [], onStack = new Map();
	for (let node = 1; node < tree.n; node++) {
		while (open.length >= tree.depth[node]) {
			const frame = tree.frame[open.pop()];
			onStack.set(frame, onStack.get(frame) - 1);
		}
		const frame = tree.frame[node], outer = onStack.get(frame) ?? 0;
		let row = byFrame.get(frame);
		if (!row) byFrame.set(frame, row = { frame, own: tree.own.map(() => 0), total: tree.own.map(() => 0) });
		for (let side = 0; side < tree.own.length; side++) {
			row.own[side] += tree.own[side][node];
			if (!outer) row.total[side] += tree.total[side][node];
		}
		onStack.set(frame, outer + 1);
		open.push(node);
	}
	return [...byFrame.values()];
}

/**
 * The weight below frames that |found|(frame) accepts, none counted twice, and the number of such nodes:
 * {weight, nodes}.
 */
export function matchesOf(tree, found) {
	let weight = 0, nodes = 0, until = 0;
	for (let node = 1; node < tree.n; node++) {
		if (!found(tree.frame[node])) continue;
		nodes++;
		if (node < until) continue;
		weight += weightOf(tree, node);
		until = tree.end[node];
	}
	return { weight, nodes };
}

/** Folded stacks as lines "outermost;...;innermost count", as `dial9 export --format folded` writes them. */
export function foldedLines(tree, names) {
	const lines = [];
	for (let node = 1; node < tree.n; node++) {
		const own = tree.own.reduce((sum, side) => sum + side[node], 0);
		if (own) lines.push(`${pathOf(tree, node).map((frame) => names.list[frame].key.replaceAll(';', ':').replace(/[\r\n]/g, '')).join(';')} ${Math.round(own)}`);
	}
	return lines.sort();
}
