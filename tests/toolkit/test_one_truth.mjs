// SPDX-License-Identifier: Apache-2.0
// A figure that several surfaces show is one figure: $D9_DIAL9 report as JSON, the page's model over the whole trace, tables
// of query, and files of export, of each trace in $D9_TRACES.  Percentiles of the report and of the page come from the same
// classes, so that they are equal; those of SQL are exact, so that they differ by no more than the report says.

import { test } from 'node:test';
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readdirSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { readProcesses } from '../../core/toolkit/files.js';
import { delaysOf } from '../../core/toolkit/compare.js';
import { blockingCalls, profileOf } from '../../core/toolkit/profile.js';
import { eachCall } from '../../core/toolkit/runs.js';
import { Durations } from '../../core/toolkit/statistics.js';
import { nameOfSpan, isFunction } from '../../core/toolkit/spans.js';
import { wakesBySender } from '../../core/toolkit/wakes.js';
import { PARK, rowsNamed } from '../../core/toolkit/trace.js';
import { WAKE_REASONS } from '../../core/toolkit/waking.js';
import { takeWeights } from '../../core/toolkit/weights.js';
import { Model } from '../../core/viewer/model.js';
import { RUNS_TRACES } from './runs_trace.mjs';
import { CLOSED_PANEL, callbacksOf, rangeOf, scopeOf } from '../../core/viewer/scope.js';
import { partsByCallback } from '../../core/viewer/time_parts.js';

const { D9_DIAL9: dial9, D9_TRACES: folder } = process.env;
for (const [name, make] of Object.entries(RUNS_TRACES)) writeFileSync(join(folder, `made_${name}.bin`), make());
const traces = readdirSync(folder).sort().map((name) => join(folder, name));
const compared = new Map();

function run(...args) {
	const { stdout, stderr, status } = spawnSync(dial9, args, { encoding: 'utf8', maxBuffer: 2 ** 29 });
	assert.ok(stdout || !status, `dial9 ${args.join(' ')}: ${stderr}`);
	return stdout;
}

const sql = (trace, text) => JSON.parse(run('query', '-f', 'json', trace, text) || '[]');

/** All that is different between |name| of two surfaces, as lines: {key: {figure: number}} each. */
function differences(what, report, other, error = 0) {
	const lines = [];
	for (const key of new Set([...Object.keys(report), ...Object.keys(other)])) {
		const figures = new Set([...Object.keys(report[key] ?? {}), ...Object.keys(other[key] ?? {})]);
		if (!report[key] || !other[key]) lines.push(`${what}: ${key} is in ${report[key] ? 'the report' : 'the other'} alone: ${JSON.stringify(report[key] ?? other[key])}`);
		else for (const figure of figures) {
			const [a, b] = [report[key][figure], other[key][figure]], allowed = /^p\d/.test(figure) ? error * Math.abs(a) + 0.5 : 0;
			compared.set(`${what} ${figure}`, (compared.get(`${what} ${figure}`) ?? 0) + 1);
			if (typeof a === 'number' && typeof b === 'number' ? Math.abs(a - b) > allowed : a !== b) lines.push(`${what}: ${figure} of ${key}: ${a} by the report, ${b}`);
		}
	}
	return lines;
}

const byKey = (rows, keyOf, figuresOf) => Object.fromEntries(rows.map((row) => [keyOf(row), figuresOf(row)]));

function quantiles(durations) {
	const at = (q) => (durations.n ? durations.quantile(q) : 0);
	return { count: durations.n, sum_ns: durations.sum, min_ns: durations.n ? durations.min : 0, p50_ns: at(0.5), p90_ns: at(0.9), p99_ns: at(0.99), p999_ns: at(0.999), max_ns: durations.max };
}

const pick = (object, ...keys) => Object.fromEntries(keys.map((key) => [key, object[key]]));
const QUANTILES = ['count', 'sum_ns', 'min_ns', 'p50_ns', 'p90_ns', 'p99_ns', 'p999_ns', 'max_ns'];

