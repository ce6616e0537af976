// SPDX-License-Identifier: Apache-2.0
// TRC 1 by hand, for tests: pieces of a stream as lists of bytes, and a small server's trace.

export const HEADER = [0x54, 0x52, 0x43, 0, 1];
export const u16 = (n) => [n & 255, n >> 8];
export const u32 = (n) => [...u16(n & 65535), ...u16(n >>> 16)];
export const u64 = (n) => [...u32(Number(BigInt(n) & 0xffffffffn)), ...u32(Number(BigInt(n) >> 32n))];
export const utf8 = (s) => [...Buffer.from(s)];
export const str16 = (s) => [...u16(utf8(s).length), ...utf8(s)];
export function str32(s) {
	const bytes = utf8(s);
	return u32(bytes.length).concat(bytes);
}
export const schema = (id, name, fields, hasTime = 1) =>
	[1, ...u16(id), ...str16(name), hasTime, ...u16(fields.length), ...fields.flatMap(([f, t]) => [...str16(f), t])];
export const reset = (ns) => [5, ...u64(ns)];
export const event = (id, delta, ...bytes) => [2, ...u16(id), delta & 255, delta >> 8 & 255, delta >> 16, ...bytes.flat()];
export const pool = (id, s) => [3, ...u32(1), ...u32(id), ...str32(s)];
export const stackPool = (id, addresses) => [4, ...u32(1), ...u32(id), ...u32(addresses.length), ...addresses.flatMap(u64)];
export function stream(...parts) {
	const bytes = new Uint8Array(parts.reduce((sum, part) => sum + (part.length ?? 1), 0));
	let at = 0;
	for (const part of parts) {
		bytes.set(part.length === undefined ? [part] : part, at);
		at += part.length ?? 1;
	}
	return bytes;
}

export function uleb(n) {
	const bytes = [];
	if (Number.isSafeInteger(n) && n >= 0) {
		for (; n >= 128; n = Math.floor(n / 128)) bytes.push(n % 128 | 128);
		return [...bytes, n];
	}
	for (n = BigInt(n); n >= 0x80n; n >>= 7n) bytes.push(Number(n & 0x7fn) | 0x80);
	return [...bytes, Number(n)];
}

export const SHAPES = {
	start: (id) => schema(id, 'PollStartEvent', [['worker_id', 9], ['local_queue', 11], ['task_id', 9], ['spawn_loc', 7]]),
	end: (id) => schema(id, 'PollEndEvent', [['worker_id', 9]]),
	park: (id) => schema(id, 'WorkerParkEvent', [['worker_id', 9], ['local_queue', 11], ['cpu_time_ns', 9], ['tid', 13]]),
	unpark: (id) => schema(id, 'WorkerUnparkEvent', [['worker_id', 9], ['local_queue', 11], ['cpu_time_ns', 9], ['sched_wait_ns', 9], ['tid', 13]]),
	wake: (id) => schema(id, 'WakeEventEvent', [['waker_task_id', 9], ['woken_task_id', 9], ['target_worker', 11], ['reason', 11]]),
	spawn: (id) => schema(id, 'TaskSpawnEvent', [['task_id', 9], ['spawn_loc', 7], ['instrumented', 3], ['kind', 7]]),
	metadata: (id) => schema(id, 'SegmentMetadataEvent', [['entries', 10]]),
	sample: (id) => schema(id, 'CpuSampleEvent', [['worker_id', 9], ['tid', 13], ['source', 11], ['callchain', 6]]),
	symbol: (id) => schema(id, 'SymbolTableEntry', [['addr', 9], ['size', 9], ['symbol_name', 7], ['inline_depth', 11], ['source_file', 135], ['source_line', 137]]),
};

/**
 * One second of a server with two loops.  Every millisecond each calls on_read for 20 us; at 400 ms on_read
 * of task 7 blocks loop "main" for 182 ms, woken 2.4 ms before by render on loop "pool", while tasks 8 and 9
 * become ready.  |service| names it, |place| is where on_read was made; |slow| false: nothing blocks.
 */
export function serverTrace({ service = 'echo-server', slow = true, boot = 'boot-1', place = 'on_read @ server.c:231' } = {}) {
	const MS = 1000000, origin = 5000 * MS, rows = [];
	const add = (time, id, ...bytes) => rows.push({ time, bytes: [2, ...u16(id), 0, 0, 0, ...bytes.flat()] });
	const poll = (worker, time, length, task, place, ready = 1) => {
		add(time, 1, uleb(worker), ready, uleb(task), u32(place));
		add(time + length, 2, uleb(worker));
	};
	const round = (worker, from, to) => {
		add(from - 1000, 4, uleb(worker), 0, uleb(from / 50), uleb(0), u32(4127 + worker));
		add(to + 1000, 3, uleb(worker), 0, uleb(to / 50), u32(4127 + worker));
	};
	const wake = (time, waker, woken, worker) => add(time, 5, uleb(waker), uleb(woken), worker, 1);
	const block = { from: 400 * MS, to: 582 * MS };
	for (let ms = 1; ms < 1000; ms++) {
		for (const worker of [0, 1]) {
			const time = ms * MS + worker * 300;
			if (slow && worker === 0 && time >= block.from - MS && time <= block.to) continue;
			const task = 7 + ms % 3 + 10 * worker;
			wake(time - 2000, 0, task, worker);
			poll(worker, time, 20000 + ms % 7 * 1000, task, worker);
			round(worker, time, time + 27000);
		}
	}
	if (slow) {
		poll(1, block.from - 3 * MS + 100000, 700000, 27, 2);
		round(1, block.from - 2900000, block.from - 2200000);
		wake(block.from - 2400000, 27, 7, 1);
		poll(0, block.from, block.to - block.from, 7, 0, 3);
		wake(block.from + 20 * MS, 0, 8, 0);
		wake(block.from + 80 * MS, 0, 9, 0);
		poll(0, block.to, 30000, 8, 0, 2);
		poll(0, block.to + 31000, 30000, 9, 0);
		round(0, block.from, block.to + 61000);
		for (let i = 0; i < 17; i++) add(block.from + 5 * MS + i * 10 * MS, 8, uleb(0), u32(4127), 0, u32(0));
	}
	rows.sort((a, b) => a.time - b.time);
	const parts = [HEADER, ...Object.values(SHAPES).map((shape, i) => shape(i + 1)),
		pool(0, place), pool(1, 'on_request @ bufferevent.c:96'), pool(2, 'render_report @ report.c:12'),
		pool(3, 'fsync'), pool(4, 'log.c'), pool(5, 'io'), pool(6, 'flush_log'), stackPool(0, [0x1000, 0x2000, 0x3000, 0x4000, 0x5000, 0x6000, 0x7000, 0x8000]), reset(origin),
		event(7, 0, u32(5), str32('source.cpu'), str32('on'), str32('service'), str32(service), str32('boot_id'), str32(boot), str32('runtime.main'), str32('0'), str32('runtime.pool'), str32('1')),
		...[7, 8, 9].map((task) => event(6, 0, uleb(task), u32(0), 1, u32(5)))];
	let before = 0;
	for (const { time, bytes } of rows) {
		bytes.splice(3, 3, time - before & 255, time - before >> 8 & 255, time - before >> 16);
		parts.push(bytes);
		before = time;
	}
	parts.push(reset(0), event(9, 0, uleb(0x1000), uleb(16), u32(3), 0, 0, 0), event(9, 0, uleb(0x2000), uleb(16), u32(6), 0, 1, u32(4), 1, uleb(142)));
	return stream(...parts);
}
