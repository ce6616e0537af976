// SPDX-License-Identifier: Apache-2.0
// A trace in which every track of the viewer has something planted.

import { TraceWriter } from '../toolkit/trace_writer.mjs';

export const ORIGIN = 7000000000;
const MS = 1000000;

/**
 * Two seconds of a server.  Loop "main" (worker 0) and four loops of "pool" (workers 1 to 4).  At 500 ms on_slow
 * holds main for 120 ms, 80 of them in fsync() from 520 on; the timer of task 9, due at 510, runs at 620.
 * |host|, |wall|: ns by which its wall clock is ahead of CLOCK_MONOTONIC; |later|: all its times are so much later.
 */
export function trackTrace({ service = 'tracks', boot = 'boot-t', host = 'alpha', wall = 1.7e18, later = 0, drift = 0 } = {}) {
	const w = new TraceWriter(), at = (ms, type, values) => w.at(ORIGIN + later + Math.round(ms * MS), type, values);
	const sync = w.type('ClockSyncEvent', [['realtime_ns', 9]]), metadata = w.type('SegmentMetadataEvent', [['entries', 10]]);
	const start = w.type('PollStartEvent', [['worker_id', 9], ['local_queue', 11], ['task_id', 9], ['spawn_loc', 7]]), end = w.type('PollEndEvent', [['worker_id', 9]]);
	const park = w.type('WorkerParkEvent', [['worker_id', 9], ['local_queue', 11], ['cpu_time_ns', 9], ['tid', 13]]);
	const unpark = w.type('WorkerUnparkEvent', [['worker_id', 9], ['local_queue', 11], ['cpu_time_ns', 9], ['sched_wait_ns', 9], ['tid', 13]]);
	const wake = w.type('WakeEventEvent', [['waker_task_id', 9], ['woken_task_id', 9], ['target_worker', 11], ['reason', 11]]);
	const poll = (worker, from, length, task, name, ready = 0) => {
		at(from, start, { worker_id: worker, local_queue: ready, task_id: task, spawn_loc: `${name} @ server.c:${task}` });
		at(from + length, end, { worker_id: worker });
	};
	const wall0 = BigInt(Math.round(wall)) + BigInt(ORIGIN + later);
	at(0, sync, { realtime_ns: wall0 });
	at(0, metadata, { entries: { service, host, boot_id: boot, 'runtime.main': '0', 'runtime.pool': '1,2,3,4', 'system.cpus_online': '4', 'memory.sample_rate_bytes': '1' } });
	at(2000, sync, { realtime_ns: wall0 + BigInt(2000 * MS + drift) });
	for (let ms = 10; ms < 2000; ms += 10)
		for (let worker = 0; worker < 5; worker++) {
			if (worker === 0 && ms >= 500 && ms < 640) continue;
			at(ms - 0.2, unpark, { worker_id: worker, local_queue: 0, cpu_time_ns: Math.round(ms * 0.1 * MS), sched_wait_ns: worker === 1 && ms === 700 ? 6 * MS : 0, tid: 100 + worker });
			poll(worker, ms, worker === 4 ? 3 : 0.4, 20 + worker, worker ? 'work' : 'on_read', ms % 30 ? 0 : 2);
			at(ms + 3.5, park, { worker_id: worker, local_queue: 0, cpu_time_ns: Math.round((ms + 10) * 0.1 * MS), tid: 100 + worker });
		}
	poll(0, 500, 120, 7, 'on_slow', 9);
	for (let ms = 100; ms < 2000; ms += 100) {
		if (ms === 600) continue;
		const ran = ms === 500 ? 620 : ms + 0.6;
		at(ms === 500 ? 510 : ms + 0.5, wake, { waker_task_id: 0, woken_task_id: 9, target_worker: 0, reason: 2 });
		poll(0, ran, 0.05, 9, 'on_tick');
	}
	for (const [ms, task] of [[1, 7], [2, 9], [300, 30], [305, 31]]) at(ms, w.spawn ??= w.type('TaskSpawnEvent', [['task_id', 9], ['spawn_loc', 7], ['instrumented', 3]]), { task_id: task, spawn_loc: 'x', instrumented: 1 });
	at(900, w.type('TaskTerminateEvent', [['task_id', 9]]), { task_id: 30 });
	at(520, w.type('BlockingCallEvent', [['worker_id', 9], ['task_id', 9], ['function', 7], ['fd', 137], ['duration_ns', 9], ['holder_tid', 13], ['holder_task', 9]]),
		{ worker_id: 0, task_id: 7, function: 'fsync', fd: 7, duration_ns: 80 * MS, holder_tid: 0, holder_task: 0 });
	plantSpans(w, at, later);
	plantFigures(w, at);
	plantEvents(w, at);
	const sample = w.type('CpuSampleEvent', [['worker_id', 9], ['tid', 13], ['source', 11], ['thread_name', 135], ['callchain', 6]]);
	for (let ms = 530; ms < 600; ms += 10) at(ms, sample, { worker_id: 0, tid: 100, source: 0, callchain: [0x1000] });
	for (let ms = 400; ms < 800; ms += 20) at(ms, sample, { worker_id: 255, tid: 900, source: ms % 40 ? 1 : 0, thread_name: 'resolver', callchain: [0x2000] });
	at(1250, w.type('HelperRunEvent', [['function', 7], ['item', 9], ['task_id', 137], ['wait_ns', 9], ['run_ns', 9]]), { function: 'compress', item: 1, task_id: 7, wait_ns: 3 * MS, run_ns: 200 * MS });
	at(1500, w.type('RecorderLossEvent', [['tid', 13], ['worker_id', 9], ['cause', 7], ['events', 9], ['from_ns', 9], ['to_ns', 9]]),
		{ tid: 101, worker_id: 1, cause: 'ring full', events: 42, from_ns: ORIGIN + later + 1450 * MS, to_ns: ORIGIN + later + 1500 * MS });
	const log = w.type('RecorderLogEvent', [['level', 7], ['text', 4], ['times', 9]]);
	at(0.1, log, { level: 'info', text: 'started in process 7', times: 1 });
	at(1400, log, { level: 'warning', text: 'cannot write in /traces: No space left on device', times: 3 });
	return w.finish();
}

