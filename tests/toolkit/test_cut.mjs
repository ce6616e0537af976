// SPDX-License-Identifier: Apache-2.0
// A range that is saved: the same events, for every reader.  $DIAL9 is the reader in C.

import { test } from 'node:test';
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { cutTrace } from '../../core/toolkit/cut.js';
import { framesOf } from '../../core/toolkit/stacks.js';
import { absoluteTime, readTrace } from '../../core/toolkit/trace.js';
import { HEADER, SHAPES, event, pool, reset, schema, serverTrace, stream, str32, u16, u32, uleb } from './trace_bytes.mjs';

const MS = 1000000;
const work = mkdtempSync(join(tmpdir(), 'test-cut-'));
test.after(() => rmSync(work, { recursive: true }));

/** |bytes| in pieces of |size|. */
const sourceOf = (bytes, size = 997) => ({ name: 'trace', chunks: async function* pieces() {
	for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
} });

async function cut(bytes, from, to) {
	const trace = await readTrace([sourceOf(bytes)]), tasks = new Set();
	for (const [id, task] of trace.tasks) if (!(task.died < from) && !(task.born > to)) tasks.add(id);
	const { chunks, events } = await cutTrace([sourceOf(bytes)], { origin: trace.origin, from, to, tasks, metadata: trace.metadata });
	const saved = Buffer.concat(chunks);
	return { trace, saved, events, read: await readTrace([sourceOf(saved)]) };
}

/** Events as the reader in C tells them, without what is there for the sake of others. */
function eventsOf(bytes, from, to) {
	const file = join(work, 'trace.bin'), context = /^(SegmentMetadataEvent|ClockSyncEvent|ModuleEvent|SymbolTableEntry|TaskSpawnEvent)$/;
	writeFileSync(file, bytes);
	const { status, stdout, stderr } = spawnSync(process.env.DIAL9, ['events', file], { encoding: 'utf8', maxBuffer: 1 << 28 });
	assert.deepEqual([status, stderr], [0, '']);
	return stdout.trim().split('\n').filter((line) => {
		const { event: name, timestamp_ns: time } = JSON.parse(line);
		return !context.test(name) && time >= from && time <= to;
	});
}

function findingsOf(bytes) {
	const file = join(work, 'found.bin');
	writeFileSync(file, bytes);
	return JSON.parse(spawnSync(process.env.DIAL9, ['report', '--json', '--no-symbols', file], { encoding: 'utf8', maxBuffer: 1 << 28 }).stdout).findings;
}

test('the saved range has exactly its events, and the reader in C takes it without a warning', async () => {
	const bytes = serverTrace();
	for (const [from, to] of [[300.0005, 390.5], [399, 583], [0, 2000], [990.1, 990.2]]) {
		const { trace, saved, read } = await cut(bytes, from * MS, to * MS), first = Number(absoluteTime(trace, from * MS)), last = Number(absoluteTime(trace, to * MS));
		const wanted = eventsOf(bytes, first, last);
		assert.deepEqual(eventsOf(saved, first, last), wanted);
		assert.equal(read.segments[0].error, null);
		assert.equal(read.segments[0].cut, false);
		assert.ok(wanted.length > 0 || to - from < 1);
	}
});

test('a call that reaches over an end of the range is whole, and nothing else is outside of it', async () => {
	const { trace, read } = await cut(serverTrace(), 450 * MS, 500 * MS), [main] = read.workers;
	assert.equal(main.polls.n, 1);
	assert.equal(main.polls.dur[0], 182 * MS);
	assert.deepEqual([absoluteTime(read, main.polls.start[0]), absoluteTime(trace, 400 * MS)], [5400000000n, 5400000000n]);
	assert.equal(main.polls.flags[0] & 1, 0);
});

test('what lives is told again, with names, stacks, symbols, clock and metadata, and that it was cut', async () => {
	const { trace, saved, read } = await cut(serverTrace(), 390 * MS, 600 * MS);
	assert.deepEqual([...read.tasks.keys()].sort(), [7, 8, 9]);
	assert.equal(read.strings[read.workers[0].polls.site[0]], 'on_read @ server.c:231');
	assert.deepEqual(framesOf(read, read.samples.stack[0]).slice(0, 2).map((f) => f.name), ['fsync', 'flush_log']);
	assert.equal(read.samples.time.length, 17);
	assert.deepEqual([...read.metadata].filter(([key]) => !key.startsWith('cut.')), [...trace.metadata]);
	assert.deepEqual([read.metadata.get('cut.from_ns'), read.metadata.get('cut.to_ns')], ['5390000000', '5600000000']);
	const [finding] = findingsOf(saved);
	assert.deepEqual([finding.check, finding.name, ...finding.effects.map(({ check }) => check)], ['long-callback', 'on_read', 'wake-delay']);
	assert.equal(read.start + Number(absoluteTime(read, 0)), 5390000000);
});

