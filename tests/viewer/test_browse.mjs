// SPDX-License-Identifier: Apache-2.0
// The page of many recordings: what `dial9 serve` shows of a directory that holds several.

import { test } from 'node:test';
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { eventually, fragment, inTheme, open, page, text, useBrowser, violations, WORK } from './browser.mjs';
import { BEGAN_MS, smallSegment, writeMany } from './many_traces.mjs';

const items = async () => new URLSearchParams((await page.evaluate(() => location.hash)).slice(1));
const press = async (...keys) => {
	for (const key of keys) {
		if (key.startsWith('Shift+')) await page.keyboard.down('Shift');
		await page.keyboard.press(key.replace('Shift+', ''));
		if (key.startsWith('Shift+')) await page.keyboard.up('Shift');
	}
};
const cell = () => page.$eval('#cell', (e) => e.getAttribute('aria-label'));
const tableRows = () => page.$$eval('#below tbody tr', (rows) => rows.map((row) => row.innerText.replace(/\s+/g, ' ').trim()));

useBrowser(() => {
	writeMany(`${WORK}/many`);
	writeMany(`${WORK}/broken`);
	const whole = smallSegment({ host: 'web-1', boot: 'boot-1', after: 60 });
	writeFileSync(`${WORK}/broken/web-1/trace.6.bin`, whole.subarray(0, whole.length - 700));
	writeFileSync(`${WORK}/broken/web-1/trace.7.bin`, 'no trace at all, and long enough to be taken for one');
	writeFileSync(`${WORK}/broken/web-2/trace.6.bin.active`, smallSegment({ host: 'web-2', boot: 'boot-2', pid: '102', after: 60 }));
});

test('services stand worst first, and the cell of the worst callback is chosen', async () => {
	await open('many', '#c=utc');
	await eventually(() => text('#services'), /^echo-server\s+182.ms\s+3 hosts[^]*mail-gate\s+4\.00.ms\s+2 hosts/);
	await eventually(() => text('#facts'), /2 services·5 hosts·5 recordings·many/);
	assert.match(await cell(), /^web-3, 10:00:24 to 10:00:25: longest callback 182.ms; flush_log/);
	assert.deepEqual((await tableRows()).map((row) => row.slice(0, 14)), ['web-3 10:00:20']);
	await eventually(() => text('#below'), /flush_log blocks the loop 182.ms/);
});

test('what is chosen opens in the viewer: exactly these segments', async () => {
	const url = await open('many', '#c=utc');
	await page.focus('#map');
	await press('Shift+ArrowUp');
	const rows = await tableRows();
	assert.equal(rows.length, 2);
	assert.match(rows.join('\n'), /web-3 10:00:20[^]*web-2 10:00:20/);
	assert.equal(await text('#open-chosen'), 'Open 2 segments');
	assert.equal(await page.$eval('#open-chosen', (e) => e.href), `${url}?trace=segment/web-2%2Ftrace.2.bin&trace=segment/web-3%2Ftrace.2.bin`);
	await Promise.all([page.waitForNavigation(), press('Enter')]);
	await page.waitForSelector('body[data-ready]');
	await eventually(() => text('#loaded'), /2 of 2 segments/);
	await eventually(() => text('#findings'), /flush_log/);
	assert.doesNotMatch(await text('#findings'), /web-1/);
});

test('a segment that is taken out of the table is not opened', async () => {
	await open('many', '#c=utc');
	await page.focus('#map');
	await press('Shift+ArrowUp');
	await page.click('#below tbody tr:nth-child(2) input');
	assert.equal(await text('#open-chosen'), 'Open 1 segment');
	assert.match(await page.$eval('#open-chosen', (e) => e.search), /^\?trace=segment\/web-3%2Ftrace\.2\.bin$/);
});

test('dragging over the map chooses recordings and time', async () => {
	await open('many');
	const box = await (await page.$('#map-canvas')).boundingBox();
	await page.mouse.move(box.x + 110, box.y + 40);
	await page.mouse.down();
	await page.mouse.move(box.x + box.width - 5, box.y + 58);
	await page.mouse.up();
	await eventually(() => text('#window'), /web-1 to web-2$/);
	await eventually(() => text('#chosen'), /^12 segments/);
});

test('callbacks are summed up over the segments that are chosen, and not over one that begins where the window ends', async () => {
	await open('many', `#c=utc&svc=echo-server&w=${BEGAN_MS + 20000}~${BEGAN_MS + 30000}&p=web-3@boot-3&t=callbacks`);
	await eventually(() => text('#below'), /1 of 1 segments/);
	await eventually(() => text('#chosen'), /^1 segment,/);
});

test('the address keeps what is chosen, and a reload shows it again', async () => {
	await open('many');
	await page.focus('#map');
	await press('Shift+ArrowLeft', 'm', 'c');
	const before = { hash: await page.evaluate(() => location.hash), window: await text('#window'), cell: await cell() };
	assert.deepEqual([(await items()).get('m'), (await items()).get('c'), (await items()).getAll('p')], ['busy', 'utc', ['web-3@boot-3']]);
	assert.equal(Number((await items()).get('w').split('~')[0]), BEGAN_MS + 23000);
	await page.reload();
	await page.waitForSelector('body[data-ready]');
	assert.equal(await page.evaluate(() => location.hash), before.hash);
	assert.equal(await text('#window'), before.window);
});

