// SPDX-License-Identifier: Apache-2.0
// Searching: everything that has a name, filters, the nearest names where nothing is found, and marks.

import { test } from 'node:test';
import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { HEADER, event, pool, reset, schema, serverTrace, stream, u32, uleb } from '../toolkit/trace_bytes.mjs';
import { WORK, eventually, forgive, fragment, inTheme, open, page, text, useBrowser, violations } from './browser.mjs';

const MS = 1000000;
const SPAN = [['worker_id', 9], ['span_id', 9], ['span_name', 7], ['span_instance_id', 9], ['path', 7]];

useBrowser(() => {
	mkdirSync(`${WORK}/one`);
	writeFileSync(`${WORK}/one/trace.0.bin`, Buffer.concat([serverTrace(), stream(HEADER, pool(1, 'upload'), pool(2, '/images/cat.png'), pool(3, 'warming'), schema(2, 'SpanEnter:app::upload:a.c:1', SPAN), schema(3, 'SpanExit:app::upload:a.c:1', SPAN),
		schema(5, 'CacheEvent', [['state', 7], ['size', 9]]), reset(5100 * MS), event(2, 0, uleb(1), uleb(0xbeef), u32(1), uleb(0xbeef), u32(2)), event(5, 0, u32(3), uleb(4)), event(3, 9 * MS, uleb(1), uleb(0xbeef), u32(1), uleb(0xbeef), u32(2)))]));
});

/** Type a query; what the list says when it has settled. */
async function search(query, wanted) {
	await page.click('#search', { clickCount: 3 });
	await page.keyboard.type(query);
	return eventually(() => text('#results'), wanted);
}

test('everything that has a name is found, counted by kind', async () => {
	await open('one');
	await search('on_re', /callbacks\s+2\s+on_read\s+818 calls, longest 182.ms\s+on_request\s+\d+ calls/);
	await search('flush', /functions in stacks\s+1\s+flush_log\s+17 samples/);
	await search('upload', /spans\s+1\s+upload\s+1 spans, longest 9\.00.ms/);
	await search('cat.png', /fields\s+1\s+path = \/images\/cat\.png\s+2 in app::upload/);
	await search('warm', /fields\s+1\s+state = warming\s+1 in CacheEvent/);
	await search('blocks', /findings\s+1\s+[^]*finding 1/);
	await search('io', /tasks\s+3\s+task 7, on_read\s+io/);
});

test('a task is found by its id, decimal and hexadecimal, and a span leads to its detail', async () => {
	await open('one');
	await search('27', /task 27, render_report\s+1 calls/);
	await search('0x8', /task 8, on_read\s+2\d\d calls/);
	await page.keyboard.press('Enter');
	await eventually(fragment, /s=task:8/);
	await search('upload', /spans/);
	await page.keyboard.press('ArrowDown');
	await page.keyboard.press('Enter');
	await eventually(() => text('#detail'), /path\s+\/images\/cat\.png/);
});

test('who types and presses Enter at once gets what they typed', async () => {
	await open('one');
	await search('on_re', /callbacks/);
	await page.evaluate(() => {
		const box = document.getElementById('search');
		box.value = '0x8';
		box.dispatchEvent(new Event('input'));
		box.dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter' }));
	});
	await eventually(fragment, /s=task:8/);
});

test('filters narrow what is found by place, lane and length', async () => {
	await open('one');
	await search('site:bufferevent', /^callbacks\s+1\s+on_request/);
	await search('lane:main >100ms', /^callbacks\s+1\s+on_read\s+1 calls, longest 182.ms$/);
	await search('lane:pool >100ms', /Nothing is called that/);
	await search('<21us', /on_read\s+\d+ calls, longest 20\.0.µs/);
});

test('where nothing is found the nearest names are offered', async () => {
	await open('one');
	await search('rendr_reprot', /Nothing is called that\. The nearest names:\s+render_report/);
	await page.keyboard.press('Enter');
	await eventually(() => text('#results'), /callbacks\s+1\s+render_report/);
	assert.equal(await page.$eval('#search', (e) => e.value), 'render_report');
});

/** How many pixels of a canvas have the accent's colour, in rows [top, bottom). */
const accented = (id, top, bottom) => page.evaluate((name, a, b) => {
	const canvas = document.getElementById(name), ratio = canvas.width / canvas.clientWidth, { data } = canvas.getContext('2d').getImageData(0, a * ratio, canvas.width, (b - a) * ratio);
	let n = 0;
	for (let i = 0; i < data.length; i += 4) if (data[i] === 0x0a && data[i + 1] === 0x5c && data[i + 2] === 0xc2) n++;
	return n;
}, id, top, bottom);

test('what is found is marked in the lanes and in the minimap, also after a reload', async () => {
	await open('one', '#v=m5000000000~1000000000');
	assert.equal(await accented('minimap', 57, 59), 0);
	await search('>100ms', /on_read/);
	await eventually(() => accented('minimap', 57, 59), (n) => n > 0);
	assert.ok(await accented('mark-canvas', 40, 60) > 100);
	await eventually(fragment, /q=%3E100ms/);
	await page.reload();
	await page.waitForSelector('body[data-ready]');
	await eventually(() => accented('minimap', 57, 59), (n) => n > 0);
	forgive(/willReadFrequently/);
});

for (const theme of ['light', 'dark'])
	test(`axe finds nothing wrong with the results, ${theme}`, async () => {
		await open('one');
		await inTheme(theme);
		for (const query of ['on_re', 'zzzz']) {
			await search(query, /./);
			assert.deepEqual(await violations(theme), []);
		}
	});
