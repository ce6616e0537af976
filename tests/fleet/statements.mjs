// SPDX-License-Identifier: Apache-2.0
// Every DuckDB statement of FLEET.md runs on a day of simulated rows, and those that look for faults find the planted ones alone.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { test } from 'node:test';

import { open } from './duckdb.mjs';
import { simulate } from './simulate.mjs';

const { GUIDE, RECORDED, STORE, HOSTS = '20', MINUTES = '20', SEGMENT = '20' } = process.env;
const guide = readFileSync(GUIDE, 'utf8').replaceAll('s3://BUCKET/PREFIX', STORE);
const blocks = [...guide.matchAll(/^```sql duckdb\n([\s\S]*?)^```$/gm)].map((match) => match[1].trim());
const compaction = blocks.findIndex((block) => block.startsWith('set threads'));
const began = Date.now();
const faulty = await simulate(RECORDED, STORE, Number(HOSTS), Number(MINUTES), Number(SEGMENT));
const ask = await open();
const answers = {};

// What a block answers, under the comment that it begins with, and how long it took.
async function run(block) {
	let rows = [];

	for (const statement of block.split(/;\s*$/m))
		if (statement.trim())
			rows = await ask(statement);
	return rows;
}

async function runAll() {
	for (const [i, block] of blocks.entries()) {
		if (i === compaction)
			continue;
		const start = performance.now();

		answers[block.split('\n')[0].replace(/^-- /, '')] = await run(block);
		if (process.env.TELL)
			console.log(`${(performance.now() - start).toFixed(0).padStart(6)} ms  ${block.split('\n')[0].slice(0, 90)}`);
	}
	[{ s: answers.busy_s }] = await ask(`select sum(busy_ns)::double / 1e9 as s from callbacks where date = '2026-11-20' and service = 'web'`);
}

const hostsOf = (rows) => [...new Set(rows.map((row) => row.host))].sort();

function checkAll() {
	const worst = answers['What blocked loops, by how much, in how many calls?'];

	assert.ok(worst.some((row) => row.callback === 'hello' && row.service === 'web'));
	assert.deepEqual(hostsOf(answers['Which hosts are unlike the others?']), faulty);
	assert.ok(answers['Which hosts are unlike the others?'].every((row) => row.callback === 'hello'));
	const [slower] = answers['Before and after a deployment at 10 o\'clock: ns per call'];

	assert.ok(slower.callback === 'hello' && slower.after_ns > 5 * slower.before_ns);
	assert.deepEqual(answers['Hosts with loss, whose figures are not to be trusted'].map((row) => [row.host, Number(row.lost)]), [['web-002', 7]]);

	const p99 = answers['p99 of the whole fleet, from histograms: percentiles of percentiles would be wrong'];

	assert.deepEqual(p99.filter((row) => row.p99_us_below > 20000 && row.callback !== 'render_report').map((row) => [row.service, row.callback]), [['web', 'hello']]);
	assert.ok(answers[Object.keys(answers).find((key) => key.startsWith('select "Timestamp"'))].every((row) => row.ms > 10 && row.host && row.SpanName && row.ServiceName));
	assert.equal(answers['Loops that keep others waiting, and how full they are'].filter((row) => faulty.includes(row.host)).length, 4);
	const cells = answers['Heat map of time spent in callbacks'];

	assert.ok(cells.length > 100);
	assert.ok(Math.abs(cells.reduce((sum, row) => sum + row.busy * 600, 0) / answers.busy_s - 1) < 1e-6);
	assert.ok(answers['What the fleet\'s CPUs do: the same stack has the same id on every host'].every((row) => row.hosts === BigInt(HOSTS)));

	const [first, second, third] = answers['worked: when'];

	assert.deepEqual([first, second].map((row) => [row.service, row.hour]), [['web', 10n], ['web', 11n]]);
	assert.ok(first.p99_ms_below > 20 && third.p99_ms_below < 1, `${first.p99_ms_below} ${third.p99_ms_below}`);
	assert.deepEqual(hostsOf(answers['worked: hosts']), faulty);
	assert.equal(answers['worked: stacks'][0].callback, 'hello');
	assert.match(answers['worked: stacks'][0].folded, /ask_and_wait/);
	assert.equal(answers['worked: stacks'][0].hosts, 4n);
	assert.ok(answers['worked: trace'].every((row) => faulty.includes(row.host) && row.segment.startsWith(`${row.host}/10-`) && row.asleep_ms > 20));
}

const filesOf = (folder) => readdirSync(folder, { recursive: true }).filter((name) => name.endsWith('.parquet')).sort();
const sums = (folder) => filesOf(folder).filter((name) => !name.includes('incoming')).map((name) =>
	[name, createHash('sha256').update(readFileSync(`${folder}/${name}`)).digest('hex')]);

test('every statement of the guide runs, and those that look for faults find four hosts and no other', async () => {
	assert.ok(blocks.length > 15 && compaction > 0);
	await runAll();
	checkAll();
});

test('compaction changes no answer, and repeated it writes the same bytes', async () => {
	const count = async () => (await ask(`select (select count(*) from callbacks) as c, (select sum(polls) from callbacks) as p,
		(select count(*) from slow_polls) as s, (select count(*) from loops) as l, (select count(*) from segments) as g, (select sum(samples) from samples) as a`));
	const before = await count(), incoming = filesOf(`${STORE}/parquet/v1/incoming`).length;

	await run(blocks[compaction]);

	const first = sums(`${STORE}/parquet/v1`);

	await run(blocks[compaction]);
	assert.deepEqual(sums(`${STORE}/parquet/v1`), first);
	assert.equal(filesOf(`${STORE}/parquet/v1/incoming`).length, incoming);
	assert.ok(first.some(([name]) => name === 'callbacks/date=2026-11-20/service=web/10-0.parquet'));
	assert.ok(first.every(([name]) => /\/\d\d-0\.parquet$/.test(name)));
	await runAll();
	checkAll();
	assert.deepEqual(await count(), before);
	if (process.env.TELL)
		console.log(`${HOSTS} hosts: ${JSON.stringify(before[0], (key, value) => typeof value === 'bigint' ? Number(value) : value)}, all in ${((Date.now() - began) / 1000).toFixed(0)} s`);
});
