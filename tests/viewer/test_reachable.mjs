// SPDX-License-Identifier: Apache-2.0
// Nothing is summed into a rest that cannot be opened: what a list leaves out is one press away.

import { test } from 'node:test';
import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { TraceWriter } from '../toolkit/trace_writer.mjs';
import { WORK, clickOn, eventually, open, page, text, useBrowser } from './browser.mjs';

const MS = 1000000, ORIGIN = 7000000000, MANY = 40;

/** One call of 100 ms in which 40 functions run, behind which 40 callbacks wait, with a stack of 40 frames; span "all" is entered 40 times. */
function crowdedTrace() {
	const w = new TraceWriter(), at = (ms, type, values) => w.at(ORIGIN + Math.round(ms * MS), type, values);
	const start = w.type('PollStartEvent', [['worker_id', 9], ['local_queue', 11], ['task_id', 9], ['spawn_loc', 7]]), end = w.type('PollEndEvent', [['worker_id', 9]]);
	const wake = w.type('WakeEventEvent', [['waker_task_id', 9], ['woken_task_id', 9], ['target_worker', 11], ['reason', 11]]);
	const step = [['worker_id', 9], ['span_id', 9], ['span_name', 7], ['span_instance_id', 9], ['tid', 13]], [enter, exit] = ['Enter', 'Exit'].map((kind) => w.type(`Span${kind}:a::b:c.c:1`, step));
	const call = (from, length, task, name) => {
		at(from, start, { worker_id: 0, local_queue: 0, task_id: task, spawn_loc: name });
		at(from + length, end, { worker_id: 0 });
	};
	const stay = (from, length, id, name) => {
		for (const [ms, type] of [[from, enter], [from + length, exit]]) at(ms, type, { worker_id: 0, span_id: id, span_name: name, span_instance_id: id, tid: 1 });
	};
	at(0, w.type('SegmentMetadataEvent', [['entries', 10]]), { entries: { 'runtime.main': '0' } });
	call(100, 100, 7, 'crowded @ a.c:1');
	const sample = w.type('CpuSampleEvent', [['worker_id', 9], ['tid', 13], ['source', 11], ['callchain', 6]]), chain = Array.from({ length: MANY }, (_, i) => 0x1000 * (i + 1));
	for (let i = 0; i < 5; i++) at(110 + i, sample, { worker_id: 0, tid: 1, source: 0, callchain: chain });
	for (let i = 0; i < MANY; i++) {
		at(120 + i, wake, { waker_task_id: 0, woken_task_id: 100 + i, target_worker: 0, reason: 1 });
		call(201 + i, 0.5, 100 + i, `waiter_${i} @ w.c:${i + 1}`);
		stay(130 + i, 0.5, 0x500 + i, `inner_${i} @ i.c:${i + 1}`);
		stay(300 + i, 0.5, 0x77, 'all');
	}
	return w.finish();
}

useBrowser(() => {
	mkdirSync(`${WORK}/one`);
	writeFileSync(`${WORK}/one/trace.0.bin`, crowdedTrace());
});

test('all functions inside of a call, all frames of its stack, and all callbacks that waited can be read', async () => {
	await open('one', `#s=poll:0@${ORIGIN + 100 * MS}`);
	const said = await eventually(() => text('#detail'), /Called inside/);
	assert.match(said, /Called inside\s*40[^]*inner_11\b/);
	assert.doesNotMatch(said, /inner_12\b|waiter_39\b|0x28000/);
	for (const rest of ['all 40 functions', 'all 40 frames', 'all 40 callbacks']) await clickOn('#detail', rest);
	const all = await text('#detail');
	for (let i = 0; i < MANY; i++) assert.match(all, new RegExp(`inner_${i}\\b[^]*0x${((i + 1) * 0x1000).toString(16)}\\b[^]*waiter_${i}\\b`));
});

test('all stays of a span can be read', async () => {
	await open('one', '#s=span:77');
	await clickOn('#detail', 'all 40 times');
	assert.equal((await text('#detail')).match(/500.µs/g).length, MANY);
});

test('all that a search has found of a kind can be listed', async () => {
	await open('one');
	await page.click('#search');
	await page.keyboard.type('waiter_');
	await eventually(() => text('#results'), /callbacks\s+40[^]*all 40 callbacks/);
	await page.keyboard.press('ArrowUp');
	for (let i = 0; i < 8; i++) await page.keyboard.press('ArrowDown');
	await page.keyboard.press('Enter');
	const listed = await eventually(() => text('#results'), /waiter_39/);
	for (let i = 0; i < MANY; i++) assert.match(listed, new RegExp(`waiter_${i}\\b`));
});
