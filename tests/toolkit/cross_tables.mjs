// SPDX-License-Identifier: Apache-2.0
// What the toolkit and `dial9 report --json` make of the same trace of one process:
//
//	node cross_tables.mjs DIAL9 FILE...      each a trace of its own
//	node cross_tables.mjs DIAL9 --set DIR    the segments of DIR, in their order, as one
//	node cross_tables.mjs DIAL9 --counts FILE...  nothing but counts
//
// The same workers, polls, waits, wakes, tasks, spans and samples, counted and summed; and the same parts of the
// time, of each long call, of each callback and of each worker, but for what rounding adds to a sum.

import { createReadStream, readdirSync } from 'node:fs';
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { nameOfSpan, spanOf } from '../../core/toolkit/spans.js';
import { partsOfCall, partsOfRange, partsOfSpan } from '../../core/toolkit/time.js';
import { PARK, readTrace, relativeTime } from '../../core/toolkit/trace.js';

const [dial9, ...args] = process.argv.slice(2);
const counts = args[0] === '--counts' && Boolean(args.shift());
let wrong = 0;

function same(what, ours, theirs, off = 0) {
	if (ours === theirs || Math.abs(ours - theirs) <= off || (ours > Number.MAX_SAFE_INTEGER && Math.abs(ours - theirs) < ours * 1e-15)) return;
	wrong++;
	console.log(`${what}: ${ours} by the toolkit, ${theirs} by dial9 report`);
}

const PARTS = ['on_cpu', 'ready', 'blocked', 'waiting', 'unknown'];

/** |ours| may be the sum of |rounded| parts. */
function sameParts(what, ours, theirs, rounded = 0) {
	same(`${what}, the sum of the parts`, PARTS.reduce((sum, part) => sum + (ours[part] ?? 0), 0), ours.total);
	same(`${what}, total`, ours.total, Number(theirs.total_ns));
	for (const part of PARTS) if (part in ours && `${part}_ns` in theirs) same(`${what}, ${part}`, ours[part], Number(theirs[`${part}_ns`]), rounded);
}

function addParts(sum, parts) {
	for (const [key, value] of Object.entries(parts)) if (typeof value === 'number') sum[key] = (sum[key] ?? 0) + value;
	return sum;
}

function compareTables(path, trace, report) {
	const count = (name) => trace.tables.filter((table) => table.name === name).reduce((sum, table) => sum + table.count, 0);
	for (const [name, n] of Object.entries(report.trace.events)) same(`${path}, events ${name}`, count(name), n);
	same(`${path}, events`, trace.events, report.trace.total_events);
	same(`${path}, lost events`, trace.lost, report.trace.lost_events);
	same(`${path}, workers`, trace.workers.filter((w) => w.polls.n || w.running || w.parks.n || w.entries.n > 1).length, report.workers.filter((w) => w.polls || w.parks || w.active_periods).length);
	same(`${path}, wakes`, trace.wakes.n, report.wake_to_poll.wakes);
	const { time, source, worker } = trace.samples;
	same(`${path}, samples on the CPU`, source.filter((s) => s !== 1).length, report.samples.on_cpu);
	same(`${path}, samples off it`, source.filter((s) => s === 1).length, report.samples.off_cpu);
	const ids = new Set(trace.workers.map((w) => w.id));
	same(`${path}, samples of other threads`, time.filter((_, i) => !ids.has(worker[i])).length, report.samples.off_worker);
	same(`${path}, tasks spawned`, [...trace.tasks.values()].filter((task) => !task.before).length, report.tasks.spawned);
}

function compareWorker(path, trace, worker, theirs, last) {
	const { polls, parks } = worker, what = `${path}, worker ${worker.id}`;
	const rows = [...polls.dur.subarray(0, polls.n)];
	same(`${what}, polls`, polls.n + (worker.running ? 1 : 0), theirs.polls + theirs.resumptions);
	same(`${what}, time in polls`, rows.reduce((sum, ns) => sum + ns, 0), theirs.poll_ns);
	same(`${what}, polls without an end`, [...polls.flags.subarray(0, polls.n)].filter((flags) => flags & 1).length, theirs.open_ended_polls);
	same(`${what}, waits`, parks.flags.subarray(0, parks.n).filter((flags) => !(flags & PARK.OTHER_AFTER)).length, theirs.parks);
	same(`${what}, thread`, worker.tid, theirs.tid);
	if (counts || theirs.resumptions || !parks.n) return; // loops inside callbacks are told as part of these there
	const from = worker.entries.n ? worker.entries.time[0] : parks.start[0];
	const end = Math.max(parks.end[parks.n - 1], polls.n ? polls.start[polls.n - 1] + polls.dur[polls.n - 1] : 0);
	sameParts(`${what}, its time`, partsOfRange(trace, worker, from, Math.min(end, last)), theirs.time, parks.n);
}

