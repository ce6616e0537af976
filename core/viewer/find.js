// SPDX-License-Identifier: Apache-2.0
// What a search finds: times of day, callbacks, tasks, spans, functions in stacks, fields of events, findings, triggers that fired.

import { lifeOf } from '../toolkit/chain.js';
import { TYPE } from '../toolkit/frames.js';
import { rowsIn } from '../toolkit/index.js';
import { NS_OF_UNIT, showCount, showDuration, showName } from '../toolkit/show.js';
import { nameOfSpan } from '../toolkit/spans.js';
import { fieldReader } from '../toolkit/trace.js';
import { findTimes } from './find_time.js';
import { selectCall, selectFinding, selectFire, setView, state } from './state.js';
import { selectThing, taskTitle } from './thing.js';

const LENGTH_TERM = /^([<>])(\d+(?:\.\d+)?)(ns|us|µs|ms|s)$/;
const NEAREST_SHOWN = 4;

/** {words, site, lane, least, most}: "site:" and "lane:" filter by a part of a name, ">10ms" and "<1ms" by length. */
function parseQuery(text) {
	const query = { words: '', site: '', lane: '', least: -1, most: Infinity }, words = [];
	for (const term of text.trim().toLowerCase().split(/\s+/)) {
		const [, sign, number, unit] = LENGTH_TERM.exec(term) ?? [];
		if (sign === '>') query.least = Number(number) * NS_OF_UNIT.get(unit);
		else if (sign === '<') query.most = Number(number) * NS_OF_UNIT.get(unit);
		else if (/^(site|lane):/.test(term)) query[term.slice(0, 4)] = term.slice(5);
		else words.push(term);
	}
	query.words = words.join(' ');
	return query;
}

function matches(text, wanted) {
	return String(text).toLowerCase().includes(wanted);
}

/** The callbacks that are meant: {query, sites: by number of the trace and place, lanes: Set}. */
export function foundCalls(model, text) {
	const query = parseQuery(text), sites = new Set(), lanes = new Set(model.lanes.filter((lane) => matches(model.laneName(lane), query.lane)));
	for (const trace of model.traces)
		for (const site of trace.stats.keys()) {
			const callback = model.callback(trace, site);
			if (query.site && ![callback.site, callback.source, callback.location].some((part) => matches(part, query.site))) continue;
			if ([callback.name, callback.source, callback.site, callback.location].some((part) => matches(part, query.words))) sites.add(`${trace.number}/${site}`);
		}
	return { query, sites, lanes, narrow: Boolean(query.lane) || query.least >= 0 || query.most < Infinity };
}

/** Call |each|(row) for the found calls of a lane in [from, to) of the axis. */
export function eachFound(found, lane, from, to, each) {
	if (!found.lanes.has(lane)) return;
	const { polls, trace, shift } = lane, { least, most } = found.query, [first, last] = rowsIn(polls, from - shift, to - shift), known = new Map();
	for (let row = first; row < last; row++) {
		if (polls.dur[row] <= least || polls.dur[row] >= most) continue;
		const site = polls.site[row];
		if (!known.has(site)) known.set(site, found.sites.has(`${trace.number}/${site}`));
		if (known.get(site)) each(row);
	}
}

function findCallbacks(model, found) {
	const bySite = new Map();
	for (const lane of found.sites.size ? model.lanes : [])
		eachFound(found, lane, -Infinity, Infinity, (row) => {
			const key = `${lane.trace.number}/${lane.polls.site[row]}`;
			let sum = bySite.get(key);
			if (!sum) bySite.set(key, sum = { lane, row, n: 0, total: 0 });
			sum.n++;
			sum.total += lane.polls.dur[row];
			if (lane.polls.dur[row] > sum.lane.polls.dur[sum.row]) Object.assign(sum, { lane, row });
		});
	return [...bySite.values()].sort((a, b) => b.total - a.total).map(({ lane, row, n }) => ({ name: model.callback(lane.trace, lane.polls.site[row]).name,
		note: `${showCount(n)} calls, longest ${showDuration(lane.polls.dur[row])}`, go: () => selectCall(lane, row, true) }));
}

