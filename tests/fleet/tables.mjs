// SPDX-License-Identifier: Apache-2.0
// What `dial9 export --format parquet` writes has the figures of `dial9 query` and `dial9 report`, of each recording of the demo.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { test } from 'node:test';

import { open } from './duckdb.mjs';

const { DIAL9, DEMO, WORK } = process.env;
const dial9 = (...args) => execFileSync(DIAL9, args, { encoding: 'utf8', maxBuffer: 1 << 30, stdio: ['ignore', 'pipe', 'ignore'] });
const demos = readdirSync(DEMO).filter((name) => !name.includes('.'));
const ask = await open();
const tables = [...dial9('query', '--schema').matchAll(/^CREATE TABLE (\w+)/gm)].map((match) => match[1]);
const FLEET = ['callbacks', 'slow_polls', 'loops', 'segments', 'stacks', 'samples'];

// The stacks of the samples on the CPU, below the callbacks that they are of.
function foldedOf(trace) {
	try {
		return dial9('export', '-f', 'folded', '--weight', 'samples', '--by', 'callback', '-o', '-', trace);
	} catch {
		return ''; // it has no samples
	}
}

const asked = async (trace, sql, columns) => {
	const path = `${WORK}/asked.jsonl`;

	writeFileSync(path, dial9('query', '-f', 'jsonl', trace, sql));
	return `read_json('${path}', format = 'newline_delimited', maximum_object_size = 100000000, columns = {${columns}})`;
};

// Both have the same rows, each as often as in the other.
async function same(left, right) {
	for (const [a, b] of [[left, right], [right, left]])
		assert.deepEqual(await ask(`select * from (${a}) except all select * from (${b}) limit 3`), []);
}

