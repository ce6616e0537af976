// SPDX-License-Identifier: Apache-2.0
// Every key that the help lists does what the help says, and every item of the address leads where it says.

import { test } from 'node:test';
import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { profileTrace } from '../toolkit/profile_bytes.mjs';
import { serverTrace } from '../toolkit/trace_bytes.mjs';
import { WORK, eventually, fragment, open, page, serve, text, useBrowser, visit } from './browser.mjs';
import { ORIGIN, trackTrace } from './track_trace.mjs';

const MS = 1e6;
/** The blocked call, in a view of 500 ms. */
const BLOCKED = '#v=m5300000000~500000000&s=poll:0@5400000000';

useBrowser(() => {
	for (const folder of ['one', 'live', 'shop', 'tracks']) mkdirSync(`${WORK}/${folder}`);
	for (const folder of ['one', 'live']) writeFileSync(`${WORK}/${folder}/trace.0.bin`, serverTrace());
	writeFileSync(`${WORK}/shop/trace.0.bin`, profileTrace());
	writeFileSync(`${WORK}/tracks/trace.0.bin`, trackTrace());
});

/** What the page has now, in times of the trace as ms. */
const now = () => page.evaluate(async () => {
	const { state } = await import('./viewer/state.js'), { model, selected, panel, range } = state, ms = (time) => Math.round(time / 1e3) / 1e3;
	return { from: ms(state.view[0]), length: ms(state.view[1] - state.view[0]), whole: ms(model.last - model.first), findings: model.findings.length, finding: state.finding,
		lane: selected?.lane.worker.name ?? '', row: selected?.row ?? -1, ms: selected ? ms(selected.lane.polls.dur[selected.row]) : 0, called: selected ? model.label(selected.lane, selected.row).name : '',
		start: selected ? ms(selected.lane.polls.start[selected.row]) : NaN, thing: state.thing ? `${state.thing.kind} ${state.thing.id}` : '', range: range?.map(ms) ?? null, began: state.rangeStart !== null,
		clock: state.clock, open: panel.open, tab: panel.tab, inverted: panel.inverted, following: state.following };
});

const focused = () => page.evaluate(() => document.activeElement.id);

async function press(key) {
	const held = key.split('+').slice(0, -1).filter(Boolean), last = key.endsWith('+') ? '+' : key.split('+').at(-1);
	for (const name of held) await page.keyboard.down(name === 'Ctrl' ? 'Control' : name);
	await page.keyboard.press(last);
	for (const name of held) await page.keyboard.up(name === 'Ctrl' ? 'Control' : name);
}

let visits = 0;

/** Go to |place| as a link of the page would, also where the address has not changed since. */
async function go(place) {
	await page.evaluate((hash) => {
		location.hash = hash;
	}, `${place}&c=rel&visit=${++visits}`);
	await page.focus('#timeline');
}

const near = (a, b, slack = 0.01) => assert.ok(Math.abs(a - b) <= slack, `${a} is not ${b}`);

