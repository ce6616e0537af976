// SPDX-License-Identifier: Apache-2.0
// `dial9`, which says what is wrong in a trace: the scripts tell what it says.

import { spawnSync } from 'node:child_process';
import { accessSync, constants, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { InputError } from './files.js';

const OUTPUT_MAX = 2 ** 30; // bytes of JSON
// Where it lies as built, and as installed.
const NEAR = ['../dial9', '../../../bin/dial9'];

function isProgram(path) {
	try {
		accessSync(path, constants.X_OK);
		return statSync(path).isFile();
	} catch {
		return false;
	}
}

function findDial9() {
	const { DIAL9, PATH } = process.env, near = NEAR.map((path) => fileURLToPath(new URL(path, import.meta.url)));
	const found = (DIAL9 ? [DIAL9] : [...near, ...(PATH ?? '').split(':').map((folder) => join(folder, 'dial9'))]).find(isProgram);
	if (!found) throw new InputError(`dial9 is not found; ${DIAL9 ? `${DIAL9} is no program` : 'it is neither near this script nor in PATH'}, say DIAL9=PATH`);
	return found;
}

function runDial9(args, stdout) {
	const { status, signal, error, stdout: output } = spawnSync(findDial9(), args, { stdio: ['inherit', stdout, 'inherit'], encoding: 'utf8', maxBuffer: OUTPUT_MAX });
	if (error) throw new InputError(`dial9 does not run: ${error.message}`);
	if (signal) throw new InputError(`dial9 was ended by ${signal}`);
	return { status, output };
}

/** Run `dial9 report` with |args|, which prints for us: its exit status. */
export function passToReport(args) {
	return runDial9(['report', ...args], 'inherit').status;
}

/** What `dial9 report --json` says of the traces |paths|: {report, status}.  |report| is null where it says on stderr why there is none. */
export function reportOfTraces(paths) {
	const { status, output } = runDial9(['report', '--json', '--', ...paths], 'pipe');
	return { report: output ? JSON.parse(output) : null, status };
}
