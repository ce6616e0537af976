// SPDX-License-Identifier: Apache-2.0
// Traces that mean harm: with texts, counts, times and types that no recorder writes.

import { gzipSync } from 'node:zlib';
import { HEADER, event, pool, reset, schema, stream, str16, u16, u32, u64, uleb } from '../toolkit/trace_bytes.mjs';
import { TraceWriter } from '../toolkit/trace_writer.mjs';

const MS = 1000000, ORIGIN = 7000 * MS;
const START = [['worker_id', 9], ['local_queue', 11], ['task_id', 9], ['spawn_loc', 7]], END = [['worker_id', 9]];

/** Texts by what they are meant to do. */
export const TEXTS = {
	markup: '<img src=x onerror="harmed=1">', script: '</script><script>globalThis.harmed=1</script>', comment: '<!--<script>', attribute: '" onfocus="harmed=1" autofocus x="', style: '</style><style>*{background:url(//evil.example)}',
	link: 'javascript:harmed=1', prototype: '__proto__', maker: 'constructor', template: '${harmed=1}{{harmed=1}}', formula: '=HYPERLINK("//evil.example")',
	hidden: 'a\u202eb\u0000c\u009b\u2028\u2029d\u200be\ufeff\u2066f\u{e0041}\u00ad', lines: 'x\nFAKE LINE\r\n\ty', long: 'x'.repeat(70000),
};

/** What no page may show as it is. */
export const BAD = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|\udb40[\udc00-\udfff]|(?<!x)x{4001}/;

/** A trace of two loops in which |text| stands wherever a trace has texts: names, fields, values, units, metadata. */
export function everyText(text) {
	const w = new TraceWriter(), at = (ms, type, values) => w.at(ORIGIN + Math.round(ms * MS), type, values);
	const start = w.type('PollStartEvent', START), end = w.type('PollEndEvent', END), place = `${text} @ ${text}`;
	const keys = ['service', 'program', 'host', 'boot_id', 'pid', 'system.kernel', `runtime.${text}`, 'loop.libev.capabilities', 'loop.libev.degraded', 'source.cpu', 'memory.sample_rate_bytes', 'process.available_parallelism',
		'segment.told_ns', 'cut.from_ns', text];
	at(0, w.type('ClockSyncEvent', [['realtime_ns', 9]]), { realtime_ns: 1700000000000000000n });
	at(0, w.type('SegmentMetadataEvent', [['entries', 10]]), { entries: Object.fromEntries(keys.map((key) => [key, key.startsWith('runtime.') ? '0,1' : text])) });
	at(1, w.type('TaskSpawnEvent', [['task_id', 9], ['spawn_loc', 7], ['instrumented', 3], ['kind', 7], ['fd', 137], ['name', 135]]), { task_id: 7, spawn_loc: place, instrumented: 1, kind: text, fd: 3, name: text });
	for (let ms = 10; ms < 1000; ms += 10)
		for (const worker of [0, 1]) {
			if (ms > 400 && ms < 600) continue;
			at(ms, start, { worker_id: worker, local_queue: 5, task_id: 7 + worker, spawn_loc: place });
			at(ms + (ms === 400 && !worker ? 180 : 0.1), end, { worker_id: worker });
		}
	at(420, w.type('BlockingCallEvent', [['worker_id', 9], ['task_id', 9], ['function', 7], ['fd', 137], ['duration_ns', 9]]), { worker_id: 0, task_id: 7, function: text, fd: 3, duration_ns: 100 * MS });
	const sample = w.type('CpuSampleEvent', [['worker_id', 9], ['tid', 13], ['source', 11], ['thread_name', 135], ['callchain', 6]]);
	for (let ms = 410; ms < 560; ms += 10)
		for (const worker of [0, 255]) at(ms, sample, { worker_id: worker, tid: 100 + worker, source: 0, thread_name: text, callchain: [0x1000, 0x2000, 0x3000] });
	at(2, w.type('ModuleEvent', [['base', 9], ['start', 9], ['size', 9], ['path', 4]]), { base: 0x2000, start: 0x2000, size: 0x100, path: `/${text}` });
	at(2, w.type('SymbolTableEntry', [['addr', 9], ['size', 9], ['symbol_name', 7], ['inline_depth', 9], ['source_file', 7], ['source_line', 9]]), { addr: 0x1000, size: 16, symbol_name: text, inline_depth: 0, source_file: text, source_line: 7 });
	const span = [['worker_id', 9], ['span_id', 9], ['span_name', 7], ['span_instance_id', 9], ['tid', 13], [text.slice(0, 60000), 4, { unit: text }]], [enter, exit] = ['Enter', 'Exit'].map((kind) => w.type(`Span${kind}:${text.slice(0, 60000)}`, span));
	for (const [ms, type] of [[401, enter], [570, exit]]) at(ms, type, { worker_id: 0, span_id: 3, span_name: text, span_instance_id: 3, tid: 100, [text.slice(0, 60000)]: text });
	at(580, w.type('SpanCloseEvent', [['span_id', 9], ['span_instance_id', 9], ['start_timestamp_ns', 9], ['span_name', 7], ['attributes', 10]]), { span_id: 3, span_instance_id: 3, start_timestamp_ns: ORIGIN + 401 * MS, span_name: text, attributes: { [text]: text } });
	const own = w.type(text.slice(0, 60000), [['worker_id', 9], [text.slice(0, 60000), 9, { unit: text, kind: 'gauge', [text.slice(0, 60000)]: text }], ['note', 7], ['part', 7, { partition: text }], ['list', 10]]);
	for (let ms = 100; ms < 900; ms += 100) at(ms, own, { worker_id: 0, [text.slice(0, 60000)]: ms, note: text, part: text, list: { [text]: text } });
	at(700, w.type('RecorderLossEvent', [['tid', 13], ['worker_id', 9], ['cause', 7], ['events', 9]]), { tid: 1, worker_id: 0, cause: text, events: 3 });
	at(800, w.type('LoopTasksEvent', [['loop', 7], ['tasks', 9]]), { loop: text, tasks: 9 });
	at(800, w.type('RuntimeMetricsEvent', [['runtime_name', 7], ['global_queue_depth', 13], ['alive_tasks', 13]]), { runtime_name: text, global_queue_depth: 3, alive_tasks: 9 });
	at(810, w.type('HelperRunEvent', [['function', 7], ['item', 9], ['wait_ns', 9], ['run_ns', 9]]), { function: text, item: 1, wait_ns: MS, run_ns: 50 * MS });
	at(820, w.type('TaskDumpEvent', [['task_id', 9], ['callchain', 6]]), { task_id: 7, callchain: [0x1000] });
	return w.finish();
}

