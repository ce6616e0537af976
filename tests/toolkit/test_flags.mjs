// SPDX-License-Identifier: Apache-2.0
// The toolkit's red flags beside the findings of $D9_DIAL9 report --json: of the traces in $D9_TRACES, and of programs with
// one problem each in $D9_SCENARIOS, whose folders are called NAME or NAME.VARIANT.

import { test } from 'node:test';
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { redFlags } from '../../core/toolkit/analyze.js';
import { readProcesses } from '../../core/toolkit/files.js';
import { FLAG_CHECKS } from '../../core/toolkit/flags.js';
import { absoluteTime, readTrace } from '../../core/toolkit/trace.js';
import { TraceWriter } from './trace_writer.mjs';

const script = fileURLToPath(new URL('../../core/toolkit/report.js', import.meta.url));
const { D9_DIAL9: dial9, D9_TRACES: golden, D9_SCENARIOS: scenarios } = process.env;
const KNOWN = new Set(FLAG_CHECKS.map(([check]) => check)), MS = 1e6;

/** What each program does wrong. */
const GUILTY = { hang: 'stuck-callback', long_callback: 'long-callback', blocked_callback: 'blocked-callback', 'spin.read': 'spin', 'spin.write': 'spin', wake_storm: 'wake-storm', idle_wakes: 'idle-wakes',
	'many_wakes.timers': 'many-wakes', 'many_wakes.pipe': 'many-wakes', timer_late: 'timer-late', 'growth.memory': 'memory-growth', 'growth.descriptors': 'descriptor-growth', unfair: 'unfair', backlog: 'backlog' };

const report = (program, ...args) => JSON.parse(spawnSync(program, args, { maxBuffer: 2 ** 28, encoding: 'utf8' }).stdout);
const theirsOf = (path) => report(dial9, 'report', '--json', '--no-symbols', path).findings;
const whole = (findings) => findings.flatMap((finding) => [finding, ...(finding.effects ?? [])]);
const grave = (findings) => whole(findings).filter(({ severity }) => severity !== 'info');
const text = (findings) => findings.map(({ check, severity, message }) => `${severity} ${check}: ${message}`).join('\n');

/** The first finding about the program. */
const worst = (findings) => findings.find(({ check, about }) => about === 'program' && !['nothing-recorded', 'incomplete-data', 'degraded-hooks'].includes(check));

for (const name of readdirSync(golden)) {
	test(`what dial9 report warns of, red flags warn of, too, and of nothing else: ${name}`, () => {
		const theirs = theirsOf(join(golden, name)), ours = report('node', script, '--json', join(golden, name)).findings, checks = (findings) => [...new Set(grave(findings).map(({ check }) => check))].filter((check) => KNOWN.has(check)).sort();
		assert.deepEqual(checks(ours), checks(theirs), `${text(theirs)}\n\n${text(ours)}`);
	});
}

for (const [name, check] of Object.entries(GUILTY).filter(([one]) => existsSync(join(scenarios, one)))) {
	test(`the worst red flag is the worst finding: ${name}`, async () => {
		const [{ trace }] = await readProcesses([join(scenarios, name)]), theirs = theirsOf(join(scenarios, name)), ours = redFlags(trace), [first, flag] = [worst(theirs), worst(ours)], told = `${text(theirs)}\n\n${text(ours)}`;
		// What else runs on this machine may have done more to it.
		const same = (one) => one.check === first.check && (one.name === first.name || one.name === null);
		if (first?.check === check) assert.ok(same(flag), told);
		else for (const one of grave(theirs).filter((finding) => KNOWN.has(finding.check))) assert.ok(whole(ours).some((other) => other.check === one.check), told);
		if (first?.check === check && ['long-callback', 'blocked-callback', 'stuck-callback'].includes(check))
			assert.equal(Number(absoluteTime(trace, flag.evidence[0].time)), first.evidence[0].time_ns, told);
	});
}

/* ---- rules that those traces do not show ---- */

