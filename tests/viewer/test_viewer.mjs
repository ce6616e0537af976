// SPDX-License-Identifier: Apache-2.0
// The viewer in a real browser: what `dial9 serve` shows, by mouse, keyboard and URL.

import { test } from 'node:test';
import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { gzipSync } from 'node:zlib';
import { serverTrace } from '../toolkit/trace_bytes.mjs';
import { WORK, eventually, fragment, inTheme, open, page, text, useBrowser, violations } from './browser.mjs';

/** Traces: one process, two of them, an innocent one, and a text. */
function writeTraces() {
	for (const folder of ['one/web-1', 'two/web-1', 'two/web-2', 'innocent/web-1']) mkdirSync(`${WORK}/${folder}`, { recursive: true });
	writeFileSync(`${WORK}/one/web-1/trace.0.bin`, serverTrace());
	writeFileSync(`${WORK}/two/web-1/trace.0.bin.gz`, gzipSync(serverTrace({ service: 'front', slow: false })));
	writeFileSync(`${WORK}/two/web-2/trace.0.bin`, serverTrace({ service: 'back', boot: 'boot-2' }));
	writeFileSync(`${WORK}/innocent/web-1/trace.0.bin`, serverTrace({ slow: false }));
	writeFileSync(`${WORK}/text.bin`, 'this is a text');
}

useBrowser(writeTraces);

