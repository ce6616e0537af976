#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
// Whether a trace was recorded well enough to judge by, and what to do if not: the findings about the data.

import { runScript, tellReport, wrapText } from './script.js';
import { showName } from './show.js';

const SETUP_USAGE = `usage: node diagnose_setup.js [--json] TRACE...

Whether a trace was recorded well enough to judge by, and what to do if not: the
findings of dial9 report about the data.  dial9 doctor tells the same of a
machine before anything is recorded.

  -j, --json   a JSON array: process, check, severity, message, advice

Exit status: 0 fine, 1 something is missing, 2 bad usage or a damaged trace.
`;

const SETUP_CHECKS = ['nothing-recorded', 'incomplete-data', 'degraded-hooks', 'refused-source', 'missing-source', 'sample-setup', 'no-wakes'];

await runScript('diagnose_setup.js', { usage: SETUP_USAGE, main: (paths) => tellReport(paths, ({ trace, findings }) => {
	const found = findings.filter(({ check }) => SETUP_CHECKS.includes(check)).map(({ process: number, check, severity, message, advice }) => ({ process: trace.processes[number].folder, check, severity, message, advice }));
	return { text: found.map(({ check, severity, message, advice }) => `${wrapText(`${severity}: ${check}: ${showName(message, 1000)}`, '  ')}\n${wrapText(`  ${showName(advice, 1000)}`, '  ')}`).join('\n') || 'nothing is missing',
		json: JSON.stringify(found), status: Number(found.some(({ severity }) => severity !== 'info')) };
}) });
