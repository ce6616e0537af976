// SPDX-License-Identifier: Apache-2.0
// Traces in which each field of each event that readers know has a type, or a value, that it has in no trace of ours.

import { KNOWN_EVENTS } from '../../core/toolkit/known.js';
import { TraceWriter } from './trace_writer.mjs';

const MS = 1000000, ORIGIN = 7000 * MS, OPTIONAL = 128;
const USUAL = { i: [9, 7], t: [7, 'text'], b: [3, 1], s: [6, [0x1000, 0x2000]], m: [10, { program: 'p' }] };

/** Values of each type of the wire, by number. */
export const STRANGE_VALUES = {
	1: [-1n, 5n, -(2n ** 63n), 2n ** 63n - 1n], 2: [NaN, -1, 0.5, Infinity, 1e300], 3: [0, 1], 4: ['', '7', '__proto__'], 5: [[], [1, 2]], 6: [[], [0x1000]], 7: ['', '-1'], 8: [[], [2n ** 64n - 1n]],
	9: [0n, 300n, 2n ** 32n + 1n, 2n ** 53n + 1n, 2n ** 64n - 1n], 10: [{}, { a: 'b' }], 11: [0, 255], 12: [65535], 13: [0xffffffff], 14: [[], [7]], 15: [[], [[1, 2]]],
};

/** [what, {type, value}]: each of these; and fields that are null, or not there. */
export const STRANGE = [...Object.entries(STRANGE_VALUES).flatMap(([type, values]) => values.map((value, i) => [`${type}-${i}`, { type: Number(type), value }])),
	['null', { absent: true }], ['missing', { missing: true }]];

function schemaOf(name, strange, one) {
	const usual = KNOWN_EVENTS[name].split(' ').map((text) => [/^\w+/.exec(text)[0], USUAL[/:(\w)/.exec(text)?.[1] ?? 'i']]);
	const fields = usual.filter(([field]) => !strange.missing || field !== one).map(([field, [type]]) => [field, field !== one ? type : strange.absent ? type | OPTIONAL : strange.type]);
	const values = Object.fromEntries(usual.map(([field, [, value]]) => [field, field !== one ? value : strange.absent ? undefined : strange.value]));
	return { fields, values, full: /:$|__$/.test(name) ? `${name}x` : name };
}

/** A loop as it should be, and among its calls, for each field of |events|, three events whose field is |strange|. */
export function strangeTrace(strange, events = Object.keys(KNOWN_EVENTS)) {
	const w = new TraceWriter(), start = w.type('PollStartEvent', [['worker_id', 9], ['local_queue', 11], ['task_id', 9], ['spawn_loc', 7]]), end = w.type('PollEndEvent', [['worker_id', 9]]);
	const park = w.type('WorkerParkEvent', [['worker_id', 9], ['local_queue', 11], ['cpu_time_ns', 9], ['tid', 13]]), unpark = w.type('WorkerUnparkEvent', [['worker_id', 9], ['local_queue', 11], ['cpu_time_ns', 9], ['sched_wait_ns', 9], ['tid', 13]]);
	for (let ms = 1; ms < 400; ms += 10) {
		w.at(ORIGIN + ms * MS - 2000, unpark, { worker_id: 0, local_queue: 0, cpu_time_ns: ms * 5000, sched_wait_ns: 0, tid: 77 });
		w.at(ORIGIN + ms * MS, start, { worker_id: 0, local_queue: 1, task_id: 3, spawn_loc: 'on_read @ x' });
		w.at(ORIGIN + (ms + 5) * MS, end, { worker_id: 0 });
		w.at(ORIGIN + (ms + 5) * MS + 2000, park, { worker_id: 0, local_queue: 0, cpu_time_ns: ms * 5000 + 4000, tid: 77 });
	}
	let n = 0;
	for (const name of events)
		for (const text of KNOWN_EVENTS[name].split(' ')) {
			const { fields, values, full } = schemaOf(name, strange, /^\w+/.exec(text)[0]), type = w.type(full, fields);
			for (let i = 0; i < 3; i++, n++) w.at(ORIGIN + (n * 37 % 400) * MS + 6 * MS + n, type, values);
		}
	return w.finish();
}