/** SQL for the same of a column. */
const quantilesIn = (value) => `count(${value}) AS count, ifnull(sum(${value}), 0) AS sum_ns, ifnull(min(${value}), 0) AS min_ns, ${[[50, 'p50'], [90, 'p90'], [99, 'p99'], [99.9, 'p999']].map(([p, name]) => `ifnull(percentile(${value}, ${p}), 0) AS ${name}_ns`).join(', ')}, ifnull(max(${value}), 0) AS max_ns`;

/** One process at a time: the page, the toolkit and the report know them in the same order. */
function reportsOf(report) {
	return report.processes ?? [report];
}

/** The page about the whole trace; that of readProcesses() ends with the last event of a loop. */
const stateOf = (model) => ({ model, range: [-Infinity, Infinity], panel: { ...CLOSED_PANEL } });

/** A place as it was recorded: `dial9 symbolize` puts names in, and tells what they stand for. */
function recordedIn(trace) {
	const recorded = new Map(rowsNamed(trace, 'SymbolTableEntry', ['addr', 'symbol_name', 'source_file']).filter(({ addr }) => !addr).map((row) => [row.symbol_name, row.source_file]));
	return (location) => recorded.get(location) ?? location;
}

/* ---- what the surfaces say ---- */

function callbacksOfReport(report) {
	return byKey(report.callbacks.filter((c) => c.polls), ({ location }) => location, (c) => ({ ...pick(c, 'polls', 'total_ns', 'min_ns', 'p50_ns', 'p90_ns', 'p99_ns', 'max_ns') }));
}

function callbacksOfPage(model, trace) {
	const merged = new Map(), recorded = recordedIn(trace);
	for (const row of callbacksOf(stateOf(model))) {
		if (row.trace !== trace) continue;
		const location = recorded(row.location), { durations } = row;
		if (!merged.has(location)) merged.set(location, { polls: 0, durations: new Durations() });
		const sum = merged.get(location);
		sum.polls += row.n;
		for (let i = 0; i < durations.counts.length; i++) sum.durations.counts[i] += durations.counts[i];
		Object.assign(sum.durations, { n: sum.durations.n + durations.n, sum: sum.durations.sum + row.total, min: Math.min(sum.durations.min, durations.min), max: Math.max(sum.durations.max, durations.max) });
	}
	return Object.fromEntries([...merged].map(([location, { polls, durations }]) => {
		const q = quantiles(durations);
		return [location, { polls, total_ns: q.sum_ns, ...pick(q, 'min_ns', 'p50_ns', 'p90_ns', 'p99_ns', 'max_ns') }];
	}));
}

function partsOfPage(model, trace) {
	const parts = new Map(), state = stateOf(model), merged = {};
	for (const done of partsByCallback(state, rangeOf(state), parts)) assert.ok(done <= 1);
	for (const row of callbacksOf(state)) {
		const own = parts.get(`${row.trace.number}/${row.key}`);
		if (row.trace !== trace || !own) continue;
		const sum = merged[recordedIn(trace)(row.location)] ??= { total_ns: 0, on_cpu_ns: 0, ready_ns: 0, blocked_ns: 0, unknown_ns: 0 };
		for (const key of Object.keys(sum)) sum[key] += own[key.slice(0, -3)];
	}
	return merged;
}

const callsSql = `SELECT process, location, count(*) AS polls, sum(duration_ns) AS total_ns, min(duration_ns) AS min_ns, percentile(duration_ns, 50) AS p50_ns, percentile(duration_ns, 90) AS p90_ns,
	percentile(duration_ns, 99) AS p99_ns, max(duration_ns) AS max_ns, sum(duration_ns > 1000000) AS over_1ms, sum(duration_ns > 10000000) AS over_10ms, sum(duration_ns > 50000000) AS over_50ms, sum(open_ended) AS open_ended,
	sum(on_cpu_samples) AS on_cpu_samples, sum(off_cpu_samples) AS off_cpu_samples, ${quantilesIn('nullif(delay_ns, 0)').replaceAll(' AS ', ' AS delay_')}
	FROM runs JOIN callbacks USING (process, callback) GROUP BY process, location`;

