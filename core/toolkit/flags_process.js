// SPDX-License-Identifier: Apache-2.0
// Red flags of the process and its machine: no CPU when it wanted one, growth, queues; by the rules of `dial9 report`.

import { newFlag, siteName } from './flags.js';
import { showCount, showDuration, showName, showSize } from './show.js';
import { namesOfLocation } from './stacks.js';
import { rowsNamed } from './trace.js';

const SHORT_WAITS = 3, SHORT_NS = 1e7, SHORT_WARNING = 5e7, SHORT_PART = 20, WAIT_LONG = 1e6, WAIT_VERY_LONG = 1e7, OWN_SHARE = 0.75;
const GROWTH_SAMPLES = 4, GROWTH_PART = 6, MEMORY_BYTES = 4 * 2 ** 20, MEMORY_PART = 20, DESCRIPTORS = 20;
const OUTSIDE_NS = 1e7, OUTSIDE_PART = 10, OUTSIDE_LENGTH = 5e8, OUTSIDE_CRITICAL = 5e7;
const QUEUE_LONG = 100, QUEUE_VERY_LONG = 1000;

/** What a counter grew by between its first and its last reading. */
function counterGrowth(rows, field) {
	const told = rows.map((row) => row[field]).filter((value) => value !== undefined).map(Number);
	return told.slice(1).reduce((sum, value, i) => sum + Math.max(0, value - told[i]), 0);
}

const usageRows = (trace) => rowsNamed(trace, 'ProcessResourceUsageEvent', ['user_cpu_ns', 'system_cpu_ns', 'involuntary_context_switches']);

/** How often the kernel took the CPU from threads of the process. */
export function switchesOf(trace) {
	return counterGrowth(usageRows(trace), 'involuntary_context_switches');
}

/* ---- no CPU ---- */

/** Waits for a CPU after a wake, and what was taken from calls. */
function shortageOf(trace, long) {
	const rows = usageRows(trace), seconds = rows.length > 1 ? rows.at(-1).time - rows[0].time : 0, cpus = Number(trace.metadata.get('process.available_parallelism')) || 0;
	const found = { waits: 0, measured: 0, waited: 0, longest: null, taken: 0, busy: 0, bySite: new Map(), cpus, cores: seconds > 0 ? (counterGrowth(rows, 'user_cpu_ns') + counterGrowth(rows, 'system_cpu_ns')) / seconds : 0 };
	trace.workers.forEach(({ id, polls, parks }, w) => {
		for (let row = 0; row < polls.n; row++) found.busy += polls.dur[row];
		for (let i = 0; i < parks.n; i++) {
			const ns = parks.wait[i];
			found.measured++;
			found.waited += ns;
			found.waits += ns > WAIT_LONG;
			if (ns > (found.longest?.ns ?? 0)) found.longest = { ns, time: parks.end[i], worker: id };
		}
		for (const { site, parts } of long[w].values()) {
			found.taken += parts.ready;
			found.bySite.set(site, (found.bySite.get(site) ?? 0) + parts.ready);
		}
	});
	return found;
}

/** Who took the CPU: the start of the sentence, and what to do. */
function takerOf({ limited, own, stolen }) {
	if (limited) return ['The limit of its cgroup left the process short of CPU', 'Raise the CPU limit of its cgroup (container, service), or let fewer threads compute at once: all stop when it is used up.'];
	if (own) return ['The process has more work than CPUs', 'Let fewer of the process\'s own threads compute at once, give the loops\' threads a higher priority, or more CPUs to the process.'];
	return ['The machine was short of CPU', `${stolen ? 'Give this virtual machine a larger share of its host, or fewer neighbours' : 'Run fewer programs on this machine, give it more CPUs, or this one a higher priority'}: times of callbacks in this trace are longer than they would be.`];
}

