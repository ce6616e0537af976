// SPDX-License-Identifier: Apache-2.0
// Saving a range, and what is saved.

import { test } from 'node:test';
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { spawnSync } from 'node:child_process';
import { serverTrace } from '../toolkit/trace_bytes.mjs';
import { DIAL9, WORK, clickOn, eventually, fragment, open, page, text, useBrowser, violations, visit } from './browser.mjs';

useBrowser(() => {
	for (const folder of ['one/web-1', 'two/web-1', 'two/web-2', 'saved']) mkdirSync(`${WORK}/${folder}`, { recursive: true });
	writeFileSync(`${WORK}/one/web-1/trace.0.bin`, serverTrace({ service: 'echo/server' }));
	writeFileSync(`${WORK}/two/web-1/trace.0.bin`, serverTrace({ service: 'front', slow: false }));
	writeFileSync(`${WORK}/two/web-2/trace.0.bin`, serverTrace({ service: 'back', boot: 'boot-2' }));
});

async function allowDownloads() {
	const session = await page.createCDPSession();
	await session.send('Browser.setDownloadBehavior', { behavior: 'allow', downloadPath: `${WORK}/saved` });
}

function dial9(...args) {
	const { status, stdout, stderr } = spawnSync(DIAL9, args, { encoding: 'utf8', maxBuffer: 1 << 28 });
	assert.deepEqual([status, stderr], [0, '']);
	return stdout;
}

test('a range is saved as a trace that dial9 reads without a warning, with its events alone', async () => {
	await open('one', '#r=m5300000000~90500000');
	await allowDownloads();
	await page.keyboard.press('s');
	await eventually(() => text('dialog.save'), /Save the range[^]*90\.5.ms/);
	assert.deepEqual(await violations(), []);
	await page.click('dialog.save .boxed');
	const file = `${WORK}/saved/echo_server-cut.bin.gz`;
	await eventually(() => text('dialog.save'), /Saved echo_server-cut\.bin\.gz: \d+ events/);
	await eventually(() => existsSync(file), (there) => there);
	const callsOf = (trace) => dial9('events', trace).trim().split('\n').map((line) => JSON.parse(line)).filter((event) => /^Poll|Wake/.test(event.event) && event.timestamp_ns >= 5300000000 && event.timestamp_ns <= 5390500000);
	assert.deepEqual(callsOf(file), callsOf(`${WORK}/one/web-1/trace.0.bin`));
	assert.match(dial9('info', file), /cut\.from_ns +5300000000\n.*cut\.to_ns/);
	await page.keyboard.press('Escape');
	await eventually(() => page.$('dialog.save'), (dialog) => dialog === null);
	await (await page.$('#picker')).uploadFile(file);
	await eventually(() => text('#facts'), /90\.\d.ms/);
});

test('without a range what is in view is saved, a file for each process, and calls at its ends are whole', async () => {
	await open('two', 'view#v=m5450000000~10000000');
	await allowDownloads();
	await page.click('#save');
	await eventually(() => text('dialog.save'), /Save what is in view/);
	await page.click('dialog.save .boxed');
	for (const name of ['front-1', 'back-2']) await eventually(() => existsSync(`${WORK}/saved/${name}-cut.bin.gz`), (there) => there);
	assert.match(dial9('report', `${WORK}/saved/back-2-cut.bin.gz`), /on_read +blocks the loop 182 ms/);
});

test('a range is saved as a page, which a browser opens from disk, with what the report said of it', async () => {
	await open('two', 'view#r=m5350000000~300000000');
	await allowDownloads();
	await clickOn('#panel', 'Save this range');
	await clickOn('dialog.save', 'Save as a page');
	await eventually(() => text('dialog.save'), /Saved two-cut\.html: [\d.]+.[KM]iB\. A browser opens it from disk/);
	const file = `${WORK}/saved/two-cut.html`;
	await eventually(() => existsSync(file) && /<\/html>\s*$/.test(readFileSync(file, 'utf8')), (whole) => whole);
	await page.close();
	await visit(`file://${file}`);
	await eventually(() => text('#facts'), /^(299|3\d\d).ms/);
	await eventually(() => text('#gutter'), /front[^]*main[^]*back[^]*main/);
	await eventually(() => text('.finding[aria-current="true"]'), /182.ms[^]*on_read blocks the loop/);
	await eventually(() => text('#selected'), /on_read, 182.ms, back main/);
	assert.match(await eventually(fragment, /s=poll/), /s=poll:1\.0@5400000000/);
	assert.deepEqual(await violations(), []);
	// It has no server that would give it another page.
	await page.keyboard.press('s');
	assert.doesNotMatch(await text('dialog.save'), /Save as a page/);
});

test('of a saved page the findings are those with evidence in the range, and no figure of the whole trace goes with them', async () => {
	for (const [range, said] of [['m5100000000~200000000', /Nothing: this was cut out of a longer trace/], ['m5390000000~220000000', /182.ms[^]*on_read blocks the loop/]]) {
		await open('one', `view#r=${range}`);
		await allowDownloads();
		await page.keyboard.press('s');
		await clickOn('dialog.save', 'Save as a page');
		const name = /Saved (\S+\.html)/.exec(await eventually(() => text('dialog.save'), /Saved echo_server-cut\.html/))[1], file = `${WORK}/saved/${name}`;
		await eventually(() => existsSync(file) && /<\/html>\s*$/.test(readFileSync(file, 'utf8')), (whole) => whole);
		await page.close();
		const report = JSON.parse(/id="embedded-report">([^<]*)/.exec(readFileSync(file, 'utf8'))[1]), [, first, length] = /m(\d+)~(\d+)/.exec(range).map(Number);
		assert.deepEqual(Object.keys(report), ['trace', 'symbols', 'findings', 'callbacks']);
		for (const piece of report.findings.flatMap(({ evidence, effects }) => [evidence, ...effects.map((effect) => effect.evidence)].flat()))
			assert.ok(piece.time_ns === undefined || (piece.time_ns >= first && piece.time_ns <= first + length), JSON.stringify(piece));
		await visit(`file://${file}`);
		await eventually(() => text('#findings'), said);
		assert.doesNotMatch(await text('#findings'), /stands out/);
		await page.close();
		rmSync(file);
	}
	await open('one');
});
