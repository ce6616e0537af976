// SPDX-License-Identifier: Apache-2.0
// The tracks under the lanes in a real browser: by mouse, keyboard, URL, and for those who do not see them.

import { test } from 'node:test';
import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { WORK, eventually, fragment, inTheme, open, page, picture, text, useBrowser, violations } from './browser.mjs';
import { ORIGIN, trackTrace } from './track_trace.mjs';
import { TraceWriter } from '../toolkit/trace_writer.mjs';

const MS = 1e6, SECOND = 1e9;
const ALL = { width: 1280, height: 1800 };
const VIEW = `#v=m${ORIGIN + 480 * MS}~${260 * MS}`;

/** A thousand lanes, each with one call. */
function manyLanes() {
	const w = new TraceWriter(), start = w.type('PollStartEvent', [['worker_id', 9], ['local_queue', 11], ['task_id', 9], ['spawn_loc', 7]]), end = w.type('PollEndEvent', [['worker_id', 9]]);
	w.at(1, w.type('SegmentMetadataEvent', [['entries', 10]]), { entries: { 'runtime.pool': [...Array(1001).keys()].filter((id) => id !== 255).join(',') } });
	for (let worker = 0; worker < 1001; worker++) {
		w.at(1000 + worker, start, { worker_id: worker, local_queue: 0, task_id: 5, spawn_loc: 'f @ f.c:1' });
		w.at(9000 + worker, end, { worker_id: worker });
	}
	return w.finish();
}

/** A loop that a program drives itself: 10 calls of 2 ms, 120 ms of work between rounds behind the fifth, a stop of 400 ms in the eighth. */
function drivenLoop() {
	const w = new TraceWriter(), start = w.type('PollStartEvent', [['worker_id', 9], ['local_queue', 11], ['task_id', 9], ['spawn_loc', 7]]), end = w.type('PollEndEvent', [['worker_id', 9]]);
	const outside = w.type('LoopOutsideEvent', [['worker_id', 9], ['from_ns', 9], ['to_ns', 9]]), stopped = w.type('ProcessStoppedEvent', [['from_ns', 9], ['to_ns', 9], ['least_ns', 9]]);
	const unpark = w.type('WorkerUnparkEvent', [['worker_id', 9], ['local_queue', 11], ['cpu_time_ns', 9], ['sched_wait_ns', 9], ['tid', 13]]), park = w.type('WorkerParkEvent', [['worker_id', 9], ['local_queue', 11], ['cpu_time_ns', 9], ['tid', 13]]);
	w.at(1, w.type('SegmentMetadataEvent', [['entries', 10]]), { entries: { service: 'driven', 'runtime.main': '0', 'dial9-c.version': '0.1.0' } });
	for (let i = 0, at = 10 * MS, cpu = 0; i < 10; i++, at += 100 * MS) {
		w.at(at - 1000, unpark, { worker_id: 0, local_queue: 0, cpu_time_ns: cpu, sched_wait_ns: 0, tid: 7 });
		w.at(at, start, { worker_id: 0, local_queue: 0, task_id: 5, spawn_loc: 'on_frame @ game.c:9' });
		if (i === 7) at += 400 * MS;
		w.at(at + 2 * MS, end, { worker_id: 0 });
		if (i === 7) w.at(at + 2 * MS + 1, stopped, { from_ns: at - 400 * MS + MS, to_ns: at + MS, least_ns: 399 * MS });
		// It is outside of its loop before it waits again.
		if (i === 4) {
			w.at(at + 130 * MS, outside, { worker_id: 0, from_ns: at + 4 * MS, to_ns: at + 124 * MS });
			at += 128 * MS;
			cpu += 128 * MS;
		}
		w.at(at + 3 * MS, park, { worker_id: 0, local_queue: 0, cpu_time_ns: cpu += 3 * MS, tid: 7 });
		if (i === 4) at += 172 * MS;
	}
	return w.finish();
}

useBrowser(() => {
	for (const folder of ['driven/web-1', 'one/web-1', 'hosts/web-1', 'hosts/web-2', 'many/web-1']) mkdirSync(`${WORK}/${folder}`, { recursive: true });
	writeFileSync(`${WORK}/one/web-1/trace.0.bin`, trackTrace());
	writeFileSync(`${WORK}/driven/web-1/trace.0.bin`, drivenLoop());
	writeFileSync(`${WORK}/hosts/web-1/trace.0.bin`, trackTrace());
	writeFileSync(`${WORK}/hosts/web-2/trace.0.bin`, trackTrace({ service: 'back', boot: 'boot-u', host: 'beta', later: 100 * SECOND, wall: 1.7e18 - 100 * SECOND, drift: 3e6 }));
	writeFileSync(`${WORK}/many/web-1/trace.0.bin`, manyLanes());
});