/** {callbacks, delays, ...} of each process in SQL. */
function callbacksOfSql(trace) {
	const processes = [];
	for (const row of sql(trace, callsSql)) {
		const of = processes[row.process] ??= { callbacks: {}, counts: {}, delays: {} };
		const zero = (key) => row[key] ?? 0;
		of.callbacks[row.location] = Object.fromEntries(['polls', 'total_ns', 'min_ns', 'p50_ns', 'p90_ns', 'p99_ns', 'max_ns'].map((key) => [key, zero(key)]));
		of.counts[row.location] = Object.fromEntries(['over_1ms', 'over_10ms', 'over_50ms', 'open_ended', 'on_cpu_samples', 'off_cpu_samples'].map((key) => [key, zero(key)]));
		of.delays[row.location] = Object.fromEntries(QUANTILES.map((key) => [key, zero(`delay_${key}`)]));
	}
	return processes;
}

function delaysOfPage(trace) {
	const bySite = {}, recorded = recordedIn(trace);
	for (const [worker, delays] of delaysOf(trace))
		for (let row = 0; row < delays.length; row++) {
			if (!(delays[row] > 0)) continue;
			const location = recorded(trace.strings[worker.polls.site[row]] ?? '');
			(bySite[location] ??= new Durations()).add(delays[row]);
		}
	return Object.fromEntries(Object.entries(bySite).map(([location, durations]) => [location, quantiles(durations)]));
}

/** Of the page's tab of wakes: how many calls, and how long they waited, by what ran. */
function wakesOfPage(trace) {
	const steps = wakesBySender(trace, { from: -Infinity, to: Infinity, workers: null, tids: null, site: -1 });
	for (;;) {
		const { done, value } = steps.next();
		if (!done) continue;
		const bySite = {}, recorded = recordedIn(trace);
		for (const { woken, delays } of value) {
			const sum = bySite[recorded(trace.strings[woken] ?? '')] ??= { count: 0, sum_ns: 0, max_ns: 0 };
			sum.count += delays.n;
			sum.sum_ns += delays.sum;
			sum.max_ns = Math.max(sum.max_ns, delays.max);
		}
		return Object.fromEntries(Object.entries(bySite).filter(([, { count }]) => count));
	}
}

/** What the report tells as parked has, beside the loop's waits, what its thread slept after it had left the loop. */
const waitsAndCalls = ({ polls, poll_ns, parks, parked_ns, account }) => ({ polls, poll_ns, parks, parked_ns: account.between_asleep_ns ? null : parked_ns });

function workersOfPage(trace) {
	return Object.fromEntries(trace.workers.map((worker) => {
		let polls = worker.running ? 1 : 0, pollNs = 0, parks = 0, parked = 0;
		eachCall(trace, worker, -Infinity, Infinity, ({ ns }) => {
			polls++;
			pollNs += ns;
		});
		for (let i = 0; i < worker.parks.n; i++) {
			if (worker.parks.flags[i] & PARK.OTHER_AFTER) continue;
			parks++;
			parked += worker.parks.end[i] - worker.parks.start[i];
		}
		return [worker.id, { polls, poll_ns: pollNs, parks, parked_ns: parked }];
	}));
}

function allCallsOfPage(trace) {
	const durations = new Durations();
	for (const worker of trace.workers) eachCall(trace, worker, -Infinity, Infinity, ({ ns }) => durations.add(ns));
	return quantiles(durations);
}

/** The program's spans by name: how often a thread was inside and left, and for how long. */
function spansOfPage(trace) {
	const lives = new Map(), byName = {};
	for (const table of trace.spans.values())
		for (let i = 0; i < table.n; i++) {
			if (isFunction(trace.strings[table.name[i]])) continue;
			if (!lives.has(table.life[i])) lives.set(table.life[i], { first: Infinity, last: -Infinity, active: 0 });
			const life = lives.get(table.life[i]);
			Object.assign(life, { first: Math.min(life.first, table.start[i]), last: Math.max(life.last, table.end[i]), active: life.active + table.end[i] - table.start[i] });
		}
	for (const [number, { first, last, active }] of lives) {
		const sum = byName[nameOfSpan(trace, number)] ??= { active: 0, durations: new Durations() };
		sum.active += active;
		sum.durations.add(last - first);
	}
	return byName;
}

