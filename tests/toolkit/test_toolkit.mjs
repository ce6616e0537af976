// SPDX-License-Identifier: Apache-2.0
// The toolkit's modules, and what of the viewer needs no browser.

import { test } from 'node:test';
import assert from 'node:assert/strict';
import { readFileSync, readdirSync } from 'node:fs';
import { gzipSync } from 'node:zlib';
import { KNOWN_EVENTS } from '../../core/toolkit/known.js';
import { eachAtLeast, greatestOf, indexPolls, pyramidOf, wakeOf } from '../../core/toolkit/index.js';
import { durationClass, fitName, showCount, showDuration, showName, showTime } from '../../core/toolkit/show.js';
import { framesOf } from '../../core/toolkit/stacks.js';
import { absoluteTime, pollAt, readTrace, relativeTime } from '../../core/toolkit/trace.js';
import { unpack } from '../../core/toolkit/unpack.js';
import { waitersOf } from '../../core/toolkit/waking.js';
import { WHOLE } from '../../core/toolkit/profile.js';
import { TraceWriter } from './trace_writer.mjs';
import { wakesBySender } from '../../core/toolkit/wakes.js';
import { Xxh64 } from '../../core/toolkit/xxh64.js';
import { doubtsOf } from '../../core/viewer/about.js';
import { parseWideJson } from '../../core/viewer/load.js';
import { laneColumns } from '../../core/viewer/lod.js';
import { Model } from '../../core/viewer/model.js';
import { readFragment, writeFragment } from '../../core/viewer/url.js';
import { HEADER, SHAPES, event, pool, reset, serverTrace, stream, u32, uleb } from './trace_bytes.mjs';

const folder = (name) => new URL(`../../core/${name}/`, import.meta.url);