/** The row of the gutter that belongs to a track: where its picture is. */
const rowOf = (id) => page.$eval(`[data-track="${id}"]`, (e) => {
	const { top, height } = e.closest('.lane').getBoundingClientRect(), { left, width } = document.getElementById('lanes').getBoundingClientRect();
	return { top, height, left, width };
});

/** How many pixels of a rectangle of the canvas, in shares of the row, are not background. */
const inked = (row, [x0, x1], [y0, y1]) => page.evaluate(([box, a, b, c, d]) => {
	const canvas = document.getElementById('lane-canvas'), ratio = canvas.width / canvas.clientWidth, at = canvas.getBoundingClientRect();
	const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext('2d', { willReadFrequently: true });
	copy.drawImage(canvas, 0, 0);
	const { data } = copy.getImageData(Math.round(a * canvas.width), Math.round((box.top - at.top + c * box.height) * ratio), Math.max(1, Math.round((b - a) * canvas.width)), Math.max(1, Math.round((d - c) * box.height * ratio)));
	let n = 0;
	for (let i = 3; i < data.length; i += 4) if (data[i] > 40) n++;
	return n / (data.length / 4);
}, [row, x0, x1, y0, y1]);

const carets = () => page.$$eval('[data-track]', (all) => all.map((e) => `${e.dataset.track}${e.getAttribute('aria-expanded') === 'true' ? '+' : '-'}`));
const item = () => page.$eval('#item', (e) => e.getAttribute('aria-label'));

test('tracks that have something to say are open, the others are strips with their line and a figure', async () => {
	await open('one', VIEW, ALL);
	assert.deepEqual(await carets(), ['timers+', 'cpu-', 'queue-', 'spans+', 'events-', 'helpers-', 'tasks-', 'memory-', 'descriptors-', 'accept+', 'usage-', 'chart:Cache+', 'log-', 'loss+']);
	await eventually(() => text('#gutter'), /timers\s+110.ms late[^]*spans\s+41, 3 names[^]*Cache\s+entries\s+hits \(growth\)\s+bytes[^]*recorder log[^]*loss, damage\s+42 lost/);
	// The late timer's arrow ends where on_slow ends, 140 of 260 ms into the view; nothing is behind it until 700 ms.
	const timers = await rowOf('timers');
	assert.ok(await inked(timers, [0.5, 0.53], [0.2, 0.6]) > 0.01);
	assert.equal(await inked(timers, [0.56, 0.565], [0.2, 0.6]), 0);
	// GET /report lies in the first row of spans, over the whole view up to 720 ms.
	assert.ok(await inked(await rowOf('spans'), [0.2, 0.9], [0.1, 0.24]) > 0.9);
	for (const id of ['cpu', 'tasks', 'memory', 'descriptors', 'usage']) assert.ok(await inked(await rowOf(id), [0.02, 0.4], [0, 0.9]) > 0.02, id);
});

test('a click selects a span, which the detail, the URL and the status line name, and a reload brings back', async () => {
	await open('one', VIEW, ALL);
	const row = await rowOf('spans');
	await page.mouse.click(row.left + row.width * 0.6, row.top + 14);
	await eventually(() => text('#selected'), /^span GET \/report, inside for 30\.0.ms, 300.ms, at 0\.420000.s$/);
	await eventually(() => text('#detail'), /GET \/report\s+300.ms[^]*inside\s+30\.0.ms[^]*status\s+200/);
	await eventually(fragment, /s=span:77/);
	await page.reload();
	await page.waitForSelector('body[data-ready]');
	await eventually(() => text('#selected'), /^span GET \/report/);
	await page.keyboard.press('Escape');
	await eventually(() => text('#selected'), /Nothing selected/);
});

test('the keyboard opens, closes and moves tracks; URL and browser keep it', async () => {
	await open('one', '', ALL);
	await page.focus('[data-track="cpu"]');
	await page.keyboard.press('Enter');
	await eventually(carets, (all) => all.includes('cpu+'));
	await page.keyboard.down('Shift');
	await page.keyboard.press('ArrowUp');
	await page.keyboard.up('Shift');
	const moved = await eventually(carets, (all) => all[0] === 'cpu+' && all[1] === 'timers+');
	assert.equal(await page.evaluate(() => document.activeElement.dataset.track), 'cpu');
	const hash = await eventually(fragment, /to=cpu,timers/);
	assert.match(hash, /tr=cpu\+/);
	await page.reload();
	await page.waitForSelector('body[data-ready]');
	assert.deepEqual(await carets(), moved);
	await open('one', '', ALL);
	assert.deepEqual(await carets(), moved);
	await page.evaluate(() => localStorage.clear());
	await open('one', '#tr=spans-,memory%2B&to=loss,memory', ALL);
	const linked = await carets();
	assert.deepEqual([linked.slice(0, 2), linked.includes('spans-')], [['loss+', 'memory+'], true]);
	await page.evaluate(() => localStorage.clear());
});

