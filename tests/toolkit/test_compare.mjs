// SPDX-License-Identifier: Apache-2.0
// Two sides against each other: what got slower is found, and nothing is where nothing changed.

import { test } from 'node:test';
import assert from 'node:assert/strict';
import { compareSides, delaysOf, plainName, plainPlace } from '../../core/toolkit/compare.js';
import { readTrace } from '../../core/toolkit/trace.js';
import { loadTrace } from './load_bytes.mjs';
import { serverTrace } from './trace_bytes.mjs';

const read = (bytes) => readTrace([{ name: 'a', chunks: async function* () { yield bytes; } }]);
const nameOf = (trace, site) => {
	const [name, place] = trace.strings[site].split(' @ ');
	return { name, site: place };
};
const sideOf = (trace, intervals = [[trace.start, trace.end]]) => ({ traces: [trace], intervals, nameOf });
const verdicts = ({ rows }) => Object.fromEntries(rows.map((row) => [row.name, [row.kind, row.calls?.verdict]]));

test('a callback that is 20 % slower is found among others that are not', async () => {
	const a = await read(loadTrace({ seed: 1 })), b = await read(loadTrace({ seed: 2, slower: 1.2 })), compared = compareSides(sideOf(a), sideOf(b));
	assert.deepEqual(verdicts(compared), { on_request: ['both', 'slower'], on_read: ['both', 'same'], tick: ['both', 'same'] });
	const row = compared.rows.find((r) => r.name === 'on_request');
	assert.ok(row.calls.mean.low > 1.05 && row.calls.mean.high < 1.4, JSON.stringify(row.calls.mean));
	assert.ok(row.calls.superiority > 0.5);
	assert.equal(compared.rows[0], row);
	const back = compareSides(sideOf(b), sideOf(a));
	assert.deepEqual([back.slower, back.faster], [0, 1]);
});

test('runs of the same program differ in nothing, though their load drifts', async () => {
	for (let seed = 10; seed < 30; seed += 2) {
		const a = await read(loadTrace({ seed })), b = await read(loadTrace({ seed: seed + 1 }));
		const { slower, faster, rows } = compareSides(sideOf(a), sideOf(b));
		assert.deepEqual([slower, faster], [0, 0], `seed ${seed}: ${rows.map((r) => `${r.name} ${r.calls?.verdict} ${r.waits?.verdict}`)}`);
	}
});

test('two parts of one trace are compared, and a part with the rest', async () => {
	const trace = await read(loadTrace({ seed: 3, slower: 1.5, from: 20e9, to: 30e9 })), middle = [20e9, 30e9];
	assert.equal(verdicts(compareSides(sideOf(trace, [[0, 10e9]]), sideOf(trace, [middle]))).on_request[1], 'slower');
	const rest = sideOf(trace, [[trace.start, middle[0]], [middle[1], trace.end]]);
	assert.equal(verdicts(compareSides(rest, sideOf(trace, [middle]))).on_request[1], 'slower');
	const same = compareSides(sideOf(trace, [[0, 10e9]]), sideOf(trace, [[10e9, 20e9]]));
	assert.deepEqual([same.slower, same.faster], [0, 0]);
});

test('callbacks match by name and place without line; new, gone and renamed ones are told', async () => {
	const a = await read(loadTrace({ seed: 1 })), b = await read(loadTrace({ seed: 1, names: { 'on_read @ server.c:231': 'on_read @ server.c:250', 'tick @ timer.c:40': 'beat @ heart.c:1', 'on_request @ http.c:96': 'on_request @ front.c:7' } }));
	const kinds = Object.fromEntries(compareSides(sideOf(a), sideOf(b)).rows.map((row) => [row.name, row.kind]));
	assert.deepEqual(kinds, { on_read: 'both', on_request: 'renamed', tick: 'gone', beat: 'new' });
	assert.deepEqual([plainName('f.constprop.0.isra.1'), plainName('read@plt'), plainName('memcpy@@GLIBC_2.14'), plainName('a.part.3.cold'), plainPlace('server.c:231')],
		['f', 'read', 'memcpy', 'a', 'server.c']);
});

