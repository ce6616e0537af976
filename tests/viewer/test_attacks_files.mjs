// SPDX-License-Identifier: Apache-2.0
// Files that mean harm, in a real browser: with counts, sizes, times and types that no recorder writes.  The page says what
// it refused, and goes on.

import { test } from 'node:test';
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { serverTrace, u32, uleb } from '../toolkit/trace_bytes.mjs';
import { STRANGE as STRANGE_TYPES, strangeTrace } from '../toolkit/strange_types.mjs';
import { BAD, FILES, ZSTD_WINDOW, claims, gzipBomb, longWaits, manyEvents, manyWorkers, nested, overlappingSpans, withoutTimes, zstdBomb } from './hostile.mjs';
import { DIAL9, WORK, drop, eventually, forgive, keepPage, open, openKept, page, text, useBrowser, visit } from './browser.mjs';

const COLLECTION = fileURLToPath(new URL('../../../shared/data/hostile', import.meta.url));
let fairTraces = 0;

/** A fair trace that was never shown: one that was opens where it was left. */
const newFair = () => serverTrace({ service: `fair-${++fairTraces}` });
const files = { ...FILES };
for (const name of existsSync(COLLECTION) ? readdirSync(COLLECTION) : []) if (name.includes('.bin')) files[name] = readFileSync(`${COLLECTION}/${name}`);
/** Of millions of events that are packed into a hundred kilobytes some hundred thousand; all of them are dropped once. */
const beginning = (bytes) => bytes.subarray(0, 4096);

useBrowser(() => {
	mkdirSync(`${WORK}/fair`);
	writeFileSync(`${WORK}/fair/trace.0.bin`, newFair());
	for (const [name, bytes] of Object.entries({ ...files, 'zstd-bomb.bin.zst': zstdBomb(3000), 'gzip-bomb.bin.gz': gzipBomb(64), 'window.bin.zst': ZSTD_WINDOW })) {
		const folder = `${WORK}/collection/${name.split('.')[0]}`;
		mkdirSync(folder, { recursive: true });
		writeFileSync(`${folder}/trace.0.${name.split('.').slice(1).join('.')}`, name in files ? beginning(bytes) : bytes);
	}
});

/** The page draws, answers keys and says nothing that it should not. */
async function assertAlive() {
	for (const key of ['0', 'n', 'ArrowRight', 'ArrowDown', 'ArrowDown', 'ArrowRight', 'ArrowRight', 'f', '+', '+', 'PageDown', '0', 'o', ']', ']', ']', ']', ']', ']', 'Escape', 'v']) await page.keyboard.press(key);
	// As far in as it goes; one way to the browser, not sixty.
	await page.evaluate(() => {
		for (let i = 0; i < 60; i++) document.body.dispatchEvent(new KeyboardEvent('keydown', { key: '+', bubbles: true, cancelable: true }));
	});
	const said = await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(() => resolve(document.title + document.body.innerText)))));
	assert.doesNotMatch(said, BAD);
}

/** Drop |bytes| on a fair trace: what the page says of it.  The page is that of the test before, and shows a fair trace again. */
async function dropped(name, bytes) {
	await openKept('fair');
	await drop(name, bytes);
	const refusal = await page.$eval('#message', (e) => (e.hidden ? '' : e.innerText));
	// Where dial9 refuses it, that is told on the page.
	await eventually(() => text('#findings'), (said) => !said.includes('Looking for'));
	assert.doesNotMatch(await text('#findings'), BAD);
	forgive(/\b422\b/);
	await assertAlive();
	await page.keyboard.press('Escape');
	await page.click('#about');
	const said = refusal || `${await text('#facts')}\n${await text('#detail')}`;
	await drop('fair.bin', newFair());
	await eventually(() => text('#selected'), /on_read, 182.ms/);
	await eventually(() => text('#findings'), /on_read blocks the loop/);
	assert.equal(await page.$eval('#message', (e) => e.hidden), true);
	keepPage('fair');
	return said;
}

for (const [name, bytes] of Object.entries(files))
	test(`${name} is shown where it is dropped`, async () => {
		await dropped(name, bytes);
	});

for (const [name, bytes] of Object.entries(files))
	test(`${name} is shown as a page of one file`, async () => {
		writeFileSync(`${WORK}/${name}`, beginning(bytes));
		const made = spawnSync(DIAL9, ['report', '--html', '-o', `${WORK}/page.html`, `${WORK}/${name}`], { encoding: 'utf8' });
		// 2 where something was left out, which is said.
		assert.match(`${made.status} ${made.stdout}${made.stderr}`, /^(0 dial9 report: the page has|2 dial9 report: [^]*(left out|dial9 report: the page has))/);
		await visit(`file://${WORK}/page.html`);
		await assertAlive();
	});

