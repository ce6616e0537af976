// SPDX-License-Identifier: Apache-2.0
// The JavaScript decoder on the worked examples of FORMAT.md, and the rule checker on streams that
// break one rule each.

import { test } from 'node:test';
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { decode, Truncated, TraceError } from '../../core/toolkit/decode.js';
import { checkRules } from './trace_rules.mjs';

const HEADER = [0x54, 0x52, 0x43, 0, 1];
const u16 = (n) => [n & 255, n >> 8];
const u32 = (n) => [...u16(n & 65535), ...u16(n >>> 16)];
const u64 = (n) => [...u32(Number(BigInt(n) & 0xffffffffn)), ...u32(Number(BigInt(n) >> 32n))];
const text = (s) => [...Buffer.from(s)];
const str16 = (s) => [...u16(text(s).length), ...text(s)];
const str32 = (s) => [...u32(text(s).length), ...text(s)];
const schema = (id, name, fields) =>
	[1, ...u16(id), ...str16(name), 1, ...u16(fields.length), ...fields.flatMap(([f, t]) => [...str16(f), t])];
const reset = (ns) => [5, ...u64(ns)];
const event = (id, delta, ...bytes) => [2, ...u16(id), delta & 255, delta >> 8 & 255, delta >> 16, ...bytes.flat()];
const pool = (id, s) => [3, ...u32(1), ...u32(id), ...str32(s)];
const stream = (...parts) => Uint8Array.from(parts.flat());

const START = schema(1, 'PollStartEvent', [['worker_id', 9], ['local_queue', 11], ['task_id', 9], ['spawn_loc', 7]]);
const END = schema(2, 'PollEndEvent', [['worker_id', 9]]);

function events(bytes) {
	const list = [];
	decode(bytes, { event: (e) => list.push(e) });
	return list;
}

test('polls on one worker decode to the times and fields of the worked example', () => {
	const bytes = stream(HEADER, START, pool(0, 'echo.c:42'), reset(5000000000),
		event(1, 0, 0, 3, [0xac, 2], u32(0)), END, event(2, 12500, 0), event(1, 1000, 0, 2, 7, u32(0)),
		reset(5020013500), event(2, 0, 0));
	const list = events(bytes);

	assert.equal(bytes.length, 188);
	assert.deepEqual(list.map((e) => e.time), [5000000000n, 5000012500n, 5000013500n, 5020013500n]);
	assert.deepEqual(list[0].values, { worker_id: 0n, local_queue: 3n, task_id: 300n, spawn_loc: 'echo.c:42' });
});

test('optional fields, annotations, stacks and a second batch decode', () => {
	const hit = schema(256, 'CacheHit', [['took', 9], ['note', 0x84], ['temp', 2]]);
	const f64 = (x) => [...new Uint8Array(new Float64Array([x]).buffer)];
	const sample = schema(256, 'CpuSampleEvent', [['worker_id', 9], ['tid', 13], ['callchain', 6], ['cpu', 0x89]]);
	const annotations = [];
	const list = [];
	decode(stream(HEADER, hit, [6, 0x80, 2], u16(1), u16(0), str16('unit'), str32('us'), reset(6000000000),
		event(256, 0, [0x96, 1], 0, f64(1.5)), event(256, 250000, 9, 1, str32('ok'), f64(-2)),
		HEADER, sample, [4], u32(1), u32(0), u32(2), u64(0x7f0000001234n), u64(0x400abcn), reset(5999000000),
		event(256, 0, 0, u32(4242), u32(0), 1, 5)),
	{ event: (e) => list.push(e), annotations: (id, entries) => annotations.push([id, entries]) });

	assert.deepEqual(annotations, [[256, [{ field: 0, key: 'unit', value: 'us' }]]]);
	assert.equal(list[0].values.note, undefined);
	assert.equal(list[1].values.note, 'ok');
	assert.equal(list[1].values.temp, -2);
	assert.deepEqual(list[2].values.callchain, [0x7f0000001234n, 0x400abcn]);
	assert.equal(list[2].values.cpu, 5n);
});

test('a stream cut at any byte gives a clean prefix', () => {
	const bytes = stream(HEADER, END, reset(1000), event(2, 1, 0), event(2, 2, 0));
	for (let cut = 5; cut < bytes.length; cut++) {
		const list = [];
		try {
			decode(bytes.subarray(0, cut), { event: (e) => list.push(e.time) });
		} catch (error) {
			assert.ok(error instanceof Truncated, `cut ${cut}: ${error}`);
		}
		assert.deepEqual(list, [1001n, 1003n].slice(0, list.length));
	}
});

