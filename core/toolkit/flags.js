// SPDX-License-Identifier: Apache-2.0
// What all red flags have: names, order and effects as those of the findings of `dial9 report`.

import { showName } from './show.js';
import { namesOfLocation } from './stacks.js';

const FLAG_SEVERITIES = ['critical', 'warning', 'info'];

/** The checks, causes before consequences, and what each tells of: consequences stand under causes of the same. */
export const FLAG_CHECKS = Object.entries({
	'nothing-recorded': 'data', 'incomplete-data': 'data', 'degraded-hooks': 'data', 'stuck-callback': 'time', spin: 'time', 'wake-storm': 'wakes', 'empty-wakes': 'wakes', 'source-time': 'time',
	'blocked-callback': 'time', 'long-callback': 'time', 'running-at-end': 'time', unfair: 'time', backlog: 'time', 'wake-delay': 'time', 'timer-late': 'time',
	'idle-wakes': 'wakes', 'many-wakes': 'wakes', 'queue-depth': 'time', 'short-of-cpu': 'rest', 'descriptor-growth': 'kept', 'memory-growth': 'kept',
});
const EFFECTS_MAX = 8, RATE_DIGITS = 100;

const checkRank = ({ check }) => FLAG_CHECKS.findIndex(([name]) => name === check);
const checkTopic = (flag) => FLAG_CHECKS[checkRank(flag)][1];

/** Callbacks that compute stand among those that sleep: the longer first. */
const placeInOrder = (flag) => checkRank(flag.check === 'long-callback' ? { check: 'blocked-callback' } : flag);

/** The figure that stands for a flag everywhere: the first with a unit in its brief, as findings.c has it; or null. */
export function figureOfBrief(brief) {
	return /(?<![^\s(])\d[\d.,]*(?:\u2009\d{3})*\s(?:times a second|[nuµm]?s|[KMGT]iB|B|%)(?![A-Za-z])/.exec(brief ?? '')?.[0] ?? null;
}

/**
 * A flag of |check|.  |impact|: larger first.  |more|: name, brief, advice, evidence, about, site (the number of
 * the callback's place), and of a consequence effect, what it is called under its cause, and culprit, the cause's site.
 */
export function newFlag(check, severity, impact, message, more = {}) {
	return { check, severity, message, name: null, brief: null, advice: null, evidence: [], effects: [], impact, about: 'program', ...more, figure: figureOfBrief(more.brief) };
}

/** The name of the callback at a place. */
export function siteName(trace, site) {
	return showName(namesOfLocation(trace, trace.strings[site] ?? '')[0] || 'a callback');
}

/** |n| in |ns| as so many a second, in two digits: exact ones would be taken for the number of calls. */
export function flagRate(n, ns) {
	const rate = ns > 0 ? Math.floor(n * 1e9 / ns) : 0;
	let unit = 1;
	while (rate / unit >= RATE_DIGITS) unit *= 10;
	return Math.floor((rate + Math.floor(unit / 2)) / unit) * unit;
}

const severityRank = ({ severity }) => FLAG_SEVERITIES.indexOf(severity);

function compareFlags(a, b) {
	const aboutData = (flag) => Number(checkTopic(flag) !== 'data');
	return aboutData(a) - aboutData(b) || severityRank(a) - severityRank(b) || Number(a.about === 'machine') - Number(b.about === 'machine') || placeInOrder(a) - placeInOrder(b) || b.impact - a.impact || (a.message < b.message ? -1 : 1);
}

/** The worst of |flags| that explains the consequence |effect|, or undefined. */
function causeOfFlag(flags, effect) {
	if (effect.culprit === undefined) return effect.severity === 'info' ? flags.find(({ about }) => about === 'machine') : undefined;
	return flags.find((cause) => cause.site === effect.culprit && (!cause.effect || cause.culprit === cause.site) && checkTopic(cause) === checkTopic(effect) &&
		checkRank(cause) < checkRank(effect) && (cause.severity !== 'info' || effect.severity === 'info'));
}

/** Worst first; what follows from another one stands under it. */
export function orderFlags(flags) {
	const left = flags.sort(compareFlags);
	for (const flag of [...left]) {
		const cause = flag.effect && causeOfFlag(left, flag);
		if (!cause || cause.effects.length === EFFECTS_MAX) continue;
		left.splice(left.indexOf(flag), 1);
		cause.effects.push(flag);
		if (severityRank(flag) < severityRank(cause)) cause.severity = flag.severity;
	}
	return left.sort(compareFlags);
}
