// SPDX-License-Identifier: Apache-2.0
// Files that are dropped on the page: a page of `dial9 serve` has dial9 look at them, any other says that it cannot.

import { test } from 'node:test';
import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { spawnSync } from 'node:child_process';
import { serverTrace } from '../toolkit/trace_bytes.mjs';
import { DIAL9, WORK, drop, eventually, forgive, listenToRequests, open, page, serve, text, useBrowser, violations, visit } from './browser.mjs';

const PIECE = 2 ** 18; // that a page sends at once
const DAMAGE = Buffer.from([0xee, 0xee, 0xee]);

useBrowser(() => {
	for (const folder of ['one', 'innocent', 'damaged']) mkdirSync(`${WORK}/${folder}`);
	writeFileSync(`${WORK}/one/trace.0.bin`, serverTrace());
	writeFileSync(`${WORK}/innocent/trace.0.bin`, serverTrace({ service: 'innocent', slow: false }));
	writeFileSync(`${WORK}/damaged/trace.0.bin`, Buffer.concat([serverTrace({ service: 'damaged' }), DAMAGE]));
	writeFileSync(`${WORK}/long.bin`, Buffer.concat(Array(4).fill(serverTrace({ service: 'long' }))));
}, { watched: true });

const pick = async (...names) => (await page.$('#picker')).uploadFile(...names.map((name) => `${WORK}/${name}`));
const findingsOf = (...paths) => JSON.parse(spawnSync(DIAL9, ['report', '--json', ...paths], { encoding: 'utf8', maxBuffer: 1 << 28, cwd: WORK }).stdout).findings;
const found = () => page.evaluate(async () => (await import('./viewer/state.js')).state.model.findings.map(({ check, severity, message, figure }) => [check, severity, message, figure]));
const plain = (findings) => findings.map(({ check, severity, message, figure }) => [check, severity, message, figure]);

/** The worst finding, once it is shown and selected. */
const worst = async (wanted) => {
	await eventually(() => text('#findings'), wanted);
	await page.waitForSelector('.finding[aria-current="true"]');
	return text('.finding[aria-current="true"]');
};

/** In the page: have no answer to what asks for a report, or |said| where that is a text. */
function answerReports(said) {
	const ask = globalThis.fetch;
	globalThis.asked = 0;
	globalThis.fetch = (address, how) => {
		if (!address.includes('api/report')) return ask(address, how);
		globalThis.asked++;
		return said ? Promise.resolve(new Response(said, { status: 422 })) : new Promise((_, reject) => {
			how.signal.onabort = () => reject(how.signal.reason);
			globalThis.fetch = ask;
		});
	};
}

test('a file that is picked on a served page has the findings of dial9 report, and opens on the worst', async () => {
	await open('innocent');
	await pick('one/trace.0.bin');
	assert.match(await worst(/on_read blocks the loop/), /182.ms[^]*on_read blocks the loop[^]*In[^]*Next/);
	await eventually(() => text('#selected'), /^on_read, 182.ms[^]*finding 1 of/);
	assert.deepEqual(await found(), plain(findingsOf(`${WORK}/one/trace.0.bin`)));
	assert.deepEqual(await violations(), []);
	await pick('innocent/trace.0.bin');
	await eventually(() => text('#service'), /innocent/);
	await eventually(() => text('#findings'), /woken 1,000 times a second/);
	assert.deepEqual(await found(), plain(findingsOf(`${WORK}/innocent/trace.0.bin`)));
});

test('a file that is larger than a piece, and several files, are looked at as what they are together', async () => {
	assert.ok(readFileSync(`${WORK}/long.bin`).length > PIECE);
	const sent = [];
	await open('innocent');
	listenToRequests((request) => {
		if (request.method() === 'POST') sent.push(new URL(request.url()).searchParams.get('file'));
	});
	await pick('long.bin', 'one/trace.0.bin');
	await eventually(() => text('#findings'), /on_read blocks the loop/);
	// As the page has them, by name.
	assert.deepEqual(await found(), plain(findingsOf('long.bin', 'one/trace.0.bin')));
	assert.deepEqual([...new Set(sent)], ['0', '1']);
	assert.ok(sent.length > 2);
});

test('of a damaged file that is dropped the findings say so, with those of what precedes the damage', async () => {
	await open('innocent');
	await drop('kept.bin', readFileSync(`${WORK}/damaged/trace.0.bin`));
	await eventually(() => text('#findings'), /incomplete[^]*on_read blocks the loop[^]*kept\.bin/);
});