test('a track is dragged by its grip to another place', async () => {
	await open('one', '', ALL);
	const memory = await rowOf('memory'), timers = await rowOf('timers');
	await page.hover('[data-track="memory"]');
	const grip = await (await page.$('.lane:has([data-track="memory"]) .grip')).boundingBox();
	await page.mouse.move(grip.x + 4, grip.y + 6);
	await page.mouse.down();
	await page.mouse.move(grip.x + 4, grip.y + timers.top - memory.top - 4, { steps: 4 });
	await page.mouse.up();
	await eventually(carets, (all) => all[0] === 'memory-');
	await page.evaluate(() => localStorage.clear());
});

test('every item of every track can be walked over and is said', async () => {
	await open('one', `#v=m${ORIGIN}~${2 * SECOND}`, ALL);
	const said = { timers: /timer on_tick, 100.µs late/, cpu: /CPU: process user/, queue: /waiting to run: \d+ ready/, spans: /span /, events: /event HttpRequest|event Cache/, helpers: /resolver 900/, tasks: /tasks: \d/,
		memory: /memory: resident/, descriptors: /descriptors: 12/, accept: /accept queue: 10.%/, usage: /process: page faults/, 'chart:Cache': /Cache: entries/, log: /recorder info: started in process 7|recorder warning: cannot write in .traces: .*, 3 times/, loss: /42 events lost: ring full/ };
	for (const [id, words] of Object.entries(said)) {
		await page.focus(`[data-track="${id}"]`);
		await page.keyboard.press('ArrowRight');
		const first = await eventually(item, words);
		if (id === 'loss') continue;
		await page.keyboard.press('ArrowRight');
		await eventually(item, (now) => now !== first);
		await page.keyboard.press('ArrowLeft');
		await eventually(item, (now) => now === first);
	}
	await page.focus('#timeline');
	await page.keyboard.press('ArrowUp');
	await eventually(item, /recorder /);
	await page.keyboard.press('ArrowUp');
	await eventually(item, /Cache: /);
	for (let i = 0; i < 20; i++) await page.keyboard.press('ArrowUp');
	await eventually(item, /, pool 3, |, pool 2, |, pool 1, |, main, /);
});

test('the crosshair has the values under it, and an item its sentence and a word of explanation', async () => {
	await open('one', VIEW, ALL);
	const spans = await rowOf('spans'), memory = await rowOf('memory');
	await page.mouse.move(memory.left + memory.width * 0.3, memory.top + 12);
	assert.match(await eventually(() => text('#tooltip'), /memory/), /resident 40\.0.MiB; heap live 5\.00.MiB[^]*Memory: what the kernel keeps resident/);
	await page.mouse.move(spans.left + spans.width * 0.3, spans.top + 14);
	assert.match(await eventually(() => text('#tooltip'), /span/), /GET \/report[^]*stretches of work that the program names/);
});

test('a field is charted by hand, only the slow spans are shown on request, and both are in the URL', async () => {
	await open('one', VIEW, ALL);
	const value = await page.$eval('.chooser select', (select) => [...select.options].find((o) => o.text === 'took, ns').value);
	await page.select('.chooser select', value);
	await eventually(carets, (all) => all.includes('field:HttpRequest:took:gauge+'));
	await page.select('.lane.track select', '90');
	await eventually(() => text('#gutter'), /6 of 41, 3 names/);
	await eventually(fragment, /sp=90&fc=HttpRequest,took,gauge/);
	await page.reload();
	await page.waitForSelector('body[data-ready]');
	assert.ok((await carets()).includes('field:HttpRequest:took:gauge+'));
	await page.click('.lane .remove');
	await eventually(carets, (all) => !all.includes('field:HttpRequest:took:gauge+'));
});

