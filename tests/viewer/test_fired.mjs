// SPDX-License-Identifier: Apache-2.0
// What triggers have kept: the page opens at the moment of the first that fired, and marks and tells each.

import { test } from 'node:test';
import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { spawnSync } from 'node:child_process';
import { TraceWriter } from '../toolkit/trace_writer.mjs';
import { DIAL9, WORK, drop, eventually, forgive, fragment, inTheme, open, page, picture, serve, text, useBrowser, violations, visit } from './browser.mjs';

const ORIGIN = 7000000000, MS = 1000000;
const HOSTILE = '<img src=x onerror=harmed=1>';

/**
 * Two seconds of a server with the loops "main" and "pool".  on_parse takes 80 ms of main from 500 ms on, for which "slow-parse" fires, and on_read
 * follows at once; at 1 s "drops" fires, which no callback did.  on_flush takes 300 ms from 1200 ms on: that is the worst finding.
 */
function firedTrace({ several = 0 } = {}) {
	const w = new TraceWriter(), at = (ms, type, values) => w.at(ORIGIN + Math.round(ms * MS), type, values);
	const metadata = w.type('SegmentMetadataEvent', [['entries', 10]]), start = w.type('PollStartEvent', [['worker_id', 9], ['local_queue', 11], ['task_id', 9], ['spawn_loc', 7]]), end = w.type('PollEndEvent', [['worker_id', 9]]);
	const spawn = w.type('TaskSpawnEvent', [['task_id', 9], ['spawn_loc', 7], ['instrumented', 3], ['callback', 9]]);
	const fired = w.type('DumpTriggerEvent', [['trigger', 7], ['value', 9], ['threshold', 9], ['dump_id', 7], ['task_id', 9], ['callback', 9]]);
	const poll = (worker, from, length, task, name) => {
		at(from, start, { worker_id: worker, local_queue: 0, task_id: task, spawn_loc: `${name} @ server.c:${task}` });
		at(from + length, end, { worker_id: worker });
	};
	const entries = { service: 'parser', boot_id: 'boot-f', 'runtime.main': '0', 'runtime.pool': '1', 'trigger.slow-parse': 'slow-parse: poll > 50ms last 10s', 'trigger.drops': 'drops: loss > 5',
		'trigger.again': 'again: poll > 1ms where thread ~ x', [`trigger.${HOSTILE}`]: `loss > 0 pairs a="${HOSTILE}"` };
	at(0, metadata, { entries });
	at(0, spawn, { task_id: 8, spawn_loc: 'on_flush @ server.c:8', instrumented: 1, callback: 0x4000 });
	for (let ms = 10; ms < 2000; ms += 10) {
		if (!(ms >= 500 && ms < 590) && !(ms >= 1200 && ms < 1510)) poll(0, ms, 0.4, 7, 'on_parse');
		poll(1, ms + 1, 0.2, 9, 'on_read');
	}
	at(580, fired, { trigger: 'slow-parse', value: 80 * MS, threshold: 50 * MS, dump_id: '01ABC', task_id: 7, callback: 0 });
	poll(0, 500, 80, 7, 'on_parse');
	poll(0, 580, 0.5, 6, 'on_read');
	poll(0, 1200, 300, 8, 'on_flush');
	at(1000, fired, { trigger: 'drops', value: 9, threshold: 5, dump_id: '01ABC', task_id: 0, callback: 0 });
	// Of a task that the trace does not have: its callback is told by the address.
	for (let i = 0; i < several; i++) at(1100 + i, fired, { trigger: 'again', value: 2 * MS, threshold: MS, dump_id: '01ABD', task_id: 99, callback: 0x4000 });
	if (several) at(1900, fired, { trigger: HOSTILE, value: 1, threshold: 0, dump_id: HOSTILE, task_id: 0, callback: 0 });
	return w.finish();
}

useBrowser(() => {
	for (const folder of ['fired', 'many', 'live', 'none']) mkdirSync(`${WORK}/${folder}`);
	for (const folder of ['fired', 'live']) writeFileSync(`${WORK}/${folder}/trace.0.bin`, firedTrace());
	writeFileSync(`${WORK}/many/trace.0.bin`, firedTrace({ several: 6 }));
});

const now = () => page.evaluate(async () => {
	const { state } = await import('./viewer/state.js'), { model, selected, view, fire, finding } = state;
	return { fire, finding, called: selected ? model.label(selected.lane, selected.row).name : '', from: Math.round(view[0] / 1e6), to: Math.round(view[1] / 1e6) };
});

/** What the report says, the command first that opens the page at its place. */
const report = (folder, ...options) => spawnSync(DIAL9, ['report', '--no-symbols', ...options, `${WORK}/${folder}`], { encoding: 'utf8' }).stdout;

