// SPDX-License-Identifier: Apache-2.0
// `dial9 report --html`: the viewer, a trace and its report as one file that a browser opens from disk.

import { test } from 'node:test';
import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { serverTrace } from '../toolkit/trace_bytes.mjs';
import { DIAL9, WORK, eventually, forgive, fragment, inTheme, listenToRequests, open, page, text, useBrowser, violations, visit } from './browser.mjs';

const HOSTILE = '</script><script>globalThis.harmed = 1</script><!--<script><img src=x onerror="harmed=2">';

/** Write the page of |trace| below WORK; its address. */
function writePage(trace) {
	const made = spawnSync(DIAL9, ['report', '--html', '-o', `${WORK}/page.html`, `${WORK}/${trace}`], { encoding: 'utf8' });
	assert.deepEqual([made.status, made.stdout], [0, '']);
	assert.match(made.stderr, /^dial9 report: the page has [\d.]+ [KM]iB\n$/);
	return `file://${WORK}/page.html`;
}

/** A string pool of |bytes| that no event uses and nothing packs. */
function ballast(bytes) {
	const head = Buffer.from([3, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
	head.writeUInt32LE(bytes, 9);
	return Buffer.concat([head, Buffer.from(randomBytes(bytes).toString('latin1').replace(/[^]/g, (c) => String.fromCharCode(c.charCodeAt(0) & 127)), 'latin1')]);
}

useBrowser(() => {
	for (const folder of ['one/web-1', 'many/web-1', 'many/web-2', 'large', `hostile/<img src=x onerror=harmed=3>`]) mkdirSync(`${WORK}/${folder}`, { recursive: true });
	writeFileSync(`${WORK}/one/web-1/trace.0.bin`, serverTrace());
	writeFileSync(`${WORK}/many/web-1/trace.0.bin`, serverTrace({ service: 'front', slow: false }));
	writeFileSync(`${WORK}/many/web-2/trace.0.bin`, serverTrace({ service: 'back', boot: 'boot-2' }));
	// Several blocks of base64.
	writeFileSync(`${WORK}/large/trace.0.bin`, Buffer.concat([serverTrace(), ballast(7 << 20)]));
	writeFileSync(`${WORK}/hostile/<img src=x onerror=harmed=3>/trace.0.bin`, serverTrace({ service: HOSTILE, place: `${HOSTILE} @ server.c:231` }));
}, { watched: true });

test('a page that is one file has the guide in it', async () => {
	await visit(writePage('one'));
	await page.keyboard.press('g');
	assert.match(await eventually(() => text('#guide'), /A request is slow/), /duration_ns < 20000/);
});

test('a page that is one file shows what serve shows, and asks nobody for anything', async () => {
	await open('one');
	const parts = ['#findings', '#detail', '#selected', '#gutter', '#facts'], served = await Promise.all(parts.map(text)), place = await eventually(fragment, /s=poll/);
	await page.close();
	const asked = [];
	await visit('about:blank', undefined, 'html');
	listenToRequests((request) => asked.push(request.url().replace(/^file:.*\//, '')));
	await page.goto(writePage('one'));
	await page.waitForSelector('body[data-ready]');
	assert.deepEqual(await Promise.all(parts.map(text)), served);
	assert.equal(await eventually(fragment, /s=poll/), place);
	assert.deepEqual(asked.filter((url) => !/^(page\.html$|blob:|data:image\/svg)/.test(url)), []);
});

test('processes of one page are told apart, and a link into it opens its place', async () => {
	const url = writePage('many');
	await visit(url);
	await eventually(() => text('#gutter'), /front[^]*main[^]*back[^]*main/);
	await eventually(() => text('#selected'), /on_read, 182.ms, back main/);
	const place = await eventually(fragment, /s=poll:1/);
	await page.close();
	await visit(url + place.replace(/&f=.*/, '&c=utc'));
	await eventually(() => text('#selected'), /on_read, 182.ms, back main/);
	assert.equal(await text('#clock'), 'UTC');
});

test('a segment of several blocks is put together again, and they do not stay', async () => {
	await visit(writePage('large'));
	await eventually(() => text('#selected'), /on_read, 182.ms/);
	assert.equal(await page.$$eval('script', (all) => all.length), 3);
});

test('names that are markup stay names: nothing ends its element, nothing runs', async () => {
	await visit(writePage('hostile'));
	await eventually(() => text('#service'), /^<\/script><script>/);
	await eventually(() => text('#selected'), /<\/script>/);
	assert.equal(await page.evaluate(() => globalThis.harmed), undefined);
	assert.equal(readFileSync(`${WORK}/page.html`, 'utf8').match(/<\/script/g).length, 6);
});

test('the policy of the page lets no other script run, and no text become one', async () => {
	await visit(writePage('one'));
	const tried = await page.evaluate(() => {
		const script = document.createElement('script');
		const refused = [() => { script.text = 'globalThis.harmed = 1'; }, () => { document.body.innerHTML = '<b>'; }, () => new Worker('data:text/javascript,1')].filter((attempt) => {
			try {
				attempt();
				return false;
			} catch {
				return true;
			}
		});
		script.append('globalThis.harmed = 1');
		document.body.append(script);
		return [refused.length, globalThis.harmed ?? 'unharmed'];
	});
	assert.deepEqual(tried, [3, 'unharmed']);
	assert.equal(await page.evaluate(() => fetch('page.html').then(() => 'read', () => 'refused')), 'refused');
	forgive(/Content Security Policy|requires 'Trusted|TrustedHTML|TrustedScript/);
});

for (const theme of ['light', 'dark'])
	test(`axe finds nothing wrong with the page that is one file, ${theme}`, async () => {
		await visit(writePage('one'));
		await inTheme(theme);
		assert.deepEqual(await violations(theme), []);
	});
