// SPDX-License-Identifier: Apache-2.0
// A shop's server for four minutes, with an answer planted for each question that people bring.

import { TraceWriter } from '../toolkit/trace_writer.mjs';

const MS = 1000000, ORIGIN = 7000000000, LASTS = 240000;
const STALL = 110050, BUSY = 120360; // ms after the beginning: 12:03:20 and 12:03:30
const MAIN = 0, POOL = 1;
const FD = 1, TIMER = 2, THREAD = 5; // reasons of wakes
const FRAMES = { 0x1000: ['main', 'main.c', 402], 0x2000: ['on_read', 'server.c', 231], 0x3000: ['cache_insert', 'cache.c', 88], 0x4000: ['parse_request', 'http.c', 96],
	0x5000: ['flush_log', 'log.c', 142], 0x6000: ['fsync', 'libc.so.6', 0] };
/** When it begins: 21 November 2026, 12:01:30 UTC. */
const BEGAN_MS = Date.UTC(2026, 10, 21, 12, 1, 30);

/** A function(worker, jobs) that writes what a thread does: it runs |jobs|, [{ready, length, task, name, waker, reason}], one at a time, and sleeps when there is none. */
function threadRunner(w, at) {
	const start = w.type('PollStartEvent', [['worker_id', 9], ['local_queue', 11], ['task_id', 9], ['spawn_loc', 7]]), end = w.type('PollEndEvent', [['worker_id', 9]]);
	const park = w.type('WorkerParkEvent', [['worker_id', 9], ['local_queue', 11], ['cpu_time_ns', 9], ['tid', 13]]);
	const unpark = w.type('WorkerUnparkEvent', [['worker_id', 9], ['local_queue', 11], ['cpu_time_ns', 9], ['sched_wait_ns', 9], ['tid', 13]]);
	const wake = w.type('WakeEventEvent', [['waker_task_id', 9], ['woken_task_id', 9], ['target_worker', 11], ['reason', 11]]);
	return (worker, jobs) => {
		const thread = { worker_id: worker, local_queue: 0, tid: 100 + worker };
		let free = -1, used = 0;
		jobs.sort((a, b) => a.ready - b.ready);
		for (const [i, job] of jobs.entries()) {
			const { ready, length, task, name, waker = 0, reason } = job, sleeps = ready > free, next = jobs[i + 1];
			job.from = sleeps ? ready + 0.02 : free;
			at(ready, wake, { waker_task_id: waker, woken_task_id: task, target_worker: worker, reason });
			if (sleeps) at(job.from - 0.01, unpark, { ...thread, cpu_time_ns: Math.round(used * MS), sched_wait_ns: 0 });
			at(job.from, start, { ...thread, task_id: task, spawn_loc: name });
			at(job.from + length, end, thread);
			free = job.from + length + 0.02;
			used += length;
			if (!next || next.ready > free) at(free - 0.01, park, { ...thread, cpu_time_ns: Math.round(used * MS) });
		}
	};
}

/**
 * Loops "main" and "pool".  On main on_read runs ten times a second, for its descriptor, and tick each second, by its timer.  Twice a
 * second on_read has render_report run on pool, which wakes on_reply on main: the span "GET /report", of 2 ms.  The one at 12:03:20 takes
 * 182 ms, for on_log holds main for 180 ms, 170 of them in fsync().  From 12:03:30 on rebuild_index takes 150 ms twenty times.
 * cache_insert keeps 48 MiB, main() 2 MiB, and parse_request frees what it allocates.
 */
