// SPDX-License-Identifier: Apache-2.0
// Traces that mean harm, in a real browser: their names stay names, and no text of theirs runs or asks anybody.

import { test } from 'node:test';
import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { serverTrace } from '../toolkit/trace_bytes.mjs';
import { WORK, eventually, open, page, text, useBrowser } from './browser.mjs';

/** Names, and as what they are shown where that is something else. */
const NAMES = { markup: '<img src=x onerror="harmed=1">', link: 'javascript:harmed=1', prototype: '__proto__', maker: 'constructor', hidden: 'a\u202eb\u0000c\u009b', long: 'x'.repeat(100000) };
const SHOWN = { hidden: 'a‹202e›b', long: 'x'.repeat(100) };

useBrowser(() => {
	for (const [folder, name] of Object.entries(NAMES)) {
		mkdirSync(`${WORK}/${folder}`);
		writeFileSync(`${WORK}/${folder}/trace.0.bin`, serverTrace({ service: name, place: `${name} @ ${name}` }));
	}
});

for (const kind of Object.keys(NAMES))
	test(`a name of the kind "${kind}" stays a name wherever it is shown`, async () => {
		const url = await open(kind, '#p=callbacks');
		await page.keyboard.press('1');
		await eventually(() => text('#selected'), /182.ms/);
		assert.equal(await page.evaluate(() => globalThis.harmed ?? Object.prototype.harmed), undefined);
		assert.equal(await page.$('img, a[href^="javascript"]'), null);
		for (const part of ['#service', '#selected', '#findings', '#panel', '#gutter']) {
			const said = await text(part);
			// One process alone has no name in the gutter.
			assert.ok(part === '#gutter' || said.includes(SHOWN[kind] ?? NAMES[kind]), `${part} says ${said}`);
			assert.doesNotMatch(said, /[\u0000\u009b\u202e]/, part);
			assert.ok(!/x{201}/.test(said), `${part} is not cut`);
		}
		assert.deepEqual(await page.evaluate((own) => performance.getEntriesByType('resource').map((e) => e.name).filter((name) => !name.startsWith(own) && !name.startsWith('blob:') && !name.startsWith('data:')), url.replace(/#.*/, '')), []);
	});
