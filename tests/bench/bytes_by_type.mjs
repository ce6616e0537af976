// SPDX-License-Identifier: Apache-2.0
// bytes_by_type.mjs FOLDER: "NAME BYTES EVENTS" of each type of event in a trace's segments, unpacked; then "stored BYTES".
// Schemas, texts and stacks, which are written once a batch, are the type "-".

import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { decode } from '../../core/toolkit/frames.js';
import { unpack } from '../../core/toolkit/unpack.js';

const folder = process.argv[2], types = new Map();
let stored = 0;

async function unpacked(bytes) {
	const pieces = [];
	for await (const { bytes: piece } of unpack(async function* () { yield bytes; }())) if (piece) pieces.push(piece);
	return Buffer.concat(pieces);
}

function count(name, bytes, events) {
	const sum = types.get(name) ?? [0, 0];
	types.set(name, [sum[0] + bytes, sum[1] + events]);
}

const files = readdirSync(folder, { recursive: true }).filter((name) => /\.bin(\.zst|\.gz)?$/.test(name));
for (const name of files) {
	const bytes = new Uint8Array(readFileSync(join(folder, name)));
	stored += bytes.length;
	let open = null;
	const next = (kind, offset) => {
		if (open) count(open.kind, offset - open.offset, open.kind === '-' ? 0 : 1);
		open = { kind, offset };
	};
	const end = decode(await unpacked(bytes), {
		header: (offset) => next('-', offset),
		schema: (schema, offset) => next('-', offset),
		annotations: (id, entries, offset) => next('-', offset),
		strings: (entries, offset) => next('-', offset),
		stacks: (entries, offset) => next('-', offset),
		reset: (base, offset) => next('-', offset),
		event: ({ schema }, offset) => next(schema.name, offset),
	});
	next(null, end);
}
for (const [name, [bytes, events]] of [...types].sort((a, b) => b[1][0] - a[1][0])) console.log(name, bytes, events);
console.log('stored', stored);
