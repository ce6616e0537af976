// SPDX-License-Identifier: Apache-2.0
// Tracks of values over time: queue, CPU, tasks, memory, descriptors, accept queues, figures of the process,
// and the fields that a program declares to be charted.

import { allocations } from '../toolkit/profile.js';
import { makeSeries } from '../toolkit/series.js';
import { TYPE } from '../toolkit/frames.js';
import { showCount, showName } from '../toolkit/show.js';
import { fieldReader, rowsNamed, tablesNamed } from '../toolkit/trace.js';
import { isCustom, processName } from './track_items.js';
import { bandOf, readyLine, seriesLine, showValue, threadLine } from './track_lines.js';
import { makeTrack } from './track.js';

const QUEUE_TOLD = 4, FULL = 80, OVERFLOWS = 100;
const KINDS = ['gauge', 'counter', 'updown-counter'];
const INTEGERS = [TYPE.I64, TYPE.VARINT, TYPE.U8, TYPE.U16, TYPE.U32];
const LIMIT_NAMES = ['threshold', 'warning', 'critical'];

/** The field |name| of all events |event| of a trace as a line, one for each value of |by|. */
function linesOf(model, trace, event, field, { title = field, kind = 'gauge', unit = '', by = null, scale = 1, of = null } = {}) {
	const rows = rowsNamed(trace, event, [field, ...(by ? [by] : []), ...(of ? [of] : [])]), groups = new Map();
	for (const row of rows) {
		const key = by ? row[by] : '';
		if (!groups.has(key)) groups.set(key, []);
		groups.get(key).push({ time: row.time, value: of ? (row[of] ? 100 * Number(row[field]) / Number(row[of]) : undefined) : row[field] });
	}
	return [...groups].map(([key, points]) => seriesLine(`${processName(model, trace)}${title}${by ? ` ${showName(key || '(unnamed)')}` : ''}`,
		makeSeries(points, kind, trace.end, scale), trace.shift, unit));
}

const allOf = (model, ...rest) => model.traces.flatMap((trace) => linesOf(model, trace, ...rest));

function last(bands) {
	const [line] = bands[0]?.lines ?? [];
	return line?.last ?? '';
}

function queueTrack(model) {
	const lanes = model.lanes.filter((lane) => lane.polls.n);
	const ready = lanes.length && lanes.some((lane) => lane.peak) ? [readyLine('ready on one loop', lanes)] : [];
	const global = [...allOf(model, 'QueueSampleEvent', 'global_queue', { title: 'global queue' }),
		...allOf(model, 'RuntimeMetricsEvent', 'global_queue_depth', { title: 'queue of', by: 'runtime_name' })];
	const bands = [...bandOf(global.length ? 'ready on one loop' : '', ready), ...bandOf(ready.length ? 'queue of all' : '', global)];
	const most = Math.max(0, ...bands.map((b) => b.high));
	return bands.length && { id: 'queue', title: 'waiting to run', bands, figure: `at most ${showCount(most)}`, opens: most >= QUEUE_TOLD && lanes.length > 12,
		plain: 'Callbacks that were ready and waited for the loop: the most on any one loop.' };
}

function cpuTrack(model) {
	const process = model.traces.flatMap((trace) => ['user', 'system'].flatMap((part) => linesOf(model, trace, 'ProcessResourceUsageEvent', `${part}_cpu_ns`, { title: part, kind: 'rate', unit: 'cores' })));
	const threads = model.lanes.filter(({ worker }) => worker.parks.n && worker.parks.cpuBefore[worker.parks.n - 1] > 0).map((lane) => threadLine(model.laneName(lane), lane));
	const cores = Number(model.main.metadata.get('process.available_parallelism') ?? model.main.metadata.get('system.cpus_online') ?? 0);
	const bands = [...bandOf('process', process, { stacked: model.traces.length === 1, guides: cores ? [{ value: cores, name: `${cores} CPUs` }] : [] }), ...bandOf('each thread', threads)];
	const most = process.length ? process.map((line) => line.high).reduce((a, b) => a + b, 0) : 0;
	return bands.length && { id: 'cpu', title: 'CPU', bands, figure: most ? `at most ${showValue(most, 'cores')}${cores ? ` of ${cores}` : ''}` : '',
		plain: 'CPU time that the process used, in cores: its own code and, on top or beside it, the kernel for it; then each loop\'s thread.' };
}

