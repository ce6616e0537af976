// SPDX-License-Identifier: Apache-2.0
// What the tracks of the viewer are made of: items in rows, series of values, spans, timers; and the tracks
// themselves, on a trace that has something planted for each.

import { test } from 'node:test';
import assert from 'node:assert/strict';
import { indexPolls } from '../../core/toolkit/index.js';
import { addItem, countItems, eachCell, finishItems, itemAt, newItems, nextItem, packItems } from '../../core/toolkit/items.js';
import { makeSeries, seriesAt, seriesColumns } from '../../core/toolkit/series.js';
import { nameOfSpan } from '../../core/toolkit/spans.js';
import { timersOf } from '../../core/toolkit/timers.js';
import { orderOf } from '../../core/toolkit/table.js';
import { readTrace } from '../../core/toolkit/trace.js';
import { Model } from '../../core/viewer/model.js';
import { stepInTrack, tellItem } from '../../core/viewer/track.js';
import { NO_CHOICES, addField, arrangeTracks, findTrack, moveTrack, readChoice, readItem, toggleTrack, writeChoices, writeItem } from '../../core/viewer/tracks.js';
import { gridColumns, laneColumns } from '../../core/viewer/lod.js';
import { layoutRows } from '../../core/viewer/lane_rows.js';
import { ORIGIN, trackTrace } from '../viewer/track_trace.mjs';
import { TraceWriter } from './trace_writer.mjs';

const read = (bytes) => readTrace([{ name: 'a', async *chunks() { yield bytes; } }]);
const modelOf = async (...traces) => new Model(await Promise.all(traces.map(read)), { name: 'x', shown: 1, segments: 1 });
const plain = (text) => text.replaceAll('\u2009', ' ');
const SECOND = 1e9;

let seed = 7;
const random = () => (seed = Math.imul(seed, 48271) % 2147483647, Math.abs(seed) / 2147483647);

test('no two items of a packed row overlap, and cells, hits and steps equal a plain scan', () => {
	for (let round = 0; round < 20; round++) {
		const made = newItems(), n = 1 + Math.floor(random() * 400);
		for (let i = 0; i < n; i++) {
			const start = Math.floor(random() * 10000);
			addItem(made, start, start + Math.floor(random() ** 4 * 2000), 0, 3, i);
		}
		const items = finishItems(made, packItems(made));
		for (let i = 1; i < items.n; i++) if (items.row[i] === items.row[i - 1]) assert.ok(items.end[i - 1] <= items.start[i]);
		assert.deepEqual([...items.ref].sort((a, b) => a - b), [...Array(n).keys()]);
		assert.equal(countItems(items, 2000, 5000), [...items.start].filter((t) => t >= 2000 && t < 5000).length);
		for (let row = 0; row < items.rows; row++) {
			let seen = 0;
			const touching = [...Array(items.n).keys()].filter((i) => items.row[i] === row && items.end[i] >= 1000 && items.start[i] < 9000);
			eachCell(items, row, 1000, 9000, 100, 6, (i, count) => {
				// The longest of its cell.
				const cell = touching.slice(seen, seen + count);
				assert.ok(cell.includes(i) && cell.every((other) => items.length[other] <= items.length[i]));
				seen += count;
			});
			assert.equal(seen, touching.length);
		}
		const wanted = Math.floor(random() * items.n), at = itemAt(items, items.row[wanted], items.start[wanted] + items.length[wanted] / 2, 3);
		assert.ok(at >= 0 && items.row[at] === items.row[wanted] && items.start[at] - 3 <= items.start[wanted] + items.length[wanted] / 2);
		const walked = [];
		for (let i = nextItem(items, -1, 1); i >= 0; i = nextItem(items, i, 1)) walked.push(i);
		assert.equal(new Set(walked).size, items.n);
		assert.ok(walked.every((i, k) => k === 0 || items.start[walked[k - 1]] <= items.start[i]));
		assert.equal(nextItem(items, walked.at(-1), -1), walked.at(-2) ?? -1);
	}
});

