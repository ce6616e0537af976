// SPDX-License-Identifier: Apache-2.0
// A page that follows a directory while the tests write to it.

import { test } from 'node:test';
import assert from 'node:assert/strict';
import { appendFileSync, mkdirSync, writeFileSync } from 'node:fs';
import { HEADER, SHAPES, event, pool, reset, stream, u32, uleb } from '../toolkit/trace_bytes.mjs';
import { WORK, eventually, fragment, page, serve, text, useBrowser, violations, visit } from './browser.mjs';

const SECOND = 1e9, CALL_NS = 20000;

useBrowser(() => {
	for (const folder of ['followed', 'grows', 'empty', 'paused', 'place', 'renamed']) mkdirSync(`${WORK}/${folder}`);
});

/** One call in each tenth of the seconds [from, to) of the clock. */
function calls(from, to) {
	const parts = [];
	for (let tenth = from * 10; tenth < to * 10; tenth++)
		parts.push(reset(tenth * 1e8), event(1, 0, uleb(0), 0, uleb(7), u32(0)), event(2, CALL_NS, uleb(0)));
	return parts;
}

function segment(from, to) {
	return stream(HEADER, SHAPES.start(1), SHAPES.end(2), pool(0, 'on_read @ server.c:231'), ...calls(from, to));
}

/** Seconds of the trace's clock: [left, right] of the view, and the newest. */
const shown = () => page.evaluate(async () => {
	const { state } = await import('./viewer/state.js'), { relativeTime } = await import('./toolkit/trace.js');
	const zero = relativeTime(state.model.main, 0n), seconds = (time) => Math.round((time - zero) / 1e8) / 10;
	return { left: seconds(state.view[0]), right: seconds(state.view[1]), newest: seconds(state.model.last), calls: state.model.lanes[0].polls.n };
});

const newest = async () => (await shown()).newest;

test('what is written while the page is open appears at its right edge', async () => {
	writeFileSync(`${WORK}/followed/trace.0.bin`, segment(100, 130));
	await visit(await serve('followed', '--live'));
	assert.deepEqual(await shown(), { left: 119.9, right: 129.9, newest: 129.9, calls: 300 });
	assert.equal(await text('#follow'), 'Live');
	await eventually(() => text('#loaded'), /^following, nothing is being written now: the last 29\.9.s$/);
	writeFileSync(`${WORK}/followed/trace.1.bin`, segment(130, 150));
	await eventually(newest, (at) => at === 149.9);
	assert.deepEqual(await shown(), { left: 139.9, right: 149.9, newest: 149.9, calls: 500 });
	assert.equal(await fragment(), '');
	assert.deepEqual(await violations(), []);
});

test('of a segment that grows only what is new is asked for, and of many the newest are shown', async () => {
	const first = segment(100, 110);
	writeFileSync(`${WORK}/grows/trace.0.bin.active`, first);
	await visit(await serve('grows', '--live'));
	const asked = () => page.evaluate(() => performance.getEntriesByType('resource').map(({ name }) => name).filter((name) => name.includes('?from=')).at(-1));
	assert.match(await asked(), /from=0$/);
	appendFileSync(`${WORK}/grows/trace.0.bin.active`, stream(...calls(110, 112)));
	await eventually(newest, (at) => at === 111.9);
	assert.match(await asked(), new RegExp(`from=${first.length}$`));
	assert.equal((await shown()).calls, 120);
	for (let i = 1; i <= 70; i++) writeFileSync(`${WORK}/grows/trace.${i}.bin`, segment(111 + i, 112 + i));
	await eventually(newest, (at) => at === 181.9);
	assert.match(await eventually(() => text('#loaded'), /64 of 71/), /^following: the last 6[34]\.\d.s, the newest 64 of 71 segments$/);
});

test('who looks at something has it stay as it is, until they follow again', async () => {
	writeFileSync(`${WORK}/paused/trace.0.bin`, segment(100, 130));
	await visit(await serve('paused', '--live'));
	await page.focus('#timeline');
	await page.keyboard.press('PageUp');
	const before = await shown();
	assert.equal(before.right, 119.9);
	assert.equal(await text('#follow'), 'Paused: follow');
	await eventually(() => text('#loaded'), /^paused/);
	writeFileSync(`${WORK}/paused/trace.1.bin`, segment(130, 140));
	// Twice as long as it takes to ask again.
	await new Promise((resolve) => setTimeout(resolve, 2000));
	assert.deepEqual(await shown(), before);
	assert.deepEqual(await violations(), []);
	await page.keyboard.press('l');
	await eventually(newest, (at) => at === 139.9);
	assert.equal((await shown()).right, 139.9);
	assert.equal(await text('#follow'), 'Live');
	await page.keyboard.press('ArrowRight');
	assert.equal(await text('#follow'), 'Paused: follow');
	await eventually(() => text('#selected'), /on_read/);
	await page.click('#follow');
	assert.equal(await text('#follow'), 'Live');
	assert.equal(await text('#selected'), 'Nothing selected');
});

test('an address that names a place opens there, paused', async () => {
	writeFileSync(`${WORK}/place/trace.0.bin`, segment(100, 130));
	await visit(`${await serve('place', '--live')}#v=m105000000000~1000000000`);
	const { left, right } = await shown();
	assert.deepEqual([left, right], [105, 106]);
	assert.equal(await text('#follow'), 'Paused: follow');
});

test('a directory in which nothing is yet is waited for', async () => {
	await visit(await serve('empty', '--live'), undefined, '#message:not([hidden])');
	await eventually(() => text('#message'), /nothing is written yet: waiting for the first segment/);
	writeFileSync(`${WORK}/empty/trace.0.bin`, segment(100, 101));
	await page.waitForSelector('body[data-ready]');
	assert.equal(await newest(), 100.9);
});

test('a report that failed, as a segment was renamed meanwhile, is soon asked for again', async () => {
	writeFileSync(`${WORK}/renamed/trace.0.bin`, segment(100, 102));
	await visit(await serve('renamed', '--live'));
	await page.evaluateOnNewDocument(() => {
		const really = globalThis.fetch, asked = globalThis.asked = [];
		globalThis.fetch = (what, ...more) => (/api\/report/.test(what) && asked.push(performance.now()) === 1 ? Promise.resolve(new Response('no such segment', { status: 404 })) : really(what, ...more));
	});
	await page.reload();
	await eventually(() => page.evaluate(() => globalThis.asked.length), (times) => times > 1);
	await eventually(() => text('#findings'), (said) => /Nothing stands out/.test(said) && !said.includes('no such segment'));
	const [first, second] = await page.evaluate(() => globalThis.asked);
	assert.ok(second - first < 15000, `after ${second - first} ms`);
});
