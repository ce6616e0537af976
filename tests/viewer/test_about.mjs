// SPDX-License-Identifier: Apache-2.0
// Can a trace be trusted, and what a page says that has little or nothing to show.

import { test } from 'node:test';
import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { HEADER, SHAPES, event, pool, reset, schema, serverTrace, stackPool, stream, str32, u32, uleb } from '../toolkit/trace_bytes.mjs';
import { WORK, eventually, forgive, fragment, inTheme, open, page, text, useBrowser, violations } from './browser.mjs';

const MS = 1000000;
const metadata = (pairs) => event(7, 0, u32(pairs.length), ...pairs.flat().map(str32));
const SHAPE_OF_LOSS = schema(20, 'RecorderLossEvent', [['cause', 7], ['events', 9], ['from_ns', 9], ['to_ns', 9]]);

/** Only metadata; with |rows| behind it. */
function bare(pairs, ...rows) {
	return stream(HEADER, SHAPES.metadata(7), SHAPES.sample(8), SHAPE_OF_LOSS, pool(0, 'ring full'), stackPool(0, [0x1000, 0x2000]), reset(5000 * MS), metadata(pairs), ...rows);
}

const TRACES = {
	empty: () => stream(HEADER),
	none: () => 'this is a text, and no trace',
	// Samples of two threads that run no loop.
	samples: () => bare([['dial9-c.version', '0.1.0'], ['source.cpu', 'on'], ['program', './batch-import']], ...[1, 2, 3, 4].map((i) => event(8, MS, uleb(255), u32(4000 + i % 2), 0, u32(0)))),
	whole: () => serverTrace(),
	killed: () => Buffer.concat([serverTrace(), stream(HEADER, SHAPES.metadata(7), reset(5700 * MS), metadata([['recovered', 'true'], ['segment.sealed_clean', 'false']]))]),
	cut: () => serverTrace().subarray(0, 40001),
	damaged: () => Buffer.concat([serverTrace().subarray(0, 0x9000), Buffer.alloc(64, 0xee)]),
	lost: () => Buffer.concat([serverTrace(), stream(HEADER, SHAPES.metadata(7), SHAPE_OF_LOSS, pool(0, 'ring full'), reset(5700 * MS),
		metadata([['dial9-c.version', '0.1.0'], ['source.memory', 'off: not asked for'], ['source.cpu', 'on; but without the kernel'], ['source.blocking', 'on'], ['loop.libevent.capabilities', 'poll=on,park=on,wake=partial,spawn=on,depth=on,lateness=off'], ['loop.libevent.degraded', 'event_active is inlined']]),
		event(20, 0, u32(0), uleb(313), uleb(5200 * MS), uleb(5210 * MS)))]),
};

useBrowser(() => {
	for (const [name, bytes] of Object.entries(TRACES)) {
		mkdirSync(`${WORK}/${name}`);
		writeFileSync(`${WORK}/${name}/trace.0.bin`, bytes());
	}
	mkdirSync(`${WORK}/unread`);
	writeFileSync(`${WORK}/unread/trace.0.bin`, serverTrace());
	writeFileSync(`${WORK}/unread/trace.1.bin.zst`, Buffer.from([0x28, 0xb5, 0x2f]));
});

const about = async () => {
	await page.keyboard.press('v');
	return eventually(() => text('#detail'), /About this trace/);
};

test('an empty trace says that it is, and how to record one', async () => {
	await open('empty');
	await eventually(() => text('#empty'), /This trace is empty\.[^]*dial9 record -- PROGRAM[^]*d9_event_base_attach[^]*dial9 doctor/);
});

test('a trace of samples alone says what it holds, and asks whether a loop was attached', async () => {
	await open('samples');
	await eventually(() => text('#empty'), /no loop events[^]*It holds 4 samples of 2 threads\. Was a loop attached\?[^]*dial9 record -- \.\/batch-import/);
	assert.match(await about(), /event loops\s+off\s+none was attached[^]*samples on the CPU\s+on/);
});

