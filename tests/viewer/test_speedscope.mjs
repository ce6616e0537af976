// SPDX-License-Identifier: Apache-2.0
// Speedscope's own importer, which runs in its page alone, opens what `dial9 export` writes for it.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { test } from 'node:test';

const { CHROMIUM, DIAL9, D9_TEST_NPM, WORK } = process.env;
const PAGE = `${D9_TEST_NPM}/node_modules/speedscope/dist/release/index.html`;
const puppeteer = createRequire(`${D9_TEST_NPM}/package.json`)('puppeteer-core').default;

test('speedscope imports an export', { skip: existsSync(PAGE) ? false : 'speedscope is not installed' }, async () => {
	const [trace, file] = [join(WORK, 'speedscope.bin'), join(WORK, 't.speedscope.json')];
	execFileSync(join(dirname(DIAL9), '../tests/cli/make_samples'), ['plain', trace], {
		input: 'program /nowhere/app\nrow 0x5010 0 find_hot svc.c 10\nrow 0x6011 0 call_it svc.c 20\nsample 2000 0x5010 0x6011\nsample 3000 0x5010 0x6011\nsample 4000 0x6011\nrow 0x7000 0 on_timer svc.c 40\nspawn 4100 0x7000 0 1\npoll 5000 1 1 0x7000 0\nblocked 6000 1 fsync 2000\nend 9000 1\n',
	});
	execFileSync(DIAL9, ['export', '--format', 'speedscope', '-o', file, trace]);
	const browser = await puppeteer.launch({ executablePath: CHROMIUM, headless: true, args: ['--no-sandbox', '--disable-dev-shm-usage'] });
	try {
		const page = await browser.newPage();
		await page.goto(`file://${PAGE}`);
		await (await page.waitForSelector('input[type=file]')).uploadFile(file);
		await page.waitForFunction(() => document.body.innerText.includes('Sandwich'));
		await page.keyboard.press('3');
		await page.waitForFunction(() => document.body.innerText.includes('find_hot'));
		const text = await page.evaluate(() => document.body.innerText);
		assert.match(text, /\(67%\)\s+find_hot/);
		assert.match(text, /\(33%\)\s+call_it/);
		// The next profile: what the worker called when.
		await page.keyboard.press('n');
		await page.waitForFunction(() => document.body.innerText.includes('on_timer'));
		assert.match(await page.evaluate(() => document.body.innerText), /\(50%\)\s+fsync/);
	} finally {
		await browser.close();
	}
});
