// SPDX-License-Identifier: Apache-2.0
// Segments of many recordings, small: each has a callback every 100 ms, on one loop, and what is planted.

import { mkdirSync, writeFileSync } from 'node:fs';
import { event, HEADER, pool, reset, schema, SHAPES, stackPool, str32, stream, u32, uleb } from '../toolkit/trace_bytes.mjs';

const MS = 1000000;
/** When all of them begin: 21 November 2026, 10:00 UTC. */
export const BEGAN_MS = Date.UTC(2026, 10, 21, 10);

/**
 * A segment that began |after| seconds after BEGAN_MS and lasts |seconds|.  |calls|: [seconds from its start, ms, name] of
 * calls that take longer than the 50 us of all others.
 */
export function smallSegment({ service = 'echo-server', host = 'web-1', boot = 'boot-1', pid = '100', after = 0, seconds = 10, calls = [], clocked = true } = {}) {
	const origin = 7000000 * MS + after * 1000 * MS, rows = [], names = ['on_read @ server.c:231', ...new Set(calls.map(([, , name]) => name ?? 'flush_log @ log.c:12'))];
	const add = (time, id, ...bytes) => rows.push({ time, bytes: [2, id, 0, 0, 0, 0, ...bytes.flat()] });
	const call = (time, length, name) => {
		add(time, 1, uleb(0), 0, uleb(7 + name), u32(name));
		add(time + length, 2, uleb(0));
	};
	const long = calls.map(([at, ms]) => [Math.round(at * 1000 * MS), Math.round((at * 1000 + ms) * MS)]);
	for (let time = 50 * MS; time < seconds * 1000 * MS; time += 100 * MS)
		if (!long.some(([from, to]) => time >= from - MS && time <= to + MS)) call(time, 50000, 0);
	calls.forEach(([at, ms, name]) => {
		call(Math.round(at * 1000 * MS), Math.round(ms * MS), names.indexOf(name ?? 'flush_log @ log.c:12'));
		for (let i = 1; i < ms / 10; i++) add(Math.round(at * 1000 * MS) + i * 10 * MS, 8, uleb(0), u32(4127), 0, u32(0));
	});
	rows.sort((a, b) => a.time - b.time);
	const parts = [HEADER, ...Object.values(SHAPES).slice(0, 9).map((shape, i) => shape(i + 1)), schema(20, 'ClockSyncEvent', [['realtime_ns', 9]]),
		...names.map((name, i) => pool(i, name)), pool(40, 'write'), pool(41, 'flush_log'), stackPool(0, [0x1000, 0x2000]), reset(origin),
		...(clocked ? [event(20, 0, uleb(BigInt(BEGAN_MS) * 1000000n + BigInt(after) * 1000000000n))] : []),
		event(7, 0, u32(4), ...[['service', service], ['host', host], ['boot_id', boot], ['pid', pid]].flatMap(([key, value]) => [str32(key), str32(value)]))];
	let before = 0;
	for (const { time, bytes } of rows) {
		// The time of an event is at most 16 ms after the one before.
		if (time - before >= 2 ** 24) parts.push(reset(origin + time));
		else bytes.splice(3, 3, time - before & 255, time - before >> 8 & 255, time - before >> 16);
		parts.push(bytes);
		before = time;
	}
	parts.push(reset(0), event(9, 0, uleb(0x1000), uleb(16), u32(40), 0, 0, 0), event(9, 0, uleb(0x2000), uleb(16), u32(41), 0, 0, 0));
	return stream(...parts);
}

/** Two services on five hosts, a minute long; web-3 blocks for 182 ms in its third segment, web-2 for 30 ms in its fourth. */
export function writeMany(folder) {
	const write = (name, options) => {
		mkdirSync(`${folder}/${name.split('/')[0]}`, { recursive: true });
		writeFileSync(`${folder}/${name}`, smallSegment(options));
	};
	for (let host = 1; host <= 3; host++)
		for (let i = 0; i < 6; i++) {
			const calls = host === 3 && i === 2 ? [[4, 182]] : host === 2 && i === 3 ? [[6, 30]] : [];
			write(`web-${host}/trace.${i}.bin`, { host: `web-${host}`, boot: `boot-${host}`, pid: String(100 + host), after: 10 * i, calls });
		}
	for (let host = 1; host <= 2; host++)
		for (let i = 0; i < 3; i++)
			write(`mail-${host}/trace.${i}.bin`, { service: 'mail-gate', host: `mail-${host}`, boot: `mail-${host}`, pid: String(200 + host), after: 10 * i, calls: [[5, 2 * host, 'send @ smtp.c:9']] });
}