test('a trace with callbacks has no such words', async () => {
	await open('whole');
	assert.equal(await page.$eval('#empty', (e) => e.hidden), true);
	assert.match(await about(), /Nothing was lost, and no segment is damaged/);
	await eventually(fragment, (said) => !/s=|f=/.test(said));
});

test('addresses without names are counted, with the command that names them', async () => {
	await open('whole');
	assert.match(await about(), /6 of 8 addresses in stacks have no name[^]*dial9 symbolize trace\.0\.bin/);
});

test('no stacks at all: the option that records them', async () => {
	await open('empty');
	await eventually(() => text('#detail'), /There are no stacks in it[^]*dial9 record --cpu 99 -- PROGRAM/);
});

test('a segment that ends inside a frame is told with the byte, and is no alarm', async () => {
	await open('cut');
	assert.match(await about(), /trace\.0\.bin ends in the middle of a frame, at byte \d+\./);
	assert.equal(await page.$('#facts .alarm'), null);
	await eventually(() => text('#facts'), /its end is missing$/);
});

test('a program that was killed is told in the headline, and that is no alarm', async () => {
	await open('killed');
	await eventually(() => text('#facts'), /nothing lost\s*·\s*killed or left by _exit\(\)$/);
	assert.equal(await page.$('#facts .alarm'), null);
});

test('a segment that was cut before its first event is an alarm in the headline', async () => {
	await open('unread');
	await eventually(() => text('#facts'), /^parts missing/);
	await page.click('#facts .alarm');
	assert.match(await eventually(() => text('#detail'), /About/), /trace\.1\.bin\.zst was cut before its first event\.[^]*no figure has any of it/);
});

test('a file that is no trace is told to be none, and nothing in it is wider than its panel', async () => {
	await open('none');
	await eventually(() => text('#empty'), /^This cannot be read as a trace\.\s+trace\.0\.bin: offset 0: not a TRC stream\./);
	assert.doesNotMatch(await text('#empty'), /dial9 record/);
	assert.equal(await page.$eval('#findings', (e) => e.scrollWidth <= e.clientWidth), true);
	forgive(/422/);
});

test('damage is an alarm in the headline, which leads to what it does to the figures', async () => {
	await open('damaged');
	await page.click('#facts .alarm');
	assert.match(await eventually(() => text('#detail'), /About/), /is damaged at byte \d+[^]*Everything before it is shown/);
});

test('losses come first: how many, why, what they do to the figures, and when', async () => {
	await open('lost');
	await eventually(() => text('#facts'), /^313 events lost/);
	await page.click('#facts .alarm');
	const said = await eventually(() => text('#detail'), /About/);
	assert.match(said, /313 events were lost: ring full\.[^]*Counts and sums are lower bounds/);
	assert.match(said, /callbacks\s+on[^]*what made callbacks ready\s+in part\s+event_active is inlined[^]*lateness of timers\s+off[^]*samples on the CPU\s+in part[^]*without the kernel[^]*calls that block\s+on[^]*allocations\s+off\s+not asked for: dial9 record --memory/);
	await page.evaluate(() => [...document.querySelectorAll('#detail button')].find((button) => button.textContent === 'Show when').click());
	await eventually(fragment, /r=m5200000000~10000000/);
});

test('all that the trace says of itself is there, in order', async () => {
	await open('lost');
	await about();
	await page.$$eval('#detail details', (all) => all.forEach((details) => { details.open = true; }));
	await eventually(() => text('#detail'), /What the trace says of itself\s+boot_id\s+boot-1\s+dial9-c\.version\s+0\.1\.0\s+loop\.libevent\.capabilities/);
});

for (const theme of ['light', 'dark'])
	test(`axe finds nothing wrong where little is shown, ${theme}`, async () => {
		await open('samples');
		await inTheme(theme);
		assert.deepEqual(await violations(theme), []);
		await page.close();
		await open('lost');
		await inTheme(theme);
		await page.click('#facts .alarm');
		assert.deepEqual(await violations(theme), []);
	});