function tasksTrack(model) {
	const lives = model.traces.flatMap((trace) => {
		const changes = [];
		for (const task of trace.tasks.values()) {
			changes.push([task.born, 1]);
			if (!Number.isNaN(task.died)) changes.push([task.died, -1]);
		}
		changes.sort((a, b) => a[0] - b[0] || b[1] - a[1]);
		let live = 0;
		const points = [];
		for (const [time, by] of changes) {
			live += by;
			if (points.at(-1)?.time === time) points.at(-1).value = live;
			else points.push({ time, value: live });
		}
		return points.length ? [seriesLine(`${processName(model, trace)}live`, makeSeries(points, 'gauge', trace.end), trace.shift, '')] : [];
	});
	const counted = [...allOf(model, 'LoopTasksEvent', 'tasks', { title: 'on', by: 'loop' }), ...allOf(model, 'RuntimeMetricsEvent', 'alive_tasks', { title: 'of', by: 'runtime_name' })];
	const bands = [...bandOf(counted.length ? 'live' : '', lives), ...bandOf('by loop', counted)];
	return bands.length && { id: 'tasks', title: 'tasks', bands, figure: `${last(bands)} at the end`,
		plain: 'Tasks that live: what is registered with the loops, such as descriptors and timers. It rises when one is made and falls when one ends.' };
}

/** The bytes of the heap that sampled allocations stand for, as points: up at each allocation, down where it is freed. */
function heapPoints(trace) {
	const changes = allocations(trace).filter(({ followed }) => followed).flatMap(({ time, bytes, freed }) => [[time, bytes], ...(Number.isNaN(freed) ? [] : [[freed, -bytes]])]);
	let live = 0;
	return changes.sort((a, b) => a[0] - b[0]).map(([time, by]) => ({ time, value: Math.max(0, Math.round(live += by)) }));
}

function memoryTrack(model) {
	const resident = allOf(model, 'ProcessStateEvent', 'resident_bytes', { title: 'resident', unit: 'bytes' });
	const heap = model.traces.filter((trace) => tablesNamed(trace, 'AllocEvent').length)
		.map((trace) => seriesLine(`${processName(model, trace)}heap`, makeSeries(heapPoints(trace), 'gauge', trace.end), trace.shift, 'bytes'));
	const bands = [...bandOf(heap.length ? 'resident' : '', resident), ...bandOf('heap live', heap)];
	return bands.length && { id: 'memory', title: 'memory', bands, figure: last(bands), profile: heap.length ? 'live' : '',
		plain: 'Memory: what the kernel keeps resident for the process, and what of the heap is allocated, by its samples.' };
}

function descriptorsTrack(model) {
	const bands = [...bandOf('', allOf(model, 'ProcessStateEvent', 'descriptors', { title: 'open' }))];
	return bands.length && { id: 'descriptors', title: 'descriptors', bands, figure: last(bands), plain: 'Open file descriptors of the process: files, sockets, pipes.' };
}

function acceptTrack(model) {
	const lines = allOf(model, 'TcpAcceptQueueEvent', 'pending_connections', { title: 'socket', by: 'socket_cookie', of: 'backlog_limit', unit: '%' });
	const bands = bandOf('', lines, { guides: [{ value: FULL, name: 'nearly full' }, { value: OVERFLOWS, name: 'full' }] }), most = Math.max(0, ...lines.map((line) => line.high));
	return bands.length && { id: 'accept', title: 'accept queue', bands, figure: `up to ${showValue(most, '%')}`, opens: most >= FULL,
		plain: 'Connections that wait to be accepted, as a share of what the listening socket holds; more than that are refused.' };
}

function usageTrack(model) {
	const parts = [['minor_faults', 'page faults'], ['major_faults', 'page faults from disk'], ['voluntary_context_switches', 'waits'], ['involuntary_context_switches', 'preempted'],
		['block_input_ops', 'reads of disk'], ['block_output_ops', 'writes of disk']];
	const bands = parts.flatMap(([field, title]) => bandOf(title, allOf(model, 'ProcessResourceUsageEvent', field, { title, kind: 'rate', scale: 1e9, unit: 'per s' })))
		.concat([['cgroup_throttled_ns', 'held by its cgroup'], ['steal_ns', 'CPU taken by other machines'], ['runqueue_ns', 'threads wait for a CPU']]
			.flatMap(([field, title]) => bandOf(title, allOf(model, 'ProcessStateEvent', field, { title, kind: 'rate', unit: 'cores' }))))
		.filter((b) => b.high > 1e-6);
	return bands.length && { id: 'usage', title: 'process', bands, figure: `${bands.length} figure${bands.length === 1 ? '' : 's'}`, plain: 'What the process cost the kernel: page faults, waits, preemption, disk, and time that others took from it.' };
}

// ---- declared and chosen charts ----

function annotationOf(table, field, key) {
	return table.annotations.findLast(([f, k]) => f === field && k === key)?.[2];
}