/** By decimal or hexadecimal id, else by name, kind or place. */
function findTasks(model, { words }) {
	const results = [], id = /^(?:task )?(\d+|0x[\da-f]+)$/.exec(words)?.[1];
	for (const trace of model.traces) {
		const add = (task) => {
			const { calls } = lifeOf(trace, task);
			if (trace.tasks.has(task) || calls.length) results.push({ name: `task ${task}, ${taskTitle(model, trace, task)}`, note: `${showCount(calls.length)} calls`, go: () => selectThing('task', trace, task, true) });
		};
		if (id) add(Number(id));
		else if (words)
			for (const [task, { name, kind, location, fd }] of trace.tasks) {
				if (results.length < 1000 && (matches(name ?? '', words) || kind === words || `fd ${fd}` === words || (location && matches(location, words)))) {
					results.push({ name: `task ${task}, ${taskTitle(model, trace, task)}`, note: showName(kind), go: () => selectThing('task', trace, task, true) });
				}
			}
	}
	return results;
}

function findSpans(model, { words, least, most }) {
	const byName = new Map();
	for (const trace of model.traces)
		for (let life = 0; life < trace.lives.n; life++) {
			const length = trace.lives.end[life] - trace.lives.start[life], name = nameOfSpan(trace, life);
			if (length <= least || length >= most || !matches(name, words)) continue;
			const sum = byName.get(name) ?? { n: 0, longest: -1 };
			byName.set(name, sum);
			sum.n++;
			if (length > sum.longest) Object.assign(sum, { longest: length, trace, life });
		}
	return [...byName].map(([name, { n, longest, trace, life }]) => ({ name: showName(name), note: `${showCount(n)} spans, longest ${showDuration(longest)}`, go: () => selectThing('span', trace, life, true) }));
}

/** Functions by name, with how many samples they are in. */
function findFunctions(model, { words }) {
	const results = new Map();
	for (const trace of model.traces) {
		const addresses = new Map();
		for (const [address, frames] of trace.symbols) for (const frame of frames) if (matches(frame.name, words)) addresses.set(address, frame.name);
		const names = trace.stacks.map((stack) => new Set(stack.filter((address) => addresses.has(address)).map((address) => addresses.get(address))));
		trace.samples.stack.forEach((stack, i) => {
			for (const name of names[stack] ?? []) {
				const sum = results.get(name) ?? { n: 0, trace, i };
				sum.n++;
				results.set(name, sum);
			}
		});
	}
	return [...results].sort((a, b) => b[1].n - a[1].n).map(([name, { n, trace, i }]) => ({ name: showName(name), note: `${showCount(n)} samples`, go: () => goToTime(model, trace, trace.samples.time[i], trace.samples.worker[i]) }));
}

/** The call of a worker at a time, or the time itself. */
function goToTime(model, trace, time, worker) {
	const call = model.callOfWorker(trace, worker, time);
	if (call) selectCall(call.lane, call.row, true);
	else setView(time + trace.shift - 1e6, time + trace.shift + 1e6);
}

/** Texts in fields of spans and of the program's own events. */
function findFields(model, { words }) {
	const results = new Map();
	for (const trace of model.traces) {
		const texts = new Set();
		trace.strings.forEach((string, i) => matches(string, words) && texts.add(i));
		for (const table of texts.size ? trace.tables : []) {
			if (table.places || /^(SymbolTableEntry|ModuleEvent|SegmentMetadataEvent|TaskSpawnEvent|CpuSampleEvent|BlockingCallEvent|Recorder.*)$/.test(table.name)) continue;
			table.fields.forEach((field, f) => {
				if ((field.type !== TYPE.STRING && field.type !== TYPE.POOLED_STRING) || field.name === 'span_name') return;
				for (let row = 0; row < table.rows.n; row++) {
					if (!texts.has(table.columns[f][row])) continue;
					const text = trace.strings[table.columns[f][row]], name = table.name.replace(/^Span\w+:/, ''), key = `${name}/${field.name}/${text}`, sum = results.get(key) ?? { n: 0, name, table, field, text, trace, row };
					sum.n++;
					results.set(key, sum);
				}
			});
		}
	}
	return [...results.values()].map(({ n, name, table, field, text, trace, row }) => ({ name: `${showName(field.name)} = ${showName(text, 60)}`, note: `${showCount(n)} in ${showName(name, 40)}`, go: () => goToEvent(model, trace, table, row) }));
}

