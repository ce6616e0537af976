// SPDX-License-Identifier: Apache-2.0
// What a trace can be trusted for: what was lost, what was recorded and how to record the rest, its clock.

import { rowsNamed } from './trace.js';

/** Losses by cause, most first: [{cause, events, from, to}], times as those of the trace or NaN. */
export function lossesOf(trace) {
	const byCause = new Map(), zero = BigInt(trace.origin[1]) << 32n | BigInt(trace.origin[0]);
	const relative = (ns) => (ns ? Number(BigInt(ns) - zero) : NaN);
	for (const row of rowsNamed(trace, 'RecorderLossEvent', ['cause', 'events', 'from_ns', 'to_ns'])) {
		const cause = String(row.cause ?? 'not told'), sum = byCause.get(cause) ?? { cause, events: 0, from: NaN, to: NaN };
		const from = relative(row.from_ns), to = relative(row.to_ns);
		sum.events += Number(row.events ?? 0);
		if (!(sum.from <= from)) sum.from = from;
		if (!(sum.to >= to)) sum.to = to;
		byCause.set(cause, sum);
	}
	return [...byCause.values()].sort((a, b) => b.events - a.events);
}

const TRUST_HOOKS = [['poll', 'callbacks'], ['park', 'sleeping and waking of loops'], ['wake', 'what made callbacks ready'], ['spawn', 'where callbacks were registered'],
	['depth', 'how many were ready'], ['lateness', 'lateness of timers']];
const TRUST_SOURCES = [['source.cpu', 'samples on the CPU', '--cpu 99'], ['source.offcpu', 'samples off the CPU', '--off-cpu'], ['source.kernel_names', 'functions of the kernel', '--cpu-backend perf'],
	['source.blocking', 'calls that block', ''], ['source.task_dumps', 'where idle tasks wait', '--task-dumps'], ['source.memory', 'allocations', '--memory'],
	['source.accept_queues', 'connections that wait to be accepted', '--accept-queues']];

/** What the loop libraries of a process say of one capability: those that say anything. */
function capabilityOf(trace, name) {
	return [...trace.metadata].filter(([key]) => /^loop\..*\.capabilities$/.test(key))
		.map(([, value]) => new Map(value.split(',').map((pair) => pair.split('=').map((text) => text.trim()))).get(name)).filter(Boolean);
}

/** The worst of what the loop libraries of a process say of a hook: full, partial, none; '' if nothing. */
function hookState(trace, hook) {
	const told = capabilityOf(trace, hook);
	if (!told.length) return '';
	return told.every((value) => value === 'on' || value === 'full' || value === 'event') ? 'on' : told.every((value) => value === 'off') ? 'off' : 'partly';
}

/**
 * What the recorder was asked for and could see: [{name, state: on, partly, off or '' where the trace does not
 * say, why, option: of `dial9 record` that records it}].
 */
export function capabilitiesOf(trace) {
	const degraded = [...trace.metadata].filter(([key, value]) => /^loop\..*\.degraded$/.test(key) && value).map(([, value]) => value).join('; ');
	const hooks = TRUST_HOOKS.map(([hook, name]) => {
		const state = hookState(trace, hook);
		return { name, state, why: state === 'partly' || state === 'off' ? degraded : '', option: '' };
	});
	// Where no loop library says anything, none was there.
	if (hooks.every((hook) => hook.state === '') && trace.metadata.has('dial9-c.version')) hooks.splice(0, hooks.length, { name: 'event loops', state: 'off', why: 'none was attached', option: '' });
	return [...hooks, ...TRUST_SOURCES.map(([key, name, option]) => {
		const told = trace.metadata.get(key) ?? '', [, state = '', why = ''] = /^(on|off)(?:; but|:)?\s*(.*)$/.exec(told) ?? [];
		return { name, state: state === 'on' && told.startsWith('on; but') ? 'partly' : state || (trace.metadata.has('dial9-c.version') ? 'off' : ''), why, option: state === 'on' ? '' : option };
	})];
}

/** Addresses in stacks, and how many of them have no name: {all, unnamed}. */
export function namesOf(trace) {
	const seen = new Set(trace.stacks.flat());
	let unnamed = 0;
	for (const address of seen) if (!trace.symbols.has(address)) unnamed++;
	return { all: seen.size, unnamed };
}

/** Readings of both clocks: how many, and how far the wall clock went astray between them in ns. */
export function clockOf(trace) {
	const rows = rowsNamed(trace, 'ClockSyncEvent', ['realtime_ns']).filter((row) => row.realtime_ns !== undefined);
	const zero = BigInt(rows[0]?.realtime_ns ?? 0);
	let least = 0, most = 0;
	for (const row of rows) {
		const offset = Number(BigInt(row.realtime_ns) - zero) - (row.time - rows[0].time);
		least = Math.min(least, offset);
		most = Math.max(most, offset);
	}
	return { anchors: rows.length, drift: most - least };
}

/** What there is, for a trace that lacks callbacks: [{name, n}]. */
export function contentsOf(trace) {
	const n = (pattern) => trace.tables.filter((table) => pattern.test(table.name)).reduce((sum, table) => sum + table.count, 0);
	return [['callbacks', /^PollStartEvent$/], ['wakes', /^WakeEventEvent$/], ['samples', /^CpuSampleEvent$/], ['allocations', /^AllocEvent$/], ['spans', /^Span(Close|Call:)/],
		['readings of the process', /^Process/]].map(([name, pattern]) => ({ name, n: n(pattern) }));
}
