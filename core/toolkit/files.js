// SPDX-License-Identifier: Apache-2.0
// Traces from files, for scripts in Node: a segment, a folder of segments and of folders, as host/boot, or the manifest of a dump.

import { closeSync, createReadStream, lstatSync, openSync, readFileSync, readSync, readdirSync, realpathSync, statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { groupByProcess } from './processes.js';
import { readTrace, rowsNamed } from './trace.js';

const SEGMENT = /\.bin(\.gz|\.zst)?(\.active)?$/;

/** Something that a person has to mend, in one line. */
export class InputError extends Error {}

/** As core/read/folder.h has it: so many levels of folders are looked into. */
const FOLDER_LEVELS = 4;

function segmentFilesIn(folder, levels = FOLDER_LEVELS) {
	const entries = readdirSync(folder, { withFileTypes: true });
	const files = entries.filter((entry) => entry.isFile() && SEGMENT.test(entry.name)).map((entry) => join(folder, entry.name));
	const folders = levels ? entries.filter((entry) => entry.isDirectory()) : [];
	return [...files, ...folders.flatMap((entry) => segmentFilesIn(join(folder, entry.name), levels - 1))];
}

const isFile = (path) => lstatSync(path, { throwIfNoEntry: false })?.isFile() ?? false;

/** The segments that the manifest |path| lists: beside it, and nowhere else.  |tell| of each that is not there. */
function segmentFilesOf(path, tell) {
	const folder = dirname(realpathSync(path));
	let names;
	try {
		names = JSON.parse(readFileSync(path, 'utf8')).segments;
	} catch {
		names = null;
	}
	if (!Array.isArray(names) || !names.every((name) => typeof name === 'string' && !/[/\0]/.test(name) && SEGMENT.test(name))) {
		throw new InputError(`${path}: no manifest of a dump`);
	}
	const files = [...new Set(names)].map((name) => join(folder, name));
	const found = files.map((file) => [file, `${file}.active`].find(isFile));
	if (!found.some(Boolean)) throw new InputError(`${path}: none of the segments that it lists is beside it`);
	files.forEach((file, i) => found[i] || tell(`${file}: not there, and ${basename(path)} lists it`));
	return found.filter(Boolean);
}

function traceFilesOf(path, tell) {
	let facts;
	try {
		facts = statSync(path);
	} catch (error) {
		throw new InputError(`${path}: ${error.code === 'ENOENT' ? 'No such file or directory' : error.message}`);
	}
	if (facts.isFile() && path.endsWith('.json')) return segmentFilesOf(path, tell);
	if (!facts.isDirectory()) return [path];
	const files = segmentFilesIn(path);
	if (!files.length) throw new InputError(`${path}: no segments; give a directory that holds trace.*.bin* files`);
	return files;
}

const CONTAINER_MAGIC = { gzip: [0x1f, 0x8b], zstd: [0x28, 0xb5, 0x2f, 0xfd], plain: [0x54, 0x52, 0x43, 0x00] };

/** How a file is packed, or null: it is no trace. */
function containerOf(path) {
	const head = Buffer.alloc(4), file = openSync(path, 'r');
	readSync(file, head, 0, 4, 0);
	closeSync(file);
	return Object.keys(CONTAINER_MAGIC).find((name) => CONTAINER_MAGIC[name].every((byte, i) => head[i] === byte)) ?? null;
}

/** From the first event of a loop to the last, as dial9 report counts its times; of a trace without any, as it is. */
function loopBounds(trace) {
	let start = Infinity, end = -Infinity;
	const see = (time) => {
		start = Math.min(start, time);
		end = Math.max(end, time);
	};
	for (const { polls, parks, entries, unended } of trace.workers) {
		if (polls.n) [polls.start[0], polls.start[polls.n - 1] + polls.dur[polls.n - 1]].forEach(see);
		if (parks.n) [parks.start[0], parks.end[parks.n - 1]].forEach(see);
		for (let i = 0; i < entries.n; i++) see(entries.time[i]);
		if (unended) see(unended.start);
	}
	if (trace.wakes.n) [trace.wakes.time[0], trace.wakes.time[trace.wakes.n - 1]].forEach(see);
	for (const name of ['QueueSampleEvent', 'StuckPollEvent', 'LastSignEvent']) rowsNamed(trace, name, []).forEach(({ time }) => see(time));
	return start <= end ? { start, end } : {};
}

/**
 * The processes of the traces |paths|: [{folder, files: [{path, container, stored}], trace}].  InputError, where there is nothing to read.
 * |tell| is called with a line for each segment of a dump that is not there.
 */
export async function readProcesses(paths, tell = () => {}) {
	const segments = [];
	for (const path of paths.flatMap((one) => traceFilesOf(one, tell))) {
		const container = containerOf(path);
		if (!container) throw new InputError(`${path}: this is no trace; give a file that dial9 wrote, or the directory that holds trace.*.bin* files`);
		const stored = statSync(path).size;
		segments.push({ name: path, folder: dirname(path), chunks: () => createReadStream(path), bytes: stored, file: { path, container, stored } });
	}
	const processes = [];
	for (const { folder, sources } of await groupByProcess(segments)) {
		sources.sort((a, b) => basename(a.name).localeCompare(basename(b.name), 'en', { numeric: true }));
		const trace = await readTrace(sources);
		processes.push({ folder, files: sources.map(({ file }) => file), trace: Object.assign(trace, loopBounds(trace)) });
	}
	return processes;
}
