// SPDX-License-Identifier: Apache-2.0
// What a trace says it saw, for comparison with counts that share nothing with dial9:
//
//	node trace_counts.mjs offsets FILE...             FILE OFFSET of each callback, for uprobe_count
//	node trace_counts.mjs counts FILE...              POLLS PARKS
//	node trace_counts.mjs place FILE VADDR...         FILE OFFSET of each address in an ELF file
//	node trace_counts.mjs compare UPROBES N FILE...   polls of each callback against those counts,
//	                                                  of which N are calls by the program itself
//
// FILE: plain TRC, one for each process.
// Uses the JavaScript decoder, so a bug would have to be in both decoders to hide.

import { readFileSync } from 'node:fs';
import { decode } from '../../core/toolkit/frames.js';

/** Offset in the file of the virtual address |vaddr| of the ELF file |path|, or null. */
function fileOffset(path, vaddr) {
	const elf = readFileSync(path);
	const phoff = Number(elf.readBigUInt64LE(0x20)), phentsize = elf.readUInt16LE(0x36);
	for (let i = 0; i < elf.readUInt16LE(0x38); i++) {
		const at = phoff + i * phentsize;
		const offset = elf.readBigUInt64LE(at + 8), start = elf.readBigUInt64LE(at + 16);
		if (elf.readUInt32LE(at) === 1 && vaddr >= start && vaddr < start + elf.readBigUInt64LE(at + 32))
			return vaddr - start + offset;
	}
	return null;
}

/** Polls per callback address, parks, and the modules of the trace. */
function read(path) {
	const polls = new Map(), modules = new Map(), callbacks = new Map(), wakes = new Map();
	const trace = { polls, modules, parks: 0, total: 0, resumed: 0 };
	const polled = [];
	decode(readFileSync(path), {
		event({ schema, time, values: v }) {
			if (schema.name === 'ModuleEvent') modules.set(v.base, v);
			else if (schema.name === 'TaskSpawnEvent') callbacks.set(v.task_id, v.callback);
			else if (schema.name === 'WorkerParkEvent') trace.parks++;
			else if (schema.name === 'WakeEventEvent' && v.reason === 8n) wakes.set(v.woken_task_id, time);
			else if (schema.name === 'PollStartEvent') {
				// The rest of a callback that a nested loop had interrupted is no new call.
				if (wakes.get(v.task_id) === time) { trace.resumed++; wakes.delete(v.task_id); }
				else polled.push(v.task_id);
			}
		},
	});
	for (const task of polled) {
		const callback = callbacks.get(task) ?? 0n;
		polls.set(callback, (polls.get(callback) ?? 0) + 1);
		trace.total++;
	}
	return trace;
}

function place(trace, address) {
	let best = null;
	for (const m of trace.modules.values())
		if (address >= m.start && address < m.start + m.size) best = m;
	if (!best) return null;
	const offset = fileOffset(best.path, address - best.base);
	return offset === null ? null : `${best.path} ${offset.toString(16)}`;
}

/** Runs |each|(place, address, polls) for the callbacks of all |traces|. */
function callbacks(traces, each) {
	for (const trace of traces)
		for (const [address, n] of trace.polls) each(place(trace, address), address, n);
}

function compare(traces, uprobes, direct) {
	const counted = new Map(readFileSync(uprobes, 'utf8').trim().split('\n').map((line) => {
		const [file, offset, n] = line.split(' ');
		return [`${file} ${offset}`, Number(n)];
	}));
	const seen = new Map([...counted.keys()].map((key) => [key, 0]));
	let wrong = 0;
	callbacks(traces, (key, address, n) => {
		if (counted.has(key)) seen.set(key, seen.get(key) + n);
		else { console.log(`${n} polls of ${key ?? address}, which nobody counted`); wrong++; }
	});
	for (const [key, n] of counted) {
		const more = n - seen.get(key), ok = more >= 0 && more <= direct;
		if (ok) direct -= more;
		else wrong++;
		console.log(`${ok ? 'equal' : 'DIFFERENT'} ${key}: trace ${seen.get(key)}, uprobes ${n}` +
			(more && ok ? `, ${more} of them called by the program itself` : ''));
	}
	if (direct) { console.log(`${direct} calls by the program itself did not happen`); wrong++; }
	return wrong;
}

const [what, ...args] = process.argv.slice(2);
if (what === 'compare') {
	const [uprobes, direct, ...files] = args;
	process.exitCode = compare(files.map(read), uprobes, Number(direct)) ? 1 : 0;
} else if (what === 'place') {
	const [file, ...addresses] = args;
	for (const vaddr of addresses) console.log(`${file} ${fileOffset(file, BigInt(`0x${vaddr}`)).toString(16)}`);
} else if (what === 'offsets') {
	const places = new Set();
	callbacks(args.map(read), (key) => { if (key) places.add(key); });
	for (const p of places) console.log(p);
} else {
	const sum = (key) => args.map(read).reduce((n, trace) => n + trace[key], 0);
	console.log(`${sum('total')} ${sum('parks')}`);
}