/** 40 spans of three names; span 0x77 "GET /report" takes 300 ms across on_slow. */
function plantSpans(w, at, later) {
	const close = w.type('SpanCloseEvent', [['span_id', 9], ['span_instance_id', 9], ['start_timestamp_ns', 9], ['span_name', 7], ['first_enter_timestamp_ns', 137], ['active_ns', 9], ['attributes', 10]]);
	const step = [['worker_id', 9], ['span_id', 9], ['span_name', 7], ['span_instance_id', 9], ['tid', 13]], [enter, exit] = ['Enter', 'Exit'].map((kind) => w.type(`Span${kind}:web::request:server.c:9`, step));
	const span = (id, from, length, name) => {
		const values = { worker_id: 4, span_id: id, span_name: name, span_instance_id: id, tid: 104 };
		at(from, enter, values);
		at(from + length / 10, exit, values);
		at(from + length, close, { span_id: id, span_instance_id: id, start_timestamp_ns: ORIGIN + later + Math.round(from * MS), span_name: name,
			first_enter_timestamp_ns: ORIGIN + later + Math.round(from * MS), active_ns: Math.round(length * MS / 10), attributes: { status: 200 } });
	};
	for (let i = 0; i < 40; i++) span(0x100 + i, 30 + i * 45, 20 + i % 7 * 9, i % 3 ? 'GET /user' : 'POST /upload');
	span(0x77, 420, 300, 'GET /report');
}

function plantFigures(w, at) {
	const usage = w.type('ProcessResourceUsageEvent', ['user_cpu_ns', 'system_cpu_ns', 'max_rss_bytes', 'minor_faults', 'major_faults', 'voluntary_context_switches', 'involuntary_context_switches'].map((name) => [name, 9]));
	const process = w.type('ProcessStateEvent', [['resident_bytes', 9], ['descriptors', 9], ['threads', 9]]);
	const queue = w.type('TcpAcceptQueueEvent', [['socket_cookie', 9], ['pending_connections', 13], ['backlog_limit', 13]]);
	for (let ms = 0; ms <= 2000; ms += 100) {
		at(ms, usage, { user_cpu_ns: Math.round(ms * 1.5 * MS), system_cpu_ns: Math.round(ms * 0.5 * MS), max_rss_bytes: 5e6, minor_faults: ms, major_faults: 0, voluntary_context_switches: ms * 2, involuntary_context_switches: 3 });
		at(ms, process, { resident_bytes: (40 + (ms >= 1000 ? 24 : 0)) * 2 ** 20, descriptors: ms >= 600 ? 212 : 12, threads: 6 });
		at(ms, queue, { socket_cookie: 11, pending_connections: ms === 600 ? 9 : 1, backlog_limit: 10 });
	}
	const alloc = w.type('AllocEvent', [['tid', 13], ['size', 9], ['addr', 9], ['callchain', 6], ['sample_rate_bytes', 9]]);
	const free = w.type('FreeEvent', [['tid', 13], ['addr', 9], ['size', 9], ['alloc_timestamp_ns', 9]]);
	at(200, alloc, { tid: 100, size: 3 * 2 ** 20, addr: 0x5000, callchain: [0x1000], sample_rate_bytes: 1 });
	at(400, alloc, { tid: 100, size: 2 * 2 ** 20, addr: 0x6000, callchain: [0x1000], sample_rate_bytes: 1 });
	at(1200, free, { tid: 100, addr: 0x5000, size: 3 * 2 ** 20, alloc_timestamp_ns: ORIGIN + 200 * MS });
}

/** HttpRequest as examples/http_service.c has it, and Cache, whose schema says how to chart it. */
function plantEvents(w, at) {
	const request = w.type('HttpRequest', [['path', 7], ['status', 12], ['sent', 9, { unit: 'bytes' }], ['took', 9, { unit: 'ns' }], ['note', 132]]);
	for (let ms = 50; ms < 2000; ms += 50) at(ms, request, { path: '/hello', status: ms === 550 ? 503 : 200, sent: 1000 + ms, took: ms === 550 ? 130 * MS : MS });
	const cache = w.type('Cache', [['entries', 9, { kind: 'gauge', threshold: 900 }], ['hits', 9, { kind: 'counter' }], ['bytes', 9, { kind: 'updown-counter', unit: 'bytes' }]]);
	// The counter passes 2^63 and is reset once.
	const base = 2n ** 63n;
	for (let i = 0; i <= 19; i++) at(i * 100, cache, { entries: i < 10 ? 100 * i : 950, hits: i < 12 ? base + BigInt(i) * 7n : BigInt(i), bytes: 4096 * (i < 15 ? i : 15) });
}
