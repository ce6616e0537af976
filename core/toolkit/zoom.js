#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
// What all loops and threads did around one moment.

import { InputError } from './files.js';
import { rowsIn } from './index.js';
import { threadsIn } from './census.js';
import { textColumns, numberOption, runScript, tellTraces, wrapText } from './script.js';
import { showCount, showDuration, showName } from './show.js';
import { namesOfLocation } from './stacks.js';

const ZOOM_USAGE = `usage: node zoom.js [--json] [--half MS] TRACE SECONDS

What all loops and threads did around SECONDS after the start of the trace, as
dial9 report tells it ("at 1.234 s").

  -j, --json     one JSON object
      --half MS  how far the window goes to both sides (20)

Exit status: 0 fine, 2 bad usage or a damaged trace.
`;

function windowOf({ trace, folder }, at, half) {
	const from = trace.start + at - half, to = trace.start + at + half;
	const loops = trace.workers.map((worker) => {
		const { polls, parks } = worker, [first, last] = rowsIn(polls, from, to), calls = [];
		let busy = 0, parked = 0;
		for (let row = first; row < last; row++) {
			const start = Math.max(from, polls.start[row]), end = Math.min(to, polls.start[row] + polls.dur[row]);
			busy += Math.max(0, end - start);
			calls.push({ offset_s: (polls.start[row] - trace.start) / 1e9, duration_ns: polls.dur[row], ready: polls.ready[row], task: polls.task[row], name: showName(namesOfLocation(trace, trace.strings[polls.site[row]] ?? '?')[0]) });
		}
		for (let i = 0; i < parks.n; i++) parked += Math.max(0, Math.min(to, parks.end[i]) - Math.max(from, parks.start[i]));
		return { worker: worker.id, name: worker.name, busy_ns: busy, parked_ns: parked, calls };
	});
	return { folder: showName(folder), from_s: (from - trace.start) / 1e9, to_s: (to - trace.start) / 1e9, loops, threads: threadsIn(trace, from, to) };
}

function zoomText(view) {
	const parts = [wrapText(`${view.folder}: ${view.from_s.toFixed(3)} s to ${view.to_s.toFixed(3)} s`)];
	for (const loop of view.loops) {
		const longest = [...loop.calls].sort((a, b) => b.duration_ns - a.duration_ns).slice(0, 12).sort((a, b) => a.offset_s - b.offset_s);
		parts.push(wrapText(`${showName(loop.name)}: ${showCount(loop.calls.length)} calls, ${showDuration(loop.busy_ns)} in them, ${showDuration(loop.parked_ns)} waiting`));
		if (longest.length) parts.push(textColumns(['at', 'length', 'ready', 'task', 'callback'], longest.map((call) => [`${call.offset_s.toFixed(6)} s`, showDuration(call.duration_ns), call.ready, call.task, call.name])));
	}
	if (view.threads.length) parts.push(`threads by samples\n${textColumns(['on CPU', 'off CPU', 'thread', 'mostly in'], view.threads.map((thread) => [thread.on_cpu, thread.off_cpu, `${thread.tid} ${showName(thread.name)}`, showName(thread.mostly)]))}`);
	return parts.join('\n');
}

await runScript('zoom.js', { usage: ZOOM_USAGE, options: { half: { type: 'string', default: '20' } }, operands: 1, main: (paths, values, [at]) => {
	const half = numberOption(values.half, '--half', 0.001) * 1e6, time = numberOption(at, 'SECONDS') * 1e9;
	return tellTraces('zoom.js', paths, (processes) => {
		const length = Math.max(...processes.map(({ trace }) => trace.end - trace.start));
		if (time - half > length) throw new InputError(`the trace ends ${(length / 1e9).toFixed(3)} s after its start, before ${at} s`);
		const views = processes.map((process) => windowOf(process, time, half));
		return { text: views.map(zoomText).join('\n\n'), json: JSON.stringify(views.length === 1 ? views[0] : views) };
	});
} });