/** Decimal digits and nothing else are a number. */
function numberOf(value) {
	if (typeof value === 'string') return /^-?\d{1,19}$/.test(value) ? BigInt(value) : undefined;
	return typeof value === 'boolean' ? Number(value) : typeof value === 'object' ? undefined : value;
}

/** One band of a field: a line for each process, worker and value of fields that are declared to part it. */
function fieldBand(model, event, field, kind) {
	const lines = [];
	let unit = '', guides = [];
	for (const trace of model.traces) {
		const groups = new Map();
		for (const table of tablesNamed(trace, event)) {
			const at = table.fields.findIndex(({ name }) => name === field), read = fieldReader(trace, table, field);
			if (at < 0) continue;
			unit = showName(annotationOf(table, at, 'unit') ?? '', 16);
			guides = LIMIT_NAMES.map((name) => ({ name, value: Number(annotationOf(table, at, name)) })).filter(({ value }) => Number.isFinite(value));
			const parts = table.fields.filter(({ name }, i) => name !== field && (name === 'worker_id' || annotationOf(table, i, 'partition') !== undefined)).map(({ name }) => name);
			const readers = parts.map((name) => fieldReader(trace, table, name));
			for (let row = 0; row < table.rows.n; row++) {
				const key = readers.map((part) => showName(part(row) ?? '')).join(' ');
				if (!groups.has(key)) groups.set(key, []);
				groups.get(key).push({ time: table.rows.time[row], value: numberOf(read(row)) });
			}
		}
		for (const [key, points] of groups) {
			points.sort((a, b) => a.time - b.time);
			lines.push(seriesLine(`${processName(model, trace)}${showName(field)}${groups.size > 1 ? ` ${key}` : ''}`, makeSeries(points, kind, trace.end), trace.shift, unit));
		}
	}
	return bandOf(`${showName(field)}${kind === 'counter' ? ' (growth)' : ''}`, lines, { guides, height: 56 });
}

function chartOf(id, title, bands, plain) {
	if (!bands.length) return null;
	const lines = bands.flatMap((b) => b.lines), resets = lines.reduce((sum, line) => sum + line.resets, 0), points = lines.reduce((sum, line) => sum + line.n, 0);
	const over = bands.some((b) => b.guides.some(({ value }) => b.lines.some((line) => line.high >= value)));
	return makeTrack({ id, title, bands, opens: true, plain,
		figure: resets ? `${resets} reset${resets === 1 ? '' : 's'}${resets * 4 > points ? ': several sources in one line?' : ''}` : over ? 'over its limit' : last(bands) });
}

/** Events whose schema says how to chart them. */
function declaredTracks(model) {
	const events = new Map();
	for (const trace of model.traces)
		for (const table of trace.tables) {
			if (!table.rows.n || !isCustom(table)) continue;
			for (const [field, key, kind] of table.annotations)
				if (key === 'kind' && KINDS.includes(kind) && table.fields[field]) {
					if (!events.has(table.name)) events.set(table.name, new Map());
					events.get(table.name).set(table.fields[field].name, kind);
				}
		}
	return [...events].map(([event, fields]) => chartOf(`chart:${event}`, showName(event), [...fields].flatMap(([field, kind]) => fieldBand(model, event, field, kind)),
		`${showName(event)}: the program declares these fields to be values over time.`)).filter(Boolean);
}

/** Numeric fields of the program's events: [{event, field, kind, unit}]. */
export function fieldsToChart(model) {
	const found = new Map();
	for (const trace of model.traces)
		for (const table of trace.tables) {
			if (!table.rows.n || !isCustom(table)) continue;
			table.fields.forEach((field, i) => {
				if (![...INTEGERS, TYPE.F64, TYPE.BOOL].includes(field.type) || /^(worker_id|task_id|tid)$/.test(field.name)) return;
				found.set(`${table.name}\n${field.name}`, { event: table.name, field: field.name, kind: annotationOf(table, i, 'kind') ?? 'gauge', unit: annotationOf(table, i, 'unit') ?? '' });
			});
		}
	return [...found.values()];
}

/** A chart that the reader asked for: |field| is {event, field, kind}. */
export function chosenTrack(model, { event, field, kind }) {
	return chartOf(`field:${event}:${field}:${kind}`, `${showName(event)}`, fieldBand(model, event, field, KINDS.includes(kind) ? kind : 'gauge'), `${showName(field)} of ${showName(event)}, charted by hand.`);
}

/** All tracks of values, in their usual order. */
export function chartTracks(model) {
	const built = [queueTrack, cpuTrack, tasksTrack, memoryTrack, descriptorsTrack, acceptTrack, usageTrack].map((make) => make(model)).filter(Boolean).map(makeTrack);
	return [...built, ...declaredTracks(model)];
}
