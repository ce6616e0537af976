// SPDX-License-Identifier: Apache-2.0
// The panel under the lanes, by mouse, keyboard and URL.

import { test } from 'node:test';
import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { profileTrace } from '../toolkit/profile_bytes.mjs';
import { serverTrace } from '../toolkit/trace_bytes.mjs';
import { WORK, eventually, fragment, inTheme, open, page, text, useBrowser, violations } from './browser.mjs';

useBrowser(() => {
	for (const [folder, trace] of [['shop', profileTrace()], ['plain', serverTrace({ slow: false })], ['narrow', profileTrace({ narrow: 4000 })]]) {
		mkdirSync(`${WORK}/${folder}/web-1`, { recursive: true });
		writeFileSync(`${WORK}/${folder}/web-1/trace.0.bin`, trace);
	}
});

const press = async (...keys) => {
	for (const key of keys) await page.keyboard.press(key);
};
const cells = (column) => page.$$eval('#panel-body tr[data-row]', (rows, i) => rows.map((row) => row.cells[i].innerText), column);
const item = () => page.$eval('#flame-item', (e) => e.getAttribute('aria-label'));
const choose = (name) => page.click(`#tab-${name}`);

test('the panel opens by key on the whole trace, by a drag on a range, and closes with it', async () => {
	await open('shop');
	assert.equal(await page.$eval('#panel', (e) => e.hidden), true);
	await press('o');
	await eventually(() => text('#panel'), /whole trace, 99\.\d.ms\s+60 calls\s+75 samples of 75/);
	await press('Escape');
	await eventually(() => page.$eval('#panel', (e) => e.hidden), (hidden) => hidden);
	const ruler = await (await page.$('#ruler')).boundingBox();
	await page.mouse.move(ruler.x + 50, ruler.y + 10);
	await page.mouse.down();
	await page.mouse.move(ruler.x + 300, ruler.y + 10, { steps: 4 });
	await page.mouse.up();
	await eventually(() => text('#panel'), /ms selected[^]* samples of 75/);
	await eventually(() => text('#detail'), /Range[^]*Loops[^]*main[^]*Against the rest[^]*callbacks per second/);
	await press('Escape');
	await eventually(() => page.$eval('#panel', (e) => e.hidden), (hidden) => hidden);
	await eventually(fragment, (hash) => !/[rp]=/.test(hash));
});

test('the keys r and arrows choose a range', async () => {
	await open('shop', '#v=m5000000000~100000000');
	await page.focus('#timeline');
	await press('ArrowRight', 'r', 'ArrowRight', 'ArrowRight', 'r');
	await eventually(() => text('#panel-title'), /4\.00.ms selected/);
});

test('callbacks are a table that is sorted by any column, and one of them can be looked at alone', async () => {
	await open('shop', '#p=callbacks');
	await eventually(() => cells(0), (names) => names.join() === 'on_read,tick');
	assert.deepEqual((await cells(1)), ['server.c:231', 'timer.c:40']);
	await page.click('#panel-body th:nth-child(4) button');
	await page.click('#panel-body th:nth-child(4) button');
	await eventually(() => cells(3), (calls) => calls.join() === '10,50');
	assert.equal(await page.$eval('#panel-body th:nth-child(4)', (e) => e.getAttribute('aria-sort')), 'ascending');
	assert.match(await eventually(fragment, /o=n/), /p=callbacks&o=n/);
	await page.focus('#panel-body tr[data-row="0"]');
	await press('Enter');
	await eventually(() => text('#panel-facts'), /10 calls\s+5 samples of 75/);
	assert.match(await eventually(fragment, /cb=/), /cb=tick\+@\+timer\.c:40/);
	await page.reload();
	await page.waitForSelector('#panel-callback');
	await eventually(() => text('#panel-callback'), /only tick/);
	await page.click('#panel-callback');
	await eventually(() => text('#panel-facts'), /60 calls/);
});

