// SPDX-License-Identifier: Apache-2.0
// The scripts of the toolkit on the traces in $D9_TRACES, held against $D9_DIAL9 report --json.

import { test } from 'node:test';
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { TraceWriter } from './trace_writer.mjs';

const toolkit = fileURLToPath(new URL('../../core/toolkit/', import.meta.url));
const { D9_DIAL9: dial9, D9_TRACES: folder } = process.env;
const made = readdirSync(folder).filter((name) => name.includes('.bin'));
const SCRIPTS = { 'report.js': [], 'red_flags.js': [], 'diagnose_long_poll.js': [], 'diagnose_setup.js': [], 'zoom.js': ['0.01'] };

function run(script, ...args) {
	const { status, stdout, stderr } = spawnSync('node', [join(toolkit, script), ...args], { maxBuffer: 2 ** 28, encoding: 'utf8' });
	return { status, out: stdout, err: stderr };
}

/** JSON whose integers of 64 bits are texts, so that none of their digits is lost. */
const exact = (text) => JSON.parse(text.replace(/([:[,]\s*)(-?\d{16,})/g, '$1"$2"'));

const ofDial9 = (path) => exact(spawnSync(dial9, ['report', '--json', '--no-symbols', path], { maxBuffer: 2 ** 28, encoding: 'utf8' }).stdout);

const kindOf = (value) => (value === null ? 'null' : Array.isArray(value) ? 'array' : typeof value);

/** What |ours| has and |theirs| has not, or of another type; null fits everything. */
function strangeKeys(theirs, ours, path, found) {
	if (Array.isArray(ours)) {
		if (theirs?.length) ours.forEach((one) => strangeKeys(theirs[0], one, `${path}[]`, found));
	} else if (ours && typeof ours === 'object') {
		for (const [key, value] of Object.entries(ours)) {
			if (!theirs || !(key in theirs)) found.add(`${path}.${key}`);
			else if (theirs[key] !== null && value !== null && kindOf(theirs[key]) !== kindOf(value)) found.add(`${path}.${key}: ${kindOf(value)}`);
			else strangeKeys(theirs[key], value, `${path}.${key}`, found);
		}
	}
	return found;
}

const PARKED_NS = 6; // among a worker's figures
const open = (object) => /^\.trace\.(events|loss|metadata|processes)/.test(object) || object.startsWith('.findings') || object.startsWith('.wake_to_poll.by_reason');

/** Figures that both compute, by what they are of. */
function figuresOf(report) {
	const quantiles = ({ count, sum_ns, min_ns, p50_ns, p90_ns, p99_ns, p999_ns, max_ns }) => ({ count, sum_ns, min_ns, p50_ns, p90_ns, p99_ns, p999_ns, max_ns });
	const { start_ns, end_ns, duration_ns, total_events, events, loss, lost_events, dropped_allocs } = report.trace;
	return { trace: { start_ns, end_ns, duration_ns, total_events, events, loss, lost_events, dropped_allocs }, polls: quantiles(report.polls), recorded: report.recorded,
		long: [report.polls.over_1ms, report.polls.over_10ms, report.polls.over_50ms, report.polls.with_samples, report.polls.uninstrumented],
		longest: report.polls.longest.map(({ location, duration_ns: ns, worker, task, time_ns, offset_ns, wall, pieces, on_cpu_samples }) => [location, ns, worker, task, time_ns, offset_ns, wall, pieces, on_cpu_samples]),
		waits: [quantiles(report.wake_to_poll), report.wake_to_poll.wakes, report.wake_to_poll.over_1ms, report.wake_to_poll.over_5ms, report.wake_to_poll.by_reason],
		timers: [quantiles(report.timers.lateness), report.timers.over_1ms], spawned: report.tasks.spawned, ended: report.tasks.ended, spans: report.spans.map((span) => [span.name, quantiles(span)]),
		queues: [report.queues.global.max, report.queues.local.max, report.queues.local.sum, report.queues.registered_tasks.samples],
		workers: report.workers.map(({ id, tid, polls, resumptions, poll_ns, parks, parked_ns, long_call_ns, local_queue_max }) => [id, tid, polls, resumptions, poll_ns, parks, parked_ns, long_call_ns, local_queue_max]),
		callbacks: report.callbacks.map(({ location, polls, total_ns, min_ns, p50_ns, p90_ns, p99_ns, max_ns, over_1ms, over_10ms, delays, lateness, on_cpu_samples, off_cpu_samples, tasks_spawned }) =>
			[location, polls, total_ns, min_ns, p50_ns, p90_ns, p99_ns, max_ns, over_1ms, over_10ms, quantiles(delays), quantiles(lateness), on_cpu_samples, off_cpu_samples, tasks_spawned]).sort() };
}

for (const name of made) {
	test(`report.js --json has the keys and the figures of dial9 report --json: ${name}`, () => {
		const path = join(folder, name), { status, out, err } = run('report.js', '--json', path), theirs = ofDial9(path), ours = exact(out);
		assert.equal(status, 0, err);
		assert.deepEqual([...strangeKeys(theirs, ours, '', new Set())].filter((key) => !open(key)), []);
		assert.deepEqual(figuresOf(ours), figuresOf(theirs));
	});
}

for (const name of ['blocked_callback', 'long_callback'].filter((one) => existsSync(join(folder, one)))) {
	test(`figures of a program that was recorded: ${name}`, () => {
		const theirs = figuresOf(ofDial9(join(folder, name))), ours = figuresOf(exact(run('report.js', '--json', join(folder, name)).out));
		// Waits of the program's own around its loop are parks for dial9 report, and on a busy machine a round can look so.
		for (const figures of [ours, theirs]) figures.workers.forEach((worker) => worker.splice(PARKED_NS, 1));
		for (const key of ['trace', 'polls', 'recorded', 'long', 'spawned', 'workers']) assert.deepEqual(ours[key], theirs[key], key);
	});
}

for (const [script, rest] of Object.entries(SCRIPTS)) {
	test(`${script} tells how to use it, and what is wrong with its input in one line`, () => {
		const help = run(script, '--help');
		assert.equal(help.status, 0);
		assert.match(help.out, new RegExp(`^usage: node ${script.replace('.', '\\.')} `));
		writeFileSync(join(folder, 'none.txt'), 'this is no trace\n');
		for (const args of [[], ['/nonexistent', ...rest], ['--wrong', ...rest], [join(folder, 'none.txt'), ...rest], ['/proc/self/mem', ...rest]]) {
			const { status, out, err } = run(script, ...args);
			assert.deepEqual([status, out, err.split('\n').length, err.startsWith(`${script}: `)], [2, '', 2, true], `${args}: ${err}`);
		}
	});

	test(`${script} tells in one line that its output cannot be written, and nothing to a reader that has enough`, () => {
		const command = `node ${join(toolkit, script)} --json ${join(folder, 'callbacks.bin.zst')} ${rest.join(' ')}`;
		const shell = (line) => spawnSync('sh', ['-c', line], { encoding: 'utf8' });
		const full = shell(`${command} >/dev/full`), { stdout: status, stderr } = shell(`{ { ${command}; echo $? >&3; } | true; } 3>&1`);
		assert.deepEqual([full.status, full.stderr.split('\n').length, full.stderr.startsWith(`${script}: cannot write: `)], [2, 2, true], full.stderr);
		assert.equal(stderr, '');
		assert.ok(Number(status) < 2);
	});

	test(`${script} prints lines of 80 columns, and JSON`, () => {
		for (const name of ['callbacks.bin.zst', 'blocked_callback'].filter((one) => existsSync(join(folder, one)))) {
			const { out, status, err } = run(script, join(folder, name), ...rest);
			assert.ok(status < 2, err);
			assert.deepEqual(out.split('\n').filter((line) => [...line].length > 80 && !line.includes('/')), [], name);
		}
		assert.doesNotThrow(() => JSON.parse(run(script, '--json', join(folder, 'callbacks.bin.zst'), ...rest).out));
	});
}

test('zoom.js wants a moment, and red_flags.js tells by its status whether anything is wrong', () => {
	for (const [args, said] of [[['soon'], "not 'soon'"], [['99'], 'before 99 s'], [['--half', '-3', '0.01'], "'--half'"]]) {
		const { status, err } = run('zoom.js', join(folder, 'small.bin.zst'), ...args);
		assert.deepEqual([status, err.includes(said), err.split('\n').length], [2, true, 2], err);
	}
	assert.equal(run('red_flags.js', join(folder, 'small.bin.zst')).status, 1);
	assert.equal(run('red_flags.js', join(folder, 'late.bin.zst')).status, 0);
});

test('a call that sleeps is told from one that computes', { skip: !existsSync(join(folder, 'blocked_callback')) }, () => {
	const [blocked] = JSON.parse(run('diagnose_long_poll.js', '--json', join(folder, 'blocked_callback')).out);
	assert.match(blocked.verdict, /asleep for/);
	assert.ok(blocked.time.blocked > blocked.time.on_cpu);
	const [long] = JSON.parse(run('diagnose_long_poll.js', '--json', join(folder, 'long_callback')).out);
	assert.doesNotMatch(long.verdict, /asleep/);
});

test('the manifest of a dump stands for the segments that it lists, beside it', () => {
	const dump = join(folder, 'dump'), manifest = join(dump, 'dump.A.json'), list = (...segments) => writeFileSync(manifest, JSON.stringify({ segments }));
	mkdirSync(dump);
	copyFileSync(join(folder, 'small.bin.zst'), join(dump, 'trace.0.bin.zst'));
	copyFileSync(join(folder, 'callbacks.bin.zst'), join(dump, 'trace.1.bin.zst'));
	list('trace.0.bin.zst', 'trace.2.bin.zst');
	const { status, out, err } = run('report.js', '--json', manifest);
	assert.deepEqual([status, err], [0, `report.js: ${join(dump, 'trace.2.bin.zst')}: not there, and dump.A.json lists it\n`]);
	assert.deepEqual(figuresOf(exact(out)), figuresOf(exact(run('report.js', '--json', join(folder, 'small.bin.zst')).out)));
	for (const names of [['trace.2.bin.zst'], ['../small.bin.zst'], [join(folder, 'small.bin.zst')], ['dump.A.json'], [1]]) {
		list(...names);
		const bad = run('report.js', manifest);
		assert.deepEqual([bad.status, bad.out, bad.err.split('\n').length], [2, '', 2], bad.err);
	}
});

test('processes are told apart by their boot ids, wherever their segments lie', () => {
	const mixed = join(folder, 'mixed'), place = (from, to) => copyFileSync(join(toolkit, '..', 'demo', from, 'trace.0.bin.zst'), join(mixed, to));
	for (const one of ['', 'one', 'two']) mkdirSync(join(mixed, one), { recursive: true });
	[['web', 'one/trace.0.bin.zst'], ['timer', 'one/trace.1.bin.zst'], ['web', 'two/trace.0.bin.zst']].forEach(([from, to]) => place(from, to));
	const processes = (report) => report.processes.map((process) => process.trace.metadata.boot_id);
	const ours = processes(exact(run('report.js', '--json', mixed).out));
	assert.equal(ours.length, 2);
	assert.deepEqual(ours, processes(ofDial9(mixed)));
});

test('names in a trace cannot send control characters to the terminal', () => {
	const w = new TraceWriter(), name = 'evil\u001b[2J\u202e', MS = 1e6;
	const start = w.type('PollStartEvent', [['worker_id', 9], ['local_queue', 11], ['task_id', 9], ['spawn_loc', 7]]), end = w.type('PollEndEvent', [['worker_id', 9]]);
	const sample = w.type('CpuSampleEvent', [['worker_id', 9], ['tid', 13], ['source', 11], ['thread_name', 7], ['callchain', 6]]);
	const symbol = w.type('SymbolTableEntry', [['addr', 9], ['size', 9], ['symbol_name', 7], ['inline_depth', 11], ['source_file', 7], ['source_line', 9]]);
	w.at(MS, start, { worker_id: 0, local_queue: 0, task_id: 7, spawn_loc: `${name} @ ${name}` });
	for (let ms = 2; ms < 20; ms++) w.at(ms * MS, sample, { worker_id: 0, tid: 9, source: 0, thread_name: name, callchain: [0x1000] });
	w.at(20 * MS, end, { worker_id: 0 });
	w.at(21 * MS, symbol, { addr: 0x1000, size: 16, symbol_name: name, inline_depth: 0, source_file: name, source_line: 1 });
	writeFileSync(join(folder, 'evil.bin'), w.finish());
	for (const [script, rest] of Object.entries(SCRIPTS)) {
		const { out, err } = run(script, join(folder, 'evil.bin'), ...rest);
		assert.doesNotMatch(out + err, /[\u0000-\u0009\u000b-\u001f\u202e]/, script);
		if (script !== 'diagnose_setup.js') assert.match(out, /evil/, script);
	}
});
