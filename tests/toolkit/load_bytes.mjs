// SPDX-License-Identifier: Apache-2.0
// A trace of a server under load that drifts, for tests of comparisons: durations are log-normal and follow each other.

import { HEADER, SHAPES, event, pool, reset, schema, stream, str32, u16, u32, uleb } from './trace_bytes.mjs';

const ORIGIN = 5e9;

/** Chance that is the same each time: normal numbers. */
function normals(seed) {
	let state = seed * 2654435761 >>> 0 || 1;
	const next = () => {
		state ^= state << 13;
		state ^= state >>> 17;
		state ^= state << 5;
		return (state >>> 0) / 4294967296;
	};
	for (let i = 0; i < 10; i++) next();
	return () => Math.sqrt(-2 * Math.log(next() + 1e-12)) * Math.cos(2 * Math.PI * next());
}

const PLACES = ['on_request @ http.c:96', 'on_read @ server.c:231', 'tick @ timer.c:40'];

/**
 * |seconds| of a loop that calls on_request (400 us) 40 times a second, on_read (60 us) as often and tick (200 us) 20 times.
 * on_request takes |slower| times as long, from |from| to |to|.  |build|: the build-id of its module; |recorded|: of places, what was
 * recorded in their stead.
 */
export function loadTrace({ seed = 1, slower = 1, from = 0, to = Infinity, seconds = 40, names = {}, boot = `boot-${seed}`, service = 'shop', samples = 0, build = '', recorded = {} } = {}) {
	const normal = normals(seed), rows = [], end = seconds * 1e9;
	const add = (time, id, ...bytes) => rows.push({ time: Math.round(time), bytes: [2, ...u16(id), 0, 0, 0, ...bytes.flat()] });
	const drift = [0, 0, 0], middle = [400e3, 60e3, 200e3];
	const call = (time, task, place) => {
		// Correlated by 0.9 from call to call.
		drift[place] = 0.9 * drift[place] + Math.sqrt(1 - 0.81) * normal();
		const length = Math.max(500, middle[place] * Math.exp(0.25 * drift[place]) * (place === 0 && time >= from && time < to ? slower : 1));
		add(time - 5000 - Math.abs(normal()) * 2000, 5, uleb(0), uleb(task), 0, 1);
		add(time, 1, uleb(0), 1, uleb(task), u32(place));
		add(time + length, 2, uleb(0));
		for (let i = 0; i < samples && place === 0; i++) add(time + length * (i + 0.5) / samples, 8, uleb(0), u32(4127), 0, u32(i < samples / slower ? 0 : 1));
		return time + length;
	};
	for (let time = 1e6, i = 0; time < end - 20e6; time += 25e6, i++) {
		let at = call(time, 7, 0);
		at = call(at + 20e3, 8, 1);
		if (i % 2) at = call(at + 20e3, 9, 2);
		add(at + 30e3, 3, uleb(0), 0, uleb(i * 1e6), u32(4127));
		add(time + 24.9e6, 4, uleb(0), 0, uleb(i * 1e6), uleb(0), u32(4127));
	}
	rows.sort((a, b) => a.time - b.time);
	const parts = [HEADER, ...[SHAPES.start, SHAPES.end, SHAPES.park, SHAPES.unpark, SHAPES.wake, SHAPES.spawn, SHAPES.metadata, SHAPES.sample, SHAPES.symbol].map((shape, i) => shape(i + 1)),
		schema(10, 'ModuleEvent', [['base', 9], ['start', 9], ['size', 9], ['path', 4], ['build_id', 4]]),
		...PLACES.map((text, i) => pool(i, names[text] ?? text)), ...PLACES.map((text, i) => pool(10 + i, recorded[text] ?? '')),
		pool(3, 'main'), pool(4, 'on_request'), pool(5, 'match_route'), pool(6, 'http.c'),
		[4, ...u32(2), ...u32(0), ...u32(2), ...[0x2000, 0x1000].flatMap((a) => [...u32(a), ...u32(0)]), ...u32(1), ...u32(3), ...[0x3000, 0x2000, 0x1000].flatMap((a) => [...u32(a), ...u32(0)])],
		reset(ORIGIN), event(7, 0, u32(3), ...['service', service, 'boot_id', boot, 'runtime.main', '0'].flatMap((t) => str32(t)))];
	if (build) parts.push(event(10, 0, uleb(0x5000), uleb(0x5000), uleb(0x4000), str32('/srv/server'), str32(build)));
	parts.push(...PLACES.flatMap((text, i) => (recorded[text] ? [event(9, 0, uleb(0), uleb(0), u32(i), 0, 1, u32(10 + i), 0)] : [])));
	let before = 0;
	for (const { time, bytes } of rows) {
		// A delta has 24 bits.
		if (time - before >= 1 << 24) parts.push(reset(ORIGIN + time));
		const delta = time - before >= 1 << 24 ? 0 : time - before;
		bytes.splice(3, 3, delta & 255, delta >> 8 & 255, delta >> 16);
		parts.push(bytes);
		before = time;
	}
	parts.push(reset(0), ...[[0x1000, 3], [0x2000, 4], [0x3000, 5]].map(([address, name]) => event(9, 0, uleb(address), uleb(16), u32(name), 0, 1, u32(6), 1, uleb(9))));
	return stream(...parts);
}