/** Events without a time, or at the time 0, which is none. */
export function withoutTimes(hasTime) {
	const types = [['ClockSyncEvent', [['realtime_ns', 9]]], ['CpuSampleEvent', [['worker_id', 9], ['tid', 13], ['source', 11], ['callchain', 8]]], ['SpanCloseEvent', [['span_id', 9]]], ['Own', [['n', 9]]],
		['AllocEvent', [['tid', 13], ['size', 9], ['addr', 9]]], ['FreeEvent', [['tid', 13], ['addr', 9], ['alloc_timestamp_ns', 9]]], ['PollStartEvent', [['worker_id', 9], ['local_queue', 11], ['task_id', 9], ['spawn_loc', 7]]], ['PollEndEvent', END]];
	const bodies = { 9: uleb(5), 13: u32(5), 11: [0], 8: u32(0), 7: u32(0) };
	const once = (timed) => types.flatMap(([, fields], i) => [2, ...u16(i + 1), ...(timed ? [0, 0, 0] : []), ...fields.flatMap(([, type]) => bodies[type])]);
	return stream(HEADER, ...types.map(([name, fields], i) => schema(i + 1, name, fields, hasTime)), pool(0, 'on_read @ x'), reset(ORIGIN),
		...(hasTime ? [event(7, 1, uleb(1), 0, uleb(1), u32(0)), event(8, 9, uleb(1)), reset(0)] : []), once(hasTime), once(hasTime));
}

const plainSchema = schema(1, 'PollStartEvent', START), endSchema = schema(2, 'PollEndEvent', END);
const call = (worker, delta, length) => [...event(1, delta, uleb(worker), 0, uleb(1), u32(0)), ...event(2, length, uleb(worker))];

/** |n| workers of a call each. */
export function manyWorkers(n) {
	return stream(HEADER, plainSchema, endSchema, pool(0, 'f @ g'), reset(ORIGIN), Array.from({ length: n }, (_, i) => call(i, 10, 100)).flat());
}

/** A wait for a CPU of nearly 2^64 ns, and a call that was blocked for as good as all of its ten days. */
export function longWaits() {
	const w = new TraceWriter(), day = 86400e9;
	const start = w.type('PollStartEvent', START), end = w.type('PollEndEvent', END), unpark = w.type('WorkerUnparkEvent', [['worker_id', 9], ['local_queue', 11], ['cpu_time_ns', 9], ['sched_wait_ns', 9], ['tid', 13]]);
	const park = w.type('WorkerParkEvent', [['worker_id', 9], ['local_queue', 11], ['cpu_time_ns', 9], ['tid', 13]]);
	w.at(ORIGIN, park, { worker_id: 0, local_queue: 0, cpu_time_ns: 1, tid: 9 });
	w.at(ORIGIN + 5 * MS, unpark, { worker_id: 0, local_queue: 0, cpu_time_ns: 1, sched_wait_ns: 2n ** 64n - 1n, tid: 9 });
	w.at(ORIGIN + 6 * MS, start, { worker_id: 0, local_queue: 1, task_id: 7, spawn_loc: 'f @ g' });
	w.at(ORIGIN + 10 * day, end, { worker_id: 0 });
	w.at(ORIGIN + 10 * day, w.type('OffCpuEvent', [['worker_id', 9], ['task_id', 9], ['blocked_ns', 9], ['run_queue_ns', 9]]), { worker_id: 0, task_id: 7, blocked_ns: 2n ** 64n - 1n, run_queue_ns: 5 });
	return w.finish();
}