/** By what the help shows: where to begin, and what must have changed between |before| and |after| the key. */
const KEYS_DO = {
	n: ['#v=m5300000000~500000000', (before, after) => assert.deepEqual([before.finding, after.finding, after.ms], [-1, 0, 182])],
	p: ['#v=m5300000000~500000000', (before, after) => assert.equal(after.finding, before.findings - 1)],
	'1 … 9': ['#v=m5300000000~500000000', (before, after) => assert.equal(after.finding, 0), ['1']],
	'→': [BLOCKED, (before, after) => assert.deepEqual([after.lane, after.row], ['main', before.row + 1]), ['ArrowRight']],
	'←': [BLOCKED, (before, after) => assert.deepEqual([after.lane, after.row], ['main', before.row - 1]), ['ArrowLeft']],
	'Ctrl →': ['#v=m5100000000~1000000&s=poll:0@5100000000', (before, after) => assert.deepEqual([before.ms < 1, after.ms], [true, 182]), ['Ctrl+ArrowRight']],
	'Ctrl ←': ['#v=m5700000000~1000000&s=poll:0@5700000000', (before, after) => assert.deepEqual([before.ms < 1, after.ms], [true, 182]), ['Ctrl+ArrowLeft']],
	'↑': ['#v=m5100000000~1000000&s=poll:1@5100000300', (before, after) => assert.deepEqual([before.lane, after.lane, Math.abs(after.start - before.start) < 1], ['pool', 'main', true]), ['ArrowUp']],
	'↓': [BLOCKED, (before, after) => assert.deepEqual([after.lane, Math.abs(after.start - before.start) < 2], ['pool', true]), ['ArrowDown']],
	'+': [BLOCKED, (before, after) => near(after.length, before.length / 1.2), ['+', '=']],
	'-': [BLOCKED, (before, after) => near(after.length, before.length * 1.2)],
	'Shift →': [BLOCKED, (before, after) => near(after.from, before.from + 100), ['Shift+ArrowRight', 'd']],
	'Shift ←': [BLOCKED, (before, after) => near(after.from, before.from - 100), ['Shift+ArrowLeft', 'a']],
	PageDown: ['#v=m5300000000~200000000', (before, after) => near(after.from, before.from + 200)],
	PageUp: ['#v=m5300000000~200000000', (before, after) => near(after.from, before.from - 200)],
	f: ['#v=m5001000000~900000000&s=poll:0@5400000000', (before, after) => near(after.length, 5 * 182), ['f', 'Enter']],
	0: [BLOCKED, (before, after) => near(after.length, before.whole), ['0', 'Home']],
	w: [BLOCKED, (before, after) => assert.deepEqual([after.lane, after.called], ['pool', 'render_report'])],
	'Shift w': ['#v=m5300000000~500000000&s=poll:1@5397100000', (before, after) => assert.deepEqual([before.called, after.called, after.ms], ['render_report', 'on_read', 182]), ['W']],
	'Shift t': [BLOCKED, (before, after) => assert.equal(after.thing, 'task 7'), ['T']],
	r: [BLOCKED, (before, after) => assert.deepEqual([before.began, after.began], [false, true])],
	z: ['#v=m5000000000~900000000&r=m5300000000~50000000', (before, after) => near(after.length, 50)],
	o: [BLOCKED, (before, after) => assert.deepEqual([before.open, after.open], [false, true])],
	']': [`${BLOCKED}&p=callbacks`, (before, after) => assert.equal(after.tab, 'flame')],
	'[': [`${BLOCKED}&p=flame`, (before, after) => assert.equal(after.tab, 'callbacks')],
	x: [BLOCKED, (before, after) => assert.deepEqual([after.open, after.tab], [true, 'compare'])],
	i: [`${BLOCKED}&p=flame`, (before, after) => assert.deepEqual([before.inverted, after.inverted], [false, true])],
	'Ctrl+/': [`${BLOCKED}&p=flame`, async () => assert.equal(await focused(), 'frame-find')],
	'/': [BLOCKED, async () => assert.equal(await focused(), 'search'), ['/', 'Ctrl+f']],
	v: [BLOCKED, async (before, after) => {
		assert.equal(after.row, -1);
		await eventually(() => text('#detail'), /About this trace/);
	}],
	s: [BLOCKED, async () => await eventually(() => text('dialog.save'), /Save what is in view/)],
	c: [BLOCKED, (before, after) => assert.deepEqual([before.clock, after.clock], ['rel', 'local'])],
	t: [BLOCKED, async () => {
		const theme = () => page.$eval('html', (e) => e.dataset.theme), first = await theme();
		await press('t');
		assert.notEqual(await theme(), first);
	}],
	Esc: [`${BLOCKED}&p=callbacks`, async (before, after) => {
		assert.deepEqual([before.open, after.open, after.row], [true, false, before.row]);
		await press('Escape');
		assert.equal((await now()).row, -1);
	}, ['Escape']],
	g: [BLOCKED, async () => eventually(() => text('#guide'), /A request is slow/)],
	'?': [BLOCKED, async () => assert.equal(await page.$eval('#keys', (e) => e.open), true)],
};
const ELSEWHERE = ['l', 'Shift n']; // below, and in test_fired.mjs