export function shortageFlags(trace, long) {
	const short = shortageOf(trace, long), { waits, measured, waited, longest, taken, busy, cpus, cores } = short, rows = rowsNamed(trace, 'ProcessStateEvent', ['cgroup_throttled_ns', 'steal_ns']);
	const throttled = counterGrowth(rows, 'cgroup_throttled_ns'), lost = waited + taken + throttled, worst = longest?.ns ?? 0;
	if (waits < SHORT_WAITS && taken < SHORT_NS && throttled < SHORT_NS) return [];
	const limited = throttled >= SHORT_NS && 2 * throttled >= waited + taken, own = cpus > 0 && cores >= OWN_SHARE * cpus;
	const [head, advice] = takerOf({ limited, own, stolen: 2 * counterGrowth(rows, 'steal_ns') > waited + taken });
	const serious = (worst > WAIT_VERY_LONG && waits >= SHORT_WAITS && 100 * waits >= measured) || (lost >= SHORT_WARNING && SHORT_PART * lost >= busy);
	const told = [waited && `ready threads waited ${showDuration(waited)} for one, up to ${showDuration(worst)}`, (taken || !waited) && `running callbacks were preempted for ${showDuration(taken)}`].filter(Boolean).join(', and ');
	const [site, ns] = [...short.bySite].sort((a, b) => b[1] - a[1])[0] ?? [-1, 0], machine = !own || limited;
	return [newFlag('short-of-cpu', serious ? 'warning' : 'info', lost, `${head}: ${told}.`, { about: machine ? 'machine' : 'program', advice, brief: machine ? `short of CPU${limited ? ' by its cgroup\'s limit' : ''}: some times inflated` : `its own threads compete for ${cpus} CPUs`,
		evidence: [...(worst >= WAIT_LONG ? [{ text: `waited ${showDuration(worst)} for a CPU after it woke; ${showCount(waits)} of ${showCount(measured)} measured wake-ups waited over 1 ms`, time: longest.time, duration: worst, worker: longest.worker }] : []),
			...(ns >= WAIT_LONG ? [{ text: `callbacks were preempted for ${showDuration(taken)} in all, ${siteName(trace, site)} most (${showDuration(ns)})` }] : []),
			...(throttled ? [{ text: `its cgroup's CPU limit stopped it for ${showDuration(throttled)}` }] : [])] })];
}

/* ---- outside of callbacks ---- */

/** Whether calls outside of callbacks take long by their number: one may be long as the kernel ran something else in its middle. */
function areOftenSlow({ calls, ns, longest, slow }) {
	return slow >= 3 || longest >= 2e8 || (calls >= 20 && ns - longest >= 5e4 * calls);
}

/** GLib's sources whose prepare() or check() takes long, which the loop calls in each round. */
export function sourceFlags(trace) {
	const sums = new Map(), length = trace.end - trace.start;
	for (const { time, worker_id: worker, task_id: task, phase, calls, total_ns: ns, max_ns: longest, function: place } of rowsNamed(trace, 'SourceTimeEvent', ['worker_id', 'task_id', 'phase', 'calls', 'total_ns', 'max_ns', 'function'])) {
		if (!Number(task)) continue; // between rounds: no source's
		const location = trace.tasks.get(task)?.location ?? '', key = `${phase}/${location}`;
		if (!sums.has(key)) sums.set(key, { phase, location, place: '', calls: 0, ns: 0, longest: 0, slow: 0 });
		const sum = sums.get(key);
		sum.calls += Number(calls ?? 0);
		sum.ns += Number(ns ?? 0);
		sum.slow += longest >= 5e6;
		sum.place ||= place ?? '';
		if (longest > sum.longest) Object.assign(sum, { longest: Number(longest), time, worker, task });
	}
	return [...sums.values()].filter((sum) => areOftenSlow(sum) && (sum.longest >= OUTSIDE_NS || (length >= OUTSIDE_LENGTH && OUTSIDE_PART * sum.ns >= length))).map(({ phase, location, place, calls, ns, longest, time, worker, task }) => {
		const site = trace.strings.indexOf(location), source = siteName(trace, site), called = showName(namesOfLocation(trace, place)[0]), known = called !== showName(place), what = `${phase}()`, all = `${showDuration(ns)} of ${showDuration(length)}`;
		return newFlag('source-time', 2 * ns > length || longest > OUTSIDE_CRITICAL ? 'critical' : 'warning', ns, `${showDuration(ns)} of the ${showDuration(length)} lie in ${called}${known ? '()' : ''}${called ? ', ' : ''}${what} of the source ${source}, outside of all callbacks: ${
			showCount(calls)} calls, the longest ${showDuration(longest)}.`, { name: known ? called : source, site, brief: `${what} takes ${all}, up to ${showDuration(longest)} each time`, evidence: [{ text: `told here; ${showDuration(ns / calls)} on average`, time, worker, task }],
			advice: 'Let prepare() and check() only look, and do the work in dispatch(), in pieces or in a thread: GLib calls both in each round of the loop, and all others wait meanwhile.' });
	});
}