/** Whether |canvas| has the flag's colour in a column, from |top| on for |height| pixels. */
const flagAt = (canvas, x, top, height) => page.evaluate((id, column, y, h) => {
	const box = document.getElementById(id), ratio = box.width / box.clientWidth, { data } = box.getContext('2d').getImageData(Math.round(column * ratio), Math.round(y * ratio), 1, Math.round(h * ratio));
	const probe = document.createElement('canvas').getContext('2d');
	probe.fillStyle = getComputedStyle(document.documentElement).getPropertyValue('--text').trim();
	probe.fillRect(0, 0, 1, 1);
	const wanted = probe.getImageData(0, 0, 1, 1).data;
	return Array.from({ length: data.length / 4 }, (_, i) => [0, 1, 2].every((k) => Math.abs(data[i * 4 + k] - wanted[k]) < 3)).every(Boolean);
}, canvas, x, top, height);

async function xOf(ms, canvas = 'lane-canvas') {
	const [width, from, to] = await page.evaluate(async (id) => {
		const { state } = await import('./viewer/state.js'), [a, b] = id === 'minimap' ? [state.model.first, state.model.last] : state.view;
		return [document.getElementById(id).clientWidth, a, b];
	}, canvas);
	return Math.round((ms * MS - from) / (to - from) * width);
}

