// SPDX-License-Identifier: Apache-2.0
// The guide to reading traces, core/doc/ANALYSIS.md, in the page.

import { test } from 'node:test';
import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { serverTrace } from '../toolkit/trace_bytes.mjs';
import { WORK, clickOn, eventually, inTheme, open, page, text, useBrowser, violations } from './browser.mjs';
import { writeMany } from './many_traces.mjs';

const GUIDE = readFileSync(new URL('../../core/doc/ANALYSIS.md', import.meta.url), 'utf8');

useBrowser(() => {
	mkdirSync(`${WORK}/one`);
	writeFileSync(`${WORK}/one/trace.0.bin`, serverTrace());
	writeMany(`${WORK}/many`);
});

const texts = (selector) => page.$$eval(selector, (all) => all.map((e) => e.textContent));

test('the help leads to the guide, which has every word of the document', async () => {
	await open('one');
	await page.keyboard.press('?');
	await clickOn('#keys', 'Guide');
	await eventually(() => texts('#guide h3'), (all) => all.length > 0);
	assert.deepEqual(await texts('#guide h3'), [...GUIDE.matchAll(/^## (.*)$/gm)].map(([, title]) => title));
	assert.deepEqual(await texts('#guide pre'), [...GUIDE.matchAll(/^```\w+\n([^]*?)\n```$/gm)].map(([, block]) => block));
	const words = (said) => said.replace(/^```\w*$|^#+ |[`*]/gm, '').replace(/\s+/g, ' ').trim();
	const shown = await page.$$eval('#guide > :not(nav, .head)', (all) => all.map((e) => (e.querySelector('pre') ?? e).textContent));
	assert.equal(words(shown.join('\n\n')), words(GUIDE.replace(/^# .*$/m, '')));
	assert.equal(await page.$eval('#keys', (e) => e.open), false);
});

test('a question leads to its answer, and Escape back to the trace', async () => {
	await open('one');
	await page.keyboard.press('g');
	await clickOn('#guide', 'It hangs');
	await eventually(() => page.evaluate(() => document.activeElement.getBoundingClientRect().top - document.querySelector('#guide').getBoundingClientRect().top), (top) => top > 0 && top < 100);
	assert.equal(await page.evaluate(() => document.activeElement.textContent), 'It hangs');
	await page.keyboard.press('Escape');
	assert.equal(await page.$eval('#guide', (e) => e.open), false);
});

for (const theme of ['dark', 'light'])
	test(`axe finds nothing wrong with the guide, ${theme}, beside one trace and beside many`, async () => {
		for (const trace of ['one', 'many']) {
			await page?.close();
			await open(trace);
			await inTheme(theme);
			await page.keyboard.press('g');
			await eventually(() => text('#guide'), /A timer is late/);
			assert.deepEqual(await violations(theme), []);
		}
	});