test('a served trace opens on its worst finding, with the callback in its lane and its detail', async () => {
	await open('one');
	await eventually(() => text('.finding[aria-current="true"]'), /182.ms[^]*on_read blocks the loop[^]*In[^]*Next/);
	await eventually(() => text('#selected'), /on_read, 182.ms, main, at 0\.4\d*.s, finding 1 of/);
	await eventually(() => text('#detail'), /on_read[^]*182.ms[^]*server\.c:231[^]*runs on[^]*main, thread 4127/);
	assert.match(await eventually(fragment, /s=poll/), /^#v=m\d+~\d+&s=poll:0@5400000000&f=long-callback\.1$/);
	// The bar itself is a fifth of the view, in the colour of its class.
	const share = await page.evaluate(() => {
		const canvas = document.getElementById('lane-canvas'), ratio = canvas.width / canvas.clientWidth;
		const { data } = canvas.getContext('2d').getImageData(0, Math.round(20 * ratio), canvas.width, 1);
		let n = 0;
		for (let i = 0; i < data.length; i += 4) if (data[i] === 0x49 && data[i + 1] === 0x02 && data[i + 2] === 0x2e) n++;
		return n / canvas.width;
	});
	assert.ok(share > 0.17 && share < 0.23, `it takes ${share} of the view`);
});

test('where a loop waits for events its lane has a line, and says for how long', async () => {
	await open('innocent', '#v=m5010300000~400000');
	const box = await (await page.$('#lane-canvas')).boundingBox();
	await page.mouse.move(box.x + 300, box.y + 30);
	assert.match(await eventually(() => text('#tooltip'), /waiting/), /^waiting for events 97\d.µs\s+main · 0\.0100\d+.s$/);
	const inks = await page.evaluate(() => {
		const canvas = document.getElementById('lane-canvas'), ratio = canvas.width / canvas.clientWidth;
		const { data } = canvas.getContext('2d').getImageData(Math.round(400 * ratio), Math.round(16 * ratio), 1, Math.round(32 * ratio));
		return new Set(new Uint32Array(data.buffer)).size;
	});
	assert.equal(inks, 2, 'the line and what is behind it');
});

test('the detail of a callback says who woke it, its stack, and who waited', async () => {
	await open('one');
	const detail = await text('#detail');
	assert.match(detail, /woken by\s+render_report, its descriptor/);
	assert.match(detail, /17 of 17 samples[^]*fsync[^]*flush_log\s+log\.c:142/);
	assert.match(detail, /Who waited[^]*2 callbacks[^]*on_read\s+2\s+162.ms\s+264.ms/);
	await page.focus('#timeline');
	await page.keyboard.press('w');
	await eventually(() => text('#selected'), /render_report, 700.µs, pool/);
});

test('a reload restores view, selection and clock, and Back goes to the last place', async () => {
	await open('one');
	const first = await eventually(fragment, /s=poll/);
	await page.focus('#timeline');
	await page.keyboard.press('ArrowLeft');
	await page.keyboard.press('c');
	const second = await eventually(fragment, (hash) => hash !== first && /c=local/.test(hash));
	const said = await text('#selected');
	await page.reload();
	await page.waitForSelector('body[data-ready]');
	assert.equal(await text('#selected'), said);
	assert.equal(await text('#clock'), 'local');
	assert.equal(await fragment(), second);
	await page.goBack();
	await eventually(() => text('#selected'), /182.ms/);
	assert.equal(await fragment(), first);
});

test('an unknown item of the URL is kept, and a wrong one is ignored and told', async () => {
	await open('one', '#future=1&v=m1~x&c=moon');
	await eventually(() => text('#loaded'), /v=m1~x, c=moon/);
	await page.keyboard.press('n');
	assert.match(await eventually(fragment, /s=poll/), /&future=1$/);
});

test('the keyboard walks over callbacks, and the item says what the trace has', async () => {
	await open('one');
	const item = () => page.$eval('#item', (e) => e.getAttribute('aria-label'));
	await page.focus('#timeline');
	const walked = [];
	for (let i = 0; i < 50; i++) {
		await page.keyboard.press('ArrowRight');
		walked.push(await item());
	}
	assert.match(walked[0], /^on_read, 30\.0.µs, main, at 0\.58/);
	assert.match(walked[1], /^on_read, 30\.0.µs, main, at 0\.58/);
	assert.equal(new Set(walked).size, 50);
	for (const [key, wanted] of [['ArrowDown', /pool/], ['ArrowUp', /main/], ['1', /182.ms/], ['p', (now) => !/182.ms/.test(now)], ['n', /182.ms/]]) {
		await page.keyboard.press(key);
		await eventually(item, wanted);
	}
	await page.keyboard.press('?');
	assert.equal(await page.$eval('#keys', (e) => e.open), true);
	await page.keyboard.press('Escape');
	assert.equal(await page.$eval('#keys', (e) => e.open), false);
	await page.keyboard.press('Escape');
	assert.equal(await item(), 'Nothing selected');
});

test('keys move and zoom the view', async () => {
	await open('one');
	await page.focus('#timeline');
	for (const key of ['+', '-', '0', 'PageDown', 'PageUp', 'f', 'd', 'a']) {
		const before = await text('#in-view');
		if (key === 'PageDown') await page.keyboard.press('+');
		await page.keyboard.press(key);
		await eventually(() => text('#in-view'), (now) => now !== before);
	}
});

test('two processes have their lanes on one axis, and a finding leads to the right one', async () => {
	await open('two', 'view');
	await eventually(() => text('#gutter'), /front\s+main[^]*pool[^]*back[^]*main[^]*pool/);
	await eventually(() => text('#selected'), /on_read, 182.ms, back main/);
	assert.match(await eventually(fragment, /s=poll/), /s=poll:1\.0@5400000000/);
});

test('the wheel zooms, a drag moves, and a drag in the ruler selects a range', async () => {
	await open('one');
	const box = await (await page.$('#lanes')).boundingBox(), length = await text('#length');
	await page.mouse.move(box.x + 200, box.y + 30);
	await page.keyboard.down('Control');
	await page.mouse.wheel({ deltaY: -300 });
	await page.keyboard.up('Control');
	await eventually(() => text('#length'), (now) => now !== length);
	const before = await text('#in-view');
	await page.mouse.down();
	await page.mouse.move(box.x + 300, box.y + 30, { steps: 4 });
	await page.mouse.up();
	await eventually(() => text('#in-view'), (now) => now !== before);
	const ruler = await (await page.$('#ruler')).boundingBox();
	await page.mouse.move(ruler.x + 50, ruler.y + 10);
	await page.mouse.down();
	await page.mouse.move(ruler.x + 300, ruler.y + 10, { steps: 4 });
	await page.mouse.up();
	await eventually(() => text('#detail'), /Range/);
	await eventually(() => text('#panel'), /Callbacks/);
	assert.match(await eventually(fragment, /r=m/), /r=m\d+~\d+/);
});

test('a click on a bar selects it, one on nothing deselects', async () => {
	await open('one', '#v=m5001000000~600000');
	const box = await (await page.$('#lanes')).boundingBox();
	await page.mouse.click(box.x + 8, box.y + 30);
	await eventually(() => text('#selected'), /on_read, 21\.0.µs, main/);
	await page.mouse.click(box.x + box.width * 0.5, box.y + 30);
	await eventually(() => text('#selected'), /Nothing selected/);
});

test('search finds a callback by a part of its name and goes to its longest call', async () => {
	await open('one');
	await page.keyboard.press('Escape');
	await page.keyboard.press('/');
	await page.keyboard.type('rend');
	assert.match(await eventually(() => text('#results'), /calls/), /render_report\s+1 calls/);
	await page.keyboard.press('Enter');
	await eventually(() => text('#selected'), /render_report/);
});

test('the legend is whole at every width, and a narrow page opens at its beginning', async () => {
	for (const width of [320, 700, 1280, 1600]) {
		await open('one', '', { width, height: 900 });
		assert.deepEqual(await page.$eval('#legend', (e) => [...e.children].filter((c) => c.getBoundingClientRect().right > e.getBoundingClientRect().right || c.getBoundingClientRect().bottom > e.getBoundingClientRect().bottom).map((c) => c.innerText)), [], `${width} px`);
		assert.equal(await page.evaluate(() => scrollY), 0, `${width} px`);
		await page.close();
	}
	await open('one');
});

test('what the pointer was at is not told of another part of the trace', async () => {
	await open('one');
	const lanes = await (await page.$('#lanes')).boundingBox();
	await page.mouse.move(lanes.x + lanes.width * 0.5, lanes.y + 30);
	await page.mouse.move(lanes.x + lanes.width * 0.8, lanes.y + 30);
	await page.waitForSelector('#tooltip:not([hidden])');
	await page.keyboard.press('PageDown');
	await page.waitForSelector('#tooltip', { hidden: true });
});

test('with forced colours what is drawn lies on the system\'s ground, in the theme that goes with it', async () => {
	await open('one');
	if (await page.$eval('html', (e) => e.dataset.theme) === 'light') await page.keyboard.press('t');
	const session = await page.createCDPSession();
	await session.send('Emulation.setEmulatedMedia', { features: [{ name: 'forced-colors', value: 'active' }, { name: 'prefers-color-scheme', value: 'light' }] });
	await eventually(() => page.$eval('html', (e) => [e.dataset.theme, getComputedStyle(e).getPropertyValue('--bg').trim()].join()), /^light,Canvas$/);
	assert.equal(await page.$eval('#ruler', (canvas) => {
		const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
		return [...data].some((v, i) => i % 4 === 3 && v > 200 && data[i - 3] + data[i - 2] + data[i - 1] < 60);
	}), true, 'the times of the ruler are black on white');
});

test('a trace without a problem has no alarm', async () => {
	await open('innocent');
	assert.equal(await page.$('.finding .figure:not(.mild)'), null);
	await eventually(() => text('#selected'), /Nothing selected/);
});

test('what is no trace does not take the place of one', async () => {
	await open('innocent');
	await (await page.$('#picker')).uploadFile(`${WORK}/one/web-1/trace.0.bin`);
	await eventually(() => text('#selected'), /on_read, 182.ms/);
	await (await page.$('#picker')).uploadFile(`${WORK}/text.bin`);
	await eventually(() => text('#message'), /not a TRC stream/);
	await eventually(() => text('#selected'), /on_read, 182.ms/);
	await (await page.$('#picker')).uploadFile(`${WORK}/two/web-1/trace.0.bin.gz`);
	await eventually(() => text('#service'), /front/);
});

test('files of two processes that are picked together are two processes', async () => {
	await open('innocent');
	await (await page.$('#picker')).uploadFile(`${WORK}/two/web-1/trace.0.bin.gz`, `${WORK}/two/web-2/trace.0.bin`);
	assert.match(await eventually(() => text('#gutter'), /front/), /back\s+main[^]*pool[^]*front[^]*main[^]*pool/);
});

for (const theme of ['light', 'dark'])
	test(`axe finds nothing wrong with any state of the page, ${theme}`, async () => {
		await open('one');
		await inTheme(theme);
		for (const key of ['1', 'Escape', '2', '3', '?', 'Escape', '/', 'o']) {
			await page.keyboard.press(key);
			assert.deepEqual(await violations(theme), [], `after ${key}`);
		}
	});

for (const [width, height] of [[500, 900], [700, 900], [1280, 800], [2560, 1440]])
	test(`nothing is wider than a window of ${width} px, light or dark`, async () => {
		await open('one', '', { width, height });
		for (let theme = 0; theme < 2; theme++) {
			assert.equal(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), true);
			await page.keyboard.press('t');
		}
	});
