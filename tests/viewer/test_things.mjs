// SPDX-License-Identifier: Apache-2.0
// The detail of tasks and spans, and the chain of wakes that leads to a call and on from it.

import { test } from 'node:test';
import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { HEADER, event, pool, reset, schema, serverTrace, stackPool, str32, stream, u16, u32, uleb } from '../toolkit/trace_bytes.mjs';
import { WORK, eventually, fragment, inTheme, open, page, text, useBrowser, violations } from './browser.mjs';

const MS = 1000000;
const SPAN = [['worker_id', 9], ['span_id', 9], ['span_name', 7], ['span_instance_id', 9], ['tid', 13], ['path', 7], ['size', 9], ['took', 9]];
const unit = (id, field, text) => [6, ...uleb(id), ...u16(1), ...u16(field), ...u16(4), ...Buffer.from('unit'), ...str32(text)];

/** A dump of task 8's wait, and a span around the blocked call, with fields of two units. */
function withThings() {
	const enter = (id, delta, size) => event(id, delta, uleb(0), uleb(0xbeef), u32(1), uleb(0xbeef), u32(4127), u32(2), uleb(size), uleb(1500));
	return Buffer.concat([serverTrace(), stream(HEADER, schema(1, 'TaskDumpEvent', [['task_id', 9], ['callchain', 6], ['truncated', 3], ['kept', 3]]), pool(1, 'request'), pool(2, '/a</b>'), stackPool(0, [0x1000, 0x2000]),
		schema(2, 'SpanEnter:app::request:a.c:1', SPAN), unit(2, 6, 'bytes'), schema(3, 'SpanExit:app::request:a.c:1', SPAN), unit(3, 7, 'us'), schema(4, 'SpanCloseEvent', [['span_id', 9], ['start_timestamp_ns', 9]]),
		reset(5397 * MS + 25000), event(1, 0, uleb(8), u32(0), 0, 0), reset(5401 * MS), enter(2, 0, 17), event(1, 0, uleb(99), u32(0), 0, 0), reset(5561 * MS), enter(3, 0, 4096), event(4, 0, uleb(0xbeef), uleb(5390 * MS)))]);
}

useBrowser(() => {
	mkdirSync(`${WORK}/one`);
	writeFileSync(`${WORK}/one/trace.0.bin`, withThings());
});

test('a task tells its life: when it was made, its calls, its waits with what armed them', async () => {
	await open('one', '#s=task:8');
	const said = await eventually(() => text('#detail'), /Longest calls/);
	assert.match(said, /Task[^]*on_read[^]*id\s+8, 0x8[^]*kind\s+io[^]*made at\s+server\.c:231[^]*born\s+[\d.]+.s[^]*lives at the end[^]*ran\s+2\d\d calls/);
	assert.match(said, /Idle between calls[^]*18\d.ms\s+fsync[^]*flush_log\s+log\.c:142/);
	assert.match(said, /Longest calls/);
	await eventually(() => text('#selected'), /^task 8, on_read, 2\d\d calls/);
	assert.match(await eventually(fragment, /s=task/), /s=task:8$/);
});

test('the task of a callback is a key away, and Back leads to the callback again', async () => {
	await open('one');
	await page.focus('#timeline');
	await eventually(fragment, /s=poll/);
	await page.keyboard.press('T');
	await eventually(fragment, /s=task:7/);
	await eventually(() => text('#detail'), /Task[^]*on_read/);
	await page.goBack();
	await eventually(() => text('#detail'), /Callback[^]*182.ms/);
});

test('the chain of wakes is followed to both sides, by link and by key', async () => {
	await open('one');
	await eventually(() => text('#detail'), /Wake chain\s+\d+ back[^]*render_report\s+2\.40.ms before\s+this call/);
	await page.focus('#timeline');
	await page.keyboard.press('w');
	await eventually(() => text('#detail'), /render_report[^]*Wake chain[^]*this call\s+on_read\s+ran 2\.40.ms later/);
	await page.keyboard.press('W');
	await eventually(() => text('#selected'), /^on_read, 182.ms/);
});

test('a span tells its fields with their units, its time, and the calls and tasks it was in', async () => {
	await open('one', '#s=span:beef');
	const said = await eventually(() => text('#detail'), /Inside of it/);
	assert.match(said, /Span[^]*request\s+17[01].ms[^]*id\s+beef[^]*inside\s+160.ms/);
	assert.match(said, /Time\s+adds up to 17[01].ms/);
	assert.match(said, /Fields\s+3\s+path\s+\/a<\/b>\s+Copy\s+size\s+\d+ bytes\s+Copy\s+took\s+1\.50.ms/);
	assert.match(said, /Inside of it\s+1 time\s+on_read\s+task 7\s+160.ms/);
	await page.evaluate(() => [...document.querySelectorAll('#detail button')].find((button) => button.textContent === 'What ran meanwhile').click());
	await eventually(fragment, /r=m5390000000~171000000/);
});

test('a task or a span that is not there is told once, and the page opens as ever', async () => {
	await open('one', '#s=task:12345&s=span:77');
	await eventually(() => text('#loaded'), /s=task:12345, s=span:77/);
});

for (const theme of ['light', 'dark'])
	test(`axe finds nothing wrong with a task or a span, ${theme}`, async () => {
		for (const item of ['task:8', 'span:beef']) {
			await page?.close();
			await open('one', `#s=${item}`);
			await inTheme(theme);
			assert.deepEqual(await violations(theme), []);
		}
	});