const FIELDS = { PollStartEvent: [['worker_id', 9], ['local_queue', 11], ['task_id', 9], ['spawn_loc', 7]], PollEndEvent: [['worker_id', 9]], WorkerParkEvent: [['worker_id', 9], ['local_queue', 11], ['cpu_time_ns', 9]],
	WorkerUnparkEvent: [['worker_id', 9], ['local_queue', 11], ['cpu_time_ns', 9], ['sched_wait_ns', 9]], WakeEventEvent: [['waker_task_id', 9], ['woken_task_id', 9], ['target_worker', 11], ['reason', 11]],
	SegmentMetadataEvent: [['entries', 10]], RecorderLossEvent: [['worker_id', 9], ['cause', 7], ['events', 9], ['from_ns', 9], ['to_ns', 9]],
	OffCpuEvent: [['worker_id', 9], ['task_id', 9], ['blocked_ns', 9], ['run_queue_ns', 9], ['voluntary_switches', 9], ['user_cpu_ns', 9], ['system_cpu_ns', 9]], QueueSampleEvent: [['global_queue', 11]],
	TaskIoEvent: [['worker_id', 9], ...['task_id', 'reads', 'writes', 'accepts', 'again', 'eof', 'errors'].map((name) => [name, 9])],
	SourceTimeEvent: [['worker_id', 9], ['task_id', 9], ['phase', 7], ['calls', 9], ['total_ns', 9], ['max_ns', 9], ['function', 7]] };

/** Events of a made trace, by their names. */
class Maker {
	constructor() {
		this.writer = new TraceWriter();
		this.types = new Map();
	}

	add(ms, name, values) {
		if (!this.types.has(name)) this.types.set(name, this.writer.type(name, FIELDS[name]));
		this.writer.at(Math.round(ms * MS), this.types.get(name), { worker_id: 0, local_queue: 1, cpu_time_ns: 0, sched_wait_ns: 0, ...values });
		return this;
	}

	call(ms, length, task, name = `f${task} @ g.c:${task}`) {
		return this.add(ms, 'PollStartEvent', { task_id: task, spawn_loc: name }).add(ms + length, 'PollEndEvent', {});
	}

	wake(ms, task, reason) {
		return this.add(ms, 'WakeEventEvent', { waker_task_id: 0, woken_task_id: task, target_worker: 255, reason });
	}

	async flags(name = 'made') {
		const bytes = this.writer.finish();
		return redFlags(await readTrace([{ name, chunks: async function* () { yield bytes; } }]));
	}
}

const checksOf = (flags) => flags.map(({ check, severity }) => `${severity} ${check}`);

test('what limits all others comes first: losses, and hooks that do not see all', async () => {
	const flags = await new Maker().add(1, 'SegmentMetadataEvent', { entries: { 'loop.libevent.degraded': 'no symbol for event_active', 'loop.libev.refused': 'too old' } })
		.add(2, 'RecorderLossEvent', { cause: 'ring full', events: 3, from_ns: 1 * MS, to_ns: 2 * MS }).call(10, 90, 7).flags();
	assert.deepEqual(checksOf(flags), ['critical incomplete-data', 'critical degraded-hooks', 'warning degraded-hooks', 'critical long-callback']);
	assert.match(flags[0].message, /^3 events were lost \([\d.]+.% of all\)/);
	assert.match(flags[2].message, /^Hooks of libevent are degraded: no symbol/);
});

test('segments that the recorder gave up are told, but for those that are here', async () => {
	const flagsOf = (evicted) => new Maker().add(1, 'SegmentMetadataEvent', { entries: { 'segment.evicted': evicted } }).call(10, 1, 7).flags('abcd-1/trace.4.bin.zst');
	const [flag] = await flagsOf('0-2,4,6');
	assert.match(flag.message, /^There was more/);
	assert.deepEqual(flag.evidence.map(({ text }) => text), ['segment 0-2', 'segment 6']);
	assert.deepEqual((await flagsOf('3-4')).filter(({ message }) => /There was more/.test(message)), []);
});

test('a wait with lost events in it is not known, as the call that used the wake may be lost', async () => {
	const flagsOf = (worker) => new Maker().call(1, 1, 8).wake(9, 7, 1)
		.add(9000, 'RecorderLossEvent', { worker_id: worker, cause: 'disk', events: 3, from_ns: 10 * MS, to_ns: 9000 * MS }).call(9001, 1, 7).flags();
	assert.deepEqual(checksOf(await flagsOf(0)), ['critical incomplete-data']);
	assert.deepEqual(checksOf(await flagsOf(1)), ['critical incomplete-data', 'critical wake-delay']);
});