test('a reload keeps the service that was chosen, without a window, the order of rows, and what was taken out', async () => {
	await open('many');
	await press('n', 'Escape');
	await page.click('#below thead th:nth-child(3) button');
	await page.click('#below tbody tr:nth-child(2) input');
	const look = async () => [await text('#service'), await text('#window'), await text('#open-chosen'), await fragment(), ...await tableRows()];
	const before = await look();
	assert.deepEqual(before.slice(0, 3), ['mail-gate', 'Everything', `Open ${before.length - 5} segments`]);
	await page.reload();
	await page.waitForSelector('body[data-ready]');
	assert.deepEqual(await look(), before);
});

test('a service that is not there any more is the first one instead', async () => {
	await open('many', '#svc=gone&c=utc');
	assert.equal(await text('#service'), 'echo-server');
	assert.match(await cell(), /^web-3, 10:00:24 to 10:00:25/);
});

test('arrows walk over the cells, and the cell says what the segment has', async () => {
	await open('many', '#c=utc');
	await page.focus('#map');
	const said = [];
	await press('ArrowUp', 'ArrowUp', 'Home');
	for (let i = 0; i < 60; i++) {
		said.push(await cell());
		await press('ArrowRight');
	}
	assert.equal(new Set(said).size, 60);
	said.forEach((line, i) => assert.match(line, new RegExp(`^web-1, 10:00:${String(i).padStart(2, '0')} to [\\d:]+: longest callback 50\\.0.µs$`)));
});

test('callbacks of all chosen segments are added up, with the way to the longest call', async () => {
	await open('many');
	await press('Escape', 'v');
	await eventually(() => text('#below'), /18 of 18 segments/);
	const rows = await tableRows();
	assert.match(rows[0], /^flush_log 2 212 ms .* 182 ms 2$/);
	assert.match(rows[1], /^on_read 1 7\d\d 8\d\.\d ms/);
	await page.click('#below tbody tr:nth-child(1) a');
	await page.waitForSelector('body[data-ready]');
	await eventually(() => text('#selected'), /flush_log, 182.ms/);
});

test('stacks of all chosen segments are one tree', async () => {
	await open('many');
	await press('Escape', 'v', 'v');
	await eventually(() => text('#below'), /20 samples/);
	await eventually(() => text('#below'), /100.%\s+flush_log\s+100.%\s+write/);
});

test('damaged, partial, open and unreadable segments are told apart', async () => {
	await open('broken', '#c=utc');
	await press('Escape');
	const storage = await text('#storage'), table = await text('#below');
	assert.match(storage, /1 still being written/);
	assert.match(storage, /1 cannot be read/);
	assert.match(storage, /1 damaged or partial/);
	assert.match(table, /not closed properly/);
	assert.match(table, /still being written/);
	assert.match(table, /cannot be read: .*trace\.7\.bin: .*not a TRC stream/);
});

/** What the help calls keys, and what must have been pressed before they can do something. */
const NAMED = { '→': 'ArrowRight', '←': 'ArrowLeft', '↑': 'ArrowUp', '↓': 'ArrowDown', Space: ' ', Esc: 'Escape' };
const FIRST = { '↓': ['ArrowUp'], 'Shift ↓': ['ArrowUp'], Space: ['Escape'], 0: ['z'] };

test('every key that the help lists does something', async () => {
	const look = () => page.evaluate(() => [location.hash, document.documentElement.dataset.theme, document.getElementById('keys').open, document.getElementById('guide').open,
		...['cell', 'window', 'tabs', 'metrics', 'clock', 'shown', 'service'].map((id) => document.getElementById(id).outerHTML)].join('\n'));
	await open('many');
	const listed = await page.$$eval('#keys tbody kbd', (all) => all.map((e) => e.textContent));
	assert.equal(listed.length, 23);
	for (const shown of listed.filter((key) => key !== 'Enter')) { // which is pressed above
		await page.close();
		await open('many');
		await page.focus('#map');
		const [last, held] = shown.split(' ').reverse(), key = NAMED[last] ?? last;
		await press(...(FIRST[shown] ?? []));
		await page.evaluate(() => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn))));
		const before = await look();
		await press(held ? `${held}+${key}` : key);
		await eventually(look, (now) => now !== before);
	}
});

for (const theme of ['light', 'dark'])
	test(`axe finds nothing wrong with any state, ${theme}`, async () => {
		await open('broken');
		await inTheme(theme);
		for (const key of ['Escape', 'v', 'v', 'm', 'n', '?']) {
			await press(key);
			await eventually(() => text('#below'), (now) => !/Adding up/.test(now));
			assert.deepEqual(await violations(theme), [], `after ${key}`);
		}
	});

for (const [width, height] of [[500, 900], [700, 900], [1280, 800], [2560, 1440]])
	test(`nothing is wider than a window of ${width} px`, async () => {
		await open('many', '', { width, height });
		assert.equal(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), true);
	});
