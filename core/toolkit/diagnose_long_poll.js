#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
// Why calls took long: where their time went, what they blocked in, who waited.

import { numberOption, runScript, tellReport, wrapText } from './script.js';
import { showDuration, showName, showShare } from './show.js';

const LONG_USAGE = `usage: node diagnose_long_poll.js [OPTIONS] TRACE...

Why calls took long: where their time went, what they blocked in, and who
waited, of the hundred longest calls of each process, as dial9 report --json has
them.  Long is 3 x the 99th percentile of the calls of its loop, at least 1 ms
and at most 10 ms, unless told otherwise.  What the threads did meanwhile:
zoom.js.

  -j, --json           a JSON array
      --top N          so many calls, longest first (1)
      --callback NAME  only of callbacks whose name has NAME in it
      --task ID        only of this task
      --min-ms MS      long is MS and more

Exit status: 0 no call was long, 1 some were, 2 bad usage or a damaged trace.
`;

const TIME_PARTS = [['on_cpu_ns', 'on CPU'], ['ready_ns', 'ready without a CPU'], ['blocked_ns', 'asleep'], ['unknown_ns', 'not known']];

/** The calls in the report of a process, with what its findings say of their callbacks. */
function callsInReport({ polls, workers }, folder, findings) {
	return polls.longest.map((call) => {
		const { name, location, duration_ns: ns, worker, task, offset_ns: offset, verdict, time, waited, waiters } = call, finding = findings.find((one) => one.name === name && (one.on_cpu || one.blocked));
		return { process: folder, name, location, worker, task, offset_s: offset / 1e9, duration_ns: ns, verdict, time, on_cpu: finding?.on_cpu ?? null, blocked: finding?.blocked ?? null, waited, waiters,
			limit: workers.find(({ id }) => id === worker)?.long_call_ns ?? 0 };
	});
}

function longCalls(report) {
	return (report.processes ?? [{ number: 0, ...report }]).flatMap((one) => callsInReport(one, report.trace.processes[one.number].folder, report.findings.filter(({ process: number }) => number === one.number)))
		.sort((a, b) => b.duration_ns - a.duration_ns);
}

function longText({ name, worker, task, offset_s: at, duration_ns: ns, time, on_cpu: onCpu, blocked, waited, waiters }) {
	const say = (text) => wrapText(`  ${text}`, '    '), parts = TIME_PARTS.filter(([key]) => time[key] > 0).sort(([a], [b]) => time[b] - time[a]).map(([key, text]) => `${showShare(time[key], time.total_ns)} ${text}`);
	return [wrapText(`${showName(name)} took ${showDuration(ns)} on worker ${worker} at ${at.toFixed(3)} s (task ${task})`, '  '), say(parts.join(', ')),
		time.blocked_in.length ? say(`blocked in ${time.blocked_in.map((call) => `${showName(call.function)} ${showDuration(call.ns)}`).join(', ')}`) : '',
		onCpu ? say(`on CPU, in all long calls: ${showName(onCpu, 1000)}`) : '', blocked ? say(`blocked, in all calls: ${showName(blocked, 1000)}`) : '',
		say(waited ? `${waited} waited for it: ${waiters.map((waiter) => `${showName(waiter.name)} ${showDuration(waiter.delay_ns)}`).join(', ')}` : 'nobody waited for it')].filter(Boolean).join('\n');
}

const LONG_OPTIONS = { top: { type: 'string', default: '1' }, callback: { type: 'string' }, task: { type: 'string' }, 'min-ms': { type: 'string' } };

await runScript('diagnose_long_poll.js', { usage: LONG_USAGE, options: LONG_OPTIONS, main: (paths, values) => {
	const top = numberOption(values.top, '--top', 1), wanted = values.task === undefined ? null : numberOption(values.task, '--task'), least = values['min-ms'] === undefined ? null : numberOption(values['min-ms'], '--min-ms') * 1e6;
	return tellReport(paths, (report) => {
		const long = longCalls(report).filter(({ duration_ns: ns, limit, name, task }) => ns >= (least ?? limit) && (wanted === null || task === wanted) && name.includes(values.callback ?? ''));
		const told = long.slice(0, top).map(({ limit, ...call }) => call);
		return { text: told.length ? `${told.map(longText).join('\n\n')}\n\n${told.length} of ${long.length} long calls` : 'no call was long', json: JSON.stringify(told), status: Number(long.length > 0) };
	});
} });