test('what a long call did to others stands under it', async () => {
	const made = new Maker().wake(9, 8, 1).wake(10, 9, 2).call(8, 300, 7).call(308, 1, 8).call(309, 1, 9), flags = await made.flags();
	assert.deepEqual(checksOf(flags), ['critical long-callback']);
	assert.deepEqual(flags[0].effects.map(({ check }) => check).sort(), ['timer-late', 'wake-delay']);
	assert.match(flags[0].effects.find(({ check }) => check === 'timer-late').effect, /^f9 up to 299.ms late$/);
});

test('what the kernel took from a call is the machine\'s, and no fault of the callback', async () => {
	const made = new Maker();
	for (let i = 0; i < 4; i++) made.call(100 * i + 1, 60, 7).add(100 * i + 61.1, 'OffCpuEvent', { task_id: 7, blocked_ns: 0, run_queue_ns: 59.5 * MS, voluntary_switches: 0, user_cpu_ns: 0.5 * MS, system_cpu_ns: 0 });
	const flags = await made.flags();
	assert.deepEqual(checksOf(flags), ['warning short-of-cpu']);
	assert.equal(flags[0].about, 'machine');
});

test('a loop that goes round for one task spins, and one that moves data does not', async () => {
	const guilty = new Maker(), innocent = new Maker(), read = (io) => ({ task_id: 7, reads: 4000, writes: 0, accepts: 0, again: 0, eof: 0, errors: 0, ...io });
	const ended = new Maker(), moving = new Maker();
	for (let i = 0; i < 4000; i++) {
		const ms = 1 + i * 0.1;
		for (const made of [guilty, ended, moving]) made.call(ms, 0.001, 7).add(ms + 0.09, 'WorkerParkEvent', {}).add(ms + 0.092, 'WorkerUnparkEvent', {});
		innocent.call(ms, 0.08, 7).add(ms + 0.09, 'WorkerParkEvent', {}).add(ms + 0.092, 'WorkerUnparkEvent', {});
	}
	assert.deepEqual([checksOf(await guilty.flags()), checksOf(await innocent.flags())], [['critical spin'], []]);
	// However short its calls are, what came of their reads decides.
	ended.add(500, 'TaskIoEvent', read({ eof: 4000 }));
	moving.add(500, 'TaskIoEvent', read({}));
	assert.deepEqual([checksOf(await ended.flags()), checksOf(await moving.flags())], [['critical spin'], []]);
});

test('many short calls hold a loop together; a queue that is long is told', async () => {
	const made = new Maker().wake(10, 999, 1);
	for (let i = 0; i < 100; i++) made.call(10 + i * 0.6, 0.55, i + 1, 'f @ g.c:1');
	const flags = await made.call(70.5, 0.1, 999, 'victim @ g.c:9').add(60, 'QueueSampleEvent', { global_queue: 200 }).flags();
	assert.deepEqual(checksOf(flags), ['critical backlog', 'warning queue-depth']);
	assert.match(flags[0].message, /^victim waited 60\.5.ms behind a backlog of 100 short calls, most of them of f\.$/);
});

test('a source whose check() takes long is told, though no callback is long', async () => {
	const made = new Maker().call(1, 0.1, 7).call(999, 0.1, 7);
	for (let i = 1; i < 5; i++) made.add(200 * i, 'SourceTimeEvent', { task_id: 7, phase: 'check', calls: 2, total_ns: 90 * MS, max_ns: 60 * MS, function: 'svc+0x10' });
	const flags = await made.flags();
	assert.deepEqual(checksOf(flags), ['critical source-time']);
	assert.match(flags[0].message, /^360.ms of the 998.ms lie in svc\+0x10, check\(\) of the source /);
});

test('what a program does between rounds of its loop is in no source', async () => {
	const made = new Maker().call(1, 0.1, 7).call(999, 0.1, 7);
	for (let i = 1; i < 5; i++) made.add(200 * i, 'SourceTimeEvent', { task_id: 0, phase: 'between', calls: 200, total_ns: 150 * MS, max_ns: 0.9 * MS, function: '' });
	assert.deepEqual(checksOf(await made.flags()), []);
});