/* ---- what only grows ---- */

/** Whether |points|, {time, value} in order, grow all through their time: each third has a sixth of the growth at least. */
function isSteadyGrowth(points) {
	// What a program makes as it begins is no growth.
	const rest = points.slice(points.length > GROWTH_SAMPLES ? 1 : 0), [from, to] = [rest[0], rest.at(-1)];
	const most = points.reduce((high, { value }) => Math.max(high, value), 0), last = points.at(-1).value;
	const valueAt = (time) => {
		const i = Math.max(1, rest.findIndex((point) => point.time >= time)), [a, b] = [rest[i - 1], rest[i]];
		return a.value + (b.value - a.value) * (time - a.time) / Math.max(1, b.time - a.time);
	};
	if (!(to.value > from.value) || 10 * (most - last) > last - points[0].value) return false;
	const values = [0, 1, 2, 3].map((third) => valueAt(from.time + (to.time - from.time) * third / 3));
	return values.slice(1).every((value, i) => GROWTH_PART * (value - values[i]) >= to.value - from.value);
}

const GROWING = [
	['descriptor-growth', 'descriptors', showCount, 'The number of open descriptors grows', 'descriptors grow', (grown) => grown >= DESCRIPTORS,
		'Close descriptors on each way out, errors and time-outs too: they are opened and not closed, until there are none left (EMFILE); ls -l /proc/PID/fd tells what they are.'],
	['memory-growth', 'resident_bytes', showSize, 'Resident memory grows', 'memory grows', (grown, last) => grown >= MEMORY_BYTES && MEMORY_PART * grown >= last,
		'Look for what calls add to a list, a table, a cache or a buffer and never take out, or do not free; dial9 record --memory, heaptrack or valgrind --leak-check tell the place.'],
];

export function growthFlags(trace) {
	return GROWING.flatMap(([check, field, show, what, brief, isMuch, advice]) => {
		const points = rowsNamed(trace, 'ProcessStateEvent', [field]).map((row) => ({ time: row.time, value: Number(row[field] ?? 0) })), [first, last] = [points[0], points.at(-1)];
		if (points.length < GROWTH_SAMPLES || !isMuch(last.value - first.value, last.value) || !isSteadyGrowth(points)) return [];
		const ns = last.time - first.time, span = `${show(first.value)} to ${show(last.value)}`;
		return [newFlag(check, 'warning', last.value - first.value, `${what} all through the trace, from ${span} in ${showDuration(ns)}.`, { brief: `${brief} all the time, ${span}`, advice,
			evidence: [{ text: `${showCount(points.length)} samples; each third of the time has a sixth of the growth at least`, time: first.time, duration: ns }] })];
	});
}

/* ---- queues ---- */

export function queueFlags(trace) {
	const rows = [['QueueSampleEvent', 'global_queue'], ['RuntimeMetricsEvent', 'global_queue_depth']].flatMap(([event, field]) => rowsNamed(trace, event, [field]).map((row) => ({ time: row.time, depth: Number(row[field] ?? 0) })));
	const { depth, time } = rows.reduce((a, b) => (b.depth > a.depth ? b : a), { depth: 0, time: 0 });
	if (depth <= QUEUE_LONG) return [];
	// The sample event holds no larger number than 255.
	const least = depth === 255 ? 'At least' : 'Up to';
	return [newFlag('queue-depth', depth > QUEUE_VERY_LONG ? 'critical' : 'warning', depth, `${least} ${showCount(depth)} pieces of work handed over by other threads were waiting for a loop.`, {
		brief: `${least.toLowerCase()} ${showCount(depth)} pieces of work wait for a loop`, evidence: [{ text: `the deepest of ${showCount(rows.length)} samples`, time }],
		advice: 'Add loops, make the callbacks cheaper, or slow the senders down: more work is handed to the loops than they pick up.' })];
}
