// SPDX-License-Identifier: Apache-2.0
// The stacks of what the panel is about, folded; the last few trees are kept.

import { FrameNames, foldProfiles } from '../toolkit/fold.js';
import { PROFILE_KINDS, profileOf } from '../toolkit/profile.js';
import { showCount, showDuration, showName, showSize } from '../toolkit/show.js';
import { rangeOf, scopeOf } from './scope.js';

const KEPT = 6;
const kept = [];

/** Names of frames, once for a model. */
export function frameNames(model) {
	model.frameNames ??= new FrameNames();
	return model.frameNames;
}

/** The function that all stacks begin with, of the callback that the panel is about; null: it is about all. */
function rootOf({ model, panel: { callback } }, trace) {
	return callback ? model.names[trace.number].get(callback)?.name ?? null : null;
}

/** Profiles of all processes: [{trace, weights, samples, of, unit}]. */
function profilesOf(state, kind, range = rangeOf(state)) {
	return state.model.traces.map((trace) => {
		const scope = scopeOf(state, trace, range);
		return scope ? { trace, root: rootOf(state, trace), ...profileOf(trace, kind, scope) } : { trace, weights: new Map(), samples: 0, of: 0, unit: PROFILE_KINDS[kind].unit };
	});
}

/** The unit of |profiles|: of processes with times and others, which have none in common, it is the kind's. */
function unitOf(kind, profiles) {
	const [{ unit }] = profiles.filter(({ of }) => of).concat(PROFILE_KINDS[kind]);
	return unit;
}

/** {tree, names, unit, samples, of} of one kind of stacks. */
export function foldOf(state, kind, inverted) {
	const { model, panel } = state, key = [kind, inverted, rangeOf(state).join(), panel.thread, panel.callback, model.reportState].join('|');
	const known = kept.find((entry) => entry.model === model && entry.key === key);
	if (known) return known.folded;
	const profiles = profilesOf(state, kind), names = frameNames(model);
	const folded = { tree: foldProfiles([profiles], names, { inverted }), names, unit: unitOf(kind, profiles),
		samples: profiles.reduce((sum, p) => sum + p.samples, 0), of: profiles.reduce((sum, p) => sum + p.of, 0) };
	kept.unshift({ model, key, folded });
	kept.length = Math.min(kept.length, KEPT);
	return folded;
}

/** How amounts in |unit| are told. */
export function amountOf(unit) {
	if (unit === 'ns') return showDuration;
	if (unit === 'bytes') return (n) => showSize(Math.round(n));
	return (n) => `${showCount(n)} sample${n === 1 ? '' : 's'}`;
}

const SOURCES = { cpu: 'source.cpu', 'off-cpu': 'source.offcpu', blocking: 'source.blocking', heap: 'source.memory', live: 'source.memory', idle: 'source.task_dumps' };

/** Why there are no stacks of a kind, and what records them. */
export function emptySentence(state, kind, of) {
	const { of: what, option } = PROFILE_KINDS[kind];
	if (of) return `None of the ${showCount(of)} ${what} of the trace are in this range, thread and callback.`;
	const told = state.model.main.metadata.get(SOURCES[kind]);
	if (told === undefined || told.startsWith('off')) return `The trace has no ${what}${told ? `; the recorder says “${showName(told)}”` : ''}. This records them: ${option}.`;
	return `The trace has no ${what}: they were looked for (the recorder says “${showName(told)}”) and none came up. This records them: ${option}.`;
}
