#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
// Why calls took long: where their time went, what they blocked in, who waited.

import { countNames, functionOf, threadsIn } from './census.js';
import { blockingCalls } from './profile.js';
import { textColumns, numberOption, runScript, wrapText } from './script.js';
import { showDuration, showName, showShare } from './show.js';
import { namesOfLocation } from './stacks.js';
import { Durations, longLimit } from './statistics.js';
import { joinedCalls } from './summary.js';
import { lowerBound } from './table.js';
import { partsOfCall } from './time.js';
import { waitersOf } from './waking.js';

const LONG_USAGE = `usage: node diagnose_long_poll.js [OPTIONS] TRACE

Why calls took long: where their time went, what they blocked in, what other
threads did meanwhile, and who waited.  Long is 3 x the 99th percentile of all
calls, at least 1 ms and at most 10 ms, unless told otherwise.

  -j, --json           a JSON array
      --top N          so many calls, longest first (1)
      --callback NAME  only of callbacks whose name has NAME in it
      --task ID        only of this task
      --min-ms MS      long is MS and more

Exit status: 0 no call was long, 1 some were, 2 bad usage or a damaged trace.
`;

const OWN_LONG = 1e7;

function limitOf(calls) {
	const lengths = new Durations();
	for (const call of calls) lengths.add(call.ns);
	return longLimit(lengths.n ? lengths.quantile(0.99) : 0);
}

/** What a call did with the time that the kernel left it. */
function ownVerdict(parts, blocked, functions, own) {
	const share = (ns) => showShare(Math.min(ns, own), own), most = functions[0] && `, mostly in ${showName(functions[0][0])}`;
	if (parts.blocked >= 0.5 * own || blocked.sum >= 0.5 * own)
		return `asleep for ${share(Math.max(parts.blocked, blocked.sum))}${blocked.calls.length ? `, in ${blocked.calls[0].function}(${blocked.calls[0].fd ?? ''})` : ': record with --off-cpu to see where'}`;
	if (parts.on_cpu >= 0.5 * own) return `computing for ${share(parts.on_cpu)}${most ?? ': record with --cpu 999 to see where'}`;
	if (parts.too_few_samples) return 'not known: the call is shorter than three sampling periods, and has no reading of its own';
	return `not known for ${share(parts.unknown)}`;
}

/** In a sentence: what it was that took the time. */
function verdictOf(parts, blocked, functions) {
	const own = parts.total - parts.ready;
	if (parts.ready < 0.5 * parts.total) return ownVerdict(parts, blocked, functions, parts.total);
	return `ready without a CPU for ${showShare(parts.ready, parts.total)}: the machine or a CPU limit${own >= OWN_LONG ? `; of the ${showDuration(own)} that are left, which are its own, ${ownVerdict(parts, blocked, functions, own)}` : ', not the callback'}`;
}

function blockedIn(trace, worker, call) {
	const inside = blockingCalls(trace).rows.filter((row) => row.worker === worker.id && row.time >= call.start && row.time < call.start + call.ns);
	const calls = inside.map((row) => ({ function: showName(row.name), fd: row.fd, duration_ns: row.dur, holder_tid: row.holderTid || null }));
	calls.sort((a, b) => b.duration_ns - a.duration_ns);
	return { calls, sum: calls.reduce((sum, { duration_ns: ns }) => sum + ns, 0) };
}

function explain({ trace }, call) {
	const worker = trace.workers[call.worker], end = call.start + call.ns, parts = partsOfCall(trace, worker, call.row), { samples } = trace, inside = [];
	for (let i = lowerBound(samples.time, call.start); i < samples.time.length && samples.time[i] < end; i++)
		if (samples.worker[i] === worker.id && samples.source[i] !== 1) inside.push(functionOf(trace, samples.stack[i]));
	const blocked = blockedIn(trace, worker, call), functions = countNames(inside), waiters = waitersOf(trace, worker, call.start, end).sort((a, b) => b.delay - a.delay);
	const [name, site] = namesOfLocation(trace, trace.strings[call.site] ?? '?');
	return { name: showName(name), site: showName(site), worker: worker.id, task: call.task, offset_s: (call.start - trace.start) / 1e9, duration_ns: call.ns, wait_ns: call.delay > 0 ? call.delay : 0,
		verdict: verdictOf(parts, blocked, functions), time: parts, blocked_in: blocked.calls, functions: functions.slice(0, 5).map(([of, n]) => ({ function: showName(of), samples: n })),
		waiters: waiters.slice(0, 5).map(({ site: place, task, delay }) => ({ name: showName(namesOfLocation(trace, trace.strings[place] ?? '?')[0]), task, delay_ns: delay })), waited: waiters.length, threads: threadsIn(trace, call.start, end) };
}

function longText(one) {
	const lines = [wrapText(`${one.name} took ${showDuration(one.duration_ns)} on worker ${one.worker} at ${one.offset_s.toFixed(3)} s (task ${one.task})`, '  '), wrapText(`  ${one.verdict}`, '  '),
		wrapText(`  time: ${['on_cpu', 'ready', 'blocked', 'unknown'].filter((key) => one.time[key] > 0).map((key) => `${showShare(one.time[key], one.time.total)} ${key.replace('_', ' ')}`).join(', ')}`, '  ')];
	if (one.blocked_in.length) lines.push(textColumns(['  blocked', 'in'], one.blocked_in.slice(0, 5).map((call) => [`  ${showDuration(call.duration_ns)}`, `${call.function}(${call.fd ?? ''})${call.holder_tid ? `, held by thread ${call.holder_tid}` : ''}`])));
	if (one.functions.length) lines.push(textColumns(['  samples', 'function'], one.functions.map(({ function: of, samples }) => [`  ${samples}`, of])));
	const others = one.threads.filter((thread) => thread.on_cpu);
	if (others.length) lines.push(textColumns(['  on CPU', 'thread', 'mostly in'], others.slice(0, 5).map((thread) => [`  ${thread.on_cpu}`, `${thread.tid} ${showName(thread.name)}`, showName(thread.mostly)])));
	lines.push(one.waited ? wrapText(`  ${one.waited} waited for it: ${one.waiters.map((waiter) => `${waiter.name} ${showDuration(waiter.delay_ns)}`).join(', ')}`, '  ') : '  nobody waited for it');
	return lines.join('\n');
}

const LONG_OPTIONS = { top: { type: 'string', default: '1' }, callback: { type: 'string' }, task: { type: 'string' }, 'min-ms': { type: 'string' } };

await runScript('diagnose_long_poll.js', { usage: LONG_USAGE, options: LONG_OPTIONS, main: (processes, values) => {
	const top = numberOption(values.top, '--top', 1), task = values.task === undefined ? null : numberOption(values.task, '--task'), least = values['min-ms'] === undefined ? null : numberOption(values['min-ms'], '--min-ms') * 1e6;
	const long = processes.flatMap((process) => {
		const calls = joinedCalls(process.trace), limit = least ?? limitOf(calls);
		return calls.filter((call) => call.ns >= limit && call.ns > 0 && (task === null || call.task === task) && (process.trace.strings[call.site] ?? '').split(' @ ')[0].includes(values.callback ?? '')).map((call) => ({ process, call }));
	}).sort((a, b) => b.call.ns - a.call.ns);
	const told = long.slice(0, top).map(({ process, call }) => explain(process, call));
	return { text: told.length ? `${told.map(longText).join('\n\n')}\n\n${told.length} of ${long.length} long calls` : 'no call was long', json: JSON.stringify(told), status: long.length ? 1 : 0 };
} });