function goToEvent(model, trace, table, row) {
	const time = table.rows.time[row], id = /^Span/.test(table.name) ? fieldReader(trace, table, 'span_id')(row) : undefined;
	const life = id === undefined ? -1 : trace.lives.ids.findIndex((own, i) => own === id && trace.lives.start[i] <= time && trace.lives.end[i] >= time);
	if (life >= 0) selectThing('span', trace, life, true);
	else goToTime(model, trace, time, fieldReader(trace, table, 'worker_id')(row));
}

function findFindings(model, { words }) {
	return model.findings.map((finding, i) => [finding, i]).filter(([finding]) => [finding.message, finding.check, finding.name ?? '', finding.brief ?? ''].some((part) => matches(part, words)))
		.map(([finding, i]) => ({ name: showName(finding.message, 120), note: `finding ${i + 1}`, go: () => selectFinding(i) }));
}

function findFires(model, { words }) {
	return model.fires.map((fire, i) => [fire, i]).filter(([fire]) => [`trigger ${fire.trigger}`, model.tellFire(fire)].some((part) => matches(part, words)))
		.map(([fire, i]) => ({ name: `trigger ${showName(fire.trigger)} fired`, note: model.tellFire(fire), go: () => selectFire(i) }));
}

/** All that |text| finds: [{kind, results: [{name, note, go}]}], kinds without a result left out. */
export function findAll(model, text) {
	const found = foundCalls(model, text), { query } = found;
	const kinds = [['times', findTimes(model, text.trim(), state.clock)], ['callbacks', findCallbacks(model, found)]];
	if (query.words && !query.site && !query.lane) {
		if (!found.narrow) kinds.push(['tasks', findTasks(model, query)]);
		kinds.push(['spans', findSpans(model, query)]);
		if (!found.narrow) kinds.push(['functions in stacks', findFunctions(model, query)], ['fields', findFields(model, query)], ['findings', findFindings(model, query)], ['triggers that fired', findFires(model, query)]);
	}
	const first = ({ name }) => (name.toLowerCase().startsWith(query.words) ? 0 : 1);
	return kinds.filter(([, results]) => results.length).map(([kind, results]) => ({ kind, results: results.sort((a, b) => first(a) - first(b)) }));
}

function pairsOf(text) {
	const pairs = new Set();
	for (let i = 0; i + 1 < text.length; i++) pairs.add(text.slice(i, i + 2));
	return pairs;
}

/** Names that are most like what was not found. */
export function nearestNames(model, text) {
	const wanted = pairsOf(parseQuery(text).words), names = new Set();
	for (const trace of model.traces) {
		for (const site of trace.stats.keys()) names.add(model.callback(trace, site).name);
		for (let life = 0; life < trace.lives.n && names.size < 10000; life++) names.add(showName(nameOfSpan(trace, life)));
		for (const frames of trace.symbols.values()) for (const frame of frames) names.add(showName(frame.name));
	}
	return [...names].map((name) => {
		const own = pairsOf(name.toLowerCase()), same = [...own].filter((pair) => wanted.has(pair)).length;
		return [name, 2 * same / Math.max(1, own.size + wanted.size)];
	}).filter(([, like]) => like > 0.2).sort((a, b) => b[1] - a[1]).slice(0, NEAREST_SHOWN).map(([name]) => name);
}
