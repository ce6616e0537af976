// SPDX-License-Identifier: Apache-2.0
// The scripts of the toolkit on the traces in $D9_TRACES: those that call dial9 tell what $D9_DIAL9 report --json tells.

import { test } from 'node:test';
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { copyFileSync, cpSync, existsSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { TraceWriter } from './trace_writer.mjs';

const toolkit = fileURLToPath(new URL('../../core/toolkit/', import.meta.url));
const { D9_DIAL9: dial9, D9_TRACES: folder } = process.env;
const made = readdirSync(folder).filter((name) => name.includes('.bin')), recorded = ['blocked_callback', 'long_callback'].filter((name) => existsSync(join(folder, name)));
const SCRIPTS = { 'report.js': [], 'red_flags.js': [], 'diagnose_long_poll.js': [], 'diagnose_setup.js': [], 'zoom.js': ['0.01'] };
const OWN_WORDS = Object.keys(SCRIPTS).filter((script) => script !== 'report.js'); // it is dial9 report's

function start(program, args, env = {}) {
	const { status, stdout, stderr } = spawnSync(program, args, { maxBuffer: 2 ** 28, encoding: 'utf8', env: { ...process.env, DIAL9: dial9, ...env } });
	return { status, out: stdout, err: stderr };
}

const run = (script, ...args) => start('node', [join(toolkit, script), ...args]);
const report = (...args) => start(dial9, ['report', ...args]);

for (const name of [...made, ...recorded])
	test(`each script tells what dial9 report tells, and nothing of its own: ${name}`, () => {
		const path = join(folder, name), told = JSON.parse(report('--json', path).out), { findings } = told, bad = (found) => Number(found.some(({ severity }) => severity !== 'info'));
		for (const args of [['--json', path], ['--section', 'data', path], ['--top', '3', path]]) assert.deepEqual(run('report.js', ...args), report(...args));
		const flags = run('red_flags.js', '--json', path), same = ({ check, severity, message, name: of, figure, time, on_cpu: onCpu, advice }) => [check, severity, message, of, figure, time, onCpu, advice];
		assert.deepEqual(JSON.parse(flags.out).map(same), findings.map(same));
		assert.deepEqual(JSON.parse(flags.out).map(({ effects, evidence }) => [effects, evidence.map(({ text, offset_s: at }) => [text, at])]),
			findings.map(({ effects, evidence }) => [effects.map(({ effect }) => effect), evidence.map(({ text, offset_ns: ns }) => [text, ns === undefined ? undefined : ns / 1e9])]));
		assert.equal(flags.status, bad(findings));
		assert.deepEqual(run('red_flags.js', path), report('--exit-code', '--section', 'findings', path));
		const calls = JSON.parse(run('diagnose_long_poll.js', '--json', '--top', '1000', '--min-ms', '0', path).out), { longest } = told.polls, facts = (call) => [call.name, call.worker, call.task, call.duration_ns, call.verdict, call.time, call.waited, call.waiters];
		assert.deepEqual(calls.map(facts), longest.map(facts));
		const setup = run('diagnose_setup.js', '--json', path), data = findings.filter(({ check }) => JSON.parse(setup.out).some((one) => one.check === check));
		assert.deepEqual(JSON.parse(setup.out).map(({ check, message, advice }) => [check, message, advice]), data.map(({ check, message, advice }) => [check, message, advice]));
		assert.equal(setup.status, bad(data));
		assert.deepEqual(findings.filter(({ check }) => /^(nothing-recorded|incomplete-data|degraded-hooks|refused-source)$/.test(check) && !data.some((one) => one.check === check)), []);
	});

for (const [script, rest] of Object.entries(SCRIPTS)) {
	test(`${script} tells how to use it, and what is wrong with its input in one line`, () => {
		const help = run(script, '--help'), own = OWN_WORDS.includes(script);
		assert.equal(help.status, 0);
		assert.match(help.out, own ? new RegExp(`^usage: node ${script.replace('.', '\\.')} `) : /^usage: dial9 report /i);
		writeFileSync(join(folder, 'none.txt'), 'this is no trace\n');
		for (const args of [[], ['/nonexistent', ...rest], ['--wrong', ...rest], [join(folder, 'none.txt'), ...rest]]) {
			const { status, out, err } = run(script, ...args);
			assert.deepEqual([status, out, err.split('\n').length, /^(\w+\.js|dial9 report): ./.test(err)], [2, '', 2, true], `${args}: ${err}`);
		}
	});

	test(`${script} tells in one line that its output cannot be written, and nothing to a reader that has enough`, () => {
		const command = `node ${join(toolkit, script)} --json ${join(folder, 'callbacks.bin.zst')} ${rest.join(' ')}`, env = { ...process.env, DIAL9: dial9 };
		const shell = (line) => spawnSync('sh', ['-c', line], { encoding: 'utf8', env });
		const full = shell(`${command} >/dev/full`), { stdout: status, stderr } = shell(`{ { ${command}; echo $? >&3; } | true; } 3>&1`);
		assert.deepEqual([full.status, full.stderr.split('\n').length], [2, 2], full.stderr);
		assert.equal(stderr, '');
		assert.ok(Number(status) < 2);
	});

	test(`${script} prints lines of 80 columns, and JSON`, () => {
		for (const name of ['callbacks.bin.zst', ...recorded]) {
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

test('dial9 is the one that DIAL9 names, else the one near the scripts, else that of PATH; without one a line says so', () => {
	const place = join(folder, 'near'), trace = join(folder, 'small.bin.zst'), stand = (path, word) => writeFileSync(path, `#!/bin/sh\necho ${word} "$@"\n`, { mode: 0o755 });
	for (const one of ['share/dial9', 'bin', 'path', 'dial9']) mkdirSync(join(place, one), { recursive: true });
	cpSync(toolkit, join(place, 'share/dial9/toolkit'), { recursive: true });
	// A folder of that name is no program.
	cpSync(toolkit, join(place, 'toolkit'), { recursive: true });
	stand(join(place, 'bin/dial9'), 'installed');
	stand(join(place, 'path/dial9'), 'path');
	stand(join(place, 'told'), 'told');
	symlinkSync(process.execPath, join(place, 'path/node'));
	const ask = (where, env) => start('node', [join(place, where, 'report.js'), trace], { DIAL9: '', PATH: join(place, 'path'), ...env });
	assert.equal(ask('share/dial9/toolkit').out, `installed report ${trace}\n`);
	assert.equal(ask('toolkit').out, `path report ${trace}\n`);
	assert.equal(ask('toolkit', { DIAL9: join(place, 'told') }).out, `told report ${trace}\n`);
	stand(join(place, 'share/dial9/dial9'), 'built');
	assert.equal(ask('share/dial9/toolkit').out, `built report ${trace}\n`);
	for (const script of ['report.js', 'red_flags.js', 'diagnose_long_poll.js', 'diagnose_setup.js'])
		for (const DIAL9 of ['', join(place, 'nothing')]) {
			const { status, out, err } = start(process.execPath, [join(place, 'toolkit', script), '--json', trace], { DIAL9, PATH: join(place, 'bin/none') });
			assert.deepEqual([status, out], [2, ''], script);
			assert.match(err, new RegExp(`^${script}: dial9 is not found; .*say DIAL9=PATH\\n$`));
		}
});

test('of a damaged trace what precedes the damage is told, and the status says so', () => {
	const path = join(folder, 'damaged.bin');
	const w = new TraceWriter(), start_ = w.type('PollStartEvent', [['worker_id', 9], ['local_queue', 11], ['task_id', 9], ['spawn_loc', 7]]), end = w.type('PollEndEvent', [['worker_id', 9]]);
	w.at(1e9, start_, { worker_id: 0, local_queue: 0, task_id: 7, spawn_loc: 'slow @ main' });
	w.at(1.2e9, end, { worker_id: 0 });
	writeFileSync(path, Buffer.concat([w.finish(), Buffer.from([0xee, 0xee, 0xee])]));
	for (const [script, said] of [['report.js', /slow/], ['red_flags.js', /slow/], ['diagnose_long_poll.js', /^slow took 200.ms/], ['diagnose_setup.js', /incomplete-data/]]) {
		const { status, out, err } = run(script, path);
		assert.equal(status, 2, script);
		assert.match(out, said, script);
		assert.match(err, /damaged\.bin/, script);
	}
});

test('a call that sleeps is told from one that computes', { skip: recorded.length < 2 }, () => {
	const [blocked] = JSON.parse(run('diagnose_long_poll.js', '--json', join(folder, 'blocked_callback')).out), { out } = run('diagnose_long_poll.js', join(folder, 'blocked_callback'));
	assert.ok(blocked.time.blocked_ns > blocked.time.on_cpu_ns);
	assert.match(out, new RegExp(`${blocked.name} took [^]*asleep[^]*blocked in`));
	const [long] = JSON.parse(run('diagnose_long_poll.js', '--json', join(folder, 'long_callback')).out);
	assert.ok(long.time.blocked_ns < long.time.total_ns / 2);
});

test('calls are chosen by callback, task and length', { skip: !recorded.includes('long_callback') }, () => {
	const path = join(folder, 'long_callback'), choose = (...args) => JSON.parse(run('diagnose_long_poll.js', '--json', '--top', '1000', ...args, path).out);
	const all = choose('--min-ms', '1'), [first] = all, least = first.duration_ns / 1e6 - 0.5;
	assert.deepEqual(choose('--min-ms', '1', '--callback', first.name), all.filter(({ name }) => name.includes(first.name)));
	assert.deepEqual(choose('--min-ms', '1', '--task', first.task), all.filter(({ task }) => task === first.task));
	assert.deepEqual(choose('--min-ms', least), all.filter(({ duration_ns: ns }) => ns >= least * 1e6));
	assert.equal(run('diagnose_long_poll.js', '--callback', 'nothing of that name', path).status, 0);
});

test('the manifest of a dump stands for the segments that it lists, beside it', () => {
	const dump = join(folder, 'dump'), manifest = join(dump, 'dump.A.json'), list = (...segments) => writeFileSync(manifest, JSON.stringify({ segments }));
	mkdirSync(dump);
	copyFileSync(join(folder, 'small.bin.zst'), join(dump, 'trace.0.bin.zst'));
	copyFileSync(join(folder, 'callbacks.bin.zst'), join(dump, 'trace.1.bin.zst'));
	list('trace.0.bin.zst', 'trace.2.bin.zst');
	const loops = (path) => JSON.parse(run('zoom.js', '--json', path, '0.01').out).loops, { status, err } = run('zoom.js', '--json', manifest, '0.01');
	assert.deepEqual([status, err], [0, `zoom.js: ${join(dump, 'trace.2.bin.zst')}: not there, and dump.A.json lists it\n`]);
	assert.deepEqual(loops(manifest), loops(join(folder, 'small.bin.zst')));
	for (const names of [['trace.2.bin.zst'], ['../small.bin.zst'], [join(folder, 'small.bin.zst')], ['dump.A.json'], [1]]) {
		list(...names);
		const bad = run('zoom.js', manifest, '0.01');
		assert.deepEqual([bad.status, bad.out, bad.err.split('\n').length], [2, '', 2], bad.err);
	}
});

test('processes are told apart by their boot ids, wherever their segments lie', () => {
	const mixed = join(folder, 'mixed'), place = (from, to) => copyFileSync(join(toolkit, '..', 'demo', from, 'trace.0.bin.zst'), join(mixed, to));
	for (const one of ['', 'one', 'two']) mkdirSync(join(mixed, one), { recursive: true });
	[['web', 'one/trace.0.bin.zst'], ['timer', 'one/trace.1.bin.zst'], ['web', 'two/trace.0.bin.zst']].forEach(([from, to]) => place(from, to));
	const ours = JSON.parse(run('zoom.js', '--json', '--half', '10000', mixed, '0.1').out), calls = (loops) => loops.map(({ calls: all }) => all.length).sort(), theirs = JSON.parse(report('--json', mixed).out).processes;
	assert.deepEqual([ours.length, theirs.length], [2, 2]);
	assert.ok(ours.every(({ loops }) => calls(loops).some((n) => n > 0)));
});

test('names in a trace cannot send control characters to the terminal', () => {
	const w = new TraceWriter(), name = 'evil\u001b[2J\u202e', MS = 1e6;
	const begin = w.type('PollStartEvent', [['worker_id', 9], ['local_queue', 11], ['task_id', 9], ['spawn_loc', 7]]), end = w.type('PollEndEvent', [['worker_id', 9]]);
	const sample = w.type('CpuSampleEvent', [['worker_id', 9], ['tid', 13], ['source', 11], ['thread_name', 7], ['callchain', 6]]);
	const symbol = w.type('SymbolTableEntry', [['addr', 9], ['size', 9], ['symbol_name', 7], ['inline_depth', 11], ['source_file', 7], ['source_line', 9]]);
	w.at(MS, begin, { worker_id: 0, local_queue: 0, task_id: 7, spawn_loc: `${name} @ ${name}` });
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
