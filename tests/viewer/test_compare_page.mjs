// SPDX-License-Identifier: Apache-2.0
// Comparing in the viewer: processes, ranges, a range with the rest, and another trace.

import { test } from 'node:test';
import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { loadTrace } from '../toolkit/load_bytes.mjs';
import { WORK, eventually, fragment, inTheme, open, page, text, useBrowser, violations } from './browser.mjs';

useBrowser(() => {
	const write = (path, options) => {
		mkdirSync(`${WORK}/${path}`, { recursive: true });
		writeFileSync(`${WORK}/${path}/trace.0.bin`, loadTrace({ samples: 8, ...options }));
	};
	write('slower/run-a', { seed: 1 });
	write('slower/run-b', { seed: 2, slower: 1.2 });
	write('same/run-a', { seed: 4 });
	write('same/run-b', { seed: 5 });
	write('part/run', { seed: 3, slower: 1.5, from: 20e9, to: 30e9 });
});

const compared = (wanted) => eventually(() => text('.compare-tab'), wanted);

test('two processes are compared: the callback that is 20 % slower is found, and its place is in the URL', async () => {
	await open('slower', 'view');
	await page.keyboard.press('x');
	await compared(/A run-a\s+40\.0.s\s+4.000[^]*B run-b[^]*1 slower in B: on_request; 3 of 3 callbacks have enough runs/);
	await eventually(() => text('.compare-tab tr[data-row="0"]'), /on_request[^]*398.µs\s+488.µs[^]*×1\.2\d \[1\.\d\d, 1\.\d\d\]\s+slower/);
	assert.match(await eventually(fragment, /cmp=/), /p=compare&cmp=p0~p1/);
	await page.reload();
	await page.waitForSelector('.compare-tab');
	await compared(/1 slower in B: on_request/);
	await page.$$eval('.compare-tab button', (buttons) => buttons.find((b) => b.textContent === 'Swap A and B').click());
	await compared(/Nothing is slower in B, 1 faster/);
	assert.match(await eventually(fragment, /cmp=!/), /cmp=!p0~p1/);
});

test('two runs of the same program differ in nothing', async () => {
	await open('same', 'view#p=compare&cmp=p0~p1');
	await page.waitForSelector('.compare-tab');
	await compared(/Nothing is slower in B; 3 of 3/);
	assert.equal(await page.$('.compare-tab .slower, .compare-tab .faster'), null);
	await page.click('[data-view="waits"]');
	await eventually(() => page.$$eval('.compare-tab tr[data-row]', (rows) => rows.map((row) => row.cells[row.cells.length - 1].innerText)), (verdicts) => verdicts.length === 3 && verdicts.every((v) => /no change|too small/.test(v)));
});

test('a range is compared with the rest by one key, and with another range', async () => {
	await open('part', 'view#r=m25000000000~10000000000');
	await page.waitForSelector('#panel-tabs');
	await page.keyboard.press('x');
	await compared(/A the rest of the trace\s+30\.0.s[^]*1 slower in B: on_request[^]*blocks are shorter/);
	assert.match(await eventually(fragment, /cmp=rest/), /p=compare&cmp=rest/);
	await page.$$eval('.compare-tab button', (buttons) => buttons.find((b) => b.textContent === 'with another range').click());
	await compared(/A is 19\.999.s to 29\.999.s, 10\.0.s\. Now select the range/);
	const ruler = await (await page.$('#ruler')).boundingBox();
	await page.mouse.move(ruler.x + 4, ruler.y + 10);
	await page.mouse.down();
	await page.mouse.move(ruler.x + ruler.width * 0.4, ruler.y + 10, { steps: 4 });
	await page.mouse.up();
	await compared(/A 19\.999.s to 29\.999.s[^]*Nothing is slower in B, 1 faster/);
	assert.match(await eventually(fragment, /cmp=m/), /r=m\d+~\d+&p=compare&cmp=m25000000000~10000000000/);
});

test('a range that is selected while nothing is compared is compared with the rest', async () => {
	await open('part', 'view#p=compare');
	await page.waitForSelector('#panel-tabs');
	await compared(/Compare with the rest/);
	const ruler = await (await page.$('#ruler')).boundingBox();
	await page.mouse.move(ruler.x + ruler.width * 0.6, ruler.y + 10);
	await page.mouse.down();
	await page.mouse.move(ruler.x + ruler.width * 0.9, ruler.y + 10, { steps: 4 });
	await page.mouse.up();
	await compared(/A the rest of the trace/);
});

test('another trace is opened beside this one, and asked for again after a reload', async () => {
	await open('slower', 'view#p=compare&cmp=');
	await page.waitForSelector('.compare-tab input[type="file"]');
	await compared(/Compare with the rest/);
	await (await page.$('.compare-tab input[type="file"]')).uploadFile(`${WORK}/part/run/trace.0.bin`);
	await compared(/A trace\.0\.bin\s+40\.0.s[^]*B the whole trace/);
	assert.match(await eventually(fragment, /cmp=file/), /cmp=file:trace\.0\.bin/);
	await page.reload();
	await page.waitForSelector('.compare-tab');
	await compared(/Open trace\.0\.bin again/);
});

test('stacks of both sides are one flame graph, and functions tell how their share changed', async () => {
	await open('slower', 'view#p=compare&cmp=p0~p1&cv=stacks');
	await page.waitForSelector('.stack-sides');
	await eventually(() => text('.stack-sides table'), /match_route\s+0\.0.%\s+13.%\s+new/);
	await page.focus('.stack-sides .flame');
	for (let i = 0; i < 3; i++) await page.keyboard.press('ArrowDown');
	assert.match(await page.$eval('#difference-item', (e) => e.getAttribute('aria-label')), /^match_route, A: 0\.0.%, 0 samples, B: 13.%, 1.600 samples/);
	await page.click('[data-view="callbacks"]');
	await page.focus('.compare-tab tr[data-row="1"]');
	await page.keyboard.press('Enter');
	await eventually(fragment, /cv=stacks/);
});

for (const theme of ['light', 'dark'])
	test(`axe finds nothing wrong with what is compared, ${theme}`, async () => {
		await open('slower', 'view#p=compare&cmp=p0~p1');
		await page.waitForSelector('.compare-tab');
		await inTheme(theme);
		await compared(/1 slower in B/);
		for (const view of ['callbacks', 'waits', 'stacks']) {
			await page.click(`[data-view="${view}"]`);
			assert.deepEqual(await violations(theme), [], view);
		}
	});
