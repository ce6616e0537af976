#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
// The findings of `dial9 report`, and by the exit status whether there are any.

import { passToReport } from './dial9.js';
import { runScript, tellReport } from './script.js';

const FLAGS_USAGE = `usage: node red_flags.js [--json] TRACE...

What is wrong in a trace, worst first: the findings of dial9 report.

  -j, --json   a JSON array: process, check, severity, message, name, figure,
               time, on_cpu, advice, effects (texts), and evidence with offset_s,
               duration_ns, worker, task

Exit status: 0 nothing, 1 a warning or worse, 2 bad usage or a damaged trace.
`;

function flagsOf({ trace, findings }) {
	return findings.map(({ process: number, check, severity, message, name, figure, time, on_cpu: onCpu, advice, effects, evidence }) => ({ process: trace.processes[number].folder, check, severity, message, name, figure,
		time, on_cpu: onCpu, advice, effects: effects.map(({ effect }) => effect),
		evidence: evidence.map(({ text, offset_ns: offset, duration_ns: ns, worker, task }) => ({ text, offset_s: offset === undefined ? undefined : offset / 1e9, duration_ns: ns, worker, task })) }));
}

await runScript('red_flags.js', { usage: FLAGS_USAGE, main: (paths, { json }) => (json ? tellReport(paths, (report) => ({ json: JSON.stringify(flagsOf(report)), status: Number(report.findings.some(({ severity }) => severity !== 'info')) }))
	: { status: passToReport(['--exit-code', '--section', 'findings', '--', ...paths]) }) });