export function shopTrace() {
	const w = new TraceWriter(), stamp = (ms) => ORIGIN + Math.round(ms * MS), at = (ms, type, values) => w.at(stamp(ms), type, values);
	const main = [], pool = [], requests = [];
	for (let ms = 50; ms < LASTS; ms += 100) main.push({ ready: ms, length: 0.3, task: 7, name: 'on_read @ server.c:231', reason: FD });
	for (let ms = 970; ms < LASTS; ms += 1000) main.push({ ready: ms, length: 0.1, task: 9, name: 'tick @ timer.c:40', reason: TIMER });
	for (let ms = 50; ms < LASTS; ms += 500) {
		const reply = { ready: ms + 2.22, length: 0.2, task: 10, name: 'on_reply @ http.c:120', waker: 8, reason: THREAD };
		pool.push({ ready: ms + 0.2, length: 2.1, task: 8, name: 'render_report @ report.c:12', waker: 7, reason: THREAD });
		main.push(reply);
		requests.push({ began: ms + 0.1, reply });
	}
	main.push({ ready: STALL + 2, length: 180, task: 12, name: 'on_log @ log.c:131', reason: FD });
	for (let i = 0; i < 20; i++) main.push({ ready: BUSY + 1000 * i, length: 150, task: 11, name: 'rebuild_index @ index.c:60', reason: TIMER });
	at(0, w.type('ClockSyncEvent', [['realtime_ns', 9]]), { realtime_ns: BigInt(BEGAN_MS) * 1000000n });
	at(0, w.type('SegmentMetadataEvent', [['entries', 10]]), { entries: { service: 'shop', host: 'web-1', boot_id: 'boot-1', 'runtime.main': '0', 'runtime.pool': '1',
		'memory.sample_rate_bytes': '1', 'source.memory': 'on', 'source.blocking': 'on' } });
	const runThread = threadRunner(w, at);
	runThread(POOL, pool);
	runThread(MAIN, main);
	at(STALL + 7, w.type('BlockingCallEvent', [['worker_id', 9], ['task_id', 9], ['function', 7], ['fd', 137], ['duration_ns', 9], ['holder_tid', 13], ['holder_task', 9]]),
		{ worker_id: MAIN, task_id: 12, function: 'fsync', fd: 7, duration_ns: 170 * MS, holder_tid: 0, holder_task: 0 });
	at(STALL + 7, w.type('CpuSampleEvent', [['worker_id', 9], ['tid', 13], ['source', 11], ['callchain', 6]]), { worker_id: MAIN, tid: 100, source: 1, callchain: [0x6000, 0x5000, 0x1000] });
	writeRequests(w, at, stamp, requests);
	writeMemory(w, at, stamp);
	const symbol = w.type('SymbolTableEntry', [['addr', 9], ['size', 9], ['symbol_name', 7], ['inline_depth', 11], ['source_file', 135], ['source_line', 137]]);
	for (const [address, [name, file, line]] of Object.entries(FRAMES)) at(0, symbol, { addr: Number(address), size: 16, symbol_name: name, inline_depth: 0, source_file: file, source_line: line || undefined });
	return w.finish();
}

/** A span for each request: inside of it in on_read, and in on_reply. */
function writeRequests(w, at, stamp, requests) {
	const step = [['worker_id', 9], ['span_id', 9], ['span_name', 7], ['span_instance_id', 9], ['tid', 13]], [enter, exit] = ['Enter', 'Exit'].map((kind) => w.type(`Span${kind}:web::request:server.c:9`, step));
	const close = w.type('SpanCloseEvent', [['span_id', 9], ['span_instance_id', 9], ['start_timestamp_ns', 9], ['span_name', 7], ['first_enter_timestamp_ns', 137], ['active_ns', 9], ['attributes', 10]]);
	for (const [i, { began, reply }] of requests.entries()) {
		const span = { worker_id: MAIN, span_id: 0x100 + i, span_name: 'GET /report', span_instance_id: 0x100 + i, tid: 100 }, ended = reply.from + 0.15;
		for (const [from, to] of [[began, began + 0.15], [reply.from + 0.05, ended]]) {
			at(from, enter, span);
			at(to, exit, span);
		}
		at(ended, close, { ...span, start_timestamp_ns: stamp(began), first_enter_timestamp_ns: stamp(began), active_ns: 0.25 * MS, attributes: { status: 200 } });
	}
}

function writeMemory(w, at, stamp) {
	const alloc = w.type('AllocEvent', [['tid', 13], ['size', 9], ['addr', 9], ['callchain', 6], ['sample_rate_bytes', 9]]);
	const free = w.type('FreeEvent', [['tid', 13], ['addr', 9], ['size', 9], ['alloc_timestamp_ns', 9]]);
	const state = w.type('ProcessStateEvent', [['resident_bytes', 9], ['descriptors', 9], ['threads', 9]]);
	const take = (ms, size, addr, callchain) => at(ms, alloc, { tid: 100, size, addr, callchain, sample_rate_bytes: 1 });
	take(1, 2 * 2 ** 20, 0x5000000, [0x1000]);
	for (let i = 0; i < 48; i++) take(2000 + 4900 * i, 2 ** 20, 0x6000000 + i * 2 ** 20, [0x3000, 0x2000, 0x1000]);
	for (let ms = 500; ms < LASTS; ms += 1000) {
		take(ms, 2 ** 18, 0x9000000 + ms * 16, [0x4000, 0x2000, 0x1000]);
		at(ms + 400, free, { tid: 100, addr: 0x9000000 + ms * 16, size: 2 ** 18, alloc_timestamp_ns: stamp(ms) });
		at(ms, state, { resident_bytes: (40 + Math.floor(ms / 4900)) * 2 ** 20, descriptors: 12, threads: 2 });
	}
}