/* ---- the comparisons ---- */

/** The time of all samples off the CPU: calls that blocked are a kind of profile of their own. */
function offTimeOfPage(trace, report) {
	takeWeights(trace, report.callbacks, report.workers, report.samples.switches_measured);
	const away = profileOf(trace, 'off-cpu'), { samples } = trace, { rows, byStamp } = blockingCalls(trace);
	let ns = away.unit === 'ns' ? [...away.weights.values()].reduce((sum, weight) => sum + weight, 0) : 0;
	for (let i = 0; i < samples.time.length; i++) ns += samples.source[i] === 1 ? rows[byStamp.get(`${samples.time[i]}/${samples.worker[i]}`)]?.dur ?? 0 : 0;
	return ns;
}

/** |ns|, or the report's figure, where no more lies between them than rounding: of each sample, and of the share, told in six digits. */
const nearly = (ns, told) => (Math.abs(ns - told.off_cpu_ns) <= told.off_cpu + 2e-5 * ns ? told.off_cpu_ns : ns);

function comparePage(lines, report, model, trace) {
	const add = (...args) => lines.push(...differences(...args));
	add('page: callbacks', callbacksOfReport(report), callbacksOfPage(model, trace));
	add('page: time of callbacks', byKey(report.callbacks.filter((c) => c.time.total_ns), (c) => c.location, (c) => pick(c.time, 'total_ns', 'on_cpu_ns', 'ready_ns', 'blocked_ns', 'unknown_ns')), Object.fromEntries(Object.entries(partsOfPage(model, trace)).filter(([, time]) => time.total_ns)));
	const delays = byKey(report.callbacks.filter((c) => c.delays.count), (c) => c.location, (c) => pick(c.delays, ...QUANTILES));
	add('page: delays', delays, delaysOfPage(trace));
	add('page: wakes', byKey(report.callbacks.filter((c) => c.delays.count), (c) => c.location, (c) => pick(c.delays, 'count', 'sum_ns', 'max_ns')), wakesOfPage(trace));
	const own = workersOfPage(trace);
	add('page: workers', byKey(report.workers.filter((w) => w.polls || w.parks), ({ id }) => id, waitsAndCalls), byKey(report.workers.filter(({ id }) => own[id]?.polls || own[id]?.parks), ({ id }) => id, (w) => waitsAndCalls({ ...w, ...own[w.id] })));
	add('page: all calls', { calls: pick(report.polls, ...QUANTILES) }, { calls: allCallsOfPage(trace) });
	const cpu = profileOf(trace, 'cpu'), { samples } = trace;
	add('page: samples', { trace: pick(report.samples, 'on_cpu', 'off_cpu') }, { trace: { on_cpu: cpu.samples, off_cpu: samples.time.length - cpu.samples } });
	add('page: samples', { trace: { off_cpu_ns: report.samples.off_cpu_ns } }, { trace: { off_cpu_ns: nearly(offTimeOfPage(trace, report), report.samples) } });
	const state = stateOf(model), recorded = recordedIn(trace), places = new Map();
	for (const text of trace.strings) places.set(recorded(text), [...places.get(recorded(text)) ?? [], text]);
	const inside = ({ location }) => {
		const scopes = (places.get(location) ?? []).map((text) => scopeOf({ ...state, panel: { ...state.panel, callback: text } }, trace));
		return { on_cpu_samples: scopes.reduce((sum, scope) => sum + (scope ? profileOf(trace, 'cpu', scope).samples : 0), 0) };
	};
	if (report.samples.on_cpu) add('page: samples of callbacks', byKey(report.callbacks, (c) => c.location, (c) => pick(c, 'on_cpu_samples')), byKey(report.callbacks, (c) => c.location, inside));
	const spans = spansOfPage(trace);
	// Of one that was entered before the trace the stays are not known.
	if (!trace.tables.some(({ name }) => name === 'SpanOpenEvent')) add('page: spans', byKey(report.spans.filter((s) => s.count), ({ name }) => name, (s) => pick(s, ...QUANTILES)), byKey(Object.entries(spans), ([name]) => name, ([, { durations }]) => quantiles(durations)));
	add('page: trace', { trace: { ...pick(report.trace, 'total_events', 'lost_events'), wakes: report.wake_to_poll.wakes } }, { trace: { total_events: trace.events, lost_events: trace.lost, wakes: trace.wakes.n } });
	const reasons = {};
	for (let i = 0; i < trace.wakes.n; i++) {
		const name = WAKE_REASONS[trace.wakes.reason[i]] ?? 'unknown';
		reasons[name] = (reasons[name] ?? 0) + 1;
	}
	add('page: reasons of wakes', { wakes: report.wake_to_poll.by_reason }, { wakes: reasons });
	if (report.memory) add('page: memory', { heap: { bytes: report.memory.allocated.bytes, samples: report.memory.allocated.samples }, live: { bytes: report.memory.live.bytes } }, { heap: heapOfPage(trace, 'heap'), live: pick(heapOfPage(trace, 'live'), 'bytes') });
}