test('a trace that a trigger has kept opens at what fired it, not at the worst finding', async () => {
	await open('fired');
	const { fire, finding, called, from, to } = await now();
	assert.deepEqual([fire, finding, called], [0, -1, 'on_parse']);
	assert.ok(from > 300 && from < 500 && to > 580 && to < 800, `${from} to ${to}`);
	await eventually(() => text('.finding[aria-current="true"]'), /^Trigger slow-parse\s+main\s+fired at 0\.580000.s: poll 80\.0 ms, over 50\.0 ms, in on_parse$/);
	await eventually(() => text('#selected'), /^on_parse, 80\.0.ms, main, at 0\.500000.s, .*trigger slow-parse fired$/);
	assert.match(await page.$eval('#item', (e) => e.getAttribute('aria-label')), /trigger slow-parse fired/);
	await eventually(() => text('#speech'), /trigger slow-parse fired/);
	await eventually(() => text('#detail'), /trigger 1 of 2[^]*on_parse[^]*Trigger slow-parse fired[^]*poll 80\.0 ms, over 50\.0 ms[^]*poll > 50ms last 10s[^]*01ABC/);
	assert.match(await text('#findings'), /^What fired2\s[^]*Trigger drops[^]*fired at 1\.000000.s: loss 9, over 5[^]*What went wrong/);
	assert.match(await eventually(fragment, /t=/), /^#v=m\d+~\d+&s=poll:0@7500000000&t=slow-parse\.1$/);
	assert.match(await text('#legend'), /trigger fired/);
});

test('each is a flag in the overview, in the axis, and in the lane that it is about, which tells of it and leads to it', async () => {
	await open('fired', '#v=m7000000000~2000000000');
	assert.equal((await now()).fire, -1);
	for (const ms of [580, 1000]) {
		assert.equal(await flagAt('minimap', await xOf(ms, 'minimap'), 12, 7), true, `${ms} in the overview`);
		assert.equal(await flagAt('ruler', await xOf(ms), 0, 27), true, `${ms} in the axis`);
	}
	assert.equal(await flagAt('ruler', await xOf(800), 0, 27), false);
	assert.equal(await flagAt('lane-canvas', await xOf(580), 1, 50), true);
	assert.equal(await flagAt('lane-canvas', await xOf(580), 66, 50), false, 'the other lane');
	// What was kept may end where it fired.
	await page.evaluate(() => {
		location.hash = '#v=m7000000000~580000000';
	});
	await eventually(() => text('#in-view'), /^580/);
	assert.equal(await flagAt('ruler', await xOf(580) - 1, 0, 27), true, 'at the end');
	await page.evaluate(() => {
		location.hash = '#v=m7000000000~2000000000';
	});
	await eventually(() => text('#in-view'), /^2.00/);
	const box = await (await page.$('#lane-canvas')).boundingBox(), x = box.x + await xOf(580) + 3, y = box.y + 4;
	await page.mouse.move(x, y);
	await eventually(() => text('#tooltip'), /^trigger slow-parse fired at 0\.580000.s, main, poll 80\.0 ms, over 50\.0 ms, in on_parse$/);
	await page.mouse.click(x, y);
	assert.deepEqual([(await now()).fire, (await now()).called], [0, 'on_parse']);
	forgive(/willReadFrequently/); // the test reads, not the page
});

test('the keyboard goes from one to the next, also to one that is about no callback, and a reload stays there', async () => {
	await open('fired');
	await page.focus('#timeline');
	await page.keyboard.press('N');
	await eventually(() => text('#selected'), /^trigger drops fired at 1\.000000.s, loss 9, over 5$/);
	assert.match(await page.$eval('#item', (e) => e.getAttribute('aria-label')), /^trigger drops fired/);
	assert.match(await text('#detail'), /trigger 2 of 2[^]*Trigger drops fired[^]*loss 9, over 5/);
	const { from, to } = await now(), place = await eventually(fragment, /t=drops\.2/);
	assert.ok(from < 1000 && to > 1000);
	await page.reload();
	await page.waitForSelector('body[data-ready]');
	assert.equal((await now()).fire, 1);
	assert.equal(await fragment(), place);
	await page.focus('.fire');
	await page.keyboard.press('Enter');
	assert.deepEqual([(await now()).fire, (await now()).called], [0, 'on_parse']);
	await page.keyboard.press('n');
	assert.deepEqual(await now().then(({ fire, finding, called }) => [fire, finding, called]), [-1, 0, 'on_flush']);
	await page.keyboard.press('Escape');
	await page.keyboard.press('c');
	await page.keyboard.press('c');
	assert.equal(await page.$('.finding[aria-current]'), null);
	await page.evaluate(() => {
		location.hash = '#t=drops.2';
	});
	await eventually(() => text('#selected'), /^trigger drops fired/);
	await page.type('#search', 'slow-p');
	assert.match(await eventually(() => text('#results'), /trigger slow-parse fired/), /triggers that fired/);
});

test('an address that names a place, and a query, come before what fired', async () => {
	await open('fired', '#v=m8000000000~100000000');
	assert.deepEqual(await now(), { fire: -1, finding: -1, called: '', from: 1000, to: 1100 });
	await page.close();
	await visit(`${(await serve('fired')).replace('#', '')}?start=7100000000&end=7200000000`);
	assert.deepEqual([(await now()).fire, (await now()).from], [-1, 100]);
});

test('a page that is one file, and a file of the reader\'s, open there, too', async () => {
	const made = spawnSync(DIAL9, ['report', '--html', '-o', `${WORK}/page.html`, `${WORK}/fired`], { encoding: 'utf8' });
	assert.equal(made.status, 0, made.stderr);
	await visit(`file://${WORK}/page.html`);
	await eventually(() => text('.finding[aria-current="true"]'), /slow-parse[^]*poll 80\.0 ms, over 50\.0 ms, in on_parse/);
	await eventually(() => text('#selected'), /^on_parse, 80\.0.ms/);
	await page.close();
	await open('many');
	await drop('kept.bin', readFileSync(`${WORK}/fired/trace.0.bin`));
	await eventually(() => text('#findings'), /^What fired2/);
	await eventually(() => text('.finding[aria-current="true"]'), /slow-parse[^]*poll 80\.0.ms, over 50\.0.ms, in on_parse/);
	await eventually(() => text('#selected'), /^on_parse, 80\.0.ms/);
});

test('while it is followed the page stays at its end, and has the cards', async () => {
	await visit(await serve('live', '--live'));
	await eventually(() => text('#findings'), /^What fired2/);
	assert.equal(await text('#follow'), 'Live');
	assert.equal((await now()).fire, -1);
	await page.click('.fire');
	await eventually(() => text('#selected'), /^on_parse, 80\.0.ms/);
	assert.equal(await text('#follow'), 'Paused: follow');
});

test('of many the first are listed, and the others are a press away; a callback is named by its address', async () => {
	await open('many');
	assert.equal(await page.$$eval('.fire', (all) => all.length), 3);
	assert.match(await page.$$eval('.fire', (all) => all[2].innerText), /again[^]*poll 2\.00 ms, over 1\.00 ms, in on_flush/);
	await page.click('.fires .link');
	assert.equal(await page.$$eval('.fire', (all) => all.length), 9);
	await page.evaluate(() => document.querySelector('.fires .fire:nth-of-type(9)').click());
	await eventually(() => text('#selected'), /^trigger <img src=x onerror=harmed=1> fired/);
	assert.equal(await page.evaluate(() => globalThis.harmed), undefined);
	await page.keyboard.press('N');
	await page.keyboard.press('N');
	assert.equal((await now()).fire, 1);
});

test('the report says what fired, and which command opens the page there', () => {
	assert.match(report('fired', '--color', 'never', '--width', '200'), /\ntrigger slow-parse fired at 0?\.?\d.*: poll 80\.0 ms, over 50\.0 ms, in on_parse; and 1 more\n[^]*\ndetails: dial9 report -v \S+\n +dial9 serve \S+\/fired\n/);
	const { fired } = JSON.parse(report('many', '--json')).trace;
	assert.deepEqual(fired.slice(0, 3).map(({ trigger, measure, worker, callback }) => [trigger, measure, worker, callback]), [['slow-parse', 'poll 80.0 ms, over 50.0 ms', 0, 'on_parse @ server.c:7'], ['drops', 'loss 9, over 5', null, null],
		['again', 'poll 2.00 ms, over 1.00 ms', null, 'on_flush @ server.c:8']]);
});

for (const [theme, size] of [['light', { width: 1280, height: 800 }], ['dark', { width: 480, height: 800 }]])
	test(`axe finds nothing wrong with it, ${theme}, ${size.width} pixels wide`, async () => {
		await open('many', '', size);
		await inTheme(theme);
		assert.deepEqual(await violations(), []);
		await picture(`fired-${theme}-${size.width}`);
	});
