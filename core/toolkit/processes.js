// SPDX-License-Identifier: Apache-2.0
// Segments by the process that wrote them, as `dial9 report` tells processes apart.

import { readTrace } from './trace.js';

const EVENTS_BEFORE_METADATA = 10000;

function hasMetadata({ tables }) {
	let events = 0;
	for (const table of tables.values()) {
		if (table.name === 'SegmentMetadataEvent' && table.rows.n) return true;
		events += table.count;
	}
	return events > EVENTS_BEFORE_METADATA;
}

/** What tells the process of |source| from others; undefined where its metadata does not.  Dumps of one process overlap: each stands for itself. */
async function processOf(source) {
	const { metadata } = await readTrace([source], { enough: hasMetadata }), id = metadata.get('boot_id'), dump = metadata.get('dump.id');
	return id && dump ? `${id}, dump ${dump}` : id;
}

function groupBy(sources, keyOf) {
	const groups = new Map();
	sources.forEach((source, i) => {
		const key = keyOf(source, i);
		if (!groups.has(key)) groups.set(key, { folder: source.folder, sources: [] });
		groups.get(key).sources.push(source);
	});
	return [...groups.values()];
}

/** |sources|, [{folder}], where each folder is one process's: [{folder, sources}]. */
export function groupByFolder(sources) {
	return groupBy(sources, ({ folder }) => folder);
}

/**
 * |sources|, [{name, folder, chunks}], by process: [{folder, sources}], in the order in which they come.  One that does not tell is of the first
 * process in its folder.
 */
export async function groupByProcess(sources) {
	const ofFolder = new Map(), ids = [];
	for (const source of sources) {
		const id = sources.length > 1 ? await processOf(source) : undefined;
		ids.push(id);
		if (id && !ofFolder.has(source.folder)) ofFolder.set(source.folder, id);
	}
	return groupBy(sources, ({ folder }, i) => ids[i] ?? ofFolder.get(folder) ?? `in ${folder}`);
}
