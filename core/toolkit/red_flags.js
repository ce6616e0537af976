#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
// What is wrong in a trace at first sight, worst first.

import { redFlags } from './analyze.js';
import { runScript, wrapText } from './script.js';
import { showName } from './show.js';

const FLAGS_USAGE = `usage: node red_flags.js [--json] TRACE...

What is wrong in a trace at first sight, worst first.  dial9 report knows more;
this one needs nothing but Node.

  -j, --json   a JSON array: process, check, severity, message, name, figure,
               time, on_cpu, advice, effects (texts), and evidence with offset_s,
               duration_ns, worker, task

Exit status: 0 nothing, 1 a warning or worse, 2 bad usage or a damaged trace.
`;

const FLAGS_TOLD = 20;

function flagText(flag) {
	const where = flag.evidence.slice(0, 3).map(({ text, offset_s: at, worker }) => wrapText(`  ${at === undefined ? '' : `at ${at.toFixed(3)} s${worker === undefined ? '' : `, worker ${worker}`}: `}${text}`, '    '));
	const follows = flag.effects.map((effect) => wrapText(`  and so: ${effect}`, '  ')), spent = flag.time ? [wrapText(`  time: ${flag.time}${flag.on_cpu ? `; ${flag.on_cpu}` : ''}`, '  ')] : [];
	return [wrapText(`${flag.severity}: ${flag.check}: ${flag.message}`, '  '), ...where, ...spent, ...follows, ...(flag.advice ? [wrapText(`  ${flag.advice}`, '  ')] : [])].join('\n');
}

await runScript('red_flags.js', { usage: FLAGS_USAGE, main: (processes) => {
	const flags = processes.flatMap(({ folder, trace }) => redFlags(trace).map((flag) => ({ process: showName(folder), check: flag.check, severity: flag.severity, message: flag.message, name: flag.name, figure: flag.figure, time: flag.time, on_cpu: flag.on_cpu,
		advice: flag.advice, effects: flag.effects.map(({ effect }) => effect),
		evidence: flag.evidence.map(({ text, time, duration, worker, task }) => ({ text, offset_s: time === undefined ? undefined : (time - trace.start) / 1e9, duration_ns: duration, worker, task })) })));
	const bad = flags.filter((flag) => flag.severity !== 'info').length;
	const told = flags.slice(0, FLAGS_TOLD);
	return { text: `${told.map(flagText).join('\n')}${flags.length ? '\n' : ''}${flags.length > told.length ? 'the worst are told here; ' : ''}${flags.length} finding${flags.length === 1 ? '' : 's'}, ${bad} of them warning${bad === 1 ? '' : 's'} or worse`, json: JSON.stringify(flags), status: bad ? 1 : 0 };
} });
