// SPDX-License-Identifier: Apache-2.0
// Red flags of the trace itself: they come first, for they limit what all others can say.

import { newFlag } from './flags.js';
import { showCount, showName } from './show.js';
import { tablesNamed } from './trace.js';
import { lossesOf } from './trust.js';

const LOSS_CRITICAL = 0.01;

/** What loop libraries tell of their hooks: the end of the key, severity, and the sentence for a library and what it says. */
const HOOK_TROUBLES = [
	['refused', 'critical', (loop, why) => `Nothing of ${loop} is recorded: ${why}.`, 'Try dial9 doctor -- COMMAND, which tells how to mend what is wrong: what runs on its loops is missing from all figures.'],
	['degraded', 'warning', (loop, why) => `Hooks of ${loop} are degraded: ${why}.`, 'Draw no conclusion that needs what is missing; dial9 info tells what the hooks see, the man page of the adapter how to get the rest.'],
	['loops_dropped', 'warning', (loop, n) => `Loops of ${loop} are not in the trace: attaching one failed (${n} x).`, 'Make fewer loops at once, or leave more memory and threads to the program.'],
	['stubs_full', 'warning', (loop, n) => `${n} callbacks of ${loop} could not be hooked.`, 'Take figures as lower bounds: calls of the rest are not in the trace.'],
];

function emptyFlags(trace) {
	if (trace.events && (trace.workers.length || trace.samples.time.length || tablesNamed(trace, 'AllocEvent').length)) return [];
	return [newFlag('nothing-recorded', 'critical', 0, trace.events ? `The trace holds no loop activity: ${showCount(trace.events)} events, but no callback and no wait of any loop.`
		: 'The trace is empty: it holds no event at all.', { advice: 'Check that a loop was attached, or that the program was started by dial9 record; dial9 doctor tells what can be recorded.' })];
}

function lossFlags(trace) {
	const losses = lossesOf(trace), share = trace.lost / (trace.events + trace.lost);
	if (!losses.length) {
		return trace.metadata.get('segment.complete') !== 'false' ? []
			: [newFlag('incomplete-data', 'warning', 0, 'The recorder says that a segment is not complete.', { advice: 'Take counts and sums as lower bounds.' })];
	}
	const lost = showCount(trace.lost), part = `${(100 * share).toFixed(1)}\u2009%`;
	return [newFlag('incomplete-data', share > LOSS_CRITICAL ? 'critical' : 'warning', trace.lost, `${lost} events were lost (${part} of all): figures below are lower bounds.`, {
		brief: `${lost} events lost (${part}): figures are lower bounds`,
		advice: 'Give the recorder more memory or a faster disk, or record less. A callback that was cut by a gap ends where the gap begins.',
		evidence: losses.map(({ cause, events, from, to }) => ({ text: `cause ${showName(cause)}: ${showCount(events)} events`, ...(Number.isFinite(from) && { time: from, duration: Math.max(0, to - from) }) })),
	})];
}

/** Segments that could not be read to their end. */
function damageFlags({ segments }) {
	const flags = [], of = (n) => `in ${n} of ${segments.length} segments`, evidence = (list) => list.map(({ name, error }) => ({ text: showName(error ? `${name}: ${error}` : `${name} ends early`) }));
	const damaged = segments.filter(({ error, full }) => error && !full), full = segments.filter((segment) => segment.full);
	const active = segments.filter(({ name }) => name.endsWith('.active')), cut = segments.filter((segment) => segment.cut && !active.includes(segment));
	if (damaged.length)
		flags.push(newFlag('incomplete-data', 'critical', damaged.length, `Damage ${of(damaged.length)}.`, { evidence: evidence(damaged),
			advice: 'Copy the segment again, if there is another: what follows the damage in that segment is missing from all figures.' }));
	if (full.length)
		flags.push(newFlag('incomplete-data', 'critical', full.length, `Not all was read: ${showName(full[0].error)}.`, { evidence: evidence(full), advice: 'Open fewer segments at once, or ask dial9 report, which needs less memory.' }));
	if (cut.length || active.length)
		flags.push(newFlag('incomplete-data', cut.length ? 'warning' : 'info', cut.length, `The end is missing ${of(cut.length || active.length)}: ${cut.length ? 'cut in the middle of a frame' : 'never sealed (.active)'}.`, {
			evidence: evidence(cut.length ? cut : active),
			advice: cut.length ? 'Copy the trace again when the program has ended, or free the disk if that was full. Times before the cut are right.'
				: 'Stop the program to have its last events, if it still runs; of a killed one, dial9 recover saves them.' }));
	return flags;
}

/** Segments that the recorder gave up because the device was full; those that are here after all were copied before. */
function evictedFlags({ metadata, segments }) {
	const numbers = new Set(segments.map(({ name }) => /(?:^|\/)trace\.(\d+)\./.exec(name)?.[1]).filter(Boolean).map(Number));
	const gone = (metadata.get('segment.evicted') ?? '').split(',').filter((range) => {
		const [, first, last = first] = /^(\d+)(?:-(\d+))?$/.exec(range) ?? [];
		return first && ![...numbers].some((n) => n >= Number(first) && n <= Number(last));
	});
	return !gone.length ? [] : [newFlag('incomplete-data', 'warning', 1, 'There was more: the recorder deleted its oldest segments because the device was full.', {
		brief: 'oldest segments deleted, because the device was full',
		advice: 'Keep room for the trace, on a device of its own if others fill this one, or let it take less (--max-total): figures are of what is left.',
		evidence: gone.map((range) => ({ text: showName(`segment ${range}`, 100) })) })];
}

/** Recording that ended before the program did, as behind a seccomp filter of all threads. */
function endFlags({ metadata }) {
	const when = metadata.get('recorder.ended');
	return !when ? [] : [newFlag('incomplete-data', 'warning', 0, `Recording ended before the program did, ${showName(when, 500)}.`, {
		brief: `recording ended ${showName(when)}`, advice: 'Take what is here for the time until then: what the program did later is in no trace.' })];
}

function hookFlags({ metadata }) {
	return [...metadata].flatMap(([key, value]) => {
		const [, loop, what] = /^loop\.(.*)\.([a-z_]+)$/.exec(key) ?? [], trouble = HOOK_TROUBLES.find(([name]) => name === what);
		if (!trouble || !value || value === '0') return [];
		return [newFlag('degraded-hooks', trouble[1], 0, trouble[2](showName(loop), showName(value, 500)), { name: showName(loop), advice: trouble[3] })];
	});
}

export function dataFlags(trace) {
	return [...emptyFlags(trace), ...lossFlags(trace), ...evictedFlags(trace), ...damageFlags(trace), ...endFlags(trace), ...hookFlags(trace)];
}
