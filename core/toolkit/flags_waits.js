// SPDX-License-Identifier: Apache-2.0
// Red flags of waits for a turn: behind one task, behind many short calls, of timers, and all others; by the rules of `dial9 report`.

import { newFlag, siteName } from './flags.js';
import { showCount, showDuration } from './show.js';
import { lowerBound } from './table.js';
import { BY_TIMER } from './waking.js';

/** Waits from here on are looked into, at most once in this time on each worker, by so many calls before their end. */
const EXPLAIN_NS = 5e6, EXPLAIN_EVERY = 1e6, CALLS_SEEN = 256;
const SHORT_CALL = 5e6, QUEUE_CALLS = 8, CROWD_NS = 1e7, CROWD_CRITICAL = 5e7;

/** Coarse clocks make timers of idle loops late by up to three ticks: 12 ms. */
const TIMER_LATE = 2e7, TIMER_VERY_LATE = 1e8;
const PREEMPTED_WAIT = 1e9, DELAYS_KEPT = 20, DELAYS_TOLD = 3;

const greatestSum = (sums) => [...sums.values()].reduce((a, b) => (b.ns > a.ns ? b : a), { site: -1, task: 0, ns: 0, calls: 0 });

function addTo(sums, key, more, ns) {
	if (!sums.has(key)) sums.set(key, { ...more, ns: 0, calls: 0 });
	const sum = sums.get(key);
	sum.ns += ns;
	sum.calls++;
}

/** Keep the |max| of |list| with most |rank|, largest first. */
function keepMost(list, wait, rank, max = DELAYS_KEPT) {
	if (list.length === max && rank(wait) <= rank(list[max - 1])) return;
	list.push(wait);
	list.sort((a, b) => rank(b) - rank(a));
	list.length = Math.min(list.length, max);
}

/** Half of the wait, or long enough by itself. */
function isEnough(wait, ns) {
	return ns >= EXPLAIN_NS || (2 * wait.own > wait.ns && 2 * ns >= wait.covered);
}

/** Whether it was for their number that the calls took long: long ones are told for themselves. */
function areShort({ busy, calls, longNs }) {
	return busy <= SHORT_CALL * calls && 2 * longNs <= busy;
}

/** Whether one other task was called many times meanwhile, and hardly anything else. */
function isUnfair(wait) {
	const { one } = wait;
	return Boolean(one) && !wait.looked && one.task !== wait.task && one.calls >= QUEUE_CALLS && areShort(wait) && 4 * one.ns >= 3 * wait.busy && isEnough(wait, one.ns);
}

/** What was not looked at is taken to have been like what was. */
const busyOf = (wait) => (wait.covered > 0 ? wait.busy * Math.max(1, (wait.ns - wait.taken) / wait.covered) : 0);

/** Who is to blame for |ns|: what ran meanwhile, if that took half of it, or the worst of long calls. */
function blamedFor({ longest, longNs, most: frequent }, ns) {
	if (2 * longest.ns >= ns || 2 * longNs >= ns) return longest.site;
	return 2 * frequent.ns >= ns ? frequent.site : undefined;
}

/** Give it to eachWokenCall(). */
export class Waits {
	constructor(trace, long) {
		Object.assign(this, { trace, long, woken: 0, over: [0, 0, 0], timers: 0, late: 0, latest: [], held: [], worst: [], unfair: [], backlogs: [], behind: { long: 0, unfair: 0, backlog: 0, kernel: 0, several: 0, nothing: 0 },
			explained: trace.workers.map(() => -Infinity), explainedLate: trace.workers.map(() => -Infinity),
			entered: trace.workers.map(({ entries }) => (entries.n ? entries.time[0] : -Infinity)) });
	}

	see(w, row, { wake, ready, resumed }) {
		const { wakes, workers } = this.trace, { polls } = workers[w], start = polls.start[row];
		if (resumed || wake < 0) return;
		const timer = wakes.reason[wake] === BY_TIMER, wait = { w, row, from: ready, start, ns: start - ready, own: start - ready, task: polls.task[row], site: polls.site[row], timer };
		if (timer) this.seeTimer({ ...wait, from: wakes.time[wake], ns: start - wakes.time[wake], own: start - wakes.time[wake] });
		// Who was ready before the loop was entered was kept waiting by nobody.
		if (timer || wait.ns <= 0 || ready < this.entered[w]) return;
		this.woken++;
		if (wait.ns < EXPLAIN_NS) return;
		if (this.worst.length < DELAYS_KEPT || wait.ns > this.worst.at(-1).ns || start - this.explained[w] >= EXPLAIN_EVERY) {
			this.explained[w] = start;
			this.look(wait);
			this.classify(wait);
			keepMost(this.worst, wait, ({ own }) => own);
		}
		[5e6, 1e7, 5e7].forEach((ns, i) => { this.over[i] += wait.own > ns; });
	}