test('the map shows what can be read of all of them, and says what cannot', async () => {
	await open('collection', '', undefined, '#services');
	// The largest is hundreds of megabytes when it is unpacked.
	await page.waitForSelector('body[data-ready]', { timeout: 120000 });
	await page.keyboard.press('Escape');
	const table = await text('#below'), storage = await text('#storage');
	assert.match(storage, /\d+ (damaged or partial|cannot be read)/);
	for (const wanted of [/unpacks to far more than its size/, /window/]) assert.match(table, wanted);
	for (let tab = 0; tab < 3; tab++) {
		await page.keyboard.press('v');
		await eventually(() => text('#below'), (now) => !/Adding up/.test(now));
		assert.doesNotMatch(await text('#below'), BAD);
	}
	const services = await page.$$eval('#services button', (all) => all.length);
	for (let i = 0; i < services; i++) {
		await page.keyboard.press('n');
		// Never more cells than pixels, however long it lasted.
		assert.ok(await page.evaluate(async () => (await import('./viewer/browse.js')).browse.columns.n) <= 73);
	}
});

const REFUSED = {
	'a zstd frame that unpacks to a quarter of a gigabyte': ['bomb.bin.zst', () => zstdBomb(2000), /unpacks to more than 1000 times its size/],
	'a gzip member that unpacks to a thousand times as much': ['bomb.bin.gz', () => gzipBomb(32), /unpacks to more than 1000 times its size/],
	'twelve bytes that want two gigabytes': ['window.bin.zst', () => ZSTD_WINDOW, /window of \d+ bytes|reserved bit/],
	'a list of 10,000 lists in each other': ['nested.bin', () => nested(10000), /nested too deeply/],
	'more workers than a process can have': ['workers.bin', () => manyWorkers(6000), /not all of it fits[^]*more than 4096 workers/],
	'a text': ['text.bin', () => Buffer.from('this is a text'), /not a TRC stream/],
	'nothing': ['empty.bin', () => Buffer.alloc(0), /The trace cannot be shown/],
};
for (const [what, [name, make, wanted]] of Object.entries(REFUSED))
	test(`${what} is refused in words, and the page goes on`, async () => {
		assert.match(await dropped(name, make()), wanted);
	});

for (const kind of Object.keys(claims(0)))
	test(`four billion ${kind} that are not there cost nothing`, async () => {
		assert.match(await dropped('claims.bin', claims(0xffffffff)[kind]), /end|ends|cut|cannot be shown|no callback/);
	});

/** Clocks near 1,700,000,000 s whose last 21 bits are |i|, as uleb() has them. */
const CLOCK = uleb(1700000000000000000n >> 21n), readClock = (i) => [i & 127 | 128, i >> 7 & 127 | 128, i >> 14 | 128, ...CLOCK];
const frames = (n) => [...new Uint8Array(BigUint64Array.from({ length: n }, (_, i) => BigInt(4096 + 16 * i)).buffer)];

const STRANGE = {
	'a wait of 2^64 ns and a call of ten days': longWaits,
	'a hundred thousand spans at once': () => overlappingSpans(100000),
	'frames inlined four billion deep': () => manyEvents('SymbolTableEntry', [['addr', 9], ['symbol_name', 7], ['inline_depth', 9]], 100, (i) => [uleb(i), u32(0), uleb(4000000000)]),
	'two hundred thousand readings of the clock': () => manyEvents('ClockSyncEvent', [['realtime_ns', 9]], 200000, (i) => [readClock(i)]),
	'modules where the addresses of the kernel are': () => manyEvents('ModuleEvent', [['base', 9], ['start', 9], ['size', 9], ['path', 7]], 3, () => [uleb(2n ** 63n), uleb(2n ** 63n), uleb(4096), u32(0)]),
	'a stack of a hundred thousand frames': () => {
		const chain = frames(100000);
		return manyEvents('CpuSampleEvent', [['worker_id', 9], ['tid', 13], ['source', 11], ['callchain', 8]], 3, () => [uleb(0), u32(9), [0], u32(100000), chain]);
	},
	'two hundred thousand numbers in one list': () => manyEvents('Own', [['list', 14]], 1, () => [u32(200000), Array.from({ length: 200000 }, () => [11, 7]).flat()]),
	'events without a time': () => withoutTimes(0), 'events at the time 0': () => withoutTimes(1),
	...Object.fromEntries(STRANGE_TYPES.filter(([what]) => !/-[1-9]/.test(what)).map(([what, strange]) => [`known events with fields of ${what}`, () => strangeTrace(strange)])),
};
for (const [what, make] of Object.entries(STRANGE))
	test(`${what}: shown, or refused in words, and the page goes on`, async () => {
		assert.doesNotMatch(await dropped('strange.bin', make()), /undefined|NaN|BigInt|is not a function|cannot be converted|not iterable/);
	});
