// SPDX-License-Identifier: Apache-2.0
// Stacks of every kind, folded: by what they are made of, and as `dial9 export --format folded` folds them.

import { test } from 'node:test';
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { EventList, eventSources, eventFields } from '../../core/toolkit/event_list.js';
import { FrameNames, childrenOf, foldProfiles, foldedLines, functionsOf, matchesOf, nodeAt, pathOf } from '../../core/toolkit/fold.js';
import { PROFILE_KINDS, WHOLE, allocations, blockingCalls, idleWaits, profileOf } from '../../core/toolkit/profile.js';
import { Durations, bucketOf, middleOf } from '../../core/toolkit/statistics.js';
import { readTrace } from '../../core/toolkit/trace.js';
import { profileTrace } from './profile_bytes.mjs';
import { stream } from './trace_bytes.mjs';

const read = (bytes) => readTrace([{ name: 'a', chunks: async function* () { yield bytes; } }]);
const trace = await read(profileTrace());
const names = new FrameNames();
const folded = (kind, scope = WHOLE, options = {}) => foldProfiles([[{ trace, ...profileOf(trace, kind, scope) }]], names, options);
const lines = (kind, scope) => foldedLines(folded(kind, scope), names);

test('a profile counts what is in its range, on its threads and inside of its callback', () => {
	const count = (kind, scope) => { const { samples, of } = profileOf(trace, kind, { ...WHOLE, ...scope }); return [samples, of]; };
	assert.deepEqual(count('cpu'), [67, 67]);
	assert.deepEqual(count('cpu', { from: 0, to: 10e6 }), [5 + 5 + 1 + 4 + 3 + 2, 67]);
	assert.deepEqual(count('cpu', { workers: new Set([0]), tids: new Set([4127]) }), [60, 67]);
	assert.deepEqual(count('cpu', { workers: new Set(), tids: new Set([4200]) }), [7, 67]);
	assert.deepEqual(count('cpu', { site: trace.strings.indexOf('tick @ timer.c:40') }), [5, 67]);
	assert.deepEqual(count('off-cpu'), [6, 6]);
	assert.deepEqual(count('blocking'), [2, 2]);
	assert.deepEqual(count('heap'), [20, 20]);
	assert.deepEqual(count('live'), [15, 20]);
	assert.deepEqual(count('idle'), [4, 4]);
});

test('stacks are folded from either end, and parts add up to the whole', () => {
	const tree = folded('cpu'), inverted = folded('cpu', WHOLE, { inverted: true });
	const top = (t) => childrenOf(t, 0).map((node) => [names.list[t.frame[node]].name, t.total[0][node]]);
	assert.deepEqual(top(tree), [['main', 55], ['worker', 7], ['[no stack]', 3], ['[cut stack]', 2]]);
	assert.deepEqual(top(inverted).slice(0, 3), [['copy', 40], ['parse', 10], ['worker', 7]]);
	for (const t of [tree, inverted])
		for (let node = 0; node < t.n; node++)
			assert.equal(t.total[0][node], t.own[0][node] + childrenOf(t, node).reduce((sum, child) => sum + t.total[0][child], 0));
	assert.equal(tree.total[0][0], 67);
	const copy = nodeAt(tree, names, ['main', 'on_read', 'parse', 'copy']);
	assert.deepEqual([tree.total[0][copy], pathOf(tree, copy).map((frame) => names.list[frame].name)], [40, ['main', 'on_read', 'parse', 'copy']]);
	assert.equal(nodeAt(tree, names, ['main', 'nobody', 'parse']), nodeAt(tree, names, ['main']));
});

test('a function has its own and all it called, once where it calls itself', () => {
	const rows = Object.fromEntries(functionsOf(folded('cpu')).map((row) => [names.list[row.frame].name, [row.own[0], row.total[0]]]));
	assert.deepEqual([rows.main, rows.on_read, rows.parse, rows.copy], [[0, 55 + 2], [0, 52], [10, 50], [40, 40]]);
	const recursive = { stacks: [[1, 2, 1, 2, 3]], symbols: new Map([1, 2, 3].map((a) => [a, [{ name: `f${a}`, file: '', line: 0 }]])) };
	const tree = foldProfiles([[{ trace: recursive, weights: new Map([[0, 10]]) }]], names);
	assert.deepEqual(functionsOf(tree).map((row) => [names.list[row.frame].name, row.own[0], row.total[0]]), [['f3', 0, 10], ['f2', 0, 10], ['f1', 10, 10]]);
	assert.deepEqual(matchesOf(tree, (frame) => names.list[frame].name === 'f1'), { weight: 10, nodes: 2 });
});

test('two profiles are folded into one tree that keeps both weights', async () => {
	const other = await read(profileTrace({ copies: 20 }));
	const tree = foldProfiles([[{ trace, ...profileOf(trace, 'cpu') }], [{ trace: other, ...profileOf(other, 'cpu') }]], names);
	const copy = nodeAt(tree, names, ['main', 'on_read', 'parse', 'copy']);
	assert.deepEqual(tree.total.map((side) => [side[0], side[copy]]), [[67, 40], [47, 20]]);
});

test('allocations stand for more than themselves, and what was freed is not live', () => {
	const all = allocations(trace);
	assert.ok(Math.abs(all[0].bytes - 1000 / (1 - Math.exp(-10))) < 1e-6);
	assert.deepEqual(all.map((a) => a.live), [...Array(5).fill(false), ...Array(15).fill(true)]);
});

