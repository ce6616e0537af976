// SPDX-License-Identifier: Apache-2.0
// Traces whose texts mean harm, in a real browser: wherever they stand they stay texts, and none of them runs or asks
// anybody.  And what the address says, which anybody can write.

import { test } from 'node:test';
import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { spawnSync } from 'node:child_process';
import { serverTrace } from '../toolkit/trace_bytes.mjs';
import { BAD, TEXTS, everyText } from './hostile.mjs';
import { DIAL9, WORK, drop, eventually, keepPage, open, openKept, page, text, useBrowser, visit } from './browser.mjs';
import { smallSegment } from './many_traces.mjs';

/** |text| as the name of a file, as far as files can be called that. */
const fileName = (name) => name.replaceAll('/', '|').replaceAll('\0', '').slice(0, 60);

useBrowser(() => {
	mkdirSync(`${WORK}/fair`);
	writeFileSync(`${WORK}/fair/trace.0.bin`, serverTrace());
	for (const [kind, name] of Object.entries(TEXTS)) {
		const folder = `${WORK}/${kind}/${fileName(name)}`;
		mkdirSync(folder, { recursive: true });
		writeFileSync(`${folder}/trace.0.bin`, everyText(name));
		mkdirSync(`${WORK}/map/${fileName(name)}`, { recursive: true });
		writeFileSync(`${WORK}/map/${fileName(name)}/trace.0.bin`, smallSegment({ service: name, host: name, boot: name, pid: name, calls: [[4, 182, `${name} @ ${name}`]] }));
		writeFileSync(`${WORK}/map/${fileName(name)}/trace.1.bin`, 'not a trace');
	}
});

