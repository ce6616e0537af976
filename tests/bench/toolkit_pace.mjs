// SPDX-License-Identifier: Apache-2.0
// How quickly the toolkit reads, folds and draws: the same measurements in Node and in a page.

/**
 * Figures of the toolkit at the address |toolkit|, and of the viewer's at |viewer| unless that is null: [[name, value, unit]].
 * |packed|: a segment of ten million events.  A page gets this function as text, so it has everything inside.
 */
export async function pace(toolkit, viewer, packed) {
	const module = (name) => import(`${toolkit}${name}.js`);
	const [{ readTrace }, { prepareTrace }, { unpack }, { foldProfiles, FrameNames }, { profileOf }] =
		await Promise.all(['trace', 'prepare', 'unpack', 'fold', 'profile'].map(module));
	const TIMES = 5, PIECE = 1 << 20, SAMPLES = 1e6, STACKS = 20000, DEEPEST = 48;
	const figures = [];
	const pieces = async function* (bytes) {
		for (let at = 0; at < bytes.length; at += PIECE) yield bytes.subarray(at, at + PIECE);
	};
	const read = (bytes) => readTrace([{ name: 'a', bytes: bytes.length, chunks: () => pieces(bytes) }]);
	const join = (parts) => {
		const joined = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
		let at = 0;
		for (const part of parts) {
			joined.set(part, at);
			at += part.length;
		}
		return joined;
	};
	const unpacked = async (bytes) => {
		const parts = [];
		for await (const piece of unpack(pieces(bytes))) parts.push(piece.bytes);
		return join(parts);
	};
	/** The median of some runs in s, and what the last one gave. */
	const timed = async (run) => {
		const times = [];
		let result;
		for (let i = 0; i < TIMES; i++) {
			const began = performance.now();
			result = await run();
			times.push((performance.now() - began) / 1000);
		}
		return [times.sort((a, b) => a - b)[TIMES >> 1], result];
	};
	const buffers = (value, found = new Set(), seen = new Set()) => {
		if (ArrayBuffer.isView(value)) {
			found.add(value.buffer);
		} else if (value && typeof value === 'object' && !seen.has(value)) {
			seen.add(value);
			for (const part of value instanceof Map ? value.values() : Object.values(value)) buffers(part, found, seen);
		}
		return found;
	};
	const bytesOf = (trace) => [...buffers(trace)].reduce((sum, buffer) => sum + buffer.byteLength, 0);

	const whole = await unpacked(packed), part = whole.subarray(0, 12 << 20), began = performance.now();
	const { events } = await read(part);
	figures.push(['decode, the first million events', events / 1e3 / (performance.now() - began), 'M events/s']);
	const [decoding, trace] = await timed(() => read(whole));
	figures.push(['decode, hot events', trace.events / 1e6 / decoding, 'M events/s']);
	figures.push(['columns of an event', bytesOf(trace) / trace.events, 'bytes']);
	prepareTrace(trace);
	figures.push(['columns and indices of an event', bytesOf(trace) / trace.events, 'bytes']);
	const [unpacking] = await timed(() => unpacked(packed));
	figures.push(['zstd', whole.length / 1e6 / unpacking, 'MB/s']);
	const zipped = new Uint8Array(await new Response(new Blob([whole]).stream().pipeThrough(new CompressionStream('gzip'))).arrayBuffer());
	const [unzipping] = await timed(() => unpacked(zipped));
	figures.push(['gzip', whole.length / 1e6 / unzipping, 'MB/s']);

	// Events of a program's own: a header, a time base, a schema of four fields, and a million of them.
	const text = (s) => [s.length, 0, ...new TextEncoder().encode(s)], OWN = 1e6;
	const head = [0x54, 0x52, 0x43, 0, 1, 0x05, 0, 0, 0, 1, 0, 0, 0, 0, 0x01, 7, 0, ...text('OwnEvent'), 1, 4, 0,
		...text('a'), 9, ...text('b'), 9, ...text('c'), 11, ...text('d'), 13];
	const own = new Uint8Array(head.length + OWN * 14);
	own.set(head);
	for (let i = 0, at = head.length; i < OWN; i++, at += 14) own.set([0x02, 7, 0, i & 0xff, 1, 0, 0x80 | (i & 0x7f), 3, i & 0x7f, i & 0xff, i & 0xff, 1, 0, 0], at);
	const [reading, ownTrace] = await timed(() => read(own));
	figures.push(['decode, events of any schema', ownTrace.events / 1e6 / reading, 'M events/s']);

	// A million samples of 20,000 stacks, which share their outer frames.
	let seed = 1;
	const random = (n) => (seed = Math.imul(seed, 1103515245) + 12345 >>> 0) / 2 ** 32 * n | 0;
	const stacks = Array.from({ length: STACKS }, (_, i) => {
		const depth = 8 + random(DEEPEST - 8), shared = Math.min(depth, 4 + random(24)), stack = [];
		for (let d = 0; d < depth; d++) stack.push(0x400000 + (d < shared ? d * 16 + (d > 3 ? i % (d + 1) : 0) : 4096 + random(3000)) * 16);
		return stack.reverse();
	});
	const column = (of) => Float64Array.from({ length: SAMPLES }, of);
	const sampled = { stacks, symbols: new Map(), modules: [], metadata: new Map(), workers: [], tables: [],
		samples: { time: column((_, i) => i), worker: column(() => 0), tid: column(() => 1), source: column(() => 0), cut: column(() => 0), stack: column(() => random(STACKS)) } };
	const [folding, folded] = await timed(() => {
		const names = new FrameNames();
		return { names, tree: foldProfiles([[{ trace: sampled, weights: profileOf(sampled, 'cpu').weights }]], names) };
	});
	figures.push([`fold a million samples of 20,000 stacks, ${folded.tree.n} nodes`, folding * 1000, 'ms']);
	if (viewer) {
		const { Flame } = await import(`${viewer}flame.js`);
		const flame = new Flame({ onZoom() {}, onFocus() {}, label: 'pace' });
		document.body.append(flame.box);
		const [drawing] = await timed(() => flame.show({ ...folded, zoom: [], find: '', amount: String, title: 'all', inverted: false }));
		flame.box.remove();
		figures.push(['draw its flame graph', drawing * 1000, 'ms']);
	}
	return figures;
}