test('damage is named with its offset', () => {
	const damaged = [
		[stream([0, 0, 0, 0, 1]), /not a TRC stream/],
		[stream([0x54, 0x52, 0x43, 0, 2]), /version 2/],
		[stream(HEADER, [9]), /offset 5: unknown frame tag 0x9/],
		[stream(HEADER, event(7, 0)), /unknown type 7/],
		[stream(HEADER, END, reset(1), event(2, 0, Array(11).fill(0x80))), /varint/],
		[stream(HEADER, END, schema(2, 'Other', [])), /defined twice/],
		[stream(HEADER, END, reset(0xffffffffffffffffn), event(2, 1, 0)), /64 bits/],
	];
	for (const [bytes, expected] of damaged)
		assert.throws(() => decode(bytes, {}), (e) => e instanceof TraceError && expected.test(e.message));
});

test('the rule checker accepts what keeps the rules', () => {
	const { problems } = checkRules(stream(HEADER, START, END, pool(0, 'f @ g'), reset(1000),
		event(1, 0, 0, 1, 4, u32(0)), event(2, 5, 0), event(1, 0, 0, 1, 4, u32(0)), event(2, 5, 0)), { foreign: true });
	assert.deepEqual(problems, []);
});

const broken = {
	1: [event(2, 0, 0)],
	2: [END, reset(1), event(2, 0, 0)],
	4: [START, pool(1, 'late'), reset(1), event(1, 0, 0, 1, 4, u32(1))],
	5: [reset(1), event(2, 0, [0x80, 0])],
	7: [reset(1), reset(2), reset(3), event(2, 0, 0)],
	9: [reset(1), event(2, 0, 64)],
	10: [reset(9), event(2, 0, 0), START, pool(0, 'f'), reset(8), event(1, 0, 0, 1, 4, u32(0))],
	11: [reset(1), event(2, 0, 0), event(2, 0, 0)],
	12: [START, pool(0, 'f'), schema(3, 'WorkerParkEvent', [['worker_id', 9], ['local_queue', 11], ['cpu_time_ns', 9], ['tid', 13]]),
		reset(1), event(1, 0, 0, 1, 4, u32(0)), event(3, 0, 0, 0, 0, u32(9))],
	14: [schema(3, 'WorkerParkEvent', [['worker_id', 9], ['local_queue', 11], ['cpu_time_ns', 9], ['tid', 13]]),
		reset(1), event(3, 0, 0, 0, 0, u32(0))],
	16: [schema(4, 'WakeEventEvent', [['waker_task_id', 9], ['woken_task_id', 9], ['target_worker', 11]]),
		reset(1), event(4, 0, 0, 77, 255)],
	18: [schema(5, 'QueueSampleEvent', []), reset(1), event(5, 0)],
};
for (const [rule, frames] of Object.entries(broken)) {
	test(`the rule checker reports what breaks rule ${rule}`, () => {
		const { problems } = checkRules(stream(HEADER, END, ...frames), { foreign: true });
		assert.ok(problems.some((p) => p.startsWith(`rule ${rule},`)), problems.join('\n') || 'nothing reported');
	});
}

test('the rule checker asks our own traces for the minimum set', () => {
	const { problems } = checkRules(stream(HEADER, END, reset(1), event(2, 0, 0), reset(2000000000), event(2, 0, 0)));
	assert.ok(problems.some((p) => p.startsWith('rule 19,')));
	assert.ok(problems.some((p) => p.startsWith('rule 20,')));
	assert.ok(problems.some((p) => p.startsWith('rule 22,')));
});

test('the rule checker misses a worker in the lists, but not in a process that was killed before it had any', () => {
	const polls = [START, END, pool(0, 'f'), reset(1), event(1, 0, 0, 1, 4, u32(0)), event(2, 5, 0)];
	const missing = (frames) => checkRules(stream(HEADER, ...frames)).problems.some((p) => p.includes('worker 0 in no runtime list'));

	assert.ok(missing([...polls, schema(3, 'RecorderHealthEvent', []), event(3, 9)]));
	assert.ok(!missing(polls));
});

test('the dump in FORMAT.md decodes to what its table says', () => {
	const doc = readFileSync(new URL('../../core/doc/FORMAT.md', import.meta.url), 'utf8');
	const dump = doc.split('```')[1].trim().split('\n').flatMap((line) => line.split(/\s+/).slice(1));
	const list = events(Uint8Array.from(dump, (hex) => parseInt(hex, 16)));
	assert.deepEqual(list.map((e) => [e.schema.name, e.time, e.values.worker_id]),
		[['PollEndEvent', 5000000000n, 0n], ['PollEndEvent', 5000012500n, 0n]]);
});