test('what is too large is told in a line, and the trace is shown all the same', async () => {
	await open('innocent');
	await page.evaluate((base64) => {
		const bytes = Uint8Array.from(atob(base64), (c) => c.charCodeAt(0)), files = new DataTransfer();
		files.items.add(new File([bytes], 'large.bin'));
		const [file] = files.files;
		Object.defineProperty(File.prototype, 'size', { get: () => 2 ** 30 + 1 });
		dispatchEvent(new DragEvent('drop', { dataTransfer: files }));
		return file.name;
	}, readFileSync(`${WORK}/one/trace.0.bin`).toString('base64'));
	await eventually(() => text('#findings'), /dial9 report: more than 1 GiB is not looked at here: dial9 report FILE does/);
	assert.doesNotMatch(await text('#findings'), /stands out|woken/);
	await eventually(() => text('#service'), /echo-server/);
	forgive(/\b413\b/);
});

test('while another page has a file looked at, the page says that it has to wait', async () => {
	const url = await open('innocent');
	const send = (query) => fetch(`${url}api/report?${query}`, { method: 'POST', body: 'TRC' }).then(({ status }) => status);
	assert.equal(await send('upload=other&name=x.bin&bytes=6'), 204);
	await pick('one/trace.0.bin');
	await eventually(() => text('#findings'), /dial9 report: another file is being looked at: try again/);
	assert.equal(await send('upload=other&name=x.bin&bytes=6&at=3'), 422);
	// It opens where it was left, which may be at no finding.
	await pick('one/trace.0.bin');
	await eventually(() => text('#findings'), /on_read blocks the loop/);
	forgive(/\b(503|422)\b/);
});

test('a file that is dropped while another one is looked at takes its place', async () => {
	await open('innocent');
	await page.evaluate(answerReports, '');
	await pick('one/trace.0.bin');
	await eventually(() => page.evaluate(() => globalThis.asked), (n) => n === 1);
	await eventually(() => text('#findings'), /Looking for what went wrong/);
	await pick('long.bin');
	await worst(/on_read blocks the loop/);
	assert.equal(await text('#service'), 'long');
});

test('where the report fails, of a file or of what is served, the page says why, and has no findings of its own', async () => {
	const why = 'trace.0.bin: offset 7: broken on purpose';
	await open('innocent');
	await page.evaluate(answerReports, why);
	await page.evaluateOnNewDocument(answerReports, why);
	await pick('one/trace.0.bin');
	for (const [what, act] of [['a file', () => null], ['what is served', () => page.reload()]]) {
		await act();
		await eventually(() => text('#findings'), /Nothing was looked for\.\s+dial9 report: trace\.0\.bin: offset 7: broken on purpose/);
		assert.equal(await page.$('.finding'), null, what);
		assert.doesNotMatch(await text('#findings'), /stands out|is wrong/, what);
	}
	assert.deepEqual(await violations(), []);
});

test('a page of one file has nobody to ask about a file that is dropped on it, and says who can', async () => {
	const made = spawnSync(DIAL9, ['report', '--html', '-o', `${WORK}/page.html`, `${WORK}/one`], { encoding: 'utf8' });
	assert.equal(made.status, 0, made.stderr);
	await visit(`file://${WORK}/page.html`);
	await worst(/on_read blocks the loop/);
	await drop('own.bin', readFileSync(`${WORK}/one/trace.0.bin`));
	await eventually(() => text('#findings'), /`dial9 report FILE` tells what is wrong/);
	assert.equal(await page.$('.finding'), null);
	assert.doesNotMatch(await text('#findings'), /Nothing|stands out/);
	await eventually(() => text('#service'), /echo-server/);
	assert.deepEqual(await violations(), []);
});

test('a trace that is compared with is called as dial9 report calls it', async () => {
	await visit(`${await serve('innocent')}view#p=compare&cmp=`);
	const asked = page.waitForResponse((response) => response.url().includes('api/report') && response.request().method() === 'POST');
	await (await page.waitForSelector('.compare-tab input[type="file"]')).uploadFile(`${WORK}/one/trace.0.bin`);
	assert.equal((await asked).status(), 200);
	await eventually(() => text('.compare-tab'), /A trace\.0\.bin/);
	// What is shown keeps its own.
	assert.match(await text('#findings'), /woken 1,000 times a second/);
});
