// SPDX-License-Identifier: Apache-2.0
// Three readers on the same traces: frames.js, decode.js, and the one in C behind `dial9 events`:
//
//	node cross_readers.mjs DIAL9 FILE...             events equal field by field, and the same verdict
//	node cross_readers.mjs DIAL9 --mutate N FILE...  the same of N changed, cut and grown copies
//
// FILE: any packing; changed copies are plain, so that a change is not lost in the unpacking.

import { createReadStream, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { spawnSync } from 'node:child_process';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Decoder } from '../../core/toolkit/decode.js';
import { TYPE, TraceError, Truncated, decode } from '../../core/toolkit/frames.js';
import { Budget, Interner } from '../../core/toolkit/table.js';
import { unpack } from '../../core/toolkit/unpack.js';

const [dial9, ...args] = process.argv.slice(2);
const work = mkdtempSync(join(tmpdir(), 'cross-readers-'));

/** Takes what decode.js finds, as a list in the order of the file: [{name, time, values}]. */
class Recording {
	constructor() {
		this.budget = new Budget(2 ** 31);
		this.origin = null;
		this.strings = new Interner(this.budget);
		this.stacks = new Interner(this.budget);
		this.events = [];
	}

	table(shape, name, fields, hasTime) { return { name, fields, hasTime, count: 0 }; }
	annotate() {}

	put(name, time, values) {
		const [lower, upper] = this.origin ?? [0, 0];
		this.events.push({ name, time: Number.isNaN(time) ? 0n : (BigInt(upper) << 32n | BigInt(lower)) + BigInt(time), values });
	}

	event(table, time, values) {
		if (table.hasTime) this.put(table.name, time, Object.fromEntries(table.fields.map(({ name, type }, i) => [name, this.plain(type, values[i])])));
		else this.events.push({ name: table.name, time: null, values: Object.fromEntries(table.fields.map(({ name, type }, i) => [name, this.plain(type, values[i])])) });
	}

	plain(type, value) {
		if (value === undefined) return value;
		if (type === TYPE.STRING || type === TYPE.POOLED_STRING) return this.string(value);
		return type === TYPE.STACK || type === TYPE.POOLED_STACK ? (value < 0 ? [] : { stack: value }) : value;
	}

	string(id) { return id < 0 ? null : { string: id }; }

	pollStart(worker_id, time, local_queue, task_id, site) { this.put('PollStartEvent', time, { worker_id, local_queue, task_id, spawn_loc: this.string(site) }); }
	pollEnd(worker_id, time) { this.put('PollEndEvent', time, { worker_id }); }
	park(worker_id, time, cpu_time_ns, tid) { this.put('WorkerParkEvent', time, { worker_id, cpu_time_ns, tid }); }
	unpark(worker_id, time, cpu_time_ns, sched_wait_ns, tid) { this.put('WorkerUnparkEvent', time, { worker_id, cpu_time_ns, sched_wait_ns, tid }); }
	wake(time, waker_task_id, woken_task_id, target_worker, reason) { this.put('WakeEventEvent', time, { waker_task_id, woken_task_id, target_worker, reason }); }
}

function verdictOf(error) {
	if (!error) return 'whole';
	if (error instanceof Truncated) return 'cut';
	if (error instanceof TraceError) return 'damaged';
	throw error;
}

function readExactly(bytes) {
	const events = [];
	try {
		decode(bytes, { event: ({ schema, time, values }) => events.push({ name: schema.name, time, values, schema }) });
		return { events, verdict: 'whole' };
	} catch (error) {
		return { events, verdict: verdictOf(error) };
	}
}

function readQuickly(bytes, size) {
	const model = new Recording(), decoder = new Decoder(model);
	try {
		for (let at = 0; at < bytes.length; at += size) decoder.push(bytes.subarray(at, at + size));
		return { model, events: model.events, verdict: decoder.end().cut ? 'cut' : 'whole' };
	} catch (error) {
		return { model, events: model.events, verdict: verdictOf(error) };
	}
}

/** A value as text; numbers of both kinds alike. */
function canonical(value) {
	if (value === undefined || value === null) return 'null';
	if (typeof value === 'number') return Number.isFinite(value) ? (Number.isInteger(value) ? BigInt(value).toString() : String(value)) : 'null';
	if (typeof value === 'bigint') return value.toString();
	if (typeof value === 'boolean') return value ? '1' : '0';
	if (value instanceof Uint8Array) return Buffer.from(value).toString('hex');
	if (Array.isArray(value)) return `[${value.map(canonical)}]`;
	return String(value);
}