test('rows are put in order as a plain stable sort does it, whatever runs they come in', () => {
	for (let round = 0; round < 50; round++) {
		const n = Math.floor(random() * 500), keys = Float64Array.from({ length: n }, (_, i) => (round % 2 ? Math.floor(random() * 50) : i % 37));
		assert.deepEqual([...orderOf(keys, n)], [...Array(n).keys()].sort((a, b) => keys[a] - keys[b] || a - b));
	}
});

test('columns that are kept while the view moves equal those that are computed anew', () => {
	const n = 3000, polls = { n, start: new Float64Array(n), dur: new Float64Array(n) };
	for (let i = 0, t = 0; i < n; i++) {
		polls.start[i] = t += 1 + Math.floor(random() * 100);
		t += polls.dur[i] = Math.floor(random() ** 6 * 2000);
	}
	const lane = { polls, index: indexPolls(polls) }, step = 64, width = 50, length = step * width;
	for (let round = 0, from = 6400; round < 300; round++) {
		from += Math.round((random() - 0.5) * 3000);
		const { longest, busy } = gridColumns(lane, 'calls', laneColumns, from, from + length * (1 + (random() - 0.5) * 1e-12), width), first = Math.floor(from / step) * step;
		const anew = laneColumns(lane, first, first + length, width);
		assert.deepEqual([...longest], [...anew.longest]);
		busy.forEach((share, x) => assert.ok(Math.abs(share - anew.busy[x]) < 1e-4));
	}
});

test('a gauge holds until the next value and to the end of the trace; a missing value is a gap', () => {
	const series = makeSeries([{ time: 10, value: 5 }, { time: 20, value: undefined }, { time: 30, value: -2 }], 'gauge', 50);
	assert.deepEqual([[...series.from], [...series.to], [...series.value], series.low, series.high], [[10, 30], [20, 50], [5, -2], -2, 5]);
	assert.deepEqual([5, 10, 19, 20, 30, 49, 50].map((t) => seriesAt(series, t)), [-1, 0, 0, -1, 1, 1, -1]);
	const { least, most } = seriesColumns(series, 0, 60, 6);
	assert.deepEqual([[...most], [...least]], [[NaN, 5, NaN, -2, -2, NaN], [NaN, 5, NaN, -2, -2, NaN]]);
});

test('a counter is its growth, exact at 64 bits; where it goes back there is a gap', () => {
	const base = 2n ** 63n, points = [base, base + 7n, base + 7n, 3, 10].map((value, i) => ({ time: i * 10, value }));
	const series = makeSeries(points, 'counter', 100);
	assert.deepEqual([[...series.from], [...series.value], series.resets], [[0, 10, 30], [7, 0, 7], 1]);
	const wide = makeSeries([{ time: 0, value: 0n }, { time: 1, value: 2n ** 60n + 1n }], 'counter', 2);
	assert.equal(wide.exact.get(0), 2n ** 60n + 1n);
	const rate = makeSeries([{ time: 0, value: 100 }, { time: 10, value: 115 }], 'rate', 10);
	assert.deepEqual([...rate.value], [1.5]);
});

test('columns of a series equal a plain scan, negative values included', () => {
	const points = [];
	for (let time = 0; points.length < 3000; time += 1 + Math.floor(random() * 20)) points.push({ time, value: Math.floor(random() * 100) - 50 });
	const series = makeSeries(points, 'gauge', points.at(-1).time + 10), end = points.at(-1).time;
	for (let view = 0; view < 50; view++) {
		const from = Math.floor(random() * end), to = from + 1 + Math.floor(random() * end), width = 1 + Math.floor(random() * 60), step = (to - from) / width;
		const { least, most } = seriesColumns(series, from, to, width);
		for (let x = 0; x < width; x++) {
			const a = from + x * step, b = a + step, values = [...series.value].filter((_, i) => series.from[i] < b && series.to[i] > a);
			assert.equal(most[x], values.length ? Math.max(...values) : NaN);
			assert.equal(least[x], values.length ? Math.min(...values) : NaN);
		}
	}
});