test('every callback and the range tell where their time went, and it adds up', async () => {
	await open('shop', '#r=m5010000000~50000000&p=callbacks');
	const label = await eventually(() => page.evaluate(() => document.querySelector('#panel-body tr[data-row="0"] .parts')?.getAttribute('aria-label') ?? ''), /%/);
	const sum = (texts) => texts.map(Number).reduce((a, b) => a + b, 0);
	assert.ok(Math.abs(sum([...label.matchAll(/([\d.]+).% /g)].map((m) => m[1])) - 100) <= 1.5, label);
	const detail = await eventually(() => text('#detail'), /Time\s*adds up to 50\.0.ms/);
	assert.match(detail, /on the CPU[^]*ready, not running[^]*blocked[^]*idle, waiting[^]*unknown/);
});

test('the flame graph has stacks of all kinds, and says what records those that are missing', async () => {
	await open('shop', '#p=flame');
	for (const [kind, said] of [['cpu', /67 samples, 100.%/], ['off-cpu', /3\.60.ms, 100.%/], ['blocking', /6\.00.ms, 100.%/], ['heap', /19\.5.KiB/], ['live', /14\.6.KiB/], ['idle', /56\.4.ms/]]) {
		await page.click(`#panel-body [data-kind="${kind}"]`);
		await eventually(item, said);
		await eventually(() => text('#panel-body .tools'), /\d+ of \d+ /);
	}
	await open('plain', '#p=flame&fg=heap');
	await eventually(() => text('#panel-body .quiet'), /no sampled allocations[^]*dial9 record --memory/);
});

test('the flame graph is walked and zoomed by keyboard, and its place is in the URL', async () => {
	await open('shop', '#p=flame');
	await page.waitForSelector('.flame');
	await page.focus('.flame');
	await press('ArrowDown', 'ArrowDown', 'ArrowDown');
	assert.match(await item(), /^parse, 50 samples, 75.%, itself 10 samples/);
	await press('Enter');
	assert.match(await eventually(fragment, /fg=/), /fg=cpu:main\/on_read\/parse/);
	await press('Backspace');
	await eventually(fragment, /fg=cpu:main\/on_read(&|$)/);
	await press('ArrowUp', 'ArrowUp');
	assert.match(await item(), /^main/);
	await press('i');
	await eventually(fragment, /fg=cpu-inverted/);
	await page.focus('.flame');
	await press('ArrowDown');
	assert.match(await item(), /^copy, 40 samples, 60.%, itself 40 samples, the program, server\.c:1024/);
	await page.reload();
	await page.waitForSelector('body[data-ready]');
	await eventually(() => page.$eval('#panel-body .tools > button', (e) => e.getAttribute('aria-pressed')), (pressed) => pressed === 'true');
});

test('a flame graph takes the colours of the theme that is chosen while it is shown', async () => {
	await open('shop', '#p=flame');
	await page.waitForSelector('.flame');
	const colour = () => page.$eval('.flame canvas', (canvas) => {
		const copy = new OffscreenCanvas(1, 1).getContext('2d');
		copy.drawImage(canvas, -canvas.width / 4, -24);
		return [...copy.getImageData(0, 0, 1, 1).data].join();
	});
	const before = await colour();
	await press('t');
	await eventually(colour, (now) => now !== before);
});

test('frames narrower than a pixel are one rest, which opens until each of them can be seen', async () => {
	await open('narrow', '#p=flame');
	await page.waitForSelector('.flame');
	await page.focus('.flame');
	await press('ArrowDown', 'ArrowDown', 'Enter');
	assert.match(await eventually(fragment, /fg=/), /fg=cpu:main\/tick(&|$)/);
	// All that is below it is narrow: Enter opens it, and again where it is still too much.
	await press('Enter');
	await eventually(fragment, /fg=cpu:main\/tick\/(%E2%80%A6|…)0/);
	await press('ArrowDown');
	assert.match(await item(), /^(0x1[\da-f]+, 1|tick, 5) samples?/);
	await press('ArrowUp', 'Enter');
	await eventually(fragment, /fg=cpu:main\/tick\/(%E2%80%A6|…)250/);
	await open('narrow', '#p=flame&fg=cpu:main/tick/%E2%80%A63000');
	await page.waitForSelector('.flame');
	await page.focus('.flame');
	await press('ArrowDown');
	assert.match(await item(), /^0x1[\da-f]+, 1 sample/);
	await press('Backspace');
	await eventually(fragment, /fg=cpu:main\/tick(&|$)/);
});

