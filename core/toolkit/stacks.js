// SPDX-License-Identifier: Apache-2.0
// Stacks of samples as names, folded into a tree.

/** Frames of an address, innermost first: [{name, where}]; an address without a name is shown as itself. */
function namedFrames(trace, address) {
	const frames = trace.symbols.get(address);
	if (frames) return frames.map((f) => ({ name: f.name, where: f.file ? `${f.file.replace(/.*\//, '')}:${f.line}` : '', known: true }));
	const place = placeOf(trace, address);
	return [{ name: place ?? `0x${address.toString(16)}`, where: '', known: false }];
}

/** "module+0xoffset" of an address by the modules that the trace tells. */
function placeOf(trace, address) {
	const module = trace.modules?.find((m) => address >= m.start && address < m.start + m.size);
	return module ? `${module.path.replace(/.*\//, '')}+0x${(address - module.base).toString(16)}` : null;
}

/** Frames of a stack, innermost first. */
export function framesOf(trace, stack) {
	return (trace.stacks[stack] ?? []).flatMap((address) => namedFrames(trace, address));
}

/**
 * A tree of |counts|, samples by stack number: {name, where, own, total, children}, from the outermost
 * frame, or from the innermost with |inverted|.  Children are in the order of their samples, most first.
 */
export function foldStacks(trace, counts, inverted = false) {
	const root = { name: '', where: '', known: true, own: 0, total: 0, children: new Map() };
	for (const [stack, n] of counts) {
		const frames = framesOf(trace, stack);
		let node = root;
		root.total += n;
		for (const frame of inverted ? frames : frames.reverse()) {
			if (!node.children.has(frame.name)) node.children.set(frame.name, { ...frame, own: 0, total: 0, children: new Map() });
			node = node.children.get(frame.name);
			node.total += n;
		}
		node.own += n;
	}
	return root;
}