test('a timer is late from when it was due to when its callback ran', async () => {
	const trace = await read(trackTrace()), timers = timersOf(trace);
	assert.equal(timers.n, 18);
	const late = [...timers.ran].map((t, i) => t - timers.due[i]);
	assert.deepEqual(late.filter((ns) => ns > 1e6), [110e6]);
	assert.equal(timers.due[late.indexOf(110e6)], 510e6);
});

test('every track has what was planted for it, in the words of its own', async () => {
	const model = await modelOf(trackTrace()), tracks = new Map(arrangeTracks(model, NO_CHOICES).map(({ track, open }) => [track.id, { track, open }]));
	const told = (id, ms) => plain(tellItem(model, stepInTrack(tracks.get(id).track, null, 1, model.first + ms * 1e6), 'rel'));
	assert.deepEqual([...tracks.keys()], ['timers', 'cpu', 'queue', 'spans', 'events', 'helpers', 'tasks', 'memory', 'descriptors', 'accept', 'usage', 'chart:Cache', 'log', 'loss']);
	assert.deepEqual([...tracks].filter(([, { open }]) => open).map(([id]) => id), ['timers', 'spans', 'accept', 'chart:Cache', 'loss']);
	assert.equal(told('timers', 505), 'timer on_tick, 110 ms late, at 0.510000 s');
	assert.match(told('cpu', 950), /^CPU: process user 1\.5 cores, system 0\.5 cores; each thread .*pool \d \d+ %/);
	assert.match(told('queue', 499.9), /^waiting to run: 9 ready, at 0\.500000 s$/);
	assert.equal(told('spans', 419), 'span GET /report, inside for 30.0 ms, 300 ms, at 0.420000 s');
	assert.equal(told('events', 549), 'event HttpRequest: path /hello, status 503, sent 1.51 KiB, took 130 ms, at 0.550000 s');
	assert.equal(told('helpers', 1040), 'compress ran on a helper thread, after 3.00 ms in its queue, 200 ms, at 1.050000 s');
	assert.equal(told('helpers', 430), 'resolver 900 was on the CPU in 0x2000, at 0.440000 s');
	assert.equal(told('tasks', 301), 'tasks: 4, at 0.305000 s');
	assert.equal(told('memory', 1195), 'memory: resident 64.0 MiB; heap live 2.00 MiB, at 1.200000 s');
	assert.equal(told('descriptors', 595), 'descriptors: 212, at 0.600000 s');
	assert.equal(told('accept', 595), 'accept queue: 90 %, at 0.600000 s');
	assert.match(told('usage', 595), /page faults 1000 per s; waits 2000 per s/);
	assert.equal(told('chart:Cache', 1050), 'Cache: entries 950; hits (growth) not known; bytes 44.0 KiB, at 1.100000 s');
	assert.equal(told('loss', 0), '42 events lost: ring full, 50.0 ms, at 1.450000 s');
});

test('a trace without loss says so, and its track of loss is there', async () => {
	const w = new TraceWriter();
	w.at(5, w.type('Tick', [['n', 9]]), { n: 1 });
	const model = await modelOf(w.finish()), { track, open } = arrangeTracks(model, NO_CHOICES).find(({ track: t }) => t.id === 'loss');
	assert.deepEqual([track.figure, track.loud, open], ['nothing lost', false, false]);
	const cut = await modelOf(trackTrace().subarray(0, 50000)), damaged = arrangeTracks(cut, NO_CHOICES).find(({ track: t }) => t.id === 'loss');
	assert.match(damaged.track.figure, /1 cut at the end/);
});

