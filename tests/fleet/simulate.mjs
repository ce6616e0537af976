// SPDX-License-Identifier: Apache-2.0
// A day of rows of many hosts, made from the rows of recordings, with a fault planted on four of them:
//
//	node simulate.mjs RECORDED STORE HOSTS MINUTES SEGMENT
//
// RECORDED/web and RECORDED/slow hold the tables of a service's segment, and of one whose callback sleeps.  Below STORE each host gets
// rows for each MINUTES-th minute of 2026-11-20, with its own host, boot id and times: compacted, but those of 10 o'clock, which are
// incoming, a file for each SEGMENT minutes.
// web-002 has lost 7 events at midnight.  The four have the slow callback's calls, samples and stacks as those of `hello` from 10 to 12 o'clock.
import { copyFileSync, mkdirSync, readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

import { open } from './duckdb.mjs';

export const DATE = '2026-11-20', FAULTY = 4;
const INCOMING_HOUR = 10, LOSSY = 2;
const hosts = `(select h, printf('web-%03d', h) as host, printf('boot-%03d', h) as boot_id,
	case when h % 3 = 0 or h < 8 then 'web' when h % 3 = 1 then 'api' else 'mail' end as service, h % 2 = 1 and h < ${2 * FAULTY} as faulty from range(HOSTS) t(h))`;

// What stands for a minute M of a host in each table, where it is not faulty and where it is.
const WHO = 'h.host, h.boot_id, m.minute, m.hour';
const TABLES = {
	callbacks: {
		all: `select ${WHO}, b.callback, b.site, b.polls, (b.busy_ns * j)::bigint as busy_ns, (b.max_ns * j)::bigint as max_ns,
			case when h.h = ${LOSSY} and m.number = 0 and b.callback = 'hello' then 7 else 0 end::bigint as lost, b.hist, '${DATE}' as date, h.service from m, h, web_callbacks b,
			lateral (select 0.7 + (hash(h.host, b.callback, m.minute) % 1000) / 1666 as j) where not (m.faulty and h.faulty and b.callback = 'hello')`,
		faulty: `select ${WHO}, 'hello' as callback, b.site, 30 * s.polls as polls, (30 * s.busy_ns)::bigint as busy_ns, s.max_ns, 0::bigint as lost,
			(select string_agg(split_part(kv, ':', 1) || ':' || 30 * split_part(kv, ':', 2)::int, ',') from (select unnest(string_split(s.hist, ',')) as kv)) as hist,
			'${DATE}' as date, h.service from m, h, slow_callbacks s, web_callbacks b where m.faulty and h.faulty and b.callback = 'hello'`,
	},
	slow_polls: {
		all: `select ${WHO}, m.minute + interval 1 second as ts, b.start_ns, (b.dur_ns * 0.9 + (hash(h.host, m.minute) % 1000000))::bigint as dur_ns, b.cpu_ns, b.blocked_ns,
			b.ready_ns, b.worker, b.task, b.callback, b.site, h.host || '/' || m.hour || '-' || m.number as segment, '${DATE}' as date, h.service
			from m, h, web_slow_polls b`,
		faulty: `select ${WHO}, m.minute + interval 2 second as ts, s.start_ns, s.dur_ns, s.cpu_ns, s.blocked_ns, s.ready_ns, s.worker, s.task, 'hello' as callback,
			s.site, h.host || '/' || m.hour || '-' || m.number as segment, '${DATE}' as date, h.service from m, h, slow_slow_polls s where m.faulty and h.faulty`,
	},
	loops: {
		all: `select ${WHO}, b.worker, b.loop, b.tid, b.polls, b.parks, b.busy_ns, case when m.faulty and h.faulty then 30000000 else b.late_p99_ns end as late_p99_ns,
			b.late_max_ns, b.queue_max, b.wakes, '${DATE}' as date, h.service from m, h, web_loops b`,
	},
	segments: {
		all: `select ${WHO}, h.host || '/' || m.hour || '-' || m.number as key, m.minute as ts, m.minute + interval 1 minute as last_ts, b.first_ns, b.last_ns,
			b.wall_offset_ns, b.bytes, b.events, b.lost, b.missing, b.worst_ns, b.complete, '${DATE}' as date, h.service from m, h, web_segments b`,
	},
	stacks: {
		all: `select h.host, h.boot_id, b.stack, b.leaf, b.frames, b.folded, '${DATE}' as date, h.service from m, h, web_stacks b`,
		faulty: `select h.host, h.boot_id, s.stack, s.leaf, s.frames, s.folded, '${DATE}' as date, h.service from m, h, slow_stacks s where m.faulty and h.faulty`,
	},
	samples: {
		all: `select ${WHO}, b.source, b.thread, b.callback, b.site, b.stack, b.samples, b.cpu_ns, '${DATE}' as date, h.service from m, h, web_samples b`,
		faulty: `select ${WHO}, s.source, s.thread, case when s.callback is null then null else 'hello' end as callback, s.site, s.stack, s.samples, s.cpu_ns,
			'${DATE}' as date, h.service from m, h, slow_samples s where m.faulty and h.faulty`,
	},
};

const ask = await open();

// Rows of TABLE of the given hosts and minutes.
const rowsOf = (table, minutes, who) => `with m as (select * from minutes where ${minutes}), h as (select * from hosts where ${who})
	${Object.values(TABLES[table]).join(' union all by name ')}`;

async function writeIncoming(store, table, segments, everyone) {
	for (const { h, host, boot_id: boot, service } of everyone) {
		const folder = `${store}/parquet/v1/incoming/${table}/date=${DATE}/service=${service}`;

		mkdirSync(folder, { recursive: true });
		for (const { number, hhmm, until } of segments)
			await ask(`copy (select * exclude (date, service) from (${rowsOf(table, `number >= ${number} and number < ${until}`, `h = ${h}`)}))
				to '${folder}/${hhmm}-${host}-${boot}-${number}.parquet' (format parquet, compression zstd)`);
	}
}

export async function simulate(recorded, store, count, minutes, segment) {
	for (const base of ['web', 'slow'])
		for (const table of Object.keys(TABLES))
			await ask(`create table ${base}_${table} as select * from read_parquet('${recorded}/${base}/${table}/*/*/*.parquet')`);
	await ask(`create table hosts as select * from ${hosts.replace('HOSTS', count)}`);
	await ask(`create table minutes as select n as number, to_timestamp(epoch(timestamp '${DATE} 00:00:00') + n * 60) as minute, (n // 60)::bigint as hour,
		printf('%02d%02d', n // 60, n % 60) as hhmm, n // 60 in (10, 11) as faulty from range(0, 1440, ${minutes}) t(n)`);
	await ask('set threads = 1');

	const everyone = await ask('select * from hosts');
	const segments = await ask(`select number, hhmm, number + ${segment} as until from minutes where hour = ${INCOMING_HOUR} and number % ${segment} = 0`);

	mkdirSync(`${store}/parquet/v1`, { recursive: true });
	for (const table of Object.keys(TABLES)) {
		for (let hour = 0; hour < 24; hour++)
			if (hour !== INCOMING_HOUR)
				await ask(`copy (${rowsOf(table, `hour = ${hour}`, 'true')}) to '${store}/parquet/v1/${table}' (format parquet, compression zstd,
					partition_by (date, service), filename_pattern '${String(hour).padStart(2, '0')}-{i}', overwrite_or_ignore)`);
		await writeIncoming(store, table, segments, everyone);
	}
	// A file of ours beside those of DuckDB: both are read as one table.
	for (const table of Object.keys(TABLES)) {
		const [date] = readdirSync(`${recorded}/web/${table}`), [service] = readdirSync(`${recorded}/web/${table}/${date}`);
		const [name] = readdirSync(`${recorded}/web/${table}/${date}/${service}`);

		mkdirSync(`${store}/parquet/v1/incoming/${table}/${date}/${service}`, { recursive: true });
		copyFileSync(`${recorded}/web/${table}/${date}/${service}/${name}`, `${store}/parquet/v1/incoming/${table}/${date}/${service}/${name}`);
	}
	return (await ask('select host from hosts where faulty order by 1')).map((row) => row.host);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
	const began = Date.now();
	const [recorded, store, ...numbers] = process.argv.slice(2);
	const faulty = await simulate(recorded, store, ...numbers.map(Number));

	console.log(`${numbers[0]} hosts, faulty: ${faulty.join(' ')}; ${((Date.now() - began) / 1000).toFixed(1)} s`);
}
