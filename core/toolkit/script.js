// SPDX-License-Identifier: Apache-2.0
// What the scripts share: options, errors of one line, text of 80 columns.

import { parseArgs } from 'node:util';
import { reportOfTraces } from './dial9.js';
import { InputError, readProcesses } from './files.js';

const WIDTH = 80, STATUS_BAD = 2;

class UsageError extends Error {}

/** The value of an option as a number that is at least |least|. */
export function numberOption(text, name, least = 0) {
	const value = Number(text);
	if (text.trim() === '' || !(value >= least) || value === Infinity) throw new UsageError(`${name} takes a number of at least ${least}, not '${text}'`);
	return value;
}

/** |text| broken at blanks so that no line is longer than it may be; further lines begin with |indent|. */
export function wrapText(text, indent = '') {
	const lines = [text.match(/^ */)[0].slice(1)];
	for (const word of text.trim().split(/[ \n]+/)) {
		const line = lines.at(-1);
		if (line.trim() && line.length + 1 + word.length > WIDTH) lines.push(indent + word);
		else lines[lines.length - 1] = line || text.startsWith(' ') ? `${line} ${word}` : word;
	}
	return lines.join('\n');
}

/** Rows of texts in columns; those of numbers are set right.  The last column is cut where it has no room. */
export function textColumns(head, rows) {
	const all = [head, ...rows.map((row) => row.map(String))], widths = head.map((_, i) => Math.max(...all.map((row) => row[i].length)));
	const left = head.map((_, i) => i === head.length - 1 || rows.some((row) => !/^[−–\d]/.test(String(row[i]))));
	const used = widths.slice(0, -1).reduce((sum, width) => sum + width + 2, 0);
	return all.map((row) => row.map((text, i) => {
		if (i === row.length - 1) return text.length > WIDTH - used && WIDTH - used > 10 ? `${text.slice(0, WIDTH - used - 1)}…` : text;
		return left[i] ? text.padEnd(widths[i]) : text.padStart(widths[i]);
	}).join('  ').trimEnd()).join('\n');
}

/**
 * Run a script.  |usage|: what --help prints; |options|: as of parseArgs(), to which help and json are added;
 * |operands|: how many follow TRACE; |main|(paths, values, operands) returns {text, json, status}, or only {status}.
 */
export async function runScript(name, { usage, options = {}, operands = 0, main }) {
	// Who reads the output may have enough of it, as head(1) has.
	process.stdout.on('error', (error) => error.code === 'EPIPE' || fail(name, `cannot write: ${error.message}`));
	try {
		const { values, positionals } = parse({ ...options, help: { type: 'boolean', short: 'h' }, json: { type: 'boolean', short: 'j' } });
		if (values.help) return void process.stdout.write(usage);
		if (!positionals.length) throw new UsageError(`which TRACE? see node ${name} --help`);
		if (positionals.length < 1 + operands) throw new UsageError(`something is missing: see node ${name} --help`);
		const rest = operands ? positionals.splice(-operands) : [];
		const { text, json, status } = await main(positionals, values, rest), output = values.json ? json : text;
		if (output !== undefined) process.stdout.write(`${output}\n`);
		process.exitCode = status;
	} catch (error) {
		// An error with |syscall| is the system's, of a file that cannot be read.
		if (!(error instanceof UsageError || error instanceof InputError || error.syscall)) throw error;
		fail(name, error.message);
	}
}

/** Run a script that is a command of dial9: |run|() returns its exit status. */
export function passOn(name, run) {
	try {
		process.exitCode = run();
	} catch (error) {
		if (!(error instanceof InputError)) throw error;
		fail(name, error.message);
	}
}

/** What |main|(processes) returns for the traces |paths|; the status says whether one is damaged, which is told. */
export async function tellTraces(name, paths, main) {
	const processes = await readProcesses(paths, (line) => process.stderr.write(`${name}: ${line}\n`)), told = main(processes);
	return { ...told, status: damaged(name, processes) ? STATUS_BAD : 0 };
}

/** What |main|(report) returns of `dial9 report --json` for |paths|; where there is no report, dial9 has said why. */
export function tellReport(paths, main) {
	const { report, status } = reportOfTraces(paths), told = report ? main(report) : {};
	return { ...told, status: status === STATUS_BAD ? STATUS_BAD : told.status };
}

function fail(name, message) {
	process.stderr.write(`${name}: ${message}\n`);
	process.exitCode = STATUS_BAD;
}

function parse(options) {
	try {
		return parseArgs({ options, allowPositionals: true });
	} catch (error) {
		throw new UsageError(error.message.split(/\. |\n/)[0]);
	}
}

/** Whether something could not be read to its end, which is told. */
function damaged(name, processes) {
	const broken = processes.flatMap(({ trace }) => trace.segments.filter((segment) => segment.error));
	for (const segment of broken) process.stderr.write(`${name}: ${segment.name}: ${segment.error.replace(/^offset \d+: /, '')} at byte ${segment.offset}; everything before it was used\n`);
	return broken.length > 0;
}