test('order, what is open, folded groups, the floor and charts go into the URL and come back', async () => {
	const model = await modelOf(trackTrace());
	let choices = moveTrack(model, toggleTrack(NO_CHOICES, 'cpu', true), 'loss', -20);
	choices = { ...addField(choices, { event: 'HttpRequest', field: 'took', kind: 'gauge' }), floor: 90, folded: ['g0.pool'] };
	let back = NO_CHOICES;
	for (const item of writeChoices(choices)) back = readChoice(back, item.slice(0, item.indexOf('=')), item.slice(item.indexOf('=') + 1));
	assert.deepEqual(back, choices);
	const shown = arrangeTracks(model, back);
	assert.equal(shown[0].track.id, 'loss');
	assert.equal(shown.find(({ track }) => track.id === 'cpu').open, true);
	const spans = findTrack(model, back, 'spans');
	assert.equal(plain(spans.figure), '6 of 41, 3 names');
	assert.equal(plain(tellItem(model, stepInTrack(findTrack(model, back, 'field:HttpRequest:took:gauge'), null, 1, model.first + 545e6), 'rel')), 'HttpRequest: took 130 ms, at 0.550000 s');
	for (const [key, value] of [['tr', 'cpu'], ['sp', '12'], ['fc', 'a,b'], ['to', '%'], ['x', '1']]) assert.equal(readChoice(NO_CHOICES, key, value), null);
	assert.ok(!layoutRows(model, back).some((row) => row.kind === 'lane' && row.lane.worker.group === 'pool'));
});

test('an item of a track is named by what it is, and found again', async () => {
	const model = await modelOf(trackTrace());
	const names = [];
	for (const { track } of arrangeTracks(model, NO_CHOICES)) {
		if (!track.items?.n) continue;
		const item = stepInTrack(track, null, 1, model.first + 450e6), name = writeItem(item);
		names.push(name);
		assert.deepEqual(readItem(model, NO_CHOICES, name)?.i, item.i, name);
	}
	assert.ok(names.includes(`event:HttpRequest%40${ORIGIN + 450e6}`), names.join(' '));
	assert.equal(readItem(model, NO_CHOICES, 'span:77').track.label(readItem(model, NO_CHOICES, 'span:77').i), 'GET /report');
	assert.equal(readItem(model, NO_CHOICES, 'span:123456'), null);
});

test('processes of two hosts lie on one wall clock, and the skew between clocks is told', async () => {
	const other = { service: 'back', boot: 'boot-u', later: 100 * SECOND };
	// The same wall clock: started at the same moment on a host that is up for longer.
	const apart = await modelOf(trackTrace(), trackTrace({ ...other, host: 'beta', wall: 1.7e18 - 100 * SECOND, drift: 3e6 }));
	assert.equal(apart.traces[1].shift, 0);
	assert.equal(plain(apart.clockNote(apart.traces[1])), 'beta, placed by its wall clock, ±3.00 ms');
	const same = await modelOf(trackTrace(), trackTrace({ ...other, wall: 1.7e18 + 5e6 }));
	assert.equal(same.traces[1].shift, 100 * SECOND);
	assert.equal(plain(same.clockNote(same.traces[1])), 'alpha, wall clock 5.00 ms ahead');
	assert.equal(same.clockNote(same.traces[0]), 'alpha');
	const rows = layoutRows(apart, NO_CHOICES).filter((row) => row.kind === 'group').map(({ group }) => group.title);
	assert.deepEqual(rows, ['tracks', 'main', 'pool', 'back', 'main', 'pool'].filter((title) => title !== 'main'));
});