/** |n| spans that are all open at once. */
export function overlappingSpans(n) {
	const parts = [HEADER, schema(1, 'SpanCloseEvent', [['span_id', 9], ['span_instance_id', 9], ['start_timestamp_ns', 9], ['span_name', 7]]), pool(0, 'GET /'), reset(ORIGIN)];
	for (let i = 1; i <= n; i++) parts.push(event(1, i === 1 ? MS : 1, uleb(i), uleb(i), uleb(ORIGIN + i), u32(0)));
	return stream(...parts);
}

/** |n| events of one type, each with |fields| that |values|(i) gives bytes for. */
export function manyEvents(name, fields, n, values) {
	return stream(HEADER, schema(1, name, fields), pool(0, 'text'), reset(ORIGIN), Array.from({ length: n }, (_, i) => event(1, 1, ...values(i))).flat());
}

/** A list in a list, and so on. */
export function nested(depth) {
	return stream(HEADER, schema(1, 'Own', [['list', 14]]), reset(ORIGIN), event(1, 0, Array.from({ length: depth }, () => [...u32(1), 14]).flat(), u32(0)));
}

/** A frame that says there were |n| of something. */
export function claims(n) {
	return {
		strings: stream(HEADER, [3, ...u32(n)], u32(0)), stacks: stream(HEADER, [4, ...u32(n)], u32(0)), text: stream(HEADER, schema(1, 'Own', [['text', 4]]), reset(ORIGIN), event(1, 0, u32(n), 65)),
		map: stream(HEADER, schema(1, 'Own', [['map', 10]]), reset(ORIGIN), event(1, 0, u32(n))), list: stream(HEADER, schema(1, 'Own', [['list', 14]]), reset(ORIGIN), event(1, 0, u32(n), 11)),
		stack: stream(HEADER, schema(1, 'Own', [['stack', 8]]), reset(ORIGIN), event(1, 0, u32(n), u64(1))), fields: stream(HEADER, [1, ...u16(1), ...str16('Own'), 1, ...u16(Math.min(n, 65535))], str16('a')),
	};
}

const RESETS = 0x05; // nine of these bytes are a frame that resets the time, so that any number of them is a trace

/** A zstd frame of some bytes that unpacks to |blocks| times 128 KiB of time resets. */
export function zstdBomb(blocks) {
	return Buffer.concat([Buffer.from([0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x58, 0x28, 0, 0, ...HEADER]), Buffer.concat(Array.from({ length: blocks }, (_, i) => Buffer.from([(i === blocks - 1 ? 1 : 0) | 2, 0, 0x10, RESETS])))]);
}

/** Twelve bytes that ask for a window of 2 GiB. */
export const ZSTD_WINDOW = Buffer.from([0x28, 0xb5, 0x2f, 0xfd, 0x00, 0xa8, 0x01, 0, 0, 0, 0, 0]);

export function gzipBomb(megabytes) {
	return gzipSync(Buffer.concat([Buffer.from(HEADER), Buffer.alloc(megabytes << 20, RESETS)]), { level: 9 });
}

/** Small files that were made to harm other readers: C1 controls as UTF-8, times near 2^64, a unit that a terminal obeys. */
export const FILES = Object.fromEntries(Object.entries({
	'c1-utf8.bin': 'VFJDAAEBAQAOAFBvbGxTdGFydEV2ZW50AQQACQB3b3JrZXJfaWQJCwBsb2NhbF9xdWV1ZQsHAHRhc2tfaWQJCQBzcGF3bl9sb2MHAQIADABQb2xsRW5kRXZlbnQBAQAJAHdvcmtlcl9pZAkBCQAUAFNlZ21lbnRNZXRhZGF0YUV2ZW50AQEABwBlbnRyaWVzCgMBAAAAAAAAABQAAABmwpszMW1SRUTCnTA7dGl0bGXCnAIJAAAAAAEAAAAHAAAAc2VydmljZQgAAADCmzMxbVJFRAUA8gUqAQAAAAIBAAAAAAAAAQAAAAACAgBkAAAA',
	'diagram-endless.bin': 'VFJDAAEBAQAOAFBvbGxTdGFydEV2ZW50AQQACQB3b3JrZXJfaWQJCwBsb2NhbF9xdWV1ZQsHAHRhc2tfaWQJCQBzcGF3bl9sb2MHAQIADABQb2xsRW5kRXZlbnQBAQAJAHdvcmtlcl9pZAkFAQAAAAAAAAACAQAAAAAAAAcAAAAAAgIAZAAAAAX+/////////wIBAAAAAAAABwAAAAACAgABAAAA',
	'unit-escape.bin': 'VFJDAAEBLAECAEV2AQEABABjb3N0CQasAgEAAAAEAHVuaXQaAAAAG10wO3B3bmVkBxtbMzFtCkZBS0UgTElORSAFAPIFKgEAAAACLAEAAAAq',
}).map(([name, text]) => [name, Buffer.from(text, 'base64')]));