test('lane groups say host and clock, and fold', async () => {
	await open('hosts', 'view', ALL);
	await eventually(() => text('#gutter'), /tracks\s+alpha[^]*back\s+beta, placed by its wall clock, ±3\.00.ms/);
	const before = await page.$$eval('.lane:not(.track):not(.group):not(.queue):not(.chooser)', (all) => all.length);
	await page.click('[data-group="g1.pool"]');
	await eventually(() => page.$$eval('.lane:not(.track):not(.group):not(.queue):not(.chooser)', (all) => all.length), (n) => n === before - 4);
	await eventually(fragment, /h=g1\.pool/);
});

test('a thousand lanes scroll, and the canvas is no higher than what is in sight', async () => {
	await open('many');
	const drawn = () => page.evaluate(() => {
		const canvas = document.getElementById('lane-canvas'), copy = new OffscreenCanvas(canvas.width, canvas.height).getContext('2d', { willReadFrequently: true });
		copy.drawImage(canvas, 0, 0);
		const { data } = copy.getImageData(canvas.width >> 1, 0, 1, canvas.height);
		return { high: canvas.clientHeight, box: document.getElementById('scroll').clientHeight, ink: data.filter((v, i) => i % 4 === 3 && v).length };
	});
	const first = await drawn();
	assert.ok(first.high <= first.box && first.ink > first.high / 2, JSON.stringify(first));
	await page.$eval('#scroll', (box) => box.scrollTo(0, 9000));
	await eventually(async () => JSON.stringify(await drawn()), (now) => JSON.parse(now).ink > first.high / 2);
	await page.focus('#timeline');
	await page.keyboard.press('ArrowRight');
	await eventually(item, /f, 8\.00.µs, pool 0/);
});

for (const theme of ['light', 'dark'])
	test(`axe finds nothing wrong with tracks, open and closed, ${theme}`, async () => {
		await open('hosts', 'view#tr=cpu%2B,events%2B,helpers%2B,usage%2B', ALL);
		await inTheme(theme);
		assert.deepEqual(await violations(theme), []);
		await page.focus('[data-track="events"]');
		await page.keyboard.press('ArrowRight');
		assert.deepEqual(await violations(theme), []);
	});

for (const [width, height] of [[700, 1400], [1280, 1400], [1600, 1400], [2560, 1440]])
	for (const theme of ['light', 'dark'])
		test(`tracks fit a window of ${width} px, ${theme}`, async () => {
			await open('one', `${VIEW}&s=span:77&tr=cpu%2B,events%2B,helpers%2B`, { width, height });
			await inTheme(theme);
			assert.equal(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), true);
			await picture(`tracks-${width}-${theme}`);
		});

/** The lane's box, as rowOf() of a track. */
const laneBox = () => page.$eval('[data-lane]', (e) => {
	const { top, height } = e.getBoundingClientRect(), { left, width } = document.getElementById('lanes').getBoundingClientRect();
	return { top, height, left, width };
});

test('a lane draws work between rounds and stops as kinds of their own, and tells them', async () => {
	await open('driven', 'view', ALL);
	const lane = await laneBox(), length = 1710 * MS;
	const at = (ns) => lane.left + lane.width * (0.05 + (ns - 10 * MS) / length) / 1.1;
	const tell = async (ns) => {
		await page.mouse.move(at(ns), lane.top + lane.height / 2);
		return eventually(() => text('#tooltip'), /./);
	};
	await page.keyboard.press('0');
	await eventually(() => tell(480 * MS), /between rounds\s+120.ms/);
	await eventually(() => tell(1250 * MS), /process stopped\s+400.ms/);
	await picture('outside');
});

test('a finding about time between rounds frames that time, and no call', async () => {
	await open('driven', 'view', ALL);
	await page.waitForSelector('[data-finding]');
	const numbers = await page.$$eval('[data-finding]', (all) => all.map((e) => [e.dataset.finding, e.innerText]));
	const between = numbers.find(([, said]) => /between (its )?rounds/.test(said));
	assert.ok(between, JSON.stringify(numbers));
	await page.click(`[data-finding="${between[0]}"]`);
	// Five times as long.
	await eventually(() => text('#in-view'), /600.ms of/);
	assert.doesNotMatch(await text('#selected'), /on_frame/);
	assert.equal(await page.$eval(`[data-finding="${between[0]}"]`, (e) => e.getAttribute('aria-current')), 'true');
});

test('a finding that names no call opens the track that shows it, once it is chosen', async () => {
	await open('one', 'view#tr=loss-', ALL);
	await page.waitForSelector('[data-finding]');
	assert.ok((await carets()).includes('loss-'));
	const number = await page.$$eval('[data-finding]', (all) => all.find((e) => /events were lost|incomplete/.test(e.innerText)).dataset.finding);
	await page.click(`[data-finding="${number}"]`);
	await eventually(carets, (all) => all.includes('loss+'));
});