	seeTimer(late) {
		const { w, start } = late;
		this.timers++;
		this.late += late.ns > 1e7;
		if (late.ns < EXPLAIN_NS || (this.latest.length === DELAYS_KEPT && late.ns <= this.latest.at(-1).ns && start - this.explainedLate[w] < EXPLAIN_EVERY)) return;
		this.explainedLate[w] = start;
		this.look(late);
		keepMost(this.latest, late, ({ ns }) => ns);
		keepMost(this.held, late, busyOf);
	}

	/** What ran on its worker while it waited. */
	look(wait) {
		const { polls, parks } = this.trace.workers[wait.w], first = lowerBound(polls.start, wait.from, polls.n), sites = new Map(), tasks = new Map();
		Object.assign(wait, { calls: wait.row - first, seen: 0, busy: 0, taken: 0, longNs: 0, stalls: 0, longest: { site: -1, ns: 0 }, covered: wait.ns });
		for (let i = wait.row - 1; i >= 0 && wait.row - i <= CALLS_SEEN && polls.start[i] + polls.dur[i] > wait.from; i--) {
			const inside = polls.start[i] + polls.dur[i] - Math.max(polls.start[i], wait.from), call = this.long[wait.w].get(i);
			const taken = call ? inside * (1 - call.own / call.ns) : 0, ns = inside - taken, site = call?.site ?? polls.site[i];
			wait.seen++;
			wait.busy += ns;
			wait.taken += taken;
			if (polls.dur[i] >= SHORT_CALL + taken) wait.longNs += ns;
			if (call) wait.stalls += inside;
			if (ns > wait.longest.ns) wait.longest = { site, ns };
			addTo(sites, site, { site }, ns);
			addTo(tasks, polls.task[i], { site, task: polls.task[i] }, ns);
			if (wait.row - i === CALLS_SEEN) wait.covered = Math.min(wait.ns, wait.start - polls.start[i]);
		}
		wait.covered = Math.max(0, wait.covered - wait.taken);
		wait.own = Math.max(0, wait.ns - wait.taken);
		wait.most = greatestSum(sites);
		wait.one = [...tasks.values()].find(({ calls }) => 2 * calls > wait.seen) ?? null;
		wait.calls = Math.max(wait.calls, wait.seen);
		// Of a timer: its loop waited for events in the second half, so that nobody kept it busy.
		const park = lowerBound(parks.end, wait.start, parks.n) - 1;
		wait.looked = wait.timer && park > 0 && parks.end[park - 1] > wait.from + wait.ns / 2;
	}

	/** Which of the causes it had. */
	classify(wait) {
		const kernel = 2 * wait.own <= wait.ns, { behind } = this;
		if (!kernel && (2 * wait.stalls >= wait.ns || !areShort(wait) || 2 * wait.longest.ns >= wait.own)) {
			behind.long++;
		} else if (isUnfair(wait)) {
			behind.unfair++;
			keepMost(this.unfair, wait, busyOf);
		} else if (wait.seen >= QUEUE_CALLS && 2 * wait.longest.ns < wait.busy && isEnough(wait, wait.busy)) {
			behind.backlog++;
			keepMost(this.backlogs, wait, busyOf);
		} else {
			behind[kernel ? 'kernel' : wait.seen > 1 && 2 * wait.busy >= wait.covered ? 'several' : 'nothing']++;
		}
	}

	name(site) {
		return siteName(this.trace, site);
	}

	evidence(waits, what) {
		return waits.slice(0, DELAYS_TOLD).map(({ w, from, ns, task, site, seen, busy, longest, calls, most: frequent }) => {
			const ran = !seen ? 'no callback ran on its worker meanwhile' : 10 * longest.ns >= 9 * busy ? `${this.name(longest.site)} ran for ${showDuration(longest.ns)} of it`
				: `${showCount(calls)} calls ran meanwhile, of the last ${showCount(seen)} ${showCount(frequent.calls)} of ${this.name(frequent.site)} (${showDuration(frequent.ns)})`;
			return { text: `${this.name(site)} ${what} ${showDuration(ns)}: ${ran}`, time: from, duration: ns, worker: this.trace.workers[w].id, task };
		});
	}

	unfairFlags() {
		const timer = this.held.find(isUnfair), [first] = this.unfair, worst = timer && (!first || busyOf(timer) > busyOf(first)) ? timer : first;
		if (!worst || busyOf(worst) < CROWD_NS) return [];
		const { one } = worst, fd = this.trace.tasks.get(one.task)?.fd, name = this.name(one.site);
		return [newFlag('unfair', busyOf(worst) > CROWD_CRITICAL ? 'critical' : 'warning', busyOf(worst), `${name} was called ${worst.calls > worst.seen ? 'over ' : ''}${showCount(one.calls)} times${
			fd >= 0 ? ` for descriptor ${fd}` : ''}, for ${showDuration(one.ns)}, while ${this.name(worst.site)} waited ${showDuration(worst.ns)} for its turn.`, { name, site: one.site,
			brief: `has the loop to itself for ${showDuration(one.ns)}, ${showCount(one.calls)} calls in a row`, evidence: this.evidence(timer === worst ? [timer, ...this.unfair] : this.unfair, 'waited'),
			advice: 'Do a limited amount of work for it and go back to the loop: one task has the loop to itself while others are ready.' })];
	}

