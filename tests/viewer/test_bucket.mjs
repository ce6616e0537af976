// SPDX-License-Identifier: Apache-2.0
// The page of a bucket: what `dial9 serve --bucket` shows, and what is opened from it.

import { after, test } from 'node:test';
import assert from 'node:assert/strict';
import { BEGAN_MS, HOUR_MS, hourKey, hourOf, hourSummary, segmentKey, serveBucket, startStore, storedSegment, summaryOf } from '../ship/bucket.mjs';
import { clickOn, eventually, inTheme, page, picture, text, useBrowser, violations, visit } from './browser.mjs';

/** An id as the recorder makes them: the time comes first. */
const DUMP = `${Array.from({ length: 10 }, (_, i) => '0123456789ABCDEFGHJKMNPQRSTVWXYZ'[Math.floor((BEGAN_MS + HOUR_MS) / 32 ** (9 - i)) % 32]).join('')}00000000000000DUMP`.slice(0, 26);
let store, server;

/** Two services: three hosts with a summary for each of two hours, of which web-3 has blocked; and segments without one. */
async function plant() {
	const objects = [];
	const addHour = (host, hour, calls, more = {}) => {
		const segments = [0, 1, 2].map((i) => storedSegment({ host, boot: `boot-${host}`, after: hour * 3600 + 10 * i, index: i, calls: i === 1 ? calls : [] }));
		const parts = segments.map(({ key, bytes }) => [key, { ...summaryOf(bytes), spans: [{ name: 'request', calls: 2, total_ns: 3000000, longest_ns: 2000000, at_ns: 5, worker: 0, durations: [80, 2] }] }]);
		const at = BEGAN_MS + hour * HOUR_MS, worst = calls.length ? '182' : '0';
		objects.push(...segments, { key: hourKey({ host, boot: `boot-${host}`, at, worst, ...more }), text: JSON.stringify(hourSummary(parts, { hour: hourOf(at) })) });
	};
	for (const host of ['web-1', 'web-2', 'web-3'])
		for (const hour of [0, 1]) addHour(host, hour, host === 'web-3' && hour === 1 ? [[4, 182]] : [], { missing: host === 'web-2' ? 12 : 0, segments: host === 'web-1' ? 60 : 3 });
	for (const i of [0, 1, 2]) objects.push(storedSegment({ service: 'mail-gate', host: 'mail-1', boot: 'mail-1', after: 7200 + 10 * i, index: i }));
	objects.push({ key: `p/dumps/${DUMP}.json`, text: JSON.stringify({ keys: [segmentKey({ host: 'web-3', boot: 'boot-web-3', after: 3610, index: 1 })] }) });
	await store.plant(objects);
}

useBrowser(async () => {
	store = await startStore();
	await plant();
	server = await serveBucket(store, { args: ['--prefix', 'p'] });
});
after(async () => {
	await server?.stop();
	await store?.stop();
});

const LOOK = `c=utc&h=6&e=${BEGAN_MS + 4 * HOUR_MS}`;
const openBucket = (more = '') => visit(`${server.url}#${LOOK}${more}`);
const cell = () => page.$eval('#cell', (e) => e.getAttribute('aria-label'));
const tableRows = () => page.$$eval('#below tbody tr', (rows) => rows.map((row) => row.innerText.replace(/\s+/g, ' ').trim()));
const gets = async () => (await store.log()).filter(({ method, key }) => method === 'GET' && key).length;
const press = async (...keys) => {
	for (const key of keys) await page.keyboard.press(key);
};
const WINDOW = (hour, ...hosts) => `&svc=echo-server&w=${BEGAN_MS + hour * HOUR_MS}~${BEGAN_MS + (hour + 1) * HOUR_MS}${hosts.map((host) => `&p=echo-server%2F${host}`).join('')}`;

test('hours are cells in the colour of their worst callback, bytes or missing segments, and no object is opened for that', async () => {
	const before = await gets();
	await openBucket();
	await eventually(() => text('#services'), /^echo-server\s+182.ms\s+3 hosts[^]*mail-gate\s+–\s+1 recording/);
	assert.match(await cell(), /^web-3, 11:00 to 12:00: longest callback 182.ms$/);
	assert.deepEqual((await tableRows()).map((row) => row.replace(/^open /, '')), ['web-3 11:00 1 h 11.7 KiB 182 ms an hour of 3 segments']);
	await clickOn('#metrics', 'bytes');
	await eventually(cell, /^web-3, 11:00 to 12:00: 11.7.KiB stored$/);
	await clickOn('#metrics', 'missing');
	await page.focus('#map');
	await press('ArrowUp');
	await eventually(cell, /^web-2, 11:00 to 12:00: 12 segments missing$/);
	assert.equal(await gets(), before);
	await picture('bucket');
});

test('callbacks, stacks and spans of an hour are those of its summary, and a key that lies is told', async () => {
	await openBucket(`${WINDOW(1, 'web-1', 'web-2', 'web-3')}&t=callbacks`);
	await eventually(() => text('#below'), /3 of 3 hours and segments[^]*flush_log/);
	await press('v');
	await eventually(() => text('#below'), /18 samples/);
	await press('v');
	await eventually(() => text('#below'), /request\s+18\s+27\.0.ms/);
	await press('v');
	await eventually(() => text('#below'), /not what its name says: its key tells of 60 segments, its summary of 3/);
});

