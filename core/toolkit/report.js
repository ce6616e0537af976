#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
// What is in a trace: red flags, loops, callbacks, longest calls, longest waits.

import { textColumns, numberOption, runScript, wrapText } from './script.js';
import { showCount, showDuration, showName } from './show.js';
import { exactJson, reportOf, summaryOf } from './summary.js';

const REPORT_USAGE = `usage: node report.js [--json] [--top N] TRACE...

What is in a trace: red flags, loops, callbacks, longest calls, longest waits.
TRACE is a segment, or a directory of segments.

  -j, --json   one JSON object, with the keys of dial9 report --json
      --top N  rows of long tables (10)

Exit status: 0 fine, 2 bad usage or a damaged trace.
`;

function percentText(share) {
	return `${(100 * share).toFixed(share < 0.0995 ? 1 : 0)} %`;
}

/** What most of a call's time was, if that is known. */
function mostOf(time) {
	const parts = [['on CPU', time.on_cpu_ns], ['ready', time.ready_ns], ['blocked', time.blocked_ns]].filter(([, ns]) => 2 * ns >= time.total_ns);
	return parts[0]?.[0] ?? '–';
}

function processText({ folder, trace }, summary, top) {
	const { workers, callbacks, polls, wake_to_poll: waits, findings } = summary, parts = [];
	parts.push(wrapText(`${showName(folder)}: ${showDuration(summary.trace.duration_ns)}, ${showCount(summary.trace.total_events)} events, ${
		showCount(polls.count)} calls, ${showCount(waits.wakes)} wakes, ${showCount(trace.samples.time.length)} samples, ${showCount(summary.tasks.spawned)} tasks`, '  '));
	if (findings.length) parts.push(findings.slice(0, top).map((finding) => wrapText(`${finding.severity}: ${finding.message}`, '  ')).join('\n'));
	parts.push(`loops\n${textColumns(['calls', 'busy', 'in callbacks', 'waiting', 'worker'], workers.map((worker) => [showCount(worker.polls), percentText(worker.busy),
		showDuration(worker.poll_ns), showDuration(worker.parked_ns), `${worker.id} ${worker.name ? showName(worker.name) : ''}`]))}`);
	parts.push(`callbacks, most time first\n${textColumns(['total', 'calls', 'p50', 'p99', 'longest', 'p99 wait', 'callback'], callbacks.slice(0, top).map((callback) => [showDuration(callback.total_ns),
		showCount(callback.polls), showDuration(callback.p50_ns), showDuration(callback.p99_ns), showDuration(callback.max_ns), callback.delays.count ? showDuration(callback.delays.p99_ns) : '–',
		showName(callback.location)]))}`);
	if (polls.longest.length) parts.push(`longest calls\n${textColumns(['at', 'length', 'worker', 'mostly', 'callback'], polls.longest.slice(0, top).map((call) => [`${(call.offset_ns / 1e9).toFixed(3)} s`,
		showDuration(call.duration_ns), call.worker, mostOf(call.time), call.name]))}`);
	if (waits.worst.length) parts.push(`longest waits from ready to running\n${textColumns(['at', 'wait', 'worker', 'reason', 'callback'], waits.worst.slice(0, top).map((wait) => [`${(wait.offset_ns / 1e9).toFixed(3)} s`,
		showDuration(wait.delay_ns), wait.worker, wait.reason, wait.name]))}`);
	if (summary.blocking_calls.length) parts.push(`calls that blocked inside callbacks\n${textColumns(['total', 'calls', 'longest', 'function', 'callback'], summary.blocking_calls.slice(0, top).map((call) => [
		showDuration(call.total_ns), call.calls, showDuration(call.longest_ns), `${call.function}(${call.fd ?? ''})`, call.callback]))}`);
	if (summary.spans.length) parts.push(`spans\n${textColumns(['spans', 'p50', 'p99', 'longest', 'span'], summary.spans.slice(0, top).map((span) => [showCount(span.count), showDuration(span.p50_ns),
		showDuration(span.p99_ns), showDuration(span.max_ns), span.name]))}`);
	return parts.join('\n\n');
}

await runScript('report.js', { usage: REPORT_USAGE, options: { top: { type: 'string', default: '10' } }, main: (processes, values) => {
	const top = numberOption(values.top, '--top', 1);
	if (values.json) return { json: exactJson(reportOf(processes)) };
	return { text: processes.map((process, i) => processText(process, summaryOf(process, i), top)).join('\n\n') };
} });