/** |bytes| in chunks of |size|. */
async function* chunked(bytes, size = 1 << 16) {
	for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

const read = (bytes, size) => readTrace([{ name: 'a', chunks: () => chunked(bytes, size) }]);

async function unpackAll(bytes, size, limit) {
	const pieces = [];
	for await (const piece of unpack(chunked(bytes, size), limit)) pieces.push(Buffer.from(piece.bytes));
	return Buffer.concat(pieces);
}

// A frame of zstd as its description has it: raw blocks.
const frame = (content, { checksum = [], last = 1, window = 0x20 } = {}) => [0x28, 0xb5, 0x2f, 0xfd, checksum.length ? 4 : 0, window,
	content.length << 3 | last, content.length >> 5, content.length >> 13, ...content, ...checksum];

test('a trace has the same polls, waits and wakes whatever pieces it comes in', async () => {
	const bytes = serverTrace(), whole = await read(bytes);
	assert.deepEqual(whole.workers.map((w) => [w.name, w.tid, w.polls.n, w.parks.n]), [['main', 4127, 818, 816], ['pool', 4128, 1000, 1000]]);
	assert.equal(whole.workers[0].polls.dur[pollAt(whole.workers[0].polls, relativeTime(whole, 5500000000n))], 182000000);
	for (const size of [1, 7, 4096]) {
		const again = await read(bytes, size);
		assert.equal(again.events, whole.events);
		assert.deepEqual(again.workers.map((w) => [...w.polls.dur.subarray(0, w.polls.n)]), whole.workers.map((w) => [...w.polls.dur.subarray(0, w.polls.n)]));
	}
});

test('a segment that was cut before its first event is told as that, unless it is being written', async () => {
	const packed = { 'a.bin': stream(HEADER), 'a.bin.gz': gzipSync(stream(HEADER, SHAPES.start(1))), 'a.bin.zst': Uint8Array.from(frame([...stream(HEADER)])) };
	for (const [name, bytes] of Object.entries(packed))
		for (let length = 0; length < bytes.length; length++) {
			const readAs = async (as) => (await readTrace([{ name: as, chunks: () => chunked(bytes.subarray(0, length)) }])).segments[0];
			const { cut, unread, error } = await readAs(name);
			assert.deepEqual({ cut, unread, error }, { cut: true, unread: 'cut before its first event', error: null }, `${name} of ${length} bytes`);
			assert.equal((await readAs(`${name}.active`)).unread, null);
		}
});

test('two segments are one trace: a poll goes on in the second', async () => {
	const first = stream(HEADER, SHAPES.start(1), SHAPES.end(2), pool(0, 'f'), reset(1000), event(1, 0, 0, 1, 4, u32(0)));
	const second = stream(HEADER, SHAPES.start(1), SHAPES.end(2), reset(1500), event(2, 0, 0));
	const trace = await readTrace([first, second].map((bytes, i) => ({ name: String(i), chunks: () => chunked(bytes) })));
	assert.deepEqual([...trace.workers[0].polls.dur.subarray(0, trace.workers[0].polls.n)], [500]);
});

test('a poll without an end is closed by what comes next, and one that never ends is not told', async () => {
	const trace = await read(stream(HEADER, SHAPES.start(1), SHAPES.park(2), pool(0, 'f'), reset(1000), event(1, 0, 0, 1, 4, u32(0)),
		event(1, 50, 0, 1, 4, u32(0)), event(2, 70, 0, 0, 1, u32(9)), event(1, 10, 0, 1, 4, u32(0))));
	const { polls, unended } = trace.workers[0];
	assert.deepEqual([...polls.dur.subarray(0, polls.n)], [50, 70]);
	assert.deepEqual([...polls.flags.subarray(0, polls.n)], [1, 1]);
	assert.equal(unended.start, 130);
});

/** A worker that slept, and then a call of task 4 at 5 ms in which "render" is entered at 6 ms; |seen|: [ms, task] of signs of life.  |whole|: its beginning is in the trace. */
function hungTrace(seen, whole = true) {
	const w = new TraceWriter(), at = (ms, type, values) => w.at(1e9 + ms * 1e6, type, { worker_id: 0, local_queue: 0, cpu_time_ns: 0, sched_wait_ns: 0, tid: 9, ...values });
	const worker = [['worker_id', 9], ['local_queue', 11]], waits = [...worker, ['cpu_time_ns', 9], ['sched_wait_ns', 9], ['tid', 13]];
	const start = w.type('PollStartEvent', [...worker, ['task_id', 9], ['spawn_loc', 7]]), park = w.type('WorkerParkEvent', waits), unpark = w.type('WorkerUnparkEvent', waits);
	const sign = w.type('LastSignEvent', [['worker_id', 9], ['task_id', 9], ['since_ns', 9], ['span', 7]]), stuck = w.type('StuckPollEvent', [['worker_id', 9], ['task_id', 9], ['for_ns', 9]]);
	const enter = w.type('SpanEnter:libevent', [['worker_id', 9], ['span_id', 9], ['span_name', 7], ['span_instance_id', 9], ['tid', 13]]);
	at(0, w.type('TaskSpawnEvent', [['task_id', 9], ['spawn_loc', 7], ['instrumented', 3]]), { task_id: 4, spawn_loc: 'read @ a.c:1', instrumented: 1 });
	if (whole) {
		at(1, park);
		at(5, unpark);
		at(5, start, { task_id: 4, spawn_loc: 'read @ a.c:1' });
		at(6, enter, { span_id: 77, span_instance_id: 77, span_name: 'render @ a.c:9' });
	}
	for (const [ms, task] of seen) at(ms, sign, { task_id: task, since_ns: 1e9 + 5e6, span: '' });
	for (const [ms, task] of seen) at(ms + 3, stuck, { task_id: task, for_ns: (ms - 2) * 1e6 });
	return read(w.finish());
}

test('a call that never ended lasted until it was last seen open, and so did the function inside of it', async () => {
	const trace = await hungTrace([[1005, 4], [2005, 4]]), [worker] = trace.workers, { polls } = worker, stays = trace.spans.get(0);
	assert.deepEqual([polls.n, polls.start[0] / 1e6, polls.dur[0] / 1e6, polls.flags[0], worker.running], [1, 5, 2003, 1, false]);
	assert.deepEqual([stays.n, stays.start[0] / 1e6, stays.end[0] / 1e6, trace.strings[stays.name[0]]], [1, 6, 2008, 'render @ a.c:9']);
});

test('of a call that never ended and whose beginning is gone the signs of life tell since when and what it is', async () => {
	const { workers: [{ polls }], strings } = await hungTrace([[1005, 4], [2005, 4]], false);
	assert.deepEqual([polls.n, polls.start[0] / 1e6, polls.dur[0] / 1e6, polls.flags[0], strings[polls.site[0]]], [1, 5, 2003, 1, 'read @ a.c:1']);
});

test('signs of life of another call, or of a loop outside of calls, do not lengthen one that never ended', async () => {
	const { workers: [worker] } = await hungTrace([[1005, 5], [2005, 0]]);
	assert.deepEqual([worker.polls.n, worker.running, worker.unended.start / 1e6], [0, true, 5]);
});

test('a span that is left and closed at one time was stayed in, whichever of the types a trace names first', async () => {
	const w = new TraceWriter(), step = [['worker_id', 9], ['span_id', 9], ['span_name', 7], ['span_instance_id', 9], ['tid', 13]], values = { worker_id: 0, span_id: 5, span_name: 'query', span_instance_id: 5, tid: 9 };
	const close = w.type('SpanCloseEvent', [...step.slice(1, 4), ['start_timestamp_ns', 9], ['active_ns', 9]]), exit = w.type('SpanExit:db::query:a.c:1', step), enter = w.type('SpanEnter:db::query:a.c:1', step);
	w.at(1000, enter, values);
	w.at(1700, close, { ...values, start_timestamp_ns: 1000, active_ns: 700 });
	w.at(1700, exit, values);
	const { spans } = await read(w.finish()), stays = spans.get(0);
	assert.deepEqual([stays.n, stays.end[0] - stays.start[0]], [1, 700]);
});

test('a call whose beginning or end is missing is as long as the recorder saw it open', async () => {
	const w = new TraceWriter(), MS = 1e6;
	const start = w.type('PollStartEvent', [['worker_id', 9], ['local_queue', 11], ['task_id', 9], ['spawn_loc', 7]]), end = w.type('PollEndEvent', [['worker_id', 9]]);
	const sign = w.type('LastSignEvent', [['worker_id', 9], ['task_id', 9], ['since_ns', 9], ['span', 7]]), spawn = w.type('TaskSpawnEvent', [['task_id', 9], ['spawn_loc', 7]]);
	const call = (from, to, task, name) => {
		w.at(from * MS, start, { worker_id: 0, local_queue: 3, task_id: task, spawn_loc: name });
		if (to) w.at(to * MS, end, { worker_id: 0 });
	};
	// Of the first the beginning is in the segment before; nobody saw the one that ended at 2320; the last hangs.
	w.at(1000 * MS, spawn, { task_id: 7, spawn_loc: 'slow @ main' });
	w.at(2000 * MS, sign, { worker_id: 0, task_id: 7, since_ns: 900 * MS, span: '' });
	w.at(2300 * MS, end, { worker_id: 0 });
	w.at(2320 * MS, end, { worker_id: 0 });
	call(2400, 2410, 8, 'quick @ main');
	call(2500, 0, 9, 'hangs @ main');
	const calls = ({ workers: [{ polls }], strings }) => [...polls.start.subarray(0, polls.n)].map((at, i) => [at / MS, polls.dur[i] / MS, polls.flags[i], strings[polls.site[i]]]);
	const cut = await read(w.finish()), begun = [[0, 1300, 0, 'slow @ main'], [1400, 10, 0, 'quick @ main']], { unended } = cut.workers[0];
	assert.deepEqual(calls(cut), begun);
	assert.deepEqual([unended.start / MS, cut.strings[unended.site]], [1500, 'hangs @ main']);
	w.at(4500 * MS, sign, { worker_id: 0, task_id: 9, since_ns: 2500 * MS, span: '' });
	const hung = await read(w.finish());
	assert.deepEqual(calls(hung), [...begun, [1500, 2000, 1, 'hangs @ main']]);
});

test('what is damaged costs what follows in its segment, and is told', async () => {
	const good = stream(HEADER, SHAPES.start(1), SHAPES.end(2), pool(0, 'f'), reset(1000), event(1, 0, 0, 1, 4, u32(0)), event(2, 9, 0));
	const bad = stream([...good], [9]);
	const trace = await readTrace([{ name: 'bad', chunks: () => chunked(bad) }, { name: 'good', chunks: () => chunked(good) }]);
	assert.match(trace.segments[0].error, /unknown frame tag 0x9/);
	assert.equal(trace.segments[1].error, null);
	assert.equal(trace.workers[0].polls.n, 2);
	const cut = await read(good.subarray(0, good.length - 2));
	assert.deepEqual([cut.segments[0].cut, cut.segments[0].error], [true, null]);
});

test('numbers of 64 bits stay what they are', async () => {
	const trace = await read(stream(HEADER, [1, 1, 0, 1, 0, 0x57, 1, 1, 0, 1, 0, 0x6e, 9], reset(2n ** 63n), event(1, 5, uleb(2n ** 64n - 1n)), event(1, 5, uleb(7))));
	assert.equal(trace.tables[0].exact[0].get(0), 2n ** 64n - 1n);
	assert.equal(trace.tables[0].columns[0][1], 7);
	assert.equal(absoluteTime(trace, trace.tables[0].rows.time[1]), 2n ** 63n + 10n);
});

test('gzip and zstd unpack to the same bytes, in any chunks', async () => {
	const content = [...serverTrace().subarray(0, 3000)], skippable = [0x5d, 0x2a, 0x4d, 0x18, ...u32(3), 1, 2, 3];
	const zstd = Uint8Array.from([...frame(content.slice(0, 1000)), ...skippable, ...frame(content.slice(1000))]);
	for (const size of [1, 17, 1 << 16]) {
		assert.deepEqual([...await unpackAll(zstd, size)], content);
		assert.deepEqual([...await unpackAll(gzipSync(Buffer.from(content)), size)], content);
	}
});

test('a zstd frame with a checksum is checked', async () => {
	const content = [...Buffer.from('Nobody inspects the spammish repetition')], hash = new Xxh64();
	hash.push(Uint8Array.from(content));
	assert.deepEqual(hash.digest(), [0xfbcea83c, 0x8a378bf1]);
	assert.deepEqual([...await unpackAll(Uint8Array.from(frame(content, { checksum: u32(0x8a378bf1) })))], content);
	await assert.rejects(unpackAll(Uint8Array.from(frame(content, { checksum: u32(0x8a378bf0) }))), /checksum/);
});

test('small inputs that claim much are refused', async () => {
	await assert.rejects(unpackAll(Uint8Array.from(frame([1, 2, 3], { window: 0xa8 }))), /window of/);
	await assert.rejects(unpackAll(Uint8Array.from([0x28, 0xb5, 0x2f, 0xfd, 0xe0, ...u32(0), ...u32(16), 1, 0, 0])), /window of/);
	// A block of one byte that is repeated 128 KiB times, and again.
	const bomb = [0x28, 0xb5, 0x2f, 0xfd, 0, 0x38];
	for (let i = 0; i < 40; i++) bomb.push(2, 0, 0x10, 0x54);
	await assert.rejects(unpackAll(Uint8Array.from(bomb)), /unpacks to more than 1000 times/);
	await assert.rejects(unpackAll(gzipSync(Buffer.alloc(64 << 20))), /unpacks to more than 1000 times/);
	await assert.rejects(unpackAll(Uint8Array.from(frame([1, 2, 3])), 10, 2), /more than 2 bytes/);
	const nested = stream(HEADER, [1, 1, 0, 1, 0, 0x4e, 1, 1, 0, 1, 0, 0x6c, 14], reset(5), [2, 1, 0, 0, 0, 0], Array(10000).fill([1, 0, 0, 0, 14]).flat());
	assert.match((await read(nested)).segments[0].error, /nested too deeply/);
});

test('a packed file that ends early keeps what could be unpacked', async () => {
	const content = serverTrace(), gzip = gzipSync(content);
	const trace = await read(gzip.subarray(0, gzip.length / 2));
	assert.equal(trace.segments[0].cut, true);
	assert.ok(trace.events > 1000 && trace.events < 9000, String(trace.events));
});

test('the pyramid and the columns of a lane equal a plain scan', () => {
	let seed = 1;
	const next = () => (seed = Math.imul(seed, 48271) % 2147483647, Math.abs(seed) / 2147483647);
	for (let round = 0; round < 30; round++) {
		const n = Math.floor(next() * 2000), polls = { n, start: new Float64Array(n), dur: new Float64Array(n), ready: new Uint8Array(n) };
		for (let i = 0, t = 0; i < n; i++) {
			t += next() * 100;
			polls.start[i] = t;
			t += polls.dur[i] = next() ** 8 * 3000;
		}
		const lane = { polls, index: indexPolls(polls), ready: pyramidOf(polls.ready, n) }, end = n ? polls.start[n - 1] + 1000 : 1000;
		for (let view = 0; view < 30; view++) {
			const from = next() * end - 100, to = from + 1 + next() * end, width = 1 + Math.floor(next() * 50), step = (to - from) / width;
			const { longest, busy } = laneColumns(lane, from, to, width);
			for (let x = 0; x < width; x++) {
				const a = from + x * step, b = a + step;
				let most = -1, sum = 0;
				for (let i = 0; i < n; i++) {
					const last = polls.start[i] + polls.dur[i];
					if (polls.start[i] >= b || (last <= a && polls.start[i] < a)) continue;
					most = Math.max(most, polls.dur[i]);
					sum += Math.min(last, b) - Math.max(polls.start[i], a);
				}
				assert.equal(longest[x], most);
				assert.ok(Math.abs(busy[x] - Math.min(1, sum / step)) < 1e-4, `${busy[x]} ${sum / step}`);
			}
			const [first, last] = [Math.floor(next() * n), Math.floor(next() * n)].sort((p, q) => p - q), found = [];
			eachAtLeast(polls.dur, lane.index.levels, 500, first, last, (row) => found.push(row));
			assert.deepEqual(found, [...polls.dur.keys()].filter((i) => i >= first && i < last && polls.dur[i] >= 500));
			assert.equal(greatestOf(polls.dur, lane.index.levels, first, last), Math.max(0, ...polls.dur.subarray(first, last)));
		}
	}
});

test('who woke a call, and who waited for it', async () => {
	const trace = await read(serverTrace()), [main] = trace.workers, block = relativeTime(trace, 5400000000n);
	const wake = wakeOf(trace, 7, block, block - 1e9);
	assert.deepEqual([block - wake.time, wake.waker], [2400000, 27]);
	assert.deepEqual(waitersOf(trace, main, block, block + 182e6).map((w) => [w.task, w.delay]), [[8, 162000000], [9, 102031000]]);
});

test('stacks are told by the trace\'s own symbols, innermost first', async () => {
	const trace = await read(serverTrace());
	assert.deepEqual(framesOf(trace, 0).slice(0, 3).map((f) => f.name), ['fsync', 'flush_log', '0x3000']);
});

test('a trace whose only worker has an id that is none, as -1 in 64 bits with a sign, is prepared like any other', async () => {
	const w = new TraceWriter(), SIGNED = 1, start = w.type('PollStartEvent', [['worker_id', 9], ['local_queue', 11], ['task_id', 9], ['spawn_loc', 7]]);
	const end = w.type('PollEndEvent', [['worker_id', SIGNED]]), park = w.type('WorkerParkEvent', [['worker_id', SIGNED], ['local_queue', 11], ['cpu_time_ns', 9]]);
	w.at(1e9, start, { worker_id: 2n ** 64n - 1n, local_queue: 0, task_id: 7, spawn_loc: 'f @ g' });
	w.at(1e9 + 100, end, { worker_id: -1 });
	w.at(1e9 + 200, park, { worker_id: -1, local_queue: 0, cpu_time_ns: 0 });
	for (const only of [[end], [park], [start, end, park]]) {
		const rows = w.rows.filter(({ type }) => only.includes(type)), { types } = w, trace = await read(Object.assign(new TraceWriter(), { types, rows }).finish());
		const model = new Model([trace], { name: 'x', shown: 1, segments: 1 });
		model.goWithoutReport('');
		assert.equal(trace.events, rows.length);
		assert.deepEqual(trace.segments.map(({ error, cut }) => [error, cut]), [[null, false]]);
		// As in C, an id below 0 is not told.
		assert.equal(trace.workers.some(({ id }) => id < 0), false);
		assert.deepEqual([model.findings, model.reportState, model.last > model.first], [[], 'none', true]);
	}
});

test('the report gives names and places of findings to the model', async () => {
	const trace = await read(serverTrace()), model = new Model([trace], { name: 'x', shown: 1, segments: 1 });
	model.takeReport({ trace: { processes: [{ number: 0, boot_id: 'boot-1' }] }, callbacks: [{ process: 0, location: 'on_read @ server.c:231', name: 'on_read()', source: 'server.c:9' }],
		findings: [{ process: 0, check: 'blocked-callback', severity: 'critical', message: 'm', evidence: [{ text: 't', time_ns: 5400000000, duration_ns: 182000000, worker: 0 }] }] });
	const { lane, row, length } = model.findings[0].first;
	assert.deepEqual([lane.worker.name, lane.polls.dur[row], length], ['main', 182000000, 182000000]);
	assert.deepEqual([model.label(lane, row).name, model.label(lane, row).source], ['on_read()', 'server.c:9']);
});

test('the URL says what is shown, and says it again', async () => {
	const trace = await read(serverTrace());
	const model = new Model([trace], { name: 'x', shown: 1, segments: 1 });
	model.takeReport({ trace: { processes: [{ number: 0, boot_id: 'boot-1' }] }, findings: [{ process: 0, check: 'long-callback', severity: 'critical', message: 'm' }] });
	const state = { model, view: [1e8, 6e8], selected: { lane: model.lanes[0], row: 300 }, finding: 0, range: [2e8, 3e8], clock: 'utc', query: 'a&b=#ü' };
	const fragment = writeFragment(state, ['future=1']), { patch, kept, wrong } = readFragment(model, fragment);
	assert.deepEqual([kept, wrong], [['future=1'], []]);
	assert.equal(writeFragment({ ...state, ...patch }, kept), fragment);
	assert.deepEqual(readFragment(model, 'v=m-1~2&s=poll:9@1&s=task:x&r=m1&f=x.0&c=mars&q=%').wrong.length, 7);
});

test('a trace that does not fit says up to where it is shown', async () => {
	const bytes = serverTrace(), trace = await readTrace([{ name: 'big', chunks: async function* chunks() { yield bytes; } }], { bytes: 100000 });
	const [doubt] = doubtsOf(new Model([trace], { name: 'x', shown: 1, segments: 1 }));
	assert.equal(doubt.kind, 'memory');
	assert.match(doubt.text, /^big is shown up to byte \d+ only: .*memory/);
});

test('where the input tells its size, columns get little more room than they need, and the same rows', async () => {
	const CALLS = 140000, calls = [...event(1, 10, 0, 0, 7, u32(1)), ...event(2, 10, 0)];
	const bytes = Buffer.concat([stream(HEADER, reset(1e9), SHAPES.start(1), SHAPES.end(2), pool(1, 'on_read')), Buffer.alloc(CALLS * calls.length, Buffer.from(calls))]);
	const [told, untold] = await Promise.all([bytes.length, undefined].map((size) => readTrace([{ name: 'a', bytes: size, chunks: () => chunked(bytes) }])));
	const [{ polls }] = told.workers;
	assert.equal(polls.n, CALLS);
	assert.ok(polls.size < CALLS * 1.25, `${polls.size} rows of room`);
	assert.deepEqual(polls.start.subarray(0, CALLS), untold.workers[0].polls.start.subarray(0, CALLS));
});

test('durations, counts, times and names as people read them', () => {
	const plain = (text) => text.replaceAll('\u2009', ' ');
	assert.deepEqual([0, 999, 1000, 12345, 999999, 1e6, 182.4e6, 61e9].map((ns) => plain(showDuration(ns))), ['0 ns', '999 ns', '1.00 µs', '12.3 µs', '1.00 ms', '1.00 ms', '182 ms', '61.0 s']);
	assert.deepEqual([5, 1234, 40100, 1e6].map((n) => plain(showCount(n))), ['5', '1 234', '40.1 k', '1.00 M']);
	assert.equal(plain(showTime(1.5e9, null, 'utc')), '1.500 s');
	assert.equal(showTime(0, 1778867710175979831n, 'utc', 6), '17:55:10.175979');
	assert.equal(fitName('event_handler', 11), 'event_…dler');
	assert.equal(fitName('event_handler', 7), '');
	assert.deepEqual([999, 1000, 99e6, 1e8].map(durationClass), [0, 1, 5, 6]);
});

test('integers of a report that no double holds become texts, whatever strings say', () => {
	assert.deepEqual(parseWideJson('{"a": 9007199254740993, "b": 12.000000, "c": "x: 1234567890123456789, \\" 1", "d": [-12345678901234567], "e": 5}'),
		{ a: '9007199254740993', b: 12, c: 'x: 1234567890123456789, " 1', d: ['-12345678901234567'], e: 5 });
});

test('a name cannot hide, reverse or imitate text', () => {
	assert.equal(showName('a\u202eb\u200bc\u0007\ufeff'), 'a‹202e›b‹200b›c‹7›‹feff›');
	assert.equal(showName('x'.repeat(300)).length, 200);
	assert.equal(showName('\ud800y'), '‹d800›y');
	assert.equal(showName('naïve 名前 😀'), 'naïve 名前 😀');
});

/** Names that a module declares at its top, of lists (const A = 1, B = 2) each. */
function topNames(source) {
	const declared = [...source.matchAll(/^(?:export )?(?:async )?(?:function\*?|class) (\w+)/gm)].map(([, name]) => name);
	for (const [, list] of source.matchAll(/^(?:export )?(?:const|let|var) ([^]*?);$/gm)) {
		// What stands in brackets or quotes declares nothing.
		let flat = list.replace(/`[^`]*`|'[^']*'|"[^"]*"/g, '""'), before;
		do [before, flat] = [flat, flat.replace(/\([^()[\]{}]*\)|\[[^()[\]{}]*\]|\{[^()[\]{}]*\}/g, '')];
		while (flat !== before);
		declared.push(...flat.split(',').map((part) => /^\s*(\w+)\s*(?:=[^>]|$)/.exec(part)?.[1]).filter(Boolean));
	}
	return declared;
}

test('modules can be joined into one: names at the top are unique, imports and exports begin a line', () => {
	const names = new Map();
	for (const module of ['toolkit', 'viewer'])
		for (const file of readdirSync(folder(module)).filter((name) => name.endsWith('.js'))) {
			const source = readFileSync(new URL(file, folder(module)), 'utf8');
			assert.ok(source.split('\n').length < 760, `${file} is too long`);
			for (const name of topNames(source)) {
				assert.equal(names.get(name), undefined, `${name} is in ${names.get(name)} and ${file}`);
				names.set(name, file);
			}
			for (const line of source.split('\n')) assert.doesNotMatch(line, /[^\w.'"`]import\(|^\s+(?:import|export) |^import (?!.*' *;)/, file);
			// Nor does one end the element that a page holds it in.
			assert.doesNotMatch(source, /<\/script|<!--/i, file);
		}
});

test('no module writes markup, runs text, or sets styles by it', () => {
	for (const module of ['toolkit', 'viewer'])
		for (const file of readdirSync(folder(module)).filter((name) => /\.(js|html)$/.test(name)))
			assert.doesNotMatch(readFileSync(new URL(file, folder(module)), 'utf8'),
				/innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|\bFunction\(|setAttribute\('(style|on)|set(Timeout|Interval)\(['"`]| style="| on[a-z]+="/, file);
});

test('every call is counted once by who made it run, with the longest wait and the sleeps that it ended', async () => {
	const trace = await read(serverTrace()), drained = (scope) => {
		for (const steps = wakesBySender(trace, scope);;) {
			const { done, value } = steps.next();
			if (done) return value.map(({ sender, woken, ...sum }) => ({ ...sum, by: trace.strings[sender] ?? '', runs: trace.strings[woken] }));
		}
	};
	const all = drained(WHOLE), [sent] = all.filter(({ by }) => by);
	assert.equal(all.reduce((sum, { n }) => sum + n, 0), 818 + 1000);
	assert.deepEqual([sent.by, sent.runs, sent.n, sent.asleep, sent.longest.delay, [...sent.workers]], ['render_report @ report.c:12', 'on_read @ server.c:231', 1, 1, 2400000, [1]]);
	const main = drained({ ...WHOLE, workers: new Set([0]), tids: new Set() });
	assert.equal(main.reduce((sum, { n }) => sum + n, 0), 818);
});

test('a call that a loop inside had cut is counted once by who made it run', async () => {
	const w = new TraceWriter(), start = w.type('PollStartEvent', [['worker_id', 9], ['local_queue', 11], ['task_id', 9], ['spawn_loc', 7]]), end = w.type('PollEndEvent', [['worker_id', 9]]);
	const wake = w.type('WakeEventEvent', [['waker_task_id', 9], ['woken_task_id', 9], ['target_worker', 11], ['reason', 11]]), RESUMPTION = 8, FD = 1;
	w.at(5, wake, { waker_task_id: 0, woken_task_id: 1, target_worker: 0, reason: FD });
	[[10, 1, 'outer'], [20, 2, 'inner'], [30, 1, 'outer']].forEach(([time, task, place]) => {
		if (time === 30) w.at(time, wake, { waker_task_id: 1, woken_task_id: 1, target_worker: 0, reason: RESUMPTION });
		w.at(time, start, { worker_id: 0, local_queue: 0, task_id: task, spawn_loc: place });
		w.at(time + 9, end, { worker_id: 0 });
	});
	const trace = await read(w.finish()), steps = wakesBySender(trace, WHOLE);
	let step;
	do step = steps.next(); while (!step.done);
	assert.deepEqual(step.value.map(({ woken, n, reason }) => [trace.strings[woken], n, reason]), [['outer', 1, FD], ['inner', 1, -1]]);
});

test('both readers know the same fields of the same events', () => {
	const source = readFileSync(new URL('../../core/read/catalogue.c', import.meta.url), 'utf8'), close = /#define SPAN_CLOSE([^]*?)\n\n/.exec(source)[1];
	const rows = [...source.matchAll(/^\t\{ "([^"]+)", D9_EVENT_\w+, (?:true|false),\s+\{([^]*?)\} \},\n/gm)];
	assert.ok(rows.length > 35);
	for (const [, name, fields] of rows) {
		const text = [...fields.replace('SPAN_CLOSE', close).matchAll(/\b([MITBS])\("(\w+)"\)|\{ "(\w+)", CLASS_MAP \}/g)]
			.map(([, kind, field, map]) => (map ? `${map}:m` : `${field}${{ M: '!', I: '', T: ':t', B: ':b', S: ':s' }[kind]}`)).join(' ');
		// What is read by name alone stands behind these.
		assert.ok(name in KNOWN_EVENTS && `${KNOWN_EVENTS[name]} `.startsWith(text ? `${text} ` : ''), `${name}: ${text} in C, ${KNOWN_EVENTS[name]} here`);
	}
	assert.equal(rows.length, Object.keys(KNOWN_EVENTS).length);
});
