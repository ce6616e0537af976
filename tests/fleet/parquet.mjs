// SPDX-License-Identifier: Apache-2.0
// Two readers of Parquet that are not ours find what write_parquet wrote, and DuckDB believes what the chunks tell of themselves.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { test } from 'node:test';

import { open, plain } from './duckdb.mjs';

const { WORK, D9_TEST_NPM } = process.env;
const require = createRequire(`${D9_TEST_NPM}/package.json`);
const { parquetReadObjects } = await import(require.resolve('hyparquet'));
const { compressors } = await import(require.resolve('hyparquet-compressors'));
const ask = await open();

const rowsOf = (name) => readFileSync(`${WORK}/${name}.jsonl`, 'utf8').split('\n').slice(0, -1).map(JSON.parse);
const plainRow = (row) => Object.fromEntries(Object.entries(row).map(([key, value]) => [key, plain(value)]));

function plainDates(row) {
	return plainRow(Object.fromEntries(Object.entries(row).map(([key, value]) =>
		[key, value instanceof Date ? BigInt(value.getTime()) * 1000n : value ?? null])));
}

for (const name of ['empty', 'missing', 'extremes', 'many', 'long', 'broken']) {
	test(`DuckDB reads every value of ${name}`, async () => {
		assert.deepEqual((await ask(`select * from '${WORK}/${name}.parquet'`)).map(plainRow), rowsOf(name));
	});
	test(`hyparquet reads every value of ${name}`, async () => {
		const bytes = readFileSync(`${WORK}/${name}.parquet`);
		const file = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length);
		const rows = rowsOf(name);

		// Its dates end at the millisecond.
		for (const row of rows)
			if (row.time)
				row.time = String(BigInt(Math.trunc(Number(row.time) / 1000)) * 1000n);
		assert.deepEqual((await parquetReadObjects({ file, compressors })).map(plainDates), rows);
	});
}

test('a filter finds what the whole table has: what chunks tell of themselves is true', async () => {
	const many = `'${WORK}/many.parquet'`;

	for (const [column, value] of [['few', 999], ['runs', 16], ['name', "'callback_299'"], ['id', -5], ['one', -7],
		['unique', "'task 245761'"], ['flag', 'true'], ['few', null]]) {
		const filter = value === null ? `"${column}" is null` : `"${column}" = ${value}`;
		const [found] = await ask(`select count(*) as n from ${many} where ${filter}`);
		const [all] = await ask(`select count(*) filter (${filter}) as n from (select *, random() as r from ${many})`);

		assert.equal(found.n, all.n, filter);
		assert.ok(found.n > 0n, filter);
	}
});

test('each chunk tells its least and largest value and how many are missing, but of texts that are long', async () => {
	const columns = await ask(`select path_in_schema as c, row_group_id as g, stats_min_value as least, stats_max_value as largest,
		stats_null_count as missing, compression, encodings from parquet_metadata('${WORK}/many.parquet') order by g`);
	const of = (name) => columns.filter((column) => column.c === name);

	assert.equal(of('id').length, 3);
	assert.deepEqual(of('one').map((column) => [column.least, column.largest, column.missing]), Array(3).fill(['-7', '-7', 0n]));
	assert.equal(of('few')[0].missing, 40964n);
	assert.equal(of('name')[0].least, 'callback_0');
	assert.equal(of('name')[0].largest, 'callback_99');
	assert.ok(of('name').slice(0, 2).every((column) => column.encodings.includes('RLE_DICTIONARY')));
	assert.ok(!of('unique')[0].encodings.includes('RLE_DICTIONARY'));
	assert.ok(columns.every((column) => column.compression === 'ZSTD'));
	for (const { least } of await ask(`select stats_min_value as least from parquet_metadata('${WORK}/long.parquet')
		where path_in_schema = 'text'`))
		assert.equal(least, null);
});

test('no row group holds more distinct text than fits in memory', async () => {
	const groups = await ask(`select distinct row_group_id, row_group_num_rows from parquet_metadata('${WORK}/long.parquet')`);

	assert.ok(groups.length > 1);
});

test("bytes that are no UTF-8 are replaced in the file's own metadata, too", async () => {
	const [pair] = await ask(`select decode(key) as key, decode(value) as value from parquet_kv_metadata('${WORK}/broken.parquet')`);

	assert.deepEqual({ ...pair }, { key: 'host', value: 'a\ufffdb' });
});

test('types are signed', async () => {
	const rows = await ask(`select name, type, converted_type, logical_type from parquet_schema('${WORK}/extremes.parquet')`);

	assert.deepEqual(rows.slice(1).map((row) => [row.name, row.type, row.converted_type]), [
		['number', 'INT64', null], ['time', 'INT64', 'TIMESTAMP_MICROS'], ['text', 'BYTE_ARRAY', 'UTF8'], ['flag', 'BOOLEAN', null]]);
	assert.match(rows[2].logical_type, /isAdjustedToUTC=1/);
});