/** Times of decode.js are exact up to 104 days from its origin. */
function sameTime(a, b, origin) {
	if (a === b) return true;
	const [lower, upper] = origin ?? [0, 0], zero = BigInt(upper) << 32n | BigInt(lower), far = a > zero ? a - zero : zero - a;
	return far > Number.MAX_SAFE_INTEGER && (a > b ? a - b : b - a) <= 4096n;
}

/** What differs between decode.js and frames.js, or nothing. */
function compareQuick(exact, quick) {
	if (exact.verdict !== quick.verdict) return `frames.js says ${exact.verdict}, decode.js ${quick.verdict}`;
	if (exact.events.length !== quick.events.length) return `${exact.events.length} events, ${quick.events.length} from decode.js`;
	const texts = quick.model.strings.texts(), stacks = quick.model.stacks.stacks();
	const resolve = (value) => (value?.string !== undefined ? texts[value.string] : value?.stack !== undefined ? stacks[value.stack] : value);
	for (let i = 0; i < exact.events.length; i++) {
		const a = exact.events[i], b = quick.events[i];
		if (a.name !== b.name || !sameTime(a.time, b.time, quick.model.origin)) return `event ${i}: ${a.name} at ${a.time}, ${b.name} at ${b.time} from decode.js`;
		for (const [field, value] of Object.entries(a.values)) {
			if (!(field in b.values) || b.values[field] === null) continue; // not kept, or a text that was never defined
			if (canonical(value) !== canonical(resolve(b.values[field])))
				return `event ${i}: ${a.name}.${field} is ${canonical(value)}, ${canonical(resolve(b.values[field]))} from decode.js`;
		}
	}
	return null;
}