test('a wait of an idle task ends with its next call', () => {
	assert.deepEqual(idleWaits(trace).map((wait) => Math.round(wait.length / 1e4)), [730, 730, 730, 730]);
});

test('a blocking call has the stack of the sample beside it, and who held the lock', () => {
	const { rows } = blockingCalls(trace);
	assert.deepEqual(rows.map((row) => [row.name, row.dur, row.fd, row.holderTid, row.worker]), [['fsync', 4e6, 14, 4200, 0], ['fsync', 2e6, 14, 4200, 0]]);
	assert.deepEqual(lines('blocking'), ['main;on_read;flush_log;fsync;do_fsync_[k] 6000000']);
});

test('buckets of durations are within 1/256 of what they count', () => {
	for (let exponent = 0; exponent < 50; exponent += 0.37) {
		const value = Math.floor(2 ** exponent);
		assert.ok(Math.abs(middleOf(bucketOf(value)) - value) <= value / 256, `${value}`);
	}
	const durations = new Durations();
	for (let i = 1; i <= 1000; i++) durations.add(i * 1000);
	assert.ok(Math.abs(durations.quantile(0.5) - 500000) < 2000 && Math.abs(durations.quantile(0.99) - 990000) < 4000);
	assert.deepEqual([durations.quantile(0), durations.quantile(1), durations.sum], [1000, 1000000, 500500000]);
});

test('`dial9 export --format folded` folds each kind in the same way', { skip: !process.env.DIAL9 && 'there is no DIAL9' }, () => {
	const folder = mkdtempSync(`${tmpdir()}/dial9-profiles.`);
	writeFileSync(`${folder}/trace.0.bin`, stream([...profileTrace()]));
	const exported = (kind, ...more) => String(execFileSync(process.env.DIAL9, ['export', '--format', 'folded', '--kind', kind, ...more, '-o', '-', folder], { stdio: ['ignore', 'pipe', 'ignore'] })).trim().split('\n').sort();
	for (const kind of ['cpu', 'heap', 'live']) assert.deepEqual(lines(kind), exported(kind), kind);
	// There the calls that blocked are of the same kind, which is told in time.
	const counts = (list) => list.reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0);
	assert.equal(counts(exported('off-cpu', '--weight', 'samples')), profileOf(trace, 'off-cpu').samples + profileOf(trace, 'blocking').samples);
	const idle = (list) => list.map((line) => line.replace(/ \d+$/, ''));
	assert.deepEqual(idle(lines('idle')), idle(exported('idle')));
	assert.ok(Math.abs(counts(lines('idle')) / 1000 - counts(exported('idle'))) <= 4);
	rmSync(folder, { recursive: true });
	assert.deepEqual(Object.keys(PROFILE_KINDS), ['cpu', 'off-cpu', 'blocking', 'heap', 'live', 'idle']);
});

test('all events of a range are in the order of their times, at whatever place one looks', () => {
	const list = new EventList(eventSources(trace, WHOLE, true)), times = [], names = new Map();
	for (let i = 0; i < list.length; i++) {
		const { time, source } = list.at(i);
		times.push(time);
		names.set(source.name, (names.get(source.name) ?? 0) + 1);
	}
	assert.deepEqual(times, [...times].sort((a, b) => a - b));
	// A call and a wait are two events each; all else is one.
	assert.equal(list.length + 60 + 50, trace.events);
	assert.deepEqual([names.get('callback'), names.get('wait'), names.get('CpuSampleEvent'), names.get('AllocEvent'), names.get('SymbolTableEntry')], [60, 50, 75, 20, 9]);
	for (const i of [list.length - 1, 0, 77, 76, 130]) assert.equal(list.at(i).time, times[i]);
	const some = eventSources(trace, { ...WHOLE, from: 60e6, to: 70e6 });
	// The wait that reaches into the range is of it.
	assert.equal(new EventList(some).length, times.filter((time) => time >= 60e6 && time < 70e6).length + 1);
	const call = list.at(times.findIndex((time) => time >= 0));
	assert.ok(eventFields(call).length > 3);
	const helper = new EventList(eventSources(trace, { ...WHOLE, workers: new Set(), tids: new Set([4200]) }));
	assert.deepEqual([helper.length, helper.at(3).source.name], [7, 'CpuSampleEvent']);
});

test('the recorder\'s frames are no part of a stack, and that of one callback begins with it', () => {
	const named = { 1: 'main', 2: 'on_timer', 3: 'parse', 16: 'record_event', 17: 'read_usage', 32: 'getrusage', 33: 'read' };
	const recorded = { metadata: new Map(), symbols: new Map(Object.entries(named).map(([a, name]) => [Number(a), [{ name, file: '', line: 0 }]])),
		modules: [{ base: 16, start: 16, size: 16, path: '/usr/lib/libdial9.so.0' }, { base: 32, start: 32, size: 16, path: '/lib/libc.so.6' }],
		stacks: [[3, 2, 16, 1], [32, 17, 2, 16, 1], [33, 3, 2, 16, 1], [3, 16, 1], [32, 17]] };
	const pathsOf = (root) => recorded.stacks.map((_, i) => names.ofStack(recorded, 2 * i, root).map((id) => names.list[id].name).join(';'));
	assert.deepEqual(pathsOf(null), ['main;on_timer;parse', 'main;on_timer', 'main;on_timer;parse;read', 'main;parse', 'read_usage;getrusage']);
	assert.deepEqual(pathsOf('on_timer').slice(0, 4), ['on_timer;parse', 'on_timer', 'on_timer;parse;read', 'on_timer;parse']);
});