test('every key of the help does what the help says', async () => {
	await open('one');
	const listed = await page.$$eval('#keys tbody kbd', (all) => all.map((e) => e.textContent));
	assert.deepEqual(listed.filter((key) => !ELSEWHERE.includes(key)).sort(), Object.keys(KEYS_DO).sort());
	for (const [shown, [place, changed, keys = [shown]]] of Object.entries(KEYS_DO))
		for (const key of keys) {
			await go(place);
			const before = await now();
			await press(key);
			try {
				await changed(before, await now());
			} catch (error) {
				assert.fail(`${key}: ${error.message}`);
			}
			if (await page.$('dialog[open]')) await page.keyboard.press('Escape');
		}
});

test('l follows what is written, and pauses', async () => {
	await visit(await serve('live', '--live'));
	assert.equal((await now()).following, true);
	await press('l');
	assert.equal((await now()).following, false);
	await press('l');
	assert.equal((await now()).following, true);
});

test('r, arrows and r select a range, which z fills the view with', async () => {
	await open('one', BLOCKED);
	await page.focus('#timeline');
	const { start } = await now();
	for (const key of ['r', 'ArrowLeft', 'ArrowLeft', 'r', 'z']) await press(key);
	const after = await now();
	near(after.range[1], start, 0.002);
	near(after.length, after.range[1] - after.range[0]);
});

test('Home shows the whole flame graph again, and * opens all of the call tree', async () => {
	await open('shop', '#p=flame&fg=cpu:main/on_read/parse');
	await page.waitForSelector('.flame');
	await page.focus('.flame');
	await page.keyboard.press('Home');
	await eventually(fragment, (hash) => !/fg=/.test(hash));
	await page.click('#tab-tree');
	const frames = () => page.$$eval('#panel-body tr[data-row]', (all) => all.length), all = await eventually(frames, (n) => n > 3);
	await page.focus('#panel-body tr[data-row="0"]');
	await page.keyboard.press('ArrowLeft');
	await eventually(frames, (n) => n === 1);
	await page.keyboard.press('*');
	await eventually(frames, (n) => n >= all);
});

test('the mouse: Shift and a drag select a range, a double click frames a callback, the minimap takes the view along', async () => {
	await open('one', '#v=m5000000000~1000000000');
	const lanes = await (await page.$('#lanes')).boundingBox(), map = await (await page.$('#minimap')).boundingBox();
	const drag = async (x0, x1, y) => {
		await page.mouse.move(x0, y);
		await page.mouse.down();
		await page.mouse.move(x1, y, { steps: 4 });
		await page.mouse.up();
	};
	await page.keyboard.down('Shift');
	await drag(lanes.x + lanes.width * 0.2, lanes.x + lanes.width * 0.3, lanes.y + 30);
	await page.keyboard.up('Shift');
	const { range } = await now();
	near(range[1] - range[0], 100, 5);
	await page.keyboard.press('Escape');
	await page.mouse.click(lanes.x + lanes.width * 0.49, lanes.y + 30, { count: 2 });
	const framed = await now();
	assert.deepEqual([framed.ms, framed.length], [182, 910]);
	// Outside of what is in view a new view is drawn, inside it is moved, at its edges it is drawn out.
	await go('#v=m5700000000~100000000');
	const xOf = (ms) => map.x + ms / framed.whole * map.width;
	await drag(xOf(200), xOf(400), map.y + 30);
	near((await now()).from, 199, 5);
	near((await now()).length, 200, 5);
	await drag(xOf(300), xOf(400), map.y + 30);
	near((await now()).from, 299, 8);
	await drag(xOf(500), xOf(700), map.y + 30);
	near((await now()).length, 400, 10);
	await page.mouse.click(xOf(250), map.y + 30);
	near((await now()).from, 50, 10);
});

