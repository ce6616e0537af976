// SPDX-License-Identifier: Apache-2.0
// The CPU time that a sample on the CPU stands for, as `dial9 report` weighs it (REPORT-JSON.md, "weight"): by the callback
// that it is in, else by what its loop did.  Without a report, and of threads without a loop, it is the sampler's period.

import { lowerBound } from './table.js';
import { sampleNs } from './time.js';
import { pollAt, rowsNamed } from './trace.js';

/** trace -> {sites: Map of location -> ns, workers: Map of id -> {rounds, between, waits}, byWorker, outside} */
const weighed = new WeakMap();

const EMPTY = { sample_ns: 0, samples: 0, cpu_ns: 0 };

/**
 * The weight of one location: its samples and those of functions that a library calls inside of it are one here, since
 * calls do not tell them apart.
 */
function siteWeight(callback, inside) {
	if (!inside.length) return Number(callback.sampled.sample_ns);
	const all = [callback, ...inside].map(({ sampled }) => sampled), samples = all.reduce((sum, { samples: n }) => sum + Number(n), 0);
	return samples ? all.reduce((sum, { cpu_ns: ns }) => sum + Number(ns), 0) / samples : 0;
}

/**
 * Take the weights of |callbacks| and |workers|, those of |trace|'s process in a report, and the share of the time that
 * has switches, if the report tells it.
 */
export function takeWeights(trace, callbacks, workers, switched) {
	const sites = new Map(), spans = callbacks.filter((callback) => callback.way !== callback.name);
	for (const callback of callbacks)
		if (callback.sampled) sites.set(callback.location, siteWeight(callback, spans.filter(({ way, sampled }) => sampled && way?.startsWith(`${callback.name} > `))));
	const outside = new Map();
	for (const row of rowsNamed(trace, 'LoopOutsideEvent', ['worker_id', 'from_ns', 'to_ns'])) {
		const id = Number(row.worker_id ?? -1), length = Number(BigInt(row.to_ns ?? 0) - BigInt(row.from_ns ?? 0));
		if (!outside.has(id)) outside.set(id, []);
		outside.get(id).push([row.time - length, row.time]);
	}
	const lonely = [...callbacks.map(({ location, sampled }) => [location, sampled]), ...workers.flatMap(({ samples = {} }) => ['rounds', 'between', 'waits'].map((key) => [null, samples[key]]))]
		.filter(([, weight]) => weight?.lonely).map(([location, weight]) => ({ location, ns: Number(weight.cpu_ns) }));
	weighed.set(trace, { sites, lonely, outside, switched, byWorker: new Map(trace.workers.map((worker) => [worker.id, worker])),
		workers: new Map(workers.map(({ id, samples }) => [Number(id), { rounds: EMPTY, between: EMPTY, waits: EMPTY, ...samples }])) });
}

/** The stretch of a sorted list that |time| is in. */
function isInside(stretches, time) {
	return Boolean(stretches?.some(([from, to]) => from <= time && time <= to));
}

function stratumOf({ outside }, { parks, id }, time) {
	const row = lowerBound(parks.start, time, parks.n) - 1;
	if (row >= 0 && (Number.isNaN(parks.end[row]) || time < parks.end[row])) return 'waits';
	return isInside(outside.get(id), time) ? 'between' : 'rounds';
}

/** CPU time that no sample met, in calls of |location| or, if that is null, in all of |trace|; in ns.  Without a report it is not known. */
export function lonelyNs(trace, location) {
	return (weighed.get(trace)?.lonely ?? []).reduce((sum, row) => sum + (location === null || row.location === location ? row.ns : 0), 0);
}

/** The share of the time that has switches; without a report as it was asked for. */
export function switchShare(trace) {
	const share = Number(weighed.get(trace)?.switched ?? trace.metadata.get('sched.switch_duty'));
	return share > 0 && share < 1 ? share : 1;
}

/** CPU time of sample |i| of |trace|, in ns; 0: the trace tells no time. */
export function weightOfSample(trace, i) {
	const period = sampleNs(trace), facts = weighed.get(trace), { samples } = trace;
	const worker = period && facts?.byWorker.get(samples.worker[i]);
	if (!worker) return period;
	const row = pollAt(worker.polls, samples.time[i]);
	if (row >= 0) return facts.sites.get(trace.strings[worker.polls.site[row]]) ?? period;
	const strata = facts.workers.get(worker.id);
	return strata ? Number(strata[stratumOf(facts, worker, samples.time[i])].sample_ns) : period;
}