function compareCalls(path, trace, report) {
	const bySite = new Map(), byId = new Map(trace.workers.map((worker) => [worker.id, worker]));
	for (const worker of trace.workers)
		for (let row = 0; row < worker.polls.n; row++) {
			const site = trace.strings[worker.polls.site[row]] ?? '';
			if (!bySite.has(site)) bySite.set(site, { n: 0, sum: {} });
			const callback = bySite.get(site);
			callback.n++;
			addParts(callback.sum, partsOfCall(trace, worker, row));
		}
	for (const call of report.polls.longest) {
		if (call.pieces !== 1) continue;
		const worker = byId.get(call.worker), row = worker.polls.start.subarray(0, worker.polls.n).indexOf(relativeTime(trace, call.time_ns));
		const parts = partsOfCall(trace, worker, row);
		sameParts(`${path}, call of ${call.name} at ${call.time_ns}`, parts, call.time);
		for (const key of ['samples', 'by_samples', 'too_few_samples']) same(`${path}, call of ${call.name} at ${call.time_ns}, ${key}`, parts[key], call.time[key]);
	}
	if (report.callbacks.some((callback) => callback.kind === 'span')) return; // what runs inside of others has its own part there
	for (const callback of report.callbacks) {
		const ours = bySite.get(callback.location);
		if (!ours || callback.time.by_samples || callback.loops_inside.calls) continue; // of many calls together there are samples enough
		const theirs = { ...callback.time, total_ns: callback.time.total_ns };
		delete theirs.waiting_ns;
		sameParts(`${path}, calls of ${callback.location}`, { on_cpu: 0, ready: 0, blocked: 0, unknown: 0, ...ours.sum, waiting: 0 }, theirs, ours.n);
	}
}

function compareSpans(path, trace, report) {
	const names = new Map();
	for (let life = 0; life < trace.lives.n; life++) names.set(nameOfSpan(trace, life), [...names.get(nameOfSpan(trace, life)) ?? [], life]);
	for (const span of report.spans) {
		const spans = (names.get(span.name) ?? []).map((life) => spanOf(trace, life)), sum = {};
		same(`${path}, spans ${span.name}`, spans.length, span.spans);
		if (span.unmatched) continue;
		const stays = spans.flatMap((s) => s.stays);
		same(`${path}, time inside of ${span.name}`, stays.reduce((ns, stay) => ns + stay.end - stay.start, 0), span.active_ns);
		for (const one of spans) addParts(sum, partsOfSpan(trace, one));
		for (const part of ['ready', 'blocked', 'on_cpu']) if (!span.time.by_samples) same(`${path}, spans ${span.name}, ${part}`, sum[part], span.time[`${part}_ns`], stays.length);
	}
}

async function compare(path, files) {
	const run = spawnSync(dial9, ['report', '--json', '--no-symbols', path], { maxBuffer: 2 ** 30 });
	if (run.status !== 0) {
		wrong++;
		console.log(`${path}: dial9 report: ${run.stderr}`);
		return;
	}
	const report = JSON.parse(run.stdout.toString());
	if (report.processes) {
		console.log(`${path}: several processes, which the toolkit reads one by one`);
		return;
	}
	const trace = await readTrace(files.map((name) => ({ name, chunks: () => createReadStream(name) })));
	compareTables(path, trace, report);
	for (const worker of trace.workers) {
		const theirs = report.workers.find((w) => w.id === worker.id);
		if (theirs) compareWorker(path, trace, worker, theirs, relativeTime(trace, report.trace.end_ns));
	}
	if (!counts) compareCalls(path, trace, report);
	if (!counts) compareSpans(path, trace, report);
	console.log(`${path}: ${trace.events} events, ${trace.workers.length} workers, ${report.polls.longest.length} long calls`);
}

if (args[0] === '--set') await compare(args[1], readdirSync(args[1]).filter((name) => /\.bin(\.|$)/.test(name)).sort((a, b) => a.localeCompare(b, 'en', { numeric: true })).map((name) => join(args[1], name)));
else for (const path of args) await compare(path, [path]);
process.exitCode = wrong ? 1 : 0;