for (const demo of demos) {
	const trace = `${DEMO}/${demo}`, folder = `${WORK}/${demo}`;

	test(`${demo}: each table of dial9 query is a file with its columns, its rows, and their time of day`, async () => {
		dial9('export', '--format', 'parquet', '-o', folder, trace);
		assert.deepEqual(readdirSync(folder).sort(), tables.map((name) => `${name}.parquet`).sort());
		for (const table of tables) {
			const file = `'${folder}/${table}.parquet'`;
			const all = await ask(`select column_name as name, column_type as type from (describe select * from ${file})`);
			const columns = all.filter(({ name }) => name !== 'ts');
			const list = columns.map(({ name }) => `"${name}"`).join(', ');

			const rows = await asked(trace, `SELECT * FROM ${table}`, columns.map(({ name, type }) => `"${name}": '${type}'`).join(', '));

			assert.ok(columns.every(({ type }) => type === 'BIGINT' || type === 'VARCHAR'), table);
			await same(`select ${list} from ${file}`, `select ${list} from ${rows}`);
		}
		for (const [table, column] of [['polls', 'start_ns'], ['samples', 'time_ns'], ['spans', 'first_ns'], ['segments', 'first_ns']])
			assert.deepEqual(await ask(`select * from '${folder}/${table}.parquet' join '${folder}/processes.parquet' p using (process)
				where epoch_us(columns.ts) <> (columns.${column} + p.wall_offset_ns) // 1000`.replaceAll('columns.', `"${table}".`)), []);
	});

	test(`${demo}: the fleet's tables add up to what report and query tell`, async () => {
		const rows = Object.fromEntries(FLEET.map((table) =>
			[table, `read_parquet('${folder}/fleet/${table}/*/*/*.parquet', hive_partitioning = true)`]));
		const report = JSON.parse(dial9('report', '--json', trace));
		const sum = (items, key) => items.reduce((n, item) => n + BigInt(item[key]), 0n);
		const key = (row) => `${row.callback ?? row.name} @ ${row.site}`;

		dial9('export', '--format', 'parquet', '--partitions', '-o', `${folder}/fleet`, trace);

		const callbacks = await ask(`select callback, site, sum(polls)::bigint as polls, sum(busy_ns)::bigint as busy, max(max_ns) as longest
			from ${rows.callbacks} group by all`);
		const ran = report.callbacks.filter((callback) => callback.polls);

		assert.deepEqual(new Set(callbacks.map(key)), new Set(ran.map(key)));
		for (const row of callbacks) {
			const told = ran.filter((callback) => key(callback) === key(row));

			assert.equal(row.polls, sum(told, 'polls'), key(row));
			assert.equal(row.busy, sum(told, 'total_ns'), key(row));
			assert.equal(row.longest, BigInt(Math.max(...told.map((callback) => callback.max_ns))), key(row));
		}
		assert.deepEqual(await ask(`select * from (select polls, max_ns, list_transform(string_split(hist, ','), kv -> split_part(kv, ':', 1)::int) as p,
				list_sum(list_transform(string_split(hist, ','), kv -> split_part(kv, ':', 2)::bigint)) as n from ${rows.callbacks})
			where n <> polls or (max_ns > 0 and list_max(p) <> floor(log2(max_ns)))`), []);

		const slow = await ask(`select callback, site, count(*) as n, max(dur_ns) as longest from ${rows.slow_polls} group by all`);

		assert.equal(sum(slow, 'n'), sum(ran, 'over_10ms'));
		for (const row of slow)
			assert.equal(row.longest, BigInt(Math.max(...ran.filter((callback) => key(callback) === key(row)).map((c) => c.max_ns))));

		const workers = await asked(trace, `SELECT worker, (SELECT count(*) FROM polls p WHERE p.worker = w.worker AND NOT resumed) AS polls,
				parks, poll_ns, (SELECT max(delay_ns) FROM polls p WHERE p.worker = w.worker) AS late,
				(SELECT count(delay_ns) FROM polls p WHERE p.worker = w.worker) AS wakes,
				(SELECT max(local_queue) FROM polls p WHERE p.worker = w.worker) AS queue FROM workers w`,
			"worker: 'BIGINT', polls: 'BIGINT', parks: 'BIGINT', poll_ns: 'BIGINT', late: 'BIGINT', wakes: 'BIGINT', queue: 'BIGINT'");

		await same(`select worker, sum(polls)::bigint as polls, sum(parks)::bigint as parks, sum(busy_ns)::bigint as busy, max(late_max_ns) as late,
			sum(wakes)::bigint as wakes, max(queue_max) as queue from ${rows.loops} group by worker`, `select * from ${workers}`);

		const taken = await asked(trace, `SELECT source, folded, count(*) AS n FROM samples LEFT JOIN stacks USING (stack) GROUP BY 1, 2`,
			"source: 'VARCHAR', folded: 'VARCHAR', n: 'BIGINT'");

		await same(`select source, folded, sum(samples)::bigint as n from ${rows.samples} a left join ${rows.stacks} using (stack) group by all`,
			`select source, folded, sum(n)::bigint as n from ${taken} group by all`);
		assert.deepEqual(await ask(`select stack, count(*) from ${rows.stacks} group by 1 having count(*) > 1`), []);
		// "bufferevent read > render_report;main;...;leaf 12": who called the function is not its name.
		const byCallback = {};

		for (const [, name, n] of foldedOf(trace).matchAll(/^([^;\n]*);.* (\d+)$/gm))
			byCallback[name.split(' > ').at(-1)] = (byCallback[name.split(' > ').at(-1)] ?? 0) + Number(n);
		assert.deepEqual(Object.fromEntries((await ask(`select coalesce(callback, '[no callback]') as name, sum(samples)::int as n
			from ${rows.samples} where source = 'on-cpu' group by 1`)).map(({ name, n }) => [name, n])), byCallback);

		const segments = await asked(trace, `SELECT s.events, s.first_ns, s.last_ns, s.stored_bytes, p.lost_events, p.boot_id, p.wall_offset_ns
			FROM segments s JOIN processes p USING (process)`, "events: 'BIGINT', first_ns: 'BIGINT', last_ns: 'BIGINT', stored_bytes: 'BIGINT'," +
			"lost_events: 'BIGINT', boot_id: 'VARCHAR', wall_offset_ns: 'BIGINT'");

		await same(`select events, first_ns, last_ns, bytes, lost, boot_id, wall_offset_ns from ${rows.segments}`, `select * from ${segments}`);
	});

	test(`${demo}: the same segment gives the same bytes at the same places`, () => {
		const again = `${folder}/again`, files = readdirSync(`${folder}/fleet`, { recursive: true }).filter((name) => name.endsWith('.parquet'));

		mkdirSync(again);
		dial9('export', '--format', 'parquet', '--partitions', '-o', `${again}/fleet`, trace);
		dial9('export', '--format', 'parquet', '-o', `${again}/plain`, trace);
		assert.equal(files.length, FLEET.length);
		for (const file of files)
			assert.ok(readFileSync(`${folder}/fleet/${file}`).equals(readFileSync(`${again}/fleet/${file}`)), file);
		for (const table of tables)
			assert.ok(readFileSync(`${folder}/${table}.parquet`).equals(readFileSync(`${again}/plain/${table}.parquet`)), table);
	});
}

test('events that are lost stand in one row of their minute', async () => {
	dial9('export', '--format', 'parquet', '--partitions', '-o', `${WORK}/fleet_lost`, `${WORK}/lost.bin`);

	const [sums] = await ask(`select (select sum(lost)::int from '${WORK}/fleet_lost/callbacks/*/*/*.parquet') as callbacks,
		(select count(*)::int from '${WORK}/fleet_lost/callbacks/*/*/*.parquet') as rows, (select lost::int from '${WORK}/fleet_lost/segments/*/*/*.parquet') as segment,
		(select max(lost)::int from '${WORK}/fleet_lost/callbacks/*/*/*.parquet' where minute = '2023-11-14 22:14:00Z') as minute`);

	assert.deepEqual({ ...sums }, { callbacks: 1239, rows: 3, segment: 1239, minute: 1234 });
});