test('a thousand lanes are a thousand rows, and can be folded into one', async () => {
	const w = new TraceWriter(), start = w.type('PollStartEvent', [['worker_id', 9], ['local_queue', 11], ['task_id', 9], ['spawn_loc', 7]]), end = w.type('PollEndEvent', [['worker_id', 9]]);
	w.at(1, w.type('SegmentMetadataEvent', [['entries', 10]]), { entries: { 'runtime.pool': [...Array(1001).keys()].filter((id) => id !== 255).join(',') } });
	for (let worker = 0; worker < 1001; worker++) {
		w.at(1000 + worker, start, { worker_id: worker, local_queue: 0, task_id: 5, spawn_loc: 'f' });
		w.at(9000 + worker, end, { worker_id: worker });
	}
	const model = await modelOf(w.finish()), rows = layoutRows(model, NO_CHOICES);
	assert.equal(rows.filter((row) => row.kind === 'lane').length, 1001);
	assert.equal(layoutRows(model, { ...NO_CHOICES, folded: ['g0.pool'] }).filter((row) => row.kind === 'lane').length, 1);
});

test('the heap grows and shrinks by its samples, and one of no bytes leaves it as it is', async () => {
	const w = new TraceWriter(), alloc = w.type('AllocEvent', [['tid', 13], ['size', 9], ['addr', 9], ['callchain', 6], ['sample_rate_bytes', 9]]);
	const free = w.type('FreeEvent', [['tid', 13], ['addr', 9], ['size', 9], ['alloc_timestamp_ns', 9]]), MIB = 2 ** 20, SAMPLED = 2;
	const allocate = (time, addr, size) => w.at(time, alloc, { tid: 1, size, addr, callchain: [], sample_rate_bytes: SAMPLED });
	allocate(1000, 0x10, MIB);
	allocate(2000, 0x20, 0);
	allocate(3000, 0x30, 2 * MIB);
	w.at(4000, free, { tid: 1, addr: 0x10, size: MIB, alloc_timestamp_ns: 1000 });
	allocate(5000, 0x30, MIB); // its free before was not seen
	const model = await modelOf(w.finish()), [band] = findTrack(model, NO_CHOICES, 'memory').bands, [heap] = band.lines;
	assert.deepEqual([1000, 2000, 3000, 4000, 5000].map((time) => heap.at(model.first + time - 1000) / MIB), [1, 1, 3, 2, 1]);
});

test('a span that is named by its place has the name that a row gives to it', async () => {
	const w = new TraceWriter(), module = w.type('ModuleEvent', [['base', 9], ['start', 9], ['size', 9], ['path', 4]]);
	const enter = w.type('SpanEnter:libevent', [['worker_id', 9], ['span_id', 9], ['span_name', 7]]), exit = w.type('SpanExit:libevent', [['worker_id', 9], ['span_id', 9]]);
	const symbol = w.type('SymbolTableEntry', [['addr', 9], ['size', 9], ['symbol_name', 7], ['inline_depth', 9], ['source_file', 7], ['source_line', 9]]);
	w.at(1, module, { base: 0x10000, start: 0x11000, size: 0x5000, path: '/srv/server' });
	['server+0x1234 @ server+0x1300', 'server+0x9999', 'other+0x1234', 'work'].forEach((name, i) => {
		w.at(10 * i + 1, enter, { worker_id: 0, span_id: i + 1, span_name: name });
		w.at(10 * i + 5, exit, { worker_id: 0, span_id: i + 1 });
	});
	w.at(50, symbol, { addr: 0x11234, size: 0, symbol_name: 'render', inline_depth: 0, source_file: '/src/server.c', source_line: 7 });
	w.at(50, symbol, { addr: 0x11300, size: 0, symbol_name: 'main', inline_depth: 0, source_file: '/src/server.c', source_line: 12 });
	w.at(50, symbol, { addr: 0, size: 0, symbol_name: 'on_read @ main', inline_depth: 0, source_file: 'server+0x1 @ server+0x2', source_line: 0 });
	const trace = await read(w.finish());
	assert.deepEqual([0, 1, 2, 3].map((life) => nameOfSpan(trace, life)), ['render @ main server.c:12', 'server+0x9999', 'other+0x1234', 'work']);
	// The server finds names later than the trace is there.
	trace.symbols.set(0x19999, [{ name: 'found', file: '', line: 0 }]);
	assert.equal(nameOfSpan(trace, 1), 'found');
});
