// SPDX-License-Identifier: Apache-2.0
// Which threads were seen where in a stretch of time.

import { framesOf } from './stacks.js';
import { lowerBound } from './table.js';

/** The function in which a sample was, without what only waits or is the C library's own. */
export function functionOf(trace, stack) {
	const frames = framesOf(trace, stack);
	return (frames.find((frame) => frame.kind === 'own' && frame.known) ?? frames.find((frame) => frame.known) ?? frames[0])?.name ?? '?';
}

/** How often each of |names| occurs: [[name, n]], most often first. */
export function countNames(names) {
	const counts = new Map();
	for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
	return [...counts].sort((a, b) => b[1] - a[1]);
}

/** Threads by samples in [from, to): [{tid, name, on_cpu, off_cpu, mostly}], most samples first. */
export function threadsIn(trace, from, to) {
	const { samples } = trace, threads = new Map();
	for (let i = lowerBound(samples.time, from); i < samples.time.length && samples.time[i] < to; i++) {
		if (!threads.has(samples.tid[i])) threads.set(samples.tid[i], { tid: samples.tid[i], name: samples.thread[i], on_cpu: 0, off_cpu: 0, functions: [] });
		const thread = threads.get(samples.tid[i]);
		thread[samples.source[i] === 1 ? 'off_cpu' : 'on_cpu']++;
		thread.functions.push(functionOf(trace, samples.stack[i]));
	}
	return [...threads.values()].sort((a, b) => b.on_cpu + b.off_cpu - a.on_cpu - a.off_cpu)
		.map(({ functions, ...thread }) => ({ ...thread, mostly: countNames(functions)[0][0] }));
}