test('finding a frame tells the share of what is under it', async () => {
	await open('shop', '#p=flame');
	await page.focus('#timeline');
	await page.keyboard.down('Control');
	await press('/');
	await page.keyboard.up('Control');
	await page.keyboard.type('parse');
	await eventually(() => text('#panel-body .tools'), /50 samples, 75.% under 1 frame/);
	await eventually(fragment, /fq=parse/);
	await press('Escape');
	await eventually(() => text('#panel-body .tools'), /67 of 67 samples on the CPU/);
});

test('the call tree opens and closes by keyboard, from both ends', async () => {
	await open('shop', '#p=tree');
	await eventually(() => cells(0), (frames) => frames.join().replace(/[▾▸]/g, '') === 'all stacks,main,on_read,parse,copy,tick,worker,[no stack],[cut stack]');
	assert.equal(await page.$eval('#panel-body table', (e) => e.getAttribute('role')), 'treegrid');
	await page.focus('#panel-body tr[data-row="0"]');
	await press('ArrowDown', 'ArrowDown', 'ArrowLeft');
	await eventually(() => cells(0), (frames) => frames.length === 7);
	const row = () => page.evaluate(() => [document.activeElement.getAttribute('aria-level'), document.activeElement.getAttribute('aria-expanded'), document.activeElement.innerText]);
	assert.match(String(await row()), /^3,false,▸on_read\s+50 samples\s+–\s+75.%/);
	await press('ArrowRight', 'ArrowRight');
	assert.match(String(await row()), /^4,true,▾parse\s+50 samples\s+10 samples/);
	await press('ArrowLeft', 'ArrowLeft', 'ArrowLeft');
	assert.match(String(await row()), /on_read/);
	await press('i');
	await eventually(() => cells(0), (frames) => /all stacks,.?copy,.?parse/.test(frames.join()));
	await page.focus('#panel-body tr[data-row="1"]');
	assert.match(String(await row()), /copy\s+40 samples\s+40 samples/);
	await press('Space');
	await eventually(fragment, /p=flame.*fg=cpu-inverted:copy/);
});

test('functions have what they took themselves and in sum, and lead to the flame graph', async () => {
	await open('shop', '#p=functions');
	await eventually(() => cells(0), (names) => names.slice(0, 3).join() === 'copy,parse,worker');
	assert.deepEqual((await cells(3)).slice(0, 2), ['40 samples', '10 samples']);
	await page.click('#panel-body th:nth-child(7) button');
	await eventually(() => cells(0), (names) => names.slice(0, 3).join() === 'main,on_read,parse');
	assert.deepEqual((await cells(6)).slice(0, 3), ['57 samples', '52 samples', '50 samples']);
	await page.type('#function-find', 'par');
	await eventually(() => cells(0), (names) => names.join() === 'parse');
	await page.focus('#panel-body tr[data-row="0"]');
	await press('Enter');
	await eventually(fragment, /p=flame.*fq=parse/);
});

test('blocking calls have function, descriptor, lock holder and stack', async () => {
	await open('shop', '#p=blocking');
	await eventually(() => text('#panel-body'), /fsync\s+14\s+4\.00.ms\s+on_read\s+helper 4200/);
	await page.focus('#panel-body tr[data-row="1"]');
	await eventually(() => text('.stack-pane'), /fsync\s*2\.00.ms\s+do_fsync\s+kernel\s+fsync\s+server\.c:1536[^]*main[^]*The lock was held by\s+helper 4200/);
	await press('Enter');
	await eventually(() => text('#selected'), /on_read/);
	await open('plain', '#p=blocking');
	await eventually(() => text('#panel-body'), /no blocking calls[^]*--no-blocking/);
});

test('samples are listed one by one, each with its stack', async () => {
	await open('shop', '#p=samples');
	await eventually(() => page.$eval('#panel-body table', (e) => e.getAttribute('aria-rowcount')), (n) => n === '76');
	await page.focus('#panel-body tr[data-row="0"]');
	await press('End');
	await eventually(() => page.evaluate(() => document.activeElement.getAttribute('aria-rowindex')), (i) => i === '76');
	await eventually(() => text('.stack-pane'), /copy[^]*parse[^]*on_read[^]*main/);
});