/** JSON with integers of all sizes as BigInt texts behind a mark. */
function parseWide(line) {
	return JSON.parse(line.replace(/"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g, (part) => (/^-?\d+$/.test(part) ? `"#${part}"` : part)));
}

function textOfC(value) {
	if (value === null || value === undefined) return 'null';
	if (typeof value === 'string') return value.startsWith('#') ? value.slice(1) : value;
	if (typeof value === 'boolean') return value ? '1' : '0';
	if (Array.isArray(value)) return `[${value.map(textOfC)}]`;
	return String(value);
}

const COMPARED = new Set([TYPE.I64, TYPE.BOOL, TYPE.STRING, TYPE.POOLED_STRING, TYPE.BYTES, TYPE.VARINT, TYPE.U8, TYPE.U16, TYPE.U32, TYPE.STACK, TYPE.POOLED_STACK]);

/** An event as one line for both languages; |fields|: [[name, type, text]]. */
function lineOf(name, time, all) {
	// Names that a change has made strange or alike are written in other ways.
	const fields = all.filter(([field]) => /^[a-z][a-z0-9_]*$/.test(field) && all.filter(([other]) => other === field).length === 1);
	// Bytes that are no UTF-8 may be replaced one by one or together.
	return `${name} ${time} ${fields.filter(([, type]) => COMPARED.has(type)).map(([field, , text]) => `${field}=${text}`).join(' ')}`.replace(/\ufffd+/g, '\ufffd');
}

function linesOfExact({ events }) {
	return events.map(({ name, time, values, schema }) => lineOf(name, time === null ? 'null' : time, schema.fields.map(({ name: field, type }) => [field, type,
		type === TYPE.STACK || type === TYPE.POOLED_STACK ? `[${(values[field] ?? []).map((a) => `0x${a.toString(16)}`)}]` : canonical(values[field])])));
}

function compareC(path, exact) {
	const run = spawnSync(dial9, ['events', '--format', 'jsonl', '--no-symbols', path], { maxBuffer: 2 ** 30 });
	const cut = /ends in the middle of a frame|cut before its first event/.test(run.stderr);
	const verdict = run.status === 0 ? (cut ? 'cut' : 'whole') : run.status === 2 ? 'damaged' : `status ${run.status ?? run.signal}`;
	if (verdict !== exact.verdict) return `frames.js says ${exact.verdict}, dial9 events ${verdict}: ${run.stderr}`;
	const lines = run.stdout.toString().split('\n').filter(Boolean).map(parseWide);
	if (lines.length !== exact.events.length) return `${exact.events.length} events, ${lines.length} from dial9 events`;
	// It sorts by time; and it knows of each event what the schema says.
	const order = exact.events.map((event, i) => [event, i]);
	// For C a name ends at a NUL, which only a change puts there.
	const key = (event) => `${event.name.split('\0')[0].replace(/\ufffd+/g, '\ufffd')} ${event.time === null ? 'null' : event.time}`;
	const ours = new Map(), theirs = new Map();
	for (const [event] of order) ours.set(key(event), [...ours.get(key(event)) ?? [], event]);
	for (const line of lines) {
		const name = `${line.event.replace(/\ufffd+/g, '\ufffd')} ${textOfC(line.timestamp_ns)}`;
		theirs.set(name, [...theirs.get(name) ?? [], line]);
	}
	for (const [name, events] of ours) {
		const found = theirs.get(name);
		if (found?.length !== events.length) return `${events.length} of ${name}, ${found?.length ?? 0} from dial9 events`;
		const a = linesOfExact({ events }).sort();
		const b = found.map((line, i) => lineOf(events[i].name, events[i].time === null ? 'null' : events[i].time, events[i].schema.fields.map(({ name: field, type }) => {
			const value = line[`field.${field}`] ?? line[field];
			return [field, type, type === TYPE.STACK || type === TYPE.POOLED_STACK ? `[${value ?? ''}]` : textOfC(value)];
		}))).sort();
		for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return `\n  ${a[i]}\n  ${b[i]}\n  the latter from dial9 events`;
	}
	return null;
}

async function unpackFile(path) {
	const parts = [];
	for await (const { bytes } of unpack(createReadStream(path))) parts.push(Buffer.from(bytes));
	return new Uint8Array(Buffer.concat(parts));
}

/** A sequence that is the same in each run. */
function random(seed) {
	return () => {
		seed = seed + 0x6d2b79f5 | 0;
		let t = Math.imul(seed ^ seed >>> 15, 1 | seed);
		t = t + Math.imul(t ^ t >>> 7, 61 | t) ^ t;
		return ((t ^ t >>> 14) >>> 0) / 4294967296;
	};
}

function mutate(bytes, next) {
	const copy = Uint8Array.from(bytes), at = () => Math.floor(next() * copy.length);
	switch (Math.floor(next() * 4)) {
	case 0: return copy.subarray(0, Math.max(5, at())); // less than a header is no trace
	case 1: {
		// A piece twice.
		const from = at(), to = Math.min(copy.length, from + Math.floor(next() * 64));
		return Uint8Array.from([...copy.subarray(0, to), ...copy.subarray(from)]);
	}
	default:
		for (let n = 1 + Math.floor(next() * 3); n > 0; n--) copy[at()] = next() < 0.3 ? 255 : Math.floor(next() * 256);
		return copy;
	}
}

let wrong = 0;
function tell(what, difference) {
	if (!difference) return;
	wrong++;
	console.log(`${what}: ${difference}`);
}

function compareAll(what, bytes, path) {
	const exact = readExactly(bytes);
	for (const size of [bytes.length || 1, 1 << 16, 7, 1]) if (bytes.length / size < 4096 || size > 7) tell(`${what}, pieces of ${size}`, compareQuick(exact, readQuickly(bytes, size)));
	tell(what, compareC(path, exact));
	return exact.verdict;
}

const mutations = args[0] === '--mutate' ? Number(args.splice(0, 2)[1]) : 0;
const verdicts = {};
try {
	for (const [number, path] of args.entries()) {
		const bytes = await unpackFile(path);
		if (!mutations) {
			verdicts[path] = compareAll(path, bytes, path);
			continue;
		}
		const next = random(number), changed = join(work, 'changed.bin');
		for (let i = 0; i < mutations / args.length && wrong < 5; i++) {
			const copy = mutate(bytes, next);
			writeFileSync(changed, copy);
			const before = wrong, verdict = compareAll(`${path}, change ${i}`, copy, changed);
			verdicts[verdict] = (verdicts[verdict] ?? 0) + 1;
			if (wrong > before && process.env.KEEP) writeFileSync(join(process.env.KEEP, `different-${i}.bin`), copy);
		}
	}
} finally {
	rmSync(work, { recursive: true });
}
console.log(verdicts);
process.exitCode = wrong ? 1 : 0;