function heapOfPage(trace, kind) {
	const { weights, samples } = profileOf(trace, kind);
	return { bytes: Math.round([...weights.values()].reduce((sum, weight) => sum + weight, 0)), samples };
}

function compareSql(lines, reports, trace, error) {
	const add = (...args) => lines.push(...differences(...args)), processes = callbacksOfSql(trace), rows = (text) => sql(trace, text);
	const of = (all, number) => all.filter((row) => row.process === number);
	const workers = rows('SELECT process, worker AS id, name, tid, calls AS polls, poll_ns, parks, parked_ns, awake_ns, cpu_ns FROM workers');
	const summed = rows('SELECT process, worker AS id, count(*) AS parks, sum(duration_ns) AS parked_ns FROM parks GROUP BY 1, 2'), polled = rows('SELECT process, worker AS id, count(*) - sum(resumed) AS polls, ifnull(sum(duration_ns), 0) AS poll_ns FROM polls GROUP BY 1, 2');
	const all = rows(`SELECT process, ${quantilesIn('ns')} FROM (SELECT process, sum(duration_ns) AS ns FROM runs WHERE poll IS NOT NULL GROUP BY process, ifnull(caller, run)) GROUP BY process`);
	const delays = rows(`SELECT process, ${quantilesIn('nullif(delay_ns, 0)')} FROM runs GROUP BY process`), wakes = rows('SELECT process, reason, count(*) AS n FROM wakes GROUP BY 1, 2');
	const spans = rows(`SELECT process, name, ${quantilesIn('last_ns - first_ns')} FROM spans WHERE NOT callback GROUP BY 1, 2 HAVING count(last_ns)`);
	const samples = rows("SELECT process, sum(source = 'on-cpu') AS on_cpu, sum(source = 'off-cpu') AS off_cpu, sum(source = 'on-cpu' AND poll IS NOT NULL) AS on_cpu_in_polls, sum(source = 'off-cpu' AND poll IS NOT NULL) AS off_cpu_in_polls, sum(worker IS NULL) AS off_worker, ifnull(sum(off_cpu_ns), 0) AS off_cpu_ns FROM samples GROUP BY 1");
	const traceFacts = rows('SELECT process, start_ns, end_ns, events AS total_events, lost_events FROM processes'), events = rows('SELECT process, name, count(*) AS n FROM events GROUP BY 1, 2');
	const findings = rows('SELECT process, finding, severity, check_id, name, message FROM findings WHERE effect_of IS NULL ORDER BY finding');
	const threads = rows('SELECT process, tid, name, worker, on_cpu_samples AS on_cpu, off_cpu_samples AS off_cpu, off_cpu_ns FROM threads');
	const names = rows('SELECT process, location, name, source, site, kind FROM callbacks'), tasks = rows('SELECT process, count(*) AS known, count(ended_ns) AS ended FROM tasks GROUP BY 1');
	const blocked = rows('SELECT b.process, b.function, c.name AS callback, count(*) AS calls, sum(b.duration_ns) AS total_ns, max(b.duration_ns) AS longest_ns FROM blocking b JOIN runs r USING (run) JOIN callbacks c ON c.callback = r.callback GROUP BY 1, 2, 3');
	void blocked; void tasks;
	reports.forEach((report, i) => {
		const known = processes[i] ?? { callbacks: {}, counts: {}, delays: {} }, ran = report.callbacks.filter((c) => c.polls);
		add('SQL: callbacks', callbacksOfReport(report), known.callbacks, error);
		add('SQL: counts of callbacks', byKey(ran, (c) => c.location, (c) => pick(c, 'over_1ms', 'over_10ms', 'over_50ms', 'open_ended', 'on_cpu_samples', 'off_cpu_samples')), known.counts);
		add('SQL: delays of callbacks', byKey(ran, (c) => c.location, (c) => pick(c.delays, ...QUANTILES)), known.delays, error);
		add('SQL: names of callbacks', byKey(report.callbacks, (c) => c.location, (c) => pick(c, 'name', 'source', 'site', 'kind')), byKey(of(names, i).filter(({ location }) => report.callbacks.some((c) => c.location === location)), (c) => c.location, (c) => pick(c, 'name', 'source', 'site', 'kind')));
		add('SQL: workers', byKey(report.workers, ({ id }) => id, (w) => pick(w, 'name', 'tid', 'polls', 'poll_ns', 'parks', 'parked_ns', 'awake_ns', 'cpu_ns')), byKey(of(workers, i), ({ id }) => id, (w) => pick(w, 'name', 'tid', 'polls', 'poll_ns', 'parks', 'parked_ns', 'awake_ns', 'cpu_ns')));
		add('SQL: parks', byKey(report.workers.filter((w) => w.parks), ({ id }) => id, (w) => pick(waitsAndCalls(w), 'parks', 'parked_ns')), byKey(of(summed, i), ({ id }) => id, (w) => pick(waitsAndCalls({ ...report.workers.find(({ id }) => id === w.id), ...w }), 'parks', 'parked_ns')));
		add('SQL: polls', byKey(report.workers.filter((w) => w.polls), ({ id }) => id, (w) => pick(w, 'polls', 'poll_ns')), byKey(of(polled, i), ({ id }) => id, (w) => pick(w, 'polls', 'poll_ns')));
		if (report.polls.count) add('SQL: all calls', { calls: pick(report.polls, ...QUANTILES) }, { calls: pick(of(all, i)[0] ?? {}, ...QUANTILES) }, error);
		if (report.polls.count) add('SQL: delays', { calls: pick(report.wake_to_poll, ...QUANTILES) }, { calls: pick(of(delays, i)[0] ?? {}, ...QUANTILES) }, error);
		add('SQL: wakes', { wakes: report.wake_to_poll.by_reason }, { wakes: of(wakes, i).reduce((sum, { reason, n }) => ({ ...sum, [reason ?? 'unknown']: (sum[reason ?? 'unknown'] ?? 0) + n }), {}) });
		add('SQL: spans', byKey(report.spans.filter((s) => s.count), ({ name }) => name, (s) => pick(s, ...QUANTILES)), byKey(of(spans, i), ({ name }) => name, (s) => pick(s, ...QUANTILES)), error);
		if (report.samples.on_cpu + report.samples.off_cpu) add('SQL: samples', { trace: pick(report.samples, 'on_cpu', 'off_cpu', 'on_cpu_in_polls', 'off_cpu_in_polls', 'off_worker') }, { trace: pick(of(samples, i)[0] ?? {}, 'on_cpu', 'off_cpu', 'on_cpu_in_polls', 'off_cpu_in_polls', 'off_worker') });
		if (report.samples.off_cpu) add('SQL: samples', { trace: pick(report.samples, 'off_cpu_ns') }, { trace: { off_cpu_ns: nearly(of(samples, i)[0]?.off_cpu_ns, report.samples) } });
		add('SQL: trace', { trace: pick(report.trace, 'start_ns', 'end_ns', 'total_events', 'lost_events') }, { trace: pick(of(traceFacts, i)[0] ?? {}, 'start_ns', 'end_ns', 'total_events', 'lost_events') });
		add('SQL: events', { events: report.trace.events }, { events: Object.fromEntries(of(events, i).map(({ name, n }) => [name, n])) });
		add('SQL: threads', byKey(report.samples.threads, ({ tid }) => tid, (t) => ({ ...pick(t, 'worker', 'on_cpu', 'off_cpu', 'off_cpu_ns'), name: t.name || null })), byKey(of(threads, i).filter((t) => t.on_cpu + t.off_cpu), ({ tid }) => tid, (t) => pick(t, 'worker', 'on_cpu', 'off_cpu', 'off_cpu_ns', 'name')));
		add('SQL: findings', byKey(report.findings, (f, n) => `${f.check} of ${f.name}: ${f.message}`, (f) => pick(f, 'severity')), byKey(of(findings, i), (f) => `${f.check_id} of ${f.name}: ${f.message}`, (f) => pick(f, 'severity')));
	});
}

