// SPDX-License-Identifier: Apache-2.0
// sampled_cpu.mjs TRACE REPORT: the CPU time of each callback's stacks as the page folds them, a line each, in ns.

import { readFileSync } from 'node:fs';
import { FrameNames, foldProfiles } from '../../core/toolkit/fold.js';
import { WHOLE, profileOf } from '../../core/toolkit/profile.js';
import { readTrace } from '../../core/toolkit/trace.js';
import { takeWeights } from '../../core/toolkit/weights.js';

const [, , file, told] = process.argv, report = JSON.parse(readFileSync(told, 'utf8'));
const trace = await readTrace([{ name: file, chunks: async function* () { yield new Uint8Array(readFileSync(file)); } }]);
const sumOf = (scope) => foldProfiles([[{ trace, ...profileOf(trace, 'cpu', { ...WHOLE, ...scope }) }]], new FrameNames()).total[0][0];

takeWeights(trace, report.callbacks, report.workers);
const sums = new Map();
for (const { name, location } of report.callbacks) {
	const site = trace.strings.indexOf(location);
	sums.set(name, (sums.get(name) ?? 0) + (site < 0 ? 0 : sumOf({ site })));
}
for (const [name, ns] of sums) console.log(name, Math.round(ns));
console.log('all', Math.round(sumOf({})));
