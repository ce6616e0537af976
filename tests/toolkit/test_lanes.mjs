// SPDX-License-Identifier: Apache-2.0
// Whatever the order in which a worker's events stand in a file, its calls lie one behind another.  $DIAL9 is the reader in C.

import { test } from 'node:test';
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { cutTrace } from '../../core/toolkit/cut.js';
import { prepareTrace } from '../../core/toolkit/prepare.js';
import { readTrace } from '../../core/toolkit/trace.js';
import { HEADER, SHAPES, event, pool, reset, serverTrace, stream, uleb, u32 } from './trace_bytes.mjs';

const MS = 1000000, ORIGIN = 5000 * MS;
const work = mkdtempSync(join(tmpdir(), 'test-lanes-'));
test.after(() => rmSync(work, { recursive: true }));

/** A sequence that is the same in each run. */
function random(seed) {
	return (n) => {
		seed = Math.imul(seed ^ seed >>> 15, 0x2c1b3c6d) + 0x9e3779b9 | 0;
		return (seed >>> 8) % n;
	};
}

const sourceOf = (bytes, name) => ({ name, chunks: async function* pieces() { yield bytes; }, bytes: bytes.length });

/** One event of worker 0 or 1 at |time|. */
function anyEvent(next) {
	const worker = uleb(next(2)), tid = u32([0, 40, 41][next(3)]);
	return [
		() => event(1, 0, worker, next(4), uleb(7 + next(3)), u32(0)), () => event(2, 0, worker),
		() => event(3, 0, worker, 0, uleb(next(1000) * 1000), tid), () => event(4, 0, worker, 0, uleb(next(1000) * 1000), uleb(next(3) * 1000), tid),
	][next(4)]();
}

/** Segments whose events have any time at all. */
function randomSegments(seed) {
	const next = random(seed), parts = [];
	for (let segment = 0; segment <= next(3); segment++) {
		const rows = [HEADER, ...[SHAPES.start, SHAPES.end, SHAPES.park, SHAPES.unpark].map((shape, i) => shape(i + 1)), pool(0, 'f @ g')];
		let time = next(500);
		for (let i = 0; i < 40; i++) {
			time = next(4) ? time + next(30) : next(1000);
			rows.push(reset(ORIGIN + time * MS / 10 + 100 * segment + i), anyEvent(next)); // no two at one time
		}
		parts.push(stream(...rows));
	}
	return parts;
}

/** Everything that is wrong with the lanes of |trace|. */
function assertLanes(trace, what) {
	prepareTrace(trace);
	for (const { id, polls, parks, busy } of trace.workers) {
		let before = -Infinity;
		for (let row = 0; row < polls.n; row++) {
			assert.ok(polls.dur[row] >= 0 && polls.start[row] >= before, `${what}, worker ${id}: call ${row} begins at ${polls.start[row]}, lasts ${polls.dur[row]}, the one before ended at ${before}`);
			before = polls.start[row] + polls.dur[row];
		}
		for (let row = 0; row < parks.n; row++) assert.ok(parks.end[row] >= parks.start[row] && (row === 0 || parks.start[row] >= parks.end[row - 1]), `${what}, worker ${id}: wait ${row}`);
		assert.ok(busy >= 0 && busy <= trace.end - trace.start, `${what}, worker ${id}: busy for ${busy} of ${trace.end - trace.start}`);
	}
}

/** What the reader in C makes of the same segments. */
function assertSameInC(trace, parts, what) {
	const files = parts.map((bytes, i) => join(work, `trace.${i}.bin`));
	parts.forEach((bytes, i) => writeFileSync(files[i], bytes));
	const { status, stdout, stderr } = spawnSync(process.env.DIAL9, ['report', '--json', '--no-symbols', ...files], { encoding: 'utf8' });
	assert.deepEqual([status, stderr], [0, ''], what);
	for (const theirs of JSON.parse(stdout).workers) {
		const ours = trace.workers.find((worker) => worker.id === theirs.id), sum = (ours?.polls.dur ?? []).reduce((a, b) => a + b, 0);
		assert.ok(theirs.busy >= 0 && theirs.busy <= 1 && theirs.utilisation >= 0 && theirs.utilisation <= 1, `${what}, worker ${theirs.id}: ${JSON.stringify(theirs)}`);
		assert.equal(sum, theirs.poll_ns, `${what}, worker ${theirs.id}: time in calls`);
	}
}

test('calls and waits of a worker never overlap, and a lane is busy for 0 to 100 % of the time, as in C', async () => {
	for (let seed = 1; seed <= 150; seed++) {
		const parts = randomSegments(seed), trace = await readTrace(parts.map((bytes, i) => sourceOf(bytes, `trace.${i}.bin`)));
		assertLanes(trace, `random ${seed}`);
		if (seed <= 30) assertSameInC(trace, parts, `random ${seed}`);
	}
});

test('what is cut out of such a trace is such a trace', async () => {
	for (let seed = 1; seed <= 60; seed++) {
		const sources = randomSegments(seed).map((bytes, i) => sourceOf(bytes, `trace.${i}.bin`)), trace = await readTrace(sources), next = random(seed + 1000);
		const length = trace.end - trace.start, from = trace.start + next(100) / 100 * length, to = from + next(100) / 100 * (trace.end - from);
		const { chunks } = await cutTrace(sources, { origin: trace.origin, from, to, tasks: new Set(), metadata: trace.metadata });
		assertLanes(await readTrace([sourceOf(Buffer.concat(chunks), 'cut')]), `cut ${seed}`);
	}
});

test('a segment that is there twice counts once', async () => {
	const bytes = serverTrace(), one = await readTrace([sourceOf(bytes, 'a')]), twice = await readTrace([sourceOf(bytes, 'a'), sourceOf(bytes, 'b')]);
	for (const [i, { polls, parks }] of one.workers.entries()) {
		const { polls: again, parks: waits } = twice.workers[i], sum = (values, n) => values.subarray(0, n).reduce((a, b) => a + b, 0);
		assert.equal(sum(again.dur, again.n), sum(polls.dur, polls.n));
		assert.equal(sum(waits.end, waits.n) - sum(waits.start, waits.n), sum(parks.end, parks.n) - sum(parks.start, parks.n));
	}
});
