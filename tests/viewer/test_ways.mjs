// SPDX-License-Identifier: Apache-2.0
// The callbacks tab names a function that the loop library calls inside a callback as the report's table does.

import { test } from 'node:test';
import { mkdirSync, writeFileSync } from 'node:fs';
import { TraceWriter } from '../toolkit/trace_writer.mjs';
import { WORK, eventually, open, page, useBrowser } from './browser.mjs';

const MS = 1000000;

/** Calls of a bufferevent, each second one for render_report; the span "request" around one is no function. */
function bufferTrace() {
	const w = new TraceWriter(), at = (ms, type, values) => w.at(7000000000 + ms * MS, type, values);
	const start = w.type('PollStartEvent', [['worker_id', 9], ['local_queue', 11], ['task_id', 9], ['spawn_loc', 7]]), end = w.type('PollEndEvent', [['worker_id', 9]]);
	const step = [['worker_id', 9], ['span_id', 9], ['span_name', 7]], [enter, exit] = ['Enter', 'Exit'].map((kind) => w.type(`Span${kind}:x::y:f.c:1`, step));
	for (let i = 0; i < 9; i++) {
		const span = { worker_id: 0, span_id: i + 1, span_name: i === 8 ? 'request' : 'render_report @ report.c:12' };
		at(10 * i, start, { worker_id: 0, local_queue: 0, task_id: 7, spawn_loc: 'bufferevent read @ server.c:231' });
		if (i % 2 || i === 8) {
			at(10 * i + 0.125, enter, span);
			at(10 * i + 2.875, exit, span);
		}
		at(10 * i + 3, end, { worker_id: 0 });
	}
	return w.finish();
}

useBrowser(() => {
	mkdirSync(`${WORK}/one`);
	writeFileSync(`${WORK}/one/trace.0.bin`, bufferTrace());
});

test('a callback is named with the function that it was for, and has a row for each of these', async () => {
	await open('one', '#p=callbacks');
	await eventually(() => page.$$eval('#panel-body tr[data-row]', (rows) => rows.map((row) => `${row.cells[0].innerText}=${row.cells[3].innerText}`).sort().join()),
		(rows) => rows === 'bufferevent read > render_report=4,bufferevent read=9');
});