test('an hour of a host opens in the viewer with its segments', async () => {
	await openBucket(WINDOW(1, 'web-3'));
	await Promise.all([page.waitForNavigation(), page.click('#open-chosen')]);
	await page.waitForSelector('body[data-ready]');
	await eventually(() => text('#loaded'), /3 of 3 segments/);
	await eventually(() => text('#findings'), /flush_log/);
});

test('the longest call of an hour leads to its segment', async () => {
	await openBucket(`${WINDOW(1, 'web-3')}&t=callbacks`);
	await eventually(() => text('#below'), /flush_log/);
	await Promise.all([page.waitForNavigation(), page.click('#below tbody tr:nth-child(1) a')]);
	await page.waitForSelector('body[data-ready]');
	await eventually(() => text('#selected'), /flush_log, 182.ms/);
});

test('a dump opens with its segments', async () => {
	await openBucket();
	await eventually(() => text('#dumps'), new RegExp(DUMP));
	await Promise.all([page.waitForNavigation(), page.click('#dumps a')]);
	await page.waitForSelector('body[data-ready]');
	await eventually(() => text('#findings'), /flush_log/);
	assert.equal(await page.evaluate(() => location.search), `?dump=${DUMP}`);
});

test('two hosts are compared, and two hours of one', async () => {
	await openBucket(WINDOW(1, 'web-2', 'web-3'));
	await Promise.all([page.waitForNavigation(), page.click('#compare-chosen')]);
	await page.waitForSelector('body[data-ready]');
	await eventually(() => text('.compare-tab'), /flush_log/);
	await page.close();
	await openBucket(WINDOW(0, 'web-3'));
	await page.click('#keep');
	await page.focus('#map');
	await press('ArrowDown', 'ArrowDown', 'ArrowRight', ' ');
	await Promise.all([page.waitForNavigation(), page.click('#compare-chosen')]);
	await page.waitForSelector('body[data-ready]');
	await eventually(() => text('.compare-tab'), /flush_log[^]*new in B/);
});

test('another time is looked at, and the address keeps it', async () => {
	await openBucket();
	await clickOn('#look', '1 h');
	await eventually(() => text('#look'), /21 Nov 13:00 to 21 Nov 14:00/);
	await eventually(() => page.$$eval('#services li', (all) => all.length), (n) => n === 0);
	await page.click('#look [aria-label="earlier"]');
	await eventually(() => text('#services'), /mail-gate/);
	assert.match(await page.evaluate(() => location.hash), new RegExp(`h=1&e=${BEGAN_MS + 3 * HOUR_MS}`));
});

for (const theme of ['light', 'dark'])
	test(`axe finds nothing wrong with any state, ${theme}`, async () => {
		await openBucket(WINDOW(1, 'web-1', 'web-2', 'web-3'));
		await inTheme(theme);
		for (const key of ['Escape', 'v', 'v', 'v', 'm', 'n']) {
			await press(key);
			await eventually(() => text('#below'), (now) => !/Adding up/.test(now));
			assert.deepEqual(await violations(theme), [], `after ${key}`);
		}
	});

for (const width of [500, 900, 1280])
	test(`nothing is wider than a window of ${width} px`, async () => {
		await visit(`${server.url}#${LOOK}`, { width, height: 900 });
		assert.equal(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), true);
	});

test('minutes of an hour in which nothing was recorded are empty once its summary is read', async () => {
	await openBucket(`&svc=echo-server&w=${BEGAN_MS}~${BEGAN_MS + 2 * HOUR_MS}&p=echo-server%2Fweb-1&p=echo-server%2Fweb-2&p=echo-server%2Fweb-3&t=callbacks&m=busy`);
	await eventually(() => text('#below'), /6 of 6 hours and segments/);
	await page.focus('#map');
	await press('Home');
	await eventually(cell, /^web-1, 10:00 to 10:02: [\d.]+.% busy$/);
	await press('ArrowRight');
	await eventually(cell, /^web-1, 10:02 to 10:04: nothing stored$/);
});

test('what the bucket does not hold any more is told as that', async () => {
	await visit(`${server.url}?process=echo-server%2Fgone&from_ms=${BEGAN_MS}&to_ms=${BEGAN_MS + HOUR_MS}`, undefined, '#message:not([hidden])');
	await eventually(() => text('#message'), /The store does not give it\.\s+nothing that was chosen is stored any more\.\s+Reload/);
});

test('a page of a store that is not there yet says so, and shows it as soon as it is', async () => {
	const gone = await startStore();
	await gone.stop();
	const early = await serveBucket(gone, { args: ['--prefix', 'p'] });
	let late;
	try {
		await visit(`${early.url}#${LOOK}`);
		await eventually(() => text('#notice'), /The store: .*127\.0\.0\.1/);
		await eventually(() => text('#shown'), /Not known: the store does not answer/);
		assert.match(await text('#facts'), /bucket\/p/);
		late = await startStore('--port', new URL(gone.address).port);
		await late.plant([storedSegment({ after: 60 })]);
		await eventually(() => text('#services'), /echo-server/);
		assert.equal(await page.$eval('#notice', (box) => box.hidden), true);
	} finally {
		await early.stop();
		await late?.stop();
	}
});

test('a store that does not answer is told, and the map stays', async () => {
	await openBucket();
	await store.faults([{ kind: 'status', status: 403, code: 'AccessDenied', times: 0 }]);
	await clickOn('#look', '7 d');
	await eventually(() => text('#notice'), /The store: .*these credentials may not read here[^]*can still be opened/);
	await eventually(() => text('#services'), /echo-server/);
	assert.deepEqual(await violations(), []);
});
