// SPDX-License-Identifier: Apache-2.0
// A trace with every kind of stack, for tests: samples on and off the CPU, blocking calls, allocations, idle tasks.

import { HEADER, SHAPES, event, pool, reset, schema, stackPool, str32, stream, u16, u32, u64, uleb } from './trace_bytes.mjs';

const MS = 1000000, ORIGIN = 5000 * MS;
const TEXTS = ['on_read @ server.c:231', 'tick @ timer.c:40', 'server.c', 'main', 'on_read', 'parse', 'copy', 'flush_log', 'fsync', 'tick', 'io', 'helper', 'worker', 'do_fsync', 'kernel', 'write'];
const text = (name) => u32(TEXTS.indexOf(name));
const FUNCTIONS = { 0x1000: 'main', 0x2000: 'on_read', 0x3000: 'parse', 0x4000: 'copy', 0x5000: 'flush_log', 0x6000: 'fsync', 0x7000: 'tick', 0x8000: 'worker' };
const KERNEL = 0xffffffff81000010n;
// Innermost first.
const STACKS = [[0x4000, 0x3000, 0x2000, 0x1000], [0x3000, 0x2000, 0x1000], [0x7000, 0x1000], [KERNEL, 0x6000, 0x5000, 0x2000, 0x1000], [0x8000], [0x9999, 0x2000, 0x1000], []];

/**
 * 100 ms of loop "main" (thread 4127) that calls on_read for 1 ms in every 2 ms, tick for |tick| ns each 10 ms,
 * and a helper thread 4200.  Samples: 40 in copy, 10 in parse, 5 in tick, 7 of the helper, 3 without a stack, 2 cut
 * ones; 6 off the CPU; 2 blocking calls of 4 ms and 2 ms with the kernel's frames; 20 allocations of 1,000 bytes,
 * of which 5 are freed; 4 waits of task 8.  |narrow|: so many samples more, each in a function of its own.
 */
export function profileTrace({ tick = 50000, boot = 'boot-1', copies = 40, narrow = 0 } = {}) {
	const rows = [], add = (ms, id, ...bytes) => rows.push({ time: Math.round(ms * MS), bytes: [2, ...u16(id), 0, 0, 0, ...bytes.flat()] });
	const sample = (ms, tid, source, stack, { cut = 0, worker = 255, name = null } = {}) =>
		add(ms, 8, uleb(worker), u32(tid), source, name ? [1, ...text(name)] : 0, u32(stack), cut);
	for (let i = 0; i < 50; i++) {
		const at = i * 2 + 0.2;
		add(at - 0.1, 4, uleb(0), 0, uleb(i * MS), uleb(0), u32(4127));
		add(at, 1, uleb(0), 1, uleb(7), text('on_read @ server.c:231'));
		add(at + 1, 2, uleb(0));
		if (i % 5 === 4) {
			add(at + 1.1, 1, uleb(0), 1, uleb(8), text('tick @ timer.c:40'));
			add(at + 1.1 + tick / MS, 2, uleb(0));
		}
		add(at + 1.3, 3, uleb(0), 0, uleb(i * MS + 900000), u32(4127));
	}
	for (let i = 0; i < copies; i++) sample(i % 50 * 2 + 0.5, 4127, 0, 0);
	for (let i = 0; i < 10; i++) sample(i * 2 + 0.7, 4127, 0, 1);
	for (let i = 0; i < 5; i++) sample(i * 10 + 9.32, 4127, 0, 2);
	for (let i = 0; i < narrow; i++) sample(i % 50 * 2 + 0.6, 4127, 0, STACKS.length + i);
	for (let i = 0; i < 7; i++) sample(i * 3 + 0.1, 4200, 0, 4, { name: 'helper' });
	for (let i = 0; i < 3; i++) sample(i * 2 + 0.8, 4127, 0, 6);
	for (let i = 0; i < 2; i++) sample(i * 2 + 0.9, 4127, 0, 5, { cut: 1 });
	for (let i = 0; i < 6; i++) sample(i * 2 + 30.6, 4127, 1, 3);
	for (const [ms, length] of [[60.3, 4], [70.3, 2]]) {
		sample(ms, 4127, 1, 3);
		add(ms, 10, uleb(0), uleb(7), text('fsync'), [1, ...uleb(14)], uleb(length * MS), u32(4200), uleb(0), 0);
	}
	for (let i = 0; i < 20; i++) add(i + 0.6, 11, u32(4127), uleb(1000), uleb(0x100000 + i * 16), u32(i % 2), uleb(100));
	for (let i = 0; i < 5; i++) add(i + 50, 12, u32(4127), uleb(0x100000 + i * 16), uleb(1000), uleb(BigInt(ORIGIN) + BigInt(Math.round((i + 0.6) * MS))));
	for (let i = 0; i < 4; i++) add(i * 20 + 12, 13, uleb(8), u32(2), 0, 0);
	rows.sort((a, b) => a.time - b.time);
	const parts = [HEADER, ...[SHAPES.start, SHAPES.end, SHAPES.park, SHAPES.unpark, SHAPES.wake, SHAPES.spawn, SHAPES.metadata].map((shape, i) => shape(i + 1)),
		schema(8, 'CpuSampleEvent', [['worker_id', 9], ['tid', 13], ['source', 11], ['thread_name', 135], ['callchain', 6], ['truncated', 3]]), SHAPES.symbol(9),
		schema(10, 'BlockingCallEvent', [['worker_id', 9], ['task_id', 9], ['function', 7], ['fd', 137], ['duration_ns', 9], ['holder_tid', 13], ['holder_task', 9], ['holder_stack', 134]]),
		schema(11, 'AllocEvent', [['tid', 13], ['size', 9], ['addr', 9], ['callchain', 6], ['sample_rate_bytes', 9]]),
		schema(12, 'FreeEvent', [['tid', 13], ['addr', 9], ['size', 9], ['alloc_timestamp_ns', 9]]),
		schema(13, 'TaskDumpEvent', [['task_id', 9], ['callchain', 6], ['truncated', 3], ['kept', 3]]),
		...TEXTS.map((t, i) => pool(i, t)), ...STACKS.map((stack, i) => stackPool(i, stack)), ...Array.from({ length: narrow }, (_, i) => stackPool(STACKS.length + i, [0x100000 + i * 16, 0x7000, 0x1000])), reset(ORIGIN),
		event(7, 0, u32(4), ...['service', 'shop', 'boot_id', boot, 'runtime.main', '0', 'source.cpu', 'on'].flatMap((t) => str32(t))),
		...[[7, 'on_read @ server.c:231'], [8, 'tick @ timer.c:40']].map(([task, place]) => event(6, 0, uleb(task), text(place), 1, text('io')))];
	let before = 0;
	for (const { time, bytes } of rows) {
		bytes.splice(3, 3, time - before & 255, time - before >> 8 & 255, time - before >> 16);
		parts.push(bytes);
		before = time;
	}
	parts.push(reset(0), ...Object.entries(FUNCTIONS).map(([address, name]) => event(9, 0, uleb(Number(address)), uleb(16), text(name), 0, 1, text('server.c'), 1, uleb(Number(address) / 16))),
		event(9, 0, uleb(KERNEL), uleb(0), text('do_fsync'), 0, 1, text('kernel'), 0));
	return stream(...parts);
}
