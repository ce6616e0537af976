// SPDX-License-Identifier: Apache-2.0
// The wakes that polls tell, held against the events that the recorder has written of the same wakes beside
// them (DIAL9_OLD_EVENTS=both), by both readers:
//
//	node told_wakes.mjs DIAL9 FILE...
//
// Prints how many of them each kind of value tells.

import { createReadStream, readFileSync } from 'node:fs';
import { spawnSync } from 'node:child_process';
import { Decoder } from '../../core/toolkit/decode.js';
import { decode } from '../../core/toolkit/frames.js';
import { Budget, Interner } from '../../core/toolkit/table.js';
import { unpack } from '../../core/toolkit/unpack.js';

const OF_UNPARK = 1n, REASONS = ['unknown', 'fd', 'timer', 'signal', 'active', 'cross', 'deferred', 'internal', 'resumption'];
const [dial9, ...files] = process.argv.slice(2);
const told = { unpark: 0 };
let wrong = 0;

class Wakes {
	constructor() {
		this.budget = new Budget(2 ** 31);
		this.origin = null;
		this.strings = new Interner(this.budget);
		this.stacks = new Interner(this.budget);
		this.lines = [];
	}

	table(shape, name, fields, hasTime) { return { name, fields, hasTime, count: 0 }; }
	annotate() {}
	event() {}
	pollStart() {}
	pollEnd() {}
	park() {}
	unpark() {}

	wake(time, ...rest) {
		const [lower, upper] = this.origin;
		this.lines.push([(BigInt(upper) << 32n | BigInt(lower)) + BigInt(time), ...rest].join(' '));
	}
}

const line = (time, { waker_task_id, woken_task_id, target_worker, reason }) => [time, waker_task_id, woken_task_id, target_worker, reason].join(' ');

async function bytesOf(file) {
	const pieces = [];
	for await (const { bytes } of unpack(createReadStream(file))) pieces.push(bytes.slice());
	return Buffer.concat(pieces);
}

const known = new Set(); // the wakes that events tell: a poll may be in the file behind its event's

/** What |reader| found besides the |events| is what polls tell: as many of them, and each with its event. */
function check(file, reader, lines, events, polls) {
	const left = new Map();
	for (const line of events) left.set(line, (left.get(line) ?? 0) + 1);
	const rest = [];
	for (const line of lines) {
		const n = left.get(line) ?? 0;
		if (n) left.set(line, n - 1);
		else rest.push(line);
	}
	const strange = rest.filter((line) => !known.has(line));
	if ([...left.values()].some((n) => n) || rest.length !== polls || strange.length) {
		console.log(`${file}: ${reader}: ${rest.length} wakes of ${polls} polls, without an event: ${strange.slice(0, 5).join('; ')}`);
		wrong++;
	}
}

for (const file of files) {
	const bytes = await bytesOf(file), events = [], model = new Wakes(), decoder = new Decoder(model);
	let polls = 0;
	decode(bytes, { event: ({ schema, time, values }) => {
		if (schema.name === 'WakeEventEvent') events.push(line(time, values));
		if (schema.name !== 'PollStartEvent' || !values.wake) return;
		const wake = BigInt(values.wake), kind = wake === OF_UNPARK ? 'unpark' : REASONS[Number(wake & 15n)];
		polls++;
		told[kind] = (told[kind] ?? 0) + 1;
	} });
	for (const wake of events) known.add(wake);
	decoder.push(bytes);
	decoder.end();
	check(file, 'decode.js', model.lines, events, polls);
	const shown = spawnSync(dial9, ['events', '-e', 'WakeEventEvent', file], { encoding: 'utf8', maxBuffer: 2 ** 30 });
	check(file, 'dial9 events', shown.stdout.split('\n').filter(Boolean).map((line) => Object.values(JSON.parse(line)).slice(1).join(' ')), events, polls);
	const out = `${file}.trc`, run = spawnSync(dial9, ['export', '-f', 'trc', '-o', out, file], { encoding: 'utf8' });
	const exported = [];
	if (run.status) console.log(`${file}: dial9 export: ${run.stderr}`);
	decode(readFileSync(out), { event: ({ schema, time, values }) => {
		if (schema.name === 'WakeEventEvent') exported.push(line(time, values));
		if (schema.name === 'PollStartEvent' && values.wake) wrong++;
	} });
	check(file, 'dial9 export', exported, events, polls);
}
console.log(Object.entries(told).map(([kind, n]) => `${kind} ${n}`).join(' '));
process.exit(wrong ? 1 : 0);