test('events are all there, in order, with their fields; names can be hidden and say how many they are', async () => {
	await open('shop', '#p=events');
	await eventually(() => text('.event-tab .tools'), /CpuSampleEvent\s*75[^]*callback\s*60[^]*228 of 228 events/);
	await page.click('[data-name="CpuSampleEvent"]');
	await eventually(() => text('.event-tab .tools'), /153 of 228 events/);
	assert.match(await eventually(fragment, /en=/), /en=CpuSampleEvent/);
	await page.type('.event-tab input', 'block');
	await eventually(() => cells(1), (names) => names.join() === 'BlockingCallEvent,BlockingCallEvent');
	await page.focus('#panel-body tr[data-row="1"]');
	await eventually(() => text('.stack-pane'), /function\s+fsync\s+fd\s+14\s+duration_ns\s+/);
	await open('shop', '#r=m5060000000~10000000&p=events');
	await eventually(() => text('.event-tab .tools'), /19 of 19 events/);
});

test('a long list draws only what is in sight, and every row of it can be reached', async () => {
	await open('plain', '#p=events');
	const all = Number(await eventually(() => page.$eval('#panel-body table', (e) => e.getAttribute('aria-rowcount')), (n) => Number(n) > 5000));
	assert.ok((await cells(0)).length < 100);
	await page.focus('#panel-body tr[data-row="0"]');
	await press('End');
	await eventually(() => page.evaluate(() => document.activeElement.getAttribute('aria-rowindex')), (i) => Number(i) === all);
	await press('PageUp', 'ArrowUp', 'Home');
	await eventually(() => page.evaluate(() => document.activeElement.getAttribute('aria-rowindex')), (i) => i === '2');
});

test('one thread can be looked at alone', async () => {
	await open('shop', '#p=flame');
	await eventually(() => text('#panel-thread'), /All threads\s+main\s+helper 4200/);
	await page.select('#panel-thread', '0.t4200');
	await eventually(item, /7 samples, 100.%/);
	await eventually(() => text('#panel-facts'), /0 calls\s+7 samples of 75/);
	assert.match(await eventually(fragment, /th=/), /th=0\.t4200/);
});

test('the panel takes another height by key, and keeps it in the URL', async () => {
	await open('shop', '#p=callbacks');
	const height = () => page.$eval('#panel', (e) => e.getBoundingClientRect().height);
	const before = await height();
	await page.focus('#panel-grip');
	await press('ArrowUp');
	await eventually(height, (now) => now === before + 24);
	const item = await eventually(fragment, /ph=\d+/);
	await page.reload();
	await page.waitForSelector('body[data-ready]');
	assert.equal(await height(), Number(/ph=(\d+)/.exec(item)[1]));
});

test('a row of a table stays as high as one line in a narrow window', async () => {
	await open('shop', '#p=callbacks', { width: 700, height: 900 });
	await page.waitForSelector('#panel-body tr[data-row]');
	assert.deepEqual(await page.$$eval('#panel-body tr[data-row]', (rows) => [...new Set(rows.map((row) => row.offsetHeight))]), [24]);
});

for (const theme of ['light', 'dark'])
	test(`axe finds nothing wrong with any tab of the panel, ${theme}`, async () => {
		await open('shop', '#r=m7400000000~100000000&p=callbacks', { width: 1600, height: 800 });
		await inTheme(theme);
		await eventually(() => text('#detail'), /^Range/);
		for (const tab of await page.$$eval('#panel-tabs button', (buttons) => buttons.map((b) => b.dataset.tab))) {
			await choose(tab);
			assert.deepEqual(await violations(theme), [], tab);
		}
	});

for (const width of [500, 700, 1280, 1600])
	test(`with the panel open nothing is wider than a window of ${width} px`, async () => {
		await open('shop', '#p=flame', { width, height: 900 });
		await page.waitForSelector('.flame');
		assert.equal(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), true);
	});