test('a task that has died before the range is not in it, nor one that comes after', async () => {
	const spawn = (delta, id) => event(1, delta, uleb(id), u32(0), 1, u32(0)), end = (delta, id) => event(2, delta, uleb(id));
	const bytes = stream(HEADER, SHAPES.spawn(1), schema(2, 'TaskTerminateEvent', [['task_id', 9]]), SHAPES.metadata(3), pool(0, 'f @ g.c:1'), reset(MS),
		event(3, 0, u32(0)), spawn(0, 1), spawn(1, 2), end(MS, 1), spawn(MS, 3), spawn(10 * MS, 4));
	assert.deepEqual([...(await cut(bytes, 1.5 * MS, 5 * MS)).read.tasks.keys()], [2, 3]);
});

test('batches keep their own types and names, and distances in time that are too long get a reset', async () => {
	const batch = (id, name, at) => [HEADER, schema(id, 'Tick', [['name', 7], ['text', 4]]), [6, ...uleb(id), ...u16(1), ...u16(0), ...u16(4), ...Buffer.from('unit'), ...str32('x')], pool(3, name),
		reset(at), event(id, 0, u32(3), str32(`${name}!`)), event(id, 5, u32(9), str32('')), reset(at + 40 * MS), event(id, 0, u32(3), str32('late'))].flat();
	const bytes = stream(batch(1, 'one', 5 * MS), batch(7, 'two', 105 * MS), batch(1, 'three', 205 * MS));
	const { saved, read } = await cut(bytes, 5, 240.5 * MS), first = 5 * MS + 5;
	assert.deepEqual(eventsOf(saved, first, 1e18), eventsOf(bytes, first, 245.5 * MS));
	assert.deepEqual(read.tables.find((table) => table.name === 'Tick').annotations, [[0, 'unit', 'x']]);
});

test('a range of nothing is a valid trace without events', async () => {
	const { saved, events } = await cut(serverTrace(), 5000 * MS, 6000 * MS);
	assert.equal(events, 5); // what lives, and what addresses are called
	assert.deepEqual(eventsOf(saved, 0, 1e18), []);
});

test('of a damaged segment that is saved which stands before the damage', async () => {
	const bytes = serverTrace(), half = Buffer.concat([bytes.subarray(0, 30000), Buffer.from([0xee, 0xee])]);
	const { trace, read } = await cut(half, 0, 100 * MS);
	assert.ok(trace.segments[0].cut || trace.segments[0].error);
	assert.equal(read.segments[0].error, null);
	assert.ok(read.workers[0].polls.n > 50);
});

test('functions that somebody else named, as the server did for the page, are named in what is saved', async () => {
	const bytes = serverTrace(), trace = await readTrace([sourceOf(bytes)]), wide = 2n ** 63n + 5n;
	const symbols = [[0x3000, [{ name: 'memcpy', file: 'string.h', line: 7 }, { name: 'copy_row', file: 'db.c', line: 300 }]], [wide, [{ name: 'ext4_readdir', file: 'kernel', line: 0 }]]];
	const { chunks, events } = await cutTrace([sourceOf(bytes)], { origin: trace.origin, from: 399 * MS, to: 583 * MS, tasks: new Set(), metadata: trace.metadata, symbols });
	const saved = Buffer.concat(chunks), read = await readTrace([sourceOf(saved)]);
	for (const [address, frames] of symbols) assert.deepEqual(read.symbols.get(address), frames);
	assert.deepEqual(read.symbols.get(0x2000), trace.symbols.get(0x2000));
	assert.equal(read.segments[0].events, events + 1); // and the metadata
	writeFileSync(join(work, 'named.bin'), saved);
	const { status, stdout, stderr } = spawnSync(process.env.DIAL9, ['report', '--json', '--symbols', join(work, 'named.bin')], { encoding: 'utf8' });
	assert.deepEqual([status, stderr], [0, '']);
	assert.match(stdout, /copy_row/);
});
