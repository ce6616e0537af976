// SPDX-License-Identifier: Apache-2.0
// Traces of every wrong type, into files for the readers to be held against each other:
//
//	node cross_types.mjs DIR        two files for each value: with all events and fields, and with signs of life, which say when other calls began
//	node cross_types.mjs --each     each event for itself, read and shown by the toolkit and the page's model alone

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { KNOWN_EVENTS } from '../../core/toolkit/known.js';
import { allocations, blockingCalls, idleWaits } from '../../core/toolkit/profile.js';
import { readTrace } from '../../core/toolkit/trace.js';
import { capabilitiesOf, clockOf, lossesOf, namesOf } from '../../core/toolkit/trust.js';
import { Model } from '../../core/viewer/model.js';
import { STRANGE, strangeTrace } from './strange_types.mjs';

const SIGNS = ['LastSignEvent', 'StuckPollEvent'];

async function readAlone(event, what, strange) {
	const bytes = strangeTrace(strange, [event]);
	async function* chunks() { yield bytes; }
	try {
		const trace = await readTrace([{ name: what, chunks, bytes: bytes.length }]);
		new Model([trace], { name: what, shown: 1, segments: 1 }).goWithoutReport('');
		for (const ask of [allocations, blockingCalls, idleWaits, capabilitiesOf, clockOf, lossesOf, namesOf]) ask(trace);
	} catch (error) {
		console.log(`${event}, fields of ${what}: ${error.stack}`);
		process.exitCode = 1;
	}
}

if (process.argv[2] === '--each') for (const event of Object.keys(KNOWN_EVENTS)) for (const [what, strange] of STRANGE) await readAlone(event, what, strange);
else
	for (const [what, strange] of STRANGE) {
		writeFileSync(join(process.argv[2], `type-${what}`), strangeTrace(strange, Object.keys(KNOWN_EVENTS).filter((name) => !SIGNS.includes(name))));
		writeFileSync(join(process.argv[2], `signs-${what}`), strangeTrace(strange, SIGNS));
	}
