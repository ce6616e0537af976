// SPDX-License-Identifier: Apache-2.0
// Times of day that are searched for: "12:03" is that minute, "12:03:20" that second.

import { showTime } from '../toolkit/show.js';
import { setView, update } from './state.js';

const TIME_TERM = /^(\d{1,2}):([0-5]\d)(?::([0-5]\d)(?:\.(\d{1,3}))?)?$/;
const DAY_MS = 86400000, DAYS_MOST = 32, AROUND_TIME = 0.1;

/** ns that a time of day stands for, by how exactly it is told. */
function lengthOfTime(second, fraction) {
	return fraction ? 10 ** (9 - fraction.length) : second ? 1e9 : 60e9;
}

/** Select [from, to) of the axis, and look at it. */
function goToInterval(from, to, clock) {
	update({ selected: null, finding: -1, range: [from, to], clock });
	setView(from - (to - from) * AROUND_TIME, to + (to - from) * AROUND_TIME);
}

/** When it was that time on |clock|, local unless it is utc, on each day of the trace: [{name, note, go}]. */
export function findTimes(model, text, clock) {
	const [, hour, minute, second, fraction] = TIME_TERM.exec(text) ?? [], zero = hour < 24 ? model.wall(model.first) : null, results = [];
	if (zero === null) return results;
	const utc = clock === 'utc', began = Number(zero / 1000000n), length = lengthOfTime(second, fraction), day = new Date(began);
	const parts = [Number(hour), Number(minute), Number(second ?? 0), Number((fraction ?? '0').padEnd(3, '0'))];
	const days = Math.min(DAYS_MOST, (model.last - model.first) / 1e6 / DAY_MS + 1);
	for (let i = 0; i <= days; i++) {
		const at = utc ? Date.UTC(day.getUTCFullYear(), day.getUTCMonth(), day.getUTCDate() + i, ...parts) : new Date(day.getFullYear(), day.getMonth(), day.getDate() + i, ...parts).getTime();
		const start = model.first + Number(BigInt(at) * 1000000n - zero), from = Math.max(start, model.first), to = Math.min(start + length, model.last);
		if (to <= from) continue;
		const date = new Date(at).toLocaleDateString('en-GB', { day: 'numeric', month: 'long', year: 'numeric', ...(utc ? { timeZone: 'UTC' } : {}) });
		results.push({ name: [from, to].map((time) => showTime(0, model.wall(time), utc ? 'utc' : 'local', fraction ? 3 : 0)).join(' to '), note: `${date}, ${utc ? 'UTC' : 'local'}`,
			go: () => goToInterval(from, to, utc ? 'utc' : 'local') });
	}
	return results;
}