/** Addresses that together have every item: what they lead to, and what a reload keeps. */
const ITEMS = {
	one: [['v', 's', 'f', 'c', 'q'], '#v=m5300000000~500000000&s=poll:0@5400000000&f=long-callback.1&c=utc&q=on_re', async () => {
		await eventually(() => text('#selected'), /on_read, 182.ms.*finding 1/);
		await eventually(() => text('#in-view'), /^500.ms of/);
		assert.deepEqual([await text('#clock'), await page.$eval('#search', (e) => e.value)], ['UTC', 'on_re']);
	}],
	shop: [['r', 'p', 'ph', 'th', 'cb', 'o'], '#v=m5000000000~100000000&r=m5010000000~50000000&p=callbacks&ph=300&th=0.w0&cb=on_read+@+server.c:231&o=-n', async () => {
		await eventually(() => text('#panel'), /50\.0.ms selected[^]*only on_read/);
		assert.equal(await page.$eval('#panel-body th:nth-child(4)', (e) => e.getAttribute('aria-sort')), 'descending');
		assert.equal(await page.$eval('#panel-thread', (e) => e.value), '0.w0');
		assert.equal(await page.$eval('#panel', (e) => e.getBoundingClientRect().height), 300);
	}],
	tracks: [['to', 'tr', 'h', 'sp', 'fc'], `#v=m${ORIGIN}~${2000 * MS}&s=span:77&to=loss,memory&tr=memory+,spans-&h=g0.pool&sp=90&fc=HttpRequest,took,gauge`, async () => {
		await eventually(() => text('#selected'), /^span GET \/report/);
		assert.deepEqual((await page.$$eval('[data-track]', (all) => all.map((e) => `${e.dataset.track} ${e.getAttribute('aria-expanded')}`))).slice(0, 2), ['loss true', 'memory true']);
		assert.equal(await page.$eval('[data-track="spans"]', (e) => e.getAttribute('aria-expanded')), 'false');
		assert.equal(await page.$eval('[data-group="g0.pool"]', (e) => e.getAttribute('aria-expanded')), 'false');
		assert.ok(await page.$('[data-track="field:HttpRequest:took:gauge"]'));
	}],
};
test('an address leads to its place also where the report takes its time', async () => {
	const [, place, leads] = ITEMS.tracks;
	await open('tracks', place);
	await leads();
	await page.evaluateOnNewDocument(() => {
		const ask = globalThis.fetch;
		globalThis.fetch = async (address, ...more) => {
			if (/^api\/report/.test(address)) await new Promise((resolve) => setTimeout(resolve, 1500));
			return ask(address, ...more);
		};
	});
	await page.reload();
	await leads();
});

const MORE_ITEMS = {
	'#v=m5000000000~100000000&p=flame&fq=parse&fg=cpu-inverted:copy': ['shop', /copy/, '#flame-item'],
	'#v=m5000000000~100000000&p=events&en=CpuSampleEvent': ['shop', /153 of 228 events/, '#panel'],
	'#v=m5000000000~100000000&r=m5010000000~50000000&p=compare&cmp=rest&cv=waits': ['shop', /A the rest of the trace/, '#panel'],
};

for (const [trace, [items, place, leads]] of Object.entries(ITEMS))
	test(`an address with ${items.join(', ')} leads to its place, is kept as it is, and a reload restores it`, async () => {
		await open(trace, place);
		await leads();
		const kept = await eventually(fragment, (hash) => items.every((item) => hash.includes(`${item}=`)));
		await page.reload();
		await page.waitForSelector('body[data-ready]');
		await leads();
		assert.equal(await fragment(), kept);
		await page.evaluate(() => localStorage.clear());
	});