const RAW = { 'on_request @ http.c:96': 'server+0x1100 @ server+0x2000', 'on_read @ server.c:231': 'server+0x1200 @ server+0x2040', 'tick @ timer.c:40': 'server+0x1300 @ server+0x2080' };

test('a file that was never symbolised matches by build-id and offset', async () => {
	const bare = await read(loadTrace({ seed: 1, names: RAW, build: 'aa11' })), named = await read(loadTrace({ seed: 2, slower: 1.5, recorded: RAW, build: 'aa11' }));
	const compared = compareSides(sideOf(bare), sideOf(named));
	assert.deepEqual(verdicts(compared), { on_request: ['both', 'slower'], on_read: ['both', 'same'], tick: ['both', 'same'] });
	assert.equal(compared.matched, 1);
	const both = compareSides(sideOf(bare), sideOf(await read(loadTrace({ seed: 2, names: RAW, build: 'aa11' }))));
	assert.deepEqual(both.rows.map((row) => row.kind), ['both', 'both', 'both']);
});

test('of another build the same offsets are other functions, and how much matched is told', async () => {
	const a = await read(loadTrace({ seed: 1, names: RAW, build: 'aa11' })), b = await read(loadTrace({ seed: 1, names: RAW, build: 'bb22' })), compared = compareSides(sideOf(a), sideOf(b));
	assert.deepEqual(new Set(compared.rows.map((row) => row.kind)), new Set(['gone', 'new']));
	assert.equal(compared.matched, 0);
	const part = compareSides(sideOf(await read(loadTrace({ seed: 1 }))), sideOf(await read(loadTrace({ seed: 1, names: { 'on_request @ http.c:96': 'on_query @ sql.c:9' } }))));
	assert.ok(part.matched > 0.2 && part.matched < 0.5, `${part.matched}`);
});

test('functions that a library calls inside its callbacks are compared, too', async () => {
	const trace = await read(loadTrace({ seed: 1 })), slow = await read(loadTrace({ seed: 2 })), inside = trace.strings.push('render @ page.c:5') - 1;
	slow.strings.push('render @ page.c:7');
	// One in each call of on_request, for half of its time, and in the other trace for twice as long.
	for (const [of, share] of [[trace, 0.3], [slow, 0.6]]) {
		const [{ id, polls }] = of.workers, rows = [...polls.start.subarray(0, polls.n).keys()].filter((row) => of.strings[polls.site[row]].startsWith('on_request'));
		of.spans = new Map([[id, { n: rows.length, name: rows.map(() => of.strings.length - 1), start: Float64Array.from(rows, (row) => polls.start[row]), end: Float64Array.from(rows, (row) => polls.start[row] + share * polls.dur[row]) }]]);
	}
	assert.equal(trace.strings[inside], 'render @ page.c:5');
	const { rows, slower } = compareSides(sideOf(trace), sideOf(slow)), row = rows.find((r) => r.name === 'render');
	assert.deepEqual([row.kind, row.calls.verdict, slower], ['both', 'slower', 1]);
});

test('of few calls nothing is said', async () => {
	const trace = await read(serverTrace());
	const few = compareSides(sideOf(trace, [[trace.start, trace.start + 20e6]]), sideOf(trace, [[trace.end - 20e6, trace.end]]));
	assert.deepEqual(few.rows.map((row) => row.calls.verdict), ['too few', 'too few']);
});

test('a wait is as long as from the first wake that no call has used', async () => {
	const trace = await read(serverTrace()), [main] = trace.workers, delays = delaysOf(trace).get(main), row = main.polls.dur.indexOf(182000000);
	assert.deepEqual([...delays.subarray(row, row + 3)], [2400000, 162000000, 102031000]);
});