	backlogFlags() {
		const [worst] = this.backlogs, ns = worst ? busyOf(worst) : 0;
		if (ns < CROWD_NS) return [];
		const { site } = worst.most, calls = showCount(worst.calls), victim = this.name(worst.site);
		return [newFlag('backlog', ns > CROWD_CRITICAL ? 'critical' : 'warning', ns, `${victim} waited ${showDuration(worst.ns)} behind a backlog of ${calls} short calls, most of them of ${this.name(site)}.`, {
			name: this.name(site), site, culprit: site, brief: `short calls, ${calls} in a row, hold the loop ${showDuration(ns)}`, effect: `${victim} waited ${showDuration(ns)} behind ${calls} calls`,
			evidence: this.evidence(this.backlogs, 'waited'),
			advice: 'Handle fewer per round (limits on accepts and reads), use priorities, make the frequent one cheaper, or spread the work over more loops: no single call is to blame.' })];
	}

	timerFlags() {
		const { latest, held } = this;
		if (!latest.length || latest[0].ns <= TIMER_LATE) return [];
		const untold = held.find((wait) => busyOf(wait) > TIMER_LATE && 2 * wait.longest.ns < busyOf(wait) && !isUnfair(wait));
		const worst = untold ?? [...latest, ...held].reduce((a, b) => (b.own > Math.max(TIMER_LATE, a?.own ?? 0) ? b : a), undefined) ?? latest[0];
		const own = 2 * worst.own >= worst.ns || worst.own > TIMER_LATE, culprit = untold || own ? blamedFor(worst, untold ? worst.busy : worst.own) : undefined;
		const { longest, most: frequent } = worst, victim = this.name(worst.site), length = showDuration(worst.ns);
		const why = !own ? '' : 2 * longest.ns >= worst.own ? ` because ${this.name(longest.site)} ran for ${showDuration(longest.ns)}`
			: 2 * frequent.ns >= worst.own ? ` because ${this.name(frequent.site)} ran ${showCount(frequent.calls)} times for ${showDuration(frequent.ns)} in all` : '';
		return [newFlag('timer-late', untold || (culprit !== undefined && worst.own >= TIMER_VERY_LATE) ? 'warning' : 'info', worst.ns,
			`The timer ${victim} ran ${length} late${why} (${showCount(this.late)} of ${showCount(this.timers)} timer runs were over 10 ms late).`, {
				name: this.name(culprit ?? worst.site), site: culprit ?? worst.site, culprit, effect: `${victim} up to ${length} late`, brief: culprit === undefined ? `runs up to ${length} late` : `makes ${victim} up to ${length} late`,
				evidence: this.evidence(untold ? held : latest, 'was late by'),
				advice: 'See what ran meanwhile: a timer runs when what runs before it has ended. If nothing did, the loop slept past the deadline (coarse clock, stale loop time after a long callback) or the kernel ran something else.' })];
	}

	/** Whether waits have a cause that has a finding of its own. */
	allTold(flags) {
		const { behind } = this, all = Object.values(behind).reduce((a, b) => a + b, 0);
		const told = behind.long + behind.unfair + behind.kernel + (flags.some(({ check }) => check === 'backlog') ? behind.backlog : 0);
		return all > 0 && 10 * told >= 9 * all;
	}

	delayFlags(flags, switches) {
		const { behind, woken, over: [over5, over10, over50], worst: [worst] } = this, told = this.allTold(flags);
		if (!over5) return [];
		let severity = over10 || 1000 * over5 > woken ? 'warning' : 'info';
		if (over50 && (over5 > behind.long + behind.nothing || 1000 * behind.nothing > woken)) severity = 'critical';
		// Nothing ran, and the kernel took the CPU from threads of the process, maybe from those that sent the wakes.
		if (told || (behind.nothing + behind.kernel >= over5 && worst.own < PREEMPTED_WAIT && switches >= over5)) severity = 'info';
		const name = this.name(worst.site), longest = showDuration(worst.own), waits = `${showCount(over5)} wait${over5 === 1 ? '' : 's'} over 5 ms`;
		return [newFlag('wake-delay', severity, worst.ns, `${showCount(over5)} of ${showCount(woken)} waits for a turn took over 5 ms; ${name} waited longest, ${longest}.`, {
			name, site: worst.site, culprit: told ? blamedFor(worst, worst.own) : undefined, brief: `waits up to ${longest} for its turn; ${waits}`, effect: waits, evidence: this.evidence(this.worst, 'waited'),
			advice: told ? 'Mend what has a finding of its own: that is what they waited for.'
				: 'See what ran on their worker meanwhile: these callbacks were ready and did not run. If nothing did, the thread was not scheduled or was not woken, or the program had left its loop.' })];
	}

	flags(switches) {
		const flags = [...this.unfairFlags(), ...this.backlogFlags()];
		return [...flags, ...this.timerFlags(), ...this.delayFlags(flags, switches)];
	}
}