for (const [place, [trace, wanted, where]] of Object.entries(MORE_ITEMS))
	test(`the address ${place.replace(/^.*&p=/, 'p=')} leads to what it names, and a reload restores it`, async () => {
		const read = () => page.$eval(where, (e) => e.innerText || e.getAttribute('aria-label'));
		await open(trace, place);
		await page.waitForSelector(where);
		await eventually(read, wanted);
		await page.reload();
		await page.waitForSelector(where);
		await eventually(read, wanted);
		assert.equal(await fragment(), place);
	});

test('every kind of item in a track has an address, which leads to it', async () => {
	await open('tracks');
	const wanted = await page.evaluate(async () => {
		const { state } = await import('./viewer/state.js'), { allTracks, NO_CHOICES, writeItem } = await import('./viewer/tracks.js');
		return allTracks(state.model, NO_CHOICES).filter(({ items }) => items?.n)
			.flatMap((track) => [0, track.items.n - 1].map((i) => ({ id: track.id, i, text: writeItem({ track, i }) }))).filter(({ text }) => text);
	});
	assert.deepEqual([...new Set(wanted.map(({ text }) => text.split(':')[0]))].sort(), ['event', 'log', 'loss', 'sample', 'span', 'timer']);
	for (const { id, i, text: item } of wanted) {
		await go(`#s=${item}`);
		const found = await page.evaluate(async () => {
			const { state: { item: there } } = await import('./viewer/state.js');
			return there && [there.track.id, there.i];
		});
		assert.deepEqual(found, [id, i], item);
	}
});

test('start and end in the query open their part of the trace', async () => {
	await open('one', '?start=5200000000&end=5300000000');
	const { from, length, row } = await now();
	assert.deepEqual([Math.round(from), Math.round(length), row], [200, 100, -1]);
});

test('fingers: one moves the view, two zoom it, and one in the ruler, or that rested first, selects a range', async () => {
	await open('one', '#v=m5000000000~1000000000');
	const lanes = await (await page.$('#lanes')).boundingBox(), ruler = await (await page.$('#ruler')).boundingBox(), session = await page.createCDPSession();
	// Times are told: how long a finger rests must not depend on how busy the machine is.
	let clock = Date.now() / 1000;
	const touch = (type, ...points) => session.send('Input.dispatchTouchEvent', { type, timestamp: (clock += 0.02), touchPoints: points.map(([share, y], id) => ({ x: lanes.x + share * lanes.width, y, id })) });
	const y = lanes.y + 30, before = await now();
	await touch('touchStart', [0.5, y]);
	for (const share of [0.45, 0.4]) await touch('touchMove', [share, y]);
	await touch('touchEnd');
	const moved = await now();
	near(moved.from, Math.min(before.from + 100, moved.whole * 1.05 - moved.length), 10);
	await go('#v=m5000000000~1000000000');
	await touch('touchStart', [0.4, y], [0.6, y]);
	for (const by of [0.05, 0.1, 0.2]) await touch('touchMove', [0.4 - by, y], [0.6 + by, y]);
	await touch('touchEnd');
	const zoomed = await now();
	near(zoomed.length, before.length / 3, 5);
	near(zoomed.from + zoomed.length / 2, before.from + before.length / 2, 5);
	await touch('touchStart', [0.2, ruler.y + 10]);
	for (const share of [0.3, 0.4]) await touch('touchMove', [share, ruler.y + 10]);
	await touch('touchEnd');
	near((await now()).range[1] - (await now()).range[0], zoomed.length / 5, 2);
	await touch('touchStart', [0.5, y]);
	clock += 0.5;
	for (const share of [0.6, 0.8]) await touch('touchMove', [share, y]);
	await touch('touchEnd');
	near((await now()).range[1] - (await now()).range[0], zoomed.length * 0.3, 2);
	assert.equal((await now()).from, zoomed.from);
});
