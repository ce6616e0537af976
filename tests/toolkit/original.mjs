// SPDX-License-Identifier: Apache-2.0
// What the original dial9's own decoder, parser and analysis make of our traces:
//
//	node original.mjs DIAL9 CHECKOUT TRACE...
//
// Of each trace, exported by `dial9 export -f trc`:
//	decoder   every event with every field as `dial9 events` tells of the trace itself; so each wake by its stamp
//	parser    as many polls, parks, wakes, tasks, samples, allocations as `dial9 report`, `info` and SQL count
//	analysis  each span with its time inside, each call's delay, by those of SQL
// Of the files as the recorder wrote them: no error, and of each type as many as `dial9 info` counts.

import { createReadStream, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { spawnSync } from 'node:child_process';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { unpack } from '../../core/toolkit/unpack.js';

const [dial9, checkout, ...traces] = process.argv.slice(2);
const require = createRequire(import.meta.url), ui = resolve(checkout, 'dial9-viewer/ui');
const { TraceDecoder } = require(join(ui, 'decode.js'));
const { EVENT_TYPES, parseTrace } = require(join(ui, 'trace_parser.js'));
const { buildSpanData, buildWorkerSpans, computeSchedulingDelays } = require(join(ui, 'trace_analysis.js'));
const work = mkdtempSync(join(tmpdir(), 'original-'));
let wrong = 0;

function run(...args) {
	const { status, stdout, stderr } = spawnSync(dial9, args, { encoding: 'utf8', maxBuffer: 2 ** 30 });
	if (status !== 0 && !(args[0] === 'report' && status === 1)) throw new Error(`dial9 ${args.join(' ')}: ${status}: ${stderr}`);
	return stdout;
}

/** JSON with whole numbers of all sizes as texts. */
const parse = (line) => JSON.parse(line.replace(/"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g, (part) => (/^-?\d+$/.test(part) ? `"${part}"` : part)));
const query = (trace, sql) => run('query', '--no-symbols', '-f', 'csv', trace, sql).trim().split('\n').slice(1).map((row) => row.split(','));

function same(trace, what, theirs, ours) {
	const [a, b] = [theirs, ours].map((value) => JSON.stringify(value));
	if (a === b) return;
	wrong++;
	console.log(`${trace}: ${what}: the original says ${a}, we ${b}`);
}

/** Both lists have the same lines, as often. */
function sameLines(trace, what, theirs, ours) {
	const [a, b] = [theirs, ours].map((lines) => [...lines].sort());
	const other = a.findIndex((line, i) => line !== b[i]), at = other < 0 && a.length < b.length ? a.length : other;
	if (at >= 0) same(trace, `${what}, ${at + 1} of ${a.length} and ${b.length}`, a[at], b[at]);
}

const HEX = /^0x[0-9a-f]+$/;

function text(value) {
	if (value === null || value === undefined) return '';
	if (Array.isArray(value)) return `[${value.map((part) => (HEX.test(part) ? BigInt(part) : text(part)))}]`;
	if (typeof value === 'object') return `{${Object.keys(value).sort().map((key) => `${key}=${text(value[key])}`)}}`;
	return String(value);
}

const line = (name, time, values) => `${name} ${time} ${Object.keys(values).sort().map((key) => `${key}=${text(values[key])}`).join(' ')}`;

/** A call, as the events that the original knows tell it: without the numbers that only these have. */
function spansOfCall(name, time, { worker_id, span_name, duration_ns }) {
	const start = BigInt(time) - BigInt(duration_ns), library = name.slice('SpanCall:'.length);
	return [line(`SpanEnter:${library}`, start, { worker_id, span_name }), line(`SpanExit:${library}`, time, { worker_id, span_name }),
		line('SpanCloseEvent', time, { span_name, start_timestamp_ns: start, first_enter_timestamp_ns: start, active_ns: duration_ns })];
}

const LIBRARIES = /^Span(Enter|Exit):(libevent|libev|glib|own)$/;

/** The same of an event that was exported: of a span that a call was, which has no target. */
function lineOfOriginal({ name, timestamp_ns: time, values }) {
	if (LIBRARIES.test(name)) return line(name, time, { worker_id: values.worker_id, span_name: values.span_name });
	if (name === 'SpanCloseEvent' && values.target === null) {
		const { span_name, start_timestamp_ns, first_enter_timestamp_ns, active_ns } = values;
		return line(name, time, { span_name, start_timestamp_ns, first_enter_timestamp_ns, active_ns });
	}
	return line(name, time, values);
}

function linesOfOurs(trace) {
	return run('events', '--no-symbols', trace).split('\n').filter(Boolean).map(parse).flatMap(({ event: name, timestamp_ns: time, ...values }) => {
		if (name.startsWith('SpanCall:')) return spansOfCall(name, time, values);
		if (name === 'PollStartEvent' && 'wake' in values) values.wake = '0'; // told by the WakeEventEvent
		return [lineOfOriginal({ name, timestamp_ns: time, values })];
	});
}

function decodeAll(bytes) {
	const decoder = new TraceDecoder(bytes), events = [];
	if (!decoder.decodeHeader()) throw new Error('no header');
	for (let frame; (frame = decoder.nextFrame()) !== null;) if (frame.type === 'event') events.push(frame);
	return events;
}

const countOf = (names) => names.reduce((counts, name) => counts.set(name, (counts.get(name) ?? 0) + 1), new Map());
const sorted = (counts) => [...counts].sort(([a], [b]) => (a < b ? -1 : 1));

/** What `dial9 info` counts, by the names of types, which may have spaces. */
function countsOfInfo(trace) {
	const block = run('info', trace).split('\n');
	const from = block.indexOf('events by type') + 1, to = block.findIndex((row, i) => i >= from && !row.startsWith('  '));
	return block.slice(from, to).map((row) => /^ {2}(.*?) +(\d+)$/.exec(row)).map(([, name, n]) => [name, Number(n)]);
}

async function asRecorded(trace, files) {
	const parts = [];
	for (const file of files) for await (const { bytes } of unpack(createReadStream(file))) parts.push(Buffer.from(bytes));
	const bytes = Buffer.concat(parts), events = decodeAll(bytes);
	same(trace, 'types as recorded', sorted(countOf(events.map(({ name }) => name))), countsOfInfo(trace));
	const parsed = await parseTrace(bytes), of = (type) => parsed.events.filter(({ eventType }) => eventType === type).length;
	const counts = new Map(countsOfInfo(trace));
	same(trace, 'polls as recorded', [of(EVENT_TYPES.PollStart), of(EVENT_TYPES.PollEnd)], ['PollStartEvent', 'PollEndEvent'].map((name) => counts.get(name) ?? 0));
	return counts;
}

async function check(trace) {
	const report = JSON.parse(run('report', '--json', trace)), counts = report.trace.events;
	const recorded = await asRecorded(trace, report.trace.files.map(({ path }) => path));
	const exported = join(work, 'exported.trc');
	run('export', '-f', 'trc', '-o', exported, trace);
	const bytes = readFileSync(exported), events = decodeAll(bytes);
	sameLines(trace, 'events', events.map(lineOfOriginal), linesOfOurs(trace));

	const parsed = await parseTrace(bytes), of = (type) => parsed.events.filter(({ eventType }) => eventType === type);
	const custom = (start) => parsed.customEvents.filter(({ name }) => name.startsWith(start)).length;
	const ours = (name) => counts[name] ?? 0;
	const calls = Object.entries(counts).reduce((n, [name, count]) => n + (name.startsWith('SpanCall:') ? count : 0), 0);
	const stays = (start) => Object.entries(counts).reduce((n, [name, count]) => n + (name.startsWith(start) ? count : 0), calls);
	const wakes = of(EVENT_TYPES.WakeEvent);
	const figures = {
		'poll starts': [of(EVENT_TYPES.PollStart).length, ours('PollStartEvent')],
		'poll ends': [of(EVENT_TYPES.PollEnd).length, ours('PollEndEvent')],
		parks: [of(EVENT_TYPES.WorkerPark).length, ours('WorkerParkEvent')],
		unparks: [of(EVENT_TYPES.WorkerUnpark).length, ours('WorkerUnparkEvent')],
		wakes: [wakes.length, ours('WakeEventEvent')],
		tasks: [parsed.taskSpawnTimes.size, Number(query(trace, 'SELECT count(DISTINCT task) FROM tasks WHERE spawned_ns IS NOT NULL')[0][0])],
		'tasks ended': [parsed.taskTerminateTimes.size, Number(query(trace, 'SELECT count(DISTINCT task) FROM tasks WHERE ended_ns IS NOT NULL')[0][0])],
		enters: [custom('SpanEnter:'), stays('SpanEnter:')],
		exits: [custom('SpanExit:'), stays('SpanExit:')],
		closes: [custom('SpanCloseEvent'), stays('SpanCloseEvent')],
		samples: [parsed.cpuSamples.length, ours('CpuSampleEvent')],
		allocations: [parsed.allocEvents.length, ours('AllocEvent')],
		frees: [parsed.freeEvents.length, ours('FreeEvent')],
		'task dumps': [[...parsed.taskDumps.values()].reduce((n, list) => n + list.length, 0), ours('TaskDumpEvent')],
	};
	if (report.trace.lost_events) delete figures['tasks ended']; // of some that were lost the end is there
	for (const [what, [theirs, here]] of Object.entries(figures)) same(trace, what, theirs, here);
	sameLines(trace, 'wakes of SQL', wakes.map((w) => `${w.timestamp},${w.wokenTaskId}`), query(trace, 'SELECT time_ns, task FROM wakes').filter(([time]) => time).map((row) => row.join()));

	const workers = [...new Set(parsed.events.map(({ workerId }) => workerId))];
	const last = parsed.events.reduce((max, { timestamp }) => Math.max(max, timestamp), 0);
	const { workerSpans, wakesByTask } = buildWorkerSpans(parsed.events, workers, last);
	const { allSpans, unmatchedSpans } = buildSpanData(parsed.customEvents);
	sameLines(trace, 'spans', allSpans.map(({ spanName, start, end, activeNs }) => [spanName.split(' @ ')[0], start, end, activeNs].join('|')),
		JSON.parse(run('query', '--no-symbols', '-f', 'json', trace, "SELECT name || '|' || first_ns || '|' || last_ns || '|' || active_ns AS span FROM spans WHERE enters AND last_ns IS NOT NULL"))
			.map(({ span }) => span.replace(/ @ [^|]*/, '')));
	// Of a timer's deadlines ours has one for each call; and no wake for two calls.
	const timers = new Set(events.filter(({ name, values }) => name === 'WakeEventEvent' && values.reason === 2).map(({ values }) => values.woken_task_id)), used = new Set();
	const delays = computeSchedulingDelays(workerSpans, workers, wakesByTask).filter(({ wakeTime, taskId }) => {
		const wake = `${taskId} ${wakeTime}`;
		return !timers.has(String(taskId)) && !used.has(wake) && used.add(wake);
	});
	// The original leaves out polls that have not ended; ours measures nothing across a loss.
	const ended = new Set(workers.flatMap((worker) => workerSpans[worker].polls.map(({ start, taskId }) => `${start},${taskId}`)));
	if (!report.trace.lost_events)
		sameLines(trace, 'delays', delays.map(({ pollTime, taskId, delay }) => [pollTime, taskId, delay].join()),
			query(trace, 'SELECT start_ns, task, delay_ns FROM polls WHERE delay_ns > 0 AND delay_ns < 1000000000')
				.filter(([start, task]) => task && !timers.has(task) && ended.has(`${start},${task}`)).map((row) => row.join()));
	console.log(`${trace}: ${bytes.length} bytes, ${events.length} events, ${wakes.length} wakes (${wakes.length - (recorded.get('WakeEventEvent') ?? 0)} told by polls), ${calls} inner calls, ` +
		`${allSpans.length} spans (${unmatchedSpans.length} open), ${delays.length} delays`);
	rmSync(exported);
}

try {
	for (const trace of traces) await check(trace);
} finally {
	rmSync(work, { recursive: true });
}
process.exitCode = wrong ? 1 : 0;