/** What the page says to eyes and ears, and what it has become. */
async function assertHarmless(own, when) {
	const found = await page.evaluate((address) => {
		const shown = [document.title, document.body.innerText];
		for (const e of document.querySelectorAll('[title], [aria-label], [placeholder], option, optgroup')) shown.push(e.title, e.getAttribute('aria-label') ?? '', e.label ?? '', e.textContent);
		return { shown: shown.join('\n'), harmed: globalThis.harmed ?? Object.prototype.harmed ?? Object.keys(Object.prototype).join(),
			made: [...document.querySelectorAll('img, iframe, object, embed, base, form, script:not([type]):not([src]), [onerror], [onfocus], [autofocus], link[href^="http"]')].map((e) => e.outerHTML.slice(0, 100)),
			links: [...document.querySelectorAll('a[href]')].map((a) => a.getAttribute('href')).filter((href) => !/^(view$|\?|blob:)/.test(href)),
			asked: performance.getEntriesByType('resource').map((e) => e.name).filter((name) => !name.startsWith(address) && !/^(blob|data):/.test(name)) };
	}, own.replace(/[?#].*/, ''));
	assert.doesNotMatch(found.shown, BAD, when);
	assert.deepEqual({ ...found, shown: '' }, { shown: '', harmed: '', made: [], links: [], asked: [] }, when);
}

/** Look at everything: each panel, track, thing and dialog. */
async function lookAround(own) {
	await assertHarmless(own, 'at first');
	for (const keys of [['n'], ['ArrowRight'], ['T'], ['w'], ['o'], ...Array(7).fill([']']), ['x'], ['Escape'], ['v'], ['?'], ['Escape'], ['c'], ['s'], ['Escape']]) {
		for (const key of keys) await page.keyboard.press(key);
		await assertHarmless(own, `after ${keys}`);
	}
	for (const closed of await page.$$('[data-track][aria-expanded="false"], details:not([open]) > summary')) await closed.evaluate((e) => e.click());
	await assertHarmless(own, 'with everything open');
	for (const thing of ['task:7', 'span:3'])  {
		await page.evaluate((item) => { location.hash = `s=${item}`; }, thing);
		await eventually(() => text('#selected'), new RegExp(thing.slice(0, 4)));
		await assertHarmless(own, thing);
	}
	await page.keyboard.press('/');
	await page.keyboard.type('a');
	await assertHarmless(own, 'in what is found');
}

for (const [kind, name] of Object.entries(TEXTS)) {
	test(`text of the kind "${kind}" stays text wherever a trace has any: served`, async () => {
		const own = await open(kind, '', undefined, undefined);
		await lookAround(own);
	});

	test(`text of the kind "${kind}" stays text: the page of one file`, async () => {
		const made = spawnSync(DIAL9, ['report', '--html', '-o', `${WORK}/page.html`, `${WORK}/${kind}`], { encoding: 'utf8' });
		assert.deepEqual([made.status, made.stdout], [0, '']);
		await visit(`file://${WORK}/page.html`);
		assert.equal(await page.$$eval('script', (all) => all.length), 3);
		// The same page as above; how the trace came into it differs, and what ends a script.
		await (kind === 'script' ? lookAround : assertHarmless)(`file://${WORK}/page.html`, 'as one file');
	});
}

for (const [kind, name] of Object.entries(TEXTS))
	test(`text of the kind "${kind}" stays text: dropped, as a file of that name`, async () => {
		const own = await openKept('fair');
		await drop(`${fileName(name)}.bin`, readFileSync(`${WORK}/${kind}/${fileName(name)}/trace.0.bin`));
		await eventually(() => text('#findings'), (said) => !said.includes('Looking for'));
		await assertHarmless(own, 'dropped');
		await drop(`${fileName(name)}.bin`, 'this is a text');
		await eventually(() => text('#message'), /The trace cannot be shown/);
		await assertHarmless(own, 'refused');
		keepPage('fair');
	});

test('text of every kind stays text on the map of recordings', async () => {
	const own = await open('map');
	await page.keyboard.press('Escape');
	for (let tab = 0; tab < 3; tab++) {
		await eventually(() => text('#below'), (now) => !/Adding up/.test(now));
		await assertHarmless(own, `tab ${tab}`);
		await page.keyboard.press('v');
	}
	const services = await page.$$eval('#services button', (all) => all.length);
	assert.ok(services >= Object.keys(TEXTS).length, `${services} services`);
	for (let i = 0; i < services; i++) {
		await page.keyboard.press('n');
		await assertHarmless(own, `service ${i}`);
	}
	await eventually(() => text('#storage'), new RegExp(`${Object.keys(TEXTS).length} cannot be read`));
});

const ADDRESSES = ['#<img src=x onerror=harmed=1>', '#q=%3Cimg%20src%3Dx%20onerror%3Dharmed%3D1%3E&p=callbacks', '#__proto__=1&constructor=2&tr=__proto__%2B,constructor-', '#v=m0~99999999999999999999', '#v=m99999999999999999999~1',
	'#r=m0~99999999999999999999&p=events', '#r=m5400000000~0&p=flame', '#s=poll:99999999999999999999.1@1', '#s=poll:0@99999999999999999999', '#s=task:99999999999999999999', '#s=span:ffffffffffffffffffff@1', '#f=x.1e308', '#f=x.99999999',
	'#s=event:__proto__', '#s=%', '#q=%&p=%&cb=%', '#p=__proto__', '#p=flame&fg=__proto__:a/b', '#p=flame&fg=cpu:' + 'a/'.repeat(20000), '#q=' + 'a'.repeat(200000), '#p=compare&cmp=p0~p99', '#p=compare&cmp=m1~1', '#p=compare&cmp=file:<b>', '#ph=9999&p=tree',
	'#fc=__proto__,constructor,gauge&fc=a,b,c', '#to=' + 'a,'.repeat(20000), '#o=__proto__&p=callbacks', '#en=__proto__&p=events', '#th=__proto__&p=flame', '#file=<b>', '#' + '&'.repeat(100000)];

/** The address has led somewhere, and the page goes on. */
async function assertGoesOn(own, when) {
	await assertHarmless(own, when);
	await page.focus('#timeline');
	await page.keyboard.press('1');
	await eventually(() => text('#selected'), /182.ms/);
}

// A page of one file opens in half the time of one that is served, and reads its address with the same code.
test('a page is written for the addresses that it is opened with', () => {
	const made = spawnSync(DIAL9, ['report', '--html', '-o', `${WORK}/fair.html`, `${WORK}/fair`], { encoding: 'utf8' });
	assert.deepEqual([made.status, made.stdout], [0, '']);
});

for (const address of ADDRESSES) {
	test(`an address may say ${address.slice(0, 60)} when a page is opened`, async () => {
		await visit(`file://${WORK}/fair.html${address}`);
		await assertGoesOn(`file://${WORK}/fair.html`, 'opened');
	});
}

for (const address of ADDRESSES)
	test(`an address may say ${address.slice(0, 60)} of the page that is there`, async () => {
		const own = await openKept('fair');
		await page.evaluate((hash) => { location.hash = hash; }, address);
		await assertGoesOn(own, 'gone to');
		keepPage('fair');
	});

for (const address of ['#svc=__proto__&m=__proto__&t=__proto__', '#w=-1e308~1e308&p=x', '#z=-1.7e308~1.7e308', '#z=0~1e308', '#z=1e15~1e16&w=0~1e-300', '#w=NaN~Infinity&z=~', '#' + 'p=a&'.repeat(20000), '#svc=<img src=x onerror=harmed=1>'])
	test(`the address of the map may say ${address.slice(0, 60)}`, async () => {
		const own = await open('map', address);
		await assertHarmless(own, 'opened');
		await page.evaluate((hash) => { location.hash = hash; }, address);
		await page.keyboard.press('n');
		await eventually(() => text('#facts'), /services/);
		await assertHarmless(own, 'gone to');
	});

for (const asked of ['http://evil.example/x', '//evil.example/x', 'segment/../../etc/passwd', 'javascript:harmed=1', 'data:,x', 'segment/none'])
	test(`what an address asks to load comes from this server or not at all: ${asked}`, async () => {
		const own = await open('fair', `?trace=${encodeURIComponent(asked)}`, undefined, '#message:not([hidden]) button');
		await eventually(() => text('#message'), /1 of the segments that the address names are not here any more/);
		await assertHarmless(own, asked);
	});
