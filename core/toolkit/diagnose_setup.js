#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
// Whether a trace was recorded well enough to judge by, and what to do if not.

import { framesOf } from './stacks.js';
import { runScript, wrapText } from './script.js';
import { showCount, showName } from './show.js';
import { rowsNamed } from './trace.js';

const SETUP_USAGE = `usage: node diagnose_setup.js [--json] TRACE...

Whether a trace was recorded well enough to judge by, and what to do if not.
dial9 doctor tells the same of a machine before anything is recorded.

  -j, --json   a JSON array: process, check, severity, message, advice

Exit status: 0 fine, 1 something is missing, 2 bad usage or a damaged trace.
`;

const ENOUGH_SAMPLES = 10;

function stackFacts(trace) {
	const seen = trace.samples.stack.map((stack) => framesOf(trace, stack)), named = seen.filter((frames) => frames.some((frame) => frame.known)).length;
	return { n: seen.length, named, depth: seen.reduce((sum, frames) => sum + frames.length, 0) / (seen.length || 1) };
}

/** Rules: each tells of a trace and its stackFacts() what is wrong and what to do, or null. */
const SETUP_RULES = [
	(trace) => (trace.workers.some((worker) => worker.polls.n) ? null : { check: 'no-polls', severity: 'critical', message: 'No callback of an event loop was recorded.',
		advice: 'Ask dial9 doctor -- PROGRAM: the loop library may be linked statically, or of a kind that has no adapter.' }),
	(trace) => (trace.lost ? { check: 'lost-events', severity: 'warning', message: `${showCount(trace.lost)} events were lost: figures are of the rest.`, advice: 'Record with a larger ring: DIAL9_RING_MB=64.' } : null),
	(trace) => {
		const cut = trace.segments.filter((segment) => segment.cut || segment.error);
		return cut.length ? { check: 'cut-segments', severity: 'info', message: `${cut.length} of ${trace.segments.length} segments end early: ${showName(cut[0].name)}.`, advice: 'After a kill run dial9 recover; of a running program use dial9 rotate first.' } : null;
	},
	(trace) => {
		const degraded = [...trace.metadata].find(([key, value]) => /^loop\..*\.degraded$/.test(key) && value);
		return degraded ? { check: 'degraded-hooks', severity: 'warning', message: `${showName(degraded[0])}: ${showName(degraded[1])}`, advice: 'Figures of what is missing there mean nothing; dial9 info tells which hooks took hold.' } : null;
	},
	(trace) => (trace.tasks.size && !trace.wakes.n ? { check: 'no-wakes', severity: 'warning', message: 'Tasks were registered, but nothing tells when they became ready: waits are not known.',
		advice: 'Record with the adapter of the loop library; see dial9-record(1).' } : null),
	(trace) => (trace.samples.time.length ? null : { check: 'no-samples', severity: 'info', message: 'No stack was sampled: what a callback computes in is not known.', advice: 'Record without --cpu off; see dial9 doctor about perf and timers.' }),
	(trace, facts) => (facts.n > ENOUGH_SAMPLES && facts.depth < 3 ? { check: 'short-stacks', severity: 'critical', message: `Stacks have ${facts.depth.toFixed(1)} frames on average: unwinding fails.`,
		advice: 'Compile with -funwind-tables (or -fasynchronous-unwind-tables), and do not strip .eh_frame.' } : null),
	(trace, facts) => (facts.n > ENOUGH_SAMPLES && facts.named < 0.1 * facts.n ? { check: 'no-symbols', severity: 'warning', message: `${facts.named} of ${facts.n} samples have names of functions.`,
		advice: 'Run dial9 symbolize -o OUT TRACE where the binaries are, and use OUT; install debug symbols of libraries.' } : null),
	(trace) => {
		const refused = rowsNamed(trace, 'RecorderHealthEvent', ['refused_sources']).map((row) => row.refused_sources).find((text) => typeof text === 'string' && text);
		return refused ? { check: 'refused-source', severity: 'warning', message: `Not permitted: ${showName(refused)}`, advice: 'dial9 doctor names the setting that would permit it.' } : null;
	},
];

await runScript('diagnose_setup.js', { usage: SETUP_USAGE, main: (processes) => {
	const found = processes.flatMap(({ folder, trace }) => {
		const facts = stackFacts(trace);
		return SETUP_RULES.map((rule) => rule(trace, facts)).filter(Boolean).map((one) => ({ process: showName(folder), ...one }));
	});
	const bad = found.some((one) => one.severity !== 'info');
	return { text: found.length ? found.map((one) => `${wrapText(`${one.severity}: ${one.check}: ${one.message}`, '  ')}\n${wrapText(`  ${one.advice}`, '  ')}`).join('\n') : 'nothing is missing',
		json: JSON.stringify(found), status: bad ? 1 : 0 };
} });
