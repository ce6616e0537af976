// SPDX-License-Identifier: Apache-2.0
// Loading, and coming back to where one was: by reload, and by picking a file again.

import { test } from 'node:test';
import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { serverTrace } from '../toolkit/trace_bytes.mjs';
import { WORK, eventually, forgive, fragment, open, page, serve, text, useBrowser, violations, visit } from './browser.mjs';

useBrowser(() => {
	for (const folder of ['one', 'other']) mkdirSync(`${WORK}/${folder}`);
	writeFileSync(`${WORK}/one/trace.0.bin`, serverTrace());
	writeFileSync(`${WORK}/other/trace.0.bin`, serverTrace({ service: 'other', slow: false }));
	writeFileSync(`${WORK}/big.bin`, Buffer.concat(Array(200).fill(serverTrace({ service: 'big' }))));
	writeFileSync(`${WORK}/text.bin`, 'this is a text');
});

const pick = async (name) => (await page.$('#picker')).uploadFile(`${WORK}/${name}`);

test('a reload restores range, search, clock, task and panel exactly', async () => {
	await open('one', '#v=m5100000000~600000000&s=task:8&c=utc&q=on_read');
	const before = await eventually(fragment, /s=task:8.*q=on_read/), said = [await text('#selected'), await text('#in-view'), await text('#clock')];
	await page.reload();
	await page.waitForSelector('body[data-ready]');
	assert.deepEqual([await text('#selected'), await text('#in-view'), await text('#clock')], said);
	assert.equal(await fragment(), before);
});

test('a file that is picked again opens where it was left, whatever it is called', async () => {
	await open('other');
	await pick('one/trace.0.bin');
	await eventually(fragment, /s=poll.*file=[\da-f]{16}/);
	await page.focus('#timeline');
	await page.keyboard.press('ArrowLeft');
	await page.keyboard.press('c');
	const left = await eventually(fragment, /c=local/), said = await text('#selected');
	await page.reload();
	await page.waitForSelector('body[data-ready]');
	await eventually(() => text('#loaded'), /The address is about a file of yours: open it/);
	assert.equal(await text('#service'), 'other');
	writeFileSync(`${WORK}/renamed.bin`, serverTrace());
	await pick('renamed.bin');
	await eventually(() => text('#selected'), (now) => now === said);
	assert.equal(await eventually(fragment, /c=local/), left);
});

test('a file opens where it was left though the place of the trace before is yet to be written down', async () => {
	await open('other');
	await pick('one/trace.0.bin');
	const left = await eventually(fragment, /s=poll.*file=[\da-f]{16}/), said = await text('#selected');
	await visit((await serve('other')) + left);
	await page.evaluate(() => {
		// Findings come later than the place is written.
		const ask = fetch;
		globalThis.fetch = async (...asked) => {
			await new Promise((resolve) => setTimeout(resolve, 400));
			return ask(...asked);
		};
		const service = document.getElementById('service'), before = service.textContent;
		const pressing = setInterval(() => {
			if (service.textContent === before) document.body.dispatchEvent(new KeyboardEvent('keydown', { key: 'c', bubbles: true }));
			else clearInterval(pressing);
		}, 20);
	});
	await pick('one/trace.0.bin');
	await eventually(() => text('#service'), (service) => service !== 'other');
	await eventually(() => text('#selected'), (now) => now === said);
});

test('another file does not open at the place of one that was shown before', async () => {
	await open('other');
	writeFileSync(`${WORK}/second.bin`, serverTrace({ service: 'second' }));
	await pick('second.bin');
	await eventually(() => text('#selected'), /182.ms/);
	writeFileSync(`${WORK}/third.bin`, serverTrace({ service: 'third', slow: false }));
	await pick('third.bin');
	await eventually(() => text('#service'), /third/);
	await eventually(() => text('#selected'), /Nothing selected/);
});

test('the old trace stays until the new one is whole, and loading can be cancelled', async () => {
	await open('one');
	await page.evaluate(() => {
		// The load never ends by itself, so that nothing here depends on how fast it is.
		globalThis.Worker.prototype.postMessage = () => {};
	});
	await pick('big.bin');
	assert.match(await eventually(() => text('#message'), /Reading the trace/), /Cancel/);
	await eventually(() => text('#selected'), /on_read, 182.ms/);
	assert.equal(await page.$eval('#message', (e) => e.classList.contains('slim')), true);
	assert.deepEqual(await violations(), []);
	await page.evaluate(() => document.querySelector('#message button').click());
	await eventually(() => text('#message'), /Loading was cancelled/);
	await page.evaluate(() => document.querySelector('#message button').click());
	assert.equal(await page.$eval('#message', (e) => e.hidden), true);
	await eventually(() => text('#selected'), /on_read, 182.ms/);
});

test('what is no trace is told in words, and the trace that was there stays', async () => {
	await open('one');
	await pick('text.bin');
	assert.match(await eventually(() => text('#message'), /cannot/), /The trace cannot be shown\.\s+text\.bin: .*A trace is a file that dial9 has written/);
	await eventually(() => text('#selected'), /on_read, 182.ms/);
});

test('a server that has gone is told as that', async () => {
	await open('one');
	const session = await page.createCDPSession();
	await session.send('Network.enable');
	await session.send('Network.emulateNetworkConditions', { offline: true, latency: 0, downloadThroughput: -1, uploadThroughput: -1 });
	await page.evaluate(() => import('./viewer/loading.js').then((module) => fetch('api/segments').catch(module.showFailure)));
	await eventually(() => text('#message'), /The server does not answer\.\s+Is `dial9 serve` still running/);
	forgive(/ERR_INTERNET_DISCONNECTED|Failed to load/);
});
