// SPDX-License-Identifier: Apache-2.0
// Red flags of a trace for which there is no report of `dial9 report --json`, in the shape of its findings.  They have
// the names, limits and words of those rules of dial9-report(1) that a trace tells by itself.

import { orderFlags } from './flags.js';
import { librarySites, longCalls, longFlags, openFlags } from './flags_calls.js';
import { dataFlags } from './flags_data.js';
import { growthFlags, queueFlags, shortageFlags, sourceFlags, switchesOf } from './flags_process.js';
import { Rounds } from './flags_rounds.js';
import { Waits } from './flags_waits.js';
import { eachWokenCall } from './waking.js';

/** Findings, worst first; times are relative to the trace's origin. */
export function redFlags(trace) {
	const library = librarySites(trace), long = longCalls(trace, library), switches = switchesOf(trace), waits = new Waits(trace, long), rounds = new Rounds(trace, library);
	eachWokenCall(trace, (w, row, waking) => {
		waits.see(w, row, waking);
		rounds.see(w, row, waking);
	});
	return orderFlags([...dataFlags(trace), ...openFlags(trace), ...rounds.flags(), ...sourceFlags(trace), ...longFlags(trace, library, long, switches), ...waits.flags(switches), ...queueFlags(trace),
		...shortageFlags(trace, long), ...growthFlags(trace)]);
}