/** Lines of folded stacks: their weights together. */
const folded = (path, ...options) => run('export', '-f', 'folded', '-o', '-', ...options, path).trim().split('\n').filter(Boolean).reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' ') + 1)), 0);

/** Calls in the charts of speedscope by what they are called. */
function chartedCalls(path) {
	const { shared: { frames }, profiles } = JSON.parse(run('export', '-f', 'speedscope', '-o', '-', path)), calls = {};
	for (const { events } of profiles.filter(({ type }) => type === 'evented'))
		for (const { type, frame } of events) if (type === 'O') calls[frames[frame].name] = (calls[frames[frame].name] ?? 0) + 1;
	return calls;
}

/** Exports are of one process. */
function compareExports(lines, report, path) {
	const add = (...args) => lines.push(...differences(...args)), { samples, callbacks, workers, memory } = report, ended = new Map();
	if (samples.on_cpu) add('export: samples', { trace: pick(samples, 'on_cpu') }, { trace: { on_cpu: folded(path, '--weight', 'samples') } });
	for (const { name, on_cpu_samples: n } of callbacks.filter((c) => c.on_cpu_samples && /^[\w+]+$/.test(c.name)))
		ended.set(name, (ended.get(name) ?? 0) + n);
	for (const [name, n] of ended) add('export: samples of callbacks', { [name]: { n } }, { [name]: { n: folded(path, '--weight', 'samples', '--callback', name) } });
	// Each stack's bytes are whole.
	if (memory?.allocated.bytes) assert.ok(Math.abs(folded(path, '--kind', 'heap') - memory.allocated.bytes) <= memory.allocated.samples, `${folded(path, '--kind', 'heap')} bytes in the profile, ${memory.allocated.bytes} in the report`);
	// Nested loops cut calls into several, and one that did not end has no length.
	const begun = callbacks.reduce((sum, { polls, way }) => sum + (way.includes(' > ') ? 0 : polls), 0);
	if (!begun || begun !== report.polls.count || workers.some(({ resumptions }) => resumptions)) return;
	const charted = chartedCalls(path), told = {};
	for (const { way, polls, open_ended: open } of callbacks) if (polls && !open) told[way] = (told[way] ?? 0) + polls;
	for (const way of Object.keys(told)) if (!/[^ -~]|;/.test(way) && !report.callbacks.some((c) => c.way === way && c.open_ended)) add('export: calls', { [way]: { n: told[way] } }, { [way]: { n: charted[way] ?? 0 } });
}

for (const path of traces)
	test(`one figure on all surfaces: ${basename(path)}`, async () => {
		const report = JSON.parse(run('report', '--json', path)), reports = reportsOf(report), error = report.quantile_error, lines = [];
		const processes = await readProcesses([path]);
		assert.equal(processes.length, reports.length);
		for (const [i, { trace, folder: from }] of processes.entries()) {
			trace.folder = from;
			comparePage(lines, reports[i], new Model([trace], { name: 'a', shown: 1, segments: 1 }), trace);
		}
		if (!process.env.D9_NO_SQL) compareSql(lines, reports, path, error);
		if (reports.length === 1 && !reports[0].findings.some(({ check }) => check === 'running-at-end' || check === 'stuck-callback')) compareExports(lines, report, path);
		assert.ok(!lines.length, `${lines.length} figures differ:\n${lines.slice(0, 60).join('\n')}`);
	});

test('and there were some', () => {
	assert.ok(compared.size > 50, [...compared.keys()].join(', '));
});
