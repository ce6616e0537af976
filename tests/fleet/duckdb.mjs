// SPDX-License-Identifier: Apache-2.0
// DuckDB, from where tests/support/install_npm.sh has put it.
import { createRequire } from 'node:module';

const { DuckDBInstance } = createRequire(`${process.env.D9_TEST_NPM}/package.json`)('@duckdb/node-api');

// ask(SQL): its rows as objects, numbers beyond those of JavaScript as BigInt.
export async function open() {
	const instance = await DuckDBInstance.create(':memory:', { threads: '2' });
	const connection = await instance.connect();

	await connection.run("set TimeZone = 'UTC'");
	return async (sql) => (await connection.runAndReadAll(sql)).getRowObjects();
}

// What a row is in JSON of ours: numbers as texts, times in microseconds.
export function plain(value) {
	if (value === null || typeof value === 'boolean' || typeof value === 'string')
		return value;
	return String(value.micros ?? value);
}
