// SPDX-License-Identifier: Apache-2.0
// The questions that people bring, answered with the mouse and the keyboard alone, by what is on the screen.  Each step is kept as a picture.

import { test } from 'node:test';
import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { loadTrace } from '../toolkit/load_bytes.mjs';
import { WORK, clickOn, eventually, open, page, picture, text, useBrowser } from './browser.mjs';
import { shopTrace } from './question_traces.mjs';

const SIZE = { width: 1600, height: 1000 };

useBrowser(() => {
	for (const folder of ['shop', 'today']) mkdirSync(`${WORK}/${folder}`);
	writeFileSync(`${WORK}/shop/trace.0.bin`, shopTrace());
	writeFileSync(`${WORK}/today/today.bin`, loadTrace({ seed: 2, slower: 1.2, samples: 8 }));
	writeFileSync(`${WORK}/yesterday.bin`, loadTrace({ seed: 1, samples: 8 }));
});

/** Open |trace|; a function that keeps the pictures of |question| in order. */
async function ask(trace, question) {
	let step = 0;
	await open(trace, '', SIZE);
	return () => picture(`question-${question}-step-${++step}`);
}

async function search(words, wanted) {
	await page.click('#search');
	await page.keyboard.type(words);
	await eventually(() => text('#results'), wanted);
}

const rows = () => page.$$eval('#panel-body tbody tr[data-row]', (all) => all.map((row) => row.innerText.replace(/\s+/g, ' ').trim()));
const firstRow = (wanted) => eventually(async () => (await rows())[0] ?? '', wanted);

test('why was this request slow: on_log held the loop with fsync while its answer waited', async () => {
	const keep = await ask('shop', 'slow-request');
	await search('GET /report', /spans\s+1\s+GET \/report\s+480 spans, longest 182.ms/);
	await keep();
	await page.keyboard.press('Enter');
	await eventually(() => text('#detail'), /Span[^]*GET \/report\s+182.ms/);
	await keep();
	await clickOn('#detail', 'What ran meanwhile');
	await firstRow(/^on_log log\.c:131 main 1 180 ms/);
	await keep();
	await page.click('#panel-body tr[data-row="0"] button.link');
	const answer = await eventually(() => text('#detail'), /Callback\s[^]*on_log\s+180.ms/);
	assert.match(answer, /blocked in fsync\s+170.ms\s+94.%/);
	assert.match(answer, /fsync[^]*flush_log\s+log\.c:142/);
	assert.match(answer, /Who waited[^]*on_reply\s+1\s+180.ms/);
	await keep();
});

test('what did the loop do at 12:03: it rebuilt the index, and wrote its log', async () => {
	const keep = await ask('shop', 'at-12-03');
	await page.click('#clock');
	await page.click('#clock');
	assert.equal(await text('#clock'), 'UTC');
	await search('12:03', /times\s+1\s+12:03:00 to 12:04:00\s+21 November 2026, UTC/);
	await keep();
	await page.keyboard.press('Enter');
	assert.match(await eventually(() => text('#detail'), /^Range/), /12:03:00\.\d+ to 12:04:00\.\d+\s+60\.0.s[^]*Loops\s*busy\s+main\s+5\.\d.%/);
	await firstRow(/^rebuild_index index\.c:60 main 20 3\.00 s/);
	assert.match((await rows()).join('\n'), /^on_log log\.c:131 main 1 180 ms/m);
	await keep();
});

test('which callback got slower since yesterday: on_request, which now matches routes', async () => {
	const keep = await ask('today', 'slower-since-yesterday');
	await page.click('#compare');
	await eventually(() => text('.compare-tab'), /with another trace…/);
	await keep();
	const [chooser] = await Promise.all([page.waitForFileChooser(), clickOn('.compare-tab', 'with another trace…')]);
	await chooser.accept([`${WORK}/yesterday.bin`]);
	await eventually(() => text('.compare-tab'), /A yesterday\.bin[^]*B the whole trace[^]*1 slower in B: on_request;/);
	await firstRow(/^on_request .*398 µs 488 µs.* ×1\.2\d \[1\.\d\d, 1\.\d\d\] slower$/);
	await keep();
	await page.click('.compare-tab tr[data-row="0"] td');
	await firstRow(/^match_route 0\.0 % 13 % new$/);
	await keep();
});

test('who wakes this thread: its descriptor, its timer, and render_report on pool', async () => {
	const keep = await ask('shop', 'who-wakes');
	await page.click('#gutter [data-lane="0.0"]');
	await eventually(() => page.$eval('#panel-thread', (e) => e.selectedOptions[0].text), /^main$/);
	await keep();
	await page.click('#tab-wakes');
	await firstRow(/^its descriptor – – on_read 2 ?400 /);
	assert.match((await rows()).find((row) => /on_reply/.test(row)), /^render_report pool another thread on_reply 480 /);
	assert.match((await rows()).find((row) => /tick/.test(row)), /^its timer – – tick 240 /);
	await keep();
	await page.click('#panel-body tr[data-row="1"] td');
	await eventually(() => text('#detail'), /on_reply[^]*woken by\s+render_report, another thread/);
	await keep();
});

test('what holds the memory: cache_insert, with 48 MiB of 50', async () => {
	const keep = await ask('shop', 'memory');
	await page.keyboard.press('0');
	await page.click('#gutter [data-track="memory"]');
	await eventually(() => page.$eval('[data-track="memory"]', (e) => e.getAttribute('aria-expanded')), /true/);
	await keep();
	const row = await page.$eval('[data-track="memory"]', (e) => e.closest('.lane').getBoundingClientRect().toJSON()), lanes = await page.$eval('#lanes', (e) => e.getBoundingClientRect().toJSON());
	await page.mouse.click(lanes.left + lanes.width * 0.9, row.top + row.height * 0.8);
	assert.match(await eventually(() => text('#detail'), /^memory/), /heap live 4\d\.\d.MiB/);
	await keep();
	await clickOn('#detail', 'What holds it');
	await firstRow(/^cache_insert cache\.c:88 the program 48\.0 MiB 96 % 48\.0 MiB 96 %$/);
	await keep();
});
