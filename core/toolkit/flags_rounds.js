// SPDX-License-Identifier: Apache-2.0
// Red flags of loops that go round for little: each worker is looked at a tenth of a second at a time, by the rules of `dial9 report`.

import { flagRate, newFlag, siteName } from './flags.js';
import { showCount, showDuration, showName, showShare } from './show.js';
import { rowsNamed } from './trace.js';
import { recordedOf } from './trust.js';
import { BY_FD, BY_SIGNAL, BY_THREAD, BY_TIMER } from './waking.js';

const WINDOW = 1e8, WINDOWS_TOLD = 3;

/** A wait shorter than this one was none: the loop only looked. */
const REAL_WAIT = 1e4;

/** Rates per second below which there is no spin, no storm and no waste. */
const SPIN_RATE = 2000, STORM_RATE = 2000, IDLE_RATE = 50, EMPTY_RATE = 200, LITTLE_RATE = 100;
const SPIN_CALL = 1e4, SPIN_TOGETHER = 20, LITTLE_CALL = 3e4;

/** Rates from which on it is worth a warning. */
const IDLE_WARNING = 200, EMPTY_WARNING = 500, LITTLE_WARNING = 250;

/** A descriptor may be a peer's that asks one thing after the other: only if hardly more is done than to read, and of few. */
const PEER_RATE = 500, PEER_CALL = 3e3, PEERS = 4;

const CAUSES = [BY_TIMER, BY_SIGNAL, BY_FD, BY_THREAD, 0];
const NO_LOOP_FROM = 254;

const emptyShare = () => ({ calls: 0, tasks: 0, top: null });
const freshWindow = (start) => ({ start, calls: 0, busy: 0, timers: 0, unparks: 0, waits: 0, parked: 0, slept: 0, allBusy: 0, tasks: new Map(), all: emptyShare(), by: new Map(CAUSES.map((cause) => [cause, emptyShare()])) });
const isRate = (n, ns, rate) => n * 1e9 >= rate * ns;
const awakeIn = (ns, asleep) => Math.max(0, ns - asleep);

/** Several tasks that are called about as often as the one with most calls. */
const areTogether = ({ calls, tasks, top }) => tasks > 1 && top.calls * tasks <= 2 * calls;

/** The loop never slept, one task was called over and over, and that took less time than the loop needed to find it ready. */
function isSpin({ all, slept, waits, allBusy }, ns) {
	const { top } = all, together = areTogether(all) && isRate(all.calls, ns, SPIN_RATE) && all.calls >= SPIN_TOGETHER * all.tasks;
	if ((!together && !isRate(top.calls, ns, SPIN_RATE)) || top.reason === BY_THREAD || 20 * waits > (together ? all.calls : top.calls)) return false;
	return top.ns < SPIN_CALL * top.calls && 2 * allBusy < awakeIn(ns, slept);
}

/** Other threads asked for most calls, for a few at a time, and being woken took longer than the calls. */
function isStorm({ by, calls, unparks, busy, parked }, ns) {
	const { calls: asked } = by.get(BY_THREAD);
	return isRate(asked, ns, STORM_RATE) && 5 * asked >= 4 * calls && 4 * unparks >= asked && 2 * busy < awakeIn(ns, parked);
}

/** Nearly always asleep, and woken by timers alone. */
function isIdle({ timers, calls, parked, all: { top } }, ns) {
	return isRate(timers, ns, IDLE_RATE) && 10 * timers >= 9 * calls && 10 * parked >= 9 * ns && 2 * top.calls >= timers && top.reason === BY_TIMER;
}

/** Woken again and again, asleep for most of the time all the same, and hardly anything was done. */
function isLittle({ waits, slept, calls, allBusy }, ns) {
	return isRate(waits, ns, LITTLE_RATE) && 10 * slept >= 7 * ns && 4 * calls >= waits && allBusy <= LITTLE_CALL * waits;
}

const isEmpty = ({ unparks, all }, ns) => isRate(unparks, ns, EMPTY_RATE) && 10 * all.calls < unparks;

const LITTLE_ADVICE = new Map([
	[BY_TIMER, 'Join timers that may run together in one, give them the same deadlines, make periods longer, and set them only while there is something to look for.'],
	[BY_SIGNAL, 'Send a signal only when there is something to do and none was sent before, or use a timer of the loop instead of setitimer(2) or timer_create(2).'],
	[BY_FD, 'Write to the pipe or eventfd by which another thread or process wakes this loop only if nothing was waiting yet, hand over in batches, and let the callback take all there is.'],
	[BY_THREAD, 'Wake the loop only if nothing was waiting for it yet, hand over in batches, and let the callback take all there is.'],
]);

/** Give it to eachWokenCall(). */
export class Rounds {
	constructor(trace, library) {
		Object.assign(this, { trace, library, workers: trace.workers.map(() => ({ park: 0, window: null, windows: 0, told: 0, empty: null, little: null })), spells: new Map() });
	}

	see(w, row, { told, resumed }) {
		const { polls } = this.trace.workers[w], { wakes } = this.trace, start = polls.start[row], ns = polls.dur[row], site = polls.site[row], id = polls.task[row];
		this.parksUntil(w, start);
		if (resumed) return;
		const window = this.turn(w, start + ns);
		if (!window.tasks.has(id)) window.tasks.set(id, { id, site, calls: 0, ns: 0, reason: 0, waker: 0, wakeBy: NO_LOOP_FROM });
		const task = window.tasks.get(id);
		task.calls++;
		task.ns += ns;
		if (told >= 0) [task.reason, task.waker, task.wakeBy] = [wakes.reason[told], wakes.waker[told], wakes.by[told]];
		window.allBusy += ns;
		const count = (share) => {
			share.calls++;
			share.tasks += task.calls === 1;
			if (!share.top || task.calls > share.top.calls) share.top = task;
		};
		count(window.all);
		// The library's own are no work of the program.
		if (this.library[site]) return;
		window.calls++;
		window.busy += ns;
		window.timers += task.reason === BY_TIMER;
		count(window.by.get(task.reason) ?? window.by.get(0));
	}

	/** Waits that ended until |time|. */
	parksUntil(w, time) {
		const { parks } = this.trace.workers[w], state = this.workers[w];
		for (; state.park < parks.n && parks.end[state.park] <= time; state.park++) {
			const ns = parks.end[state.park] - parks.start[state.park], { window } = state;
			if (window) {
				window.parked += ns;
				window.waits += ns >= REAL_WAIT;
				window.slept += ns >= REAL_WAIT ? ns : 0;
			}
			this.turn(w, parks.end[state.park]).unparks++;
		}
	}

	/** The window of a worker at |time|. */
	turn(w, time) {
		const state = this.workers[w];
		if (state.window && time < state.window.start + WINDOW) return state.window;
		if (state.window) this.judge(w, time - state.window.start);
		return state.window = freshWindow(time);
	}

	judge(w, ns) {
		const state = this.workers[w], { window } = state;
		// Longer ones are nobody's: recording was off, or the worker's thread ended.
		if (ns < WINDOW / 2 || ns > 20 * WINDOW) return;
		if (isEmpty(window, ns)) {
			state.empty ??= { windows: 0, ns: 0, unparks: 0, calls: 0, from: window.start };
			state.empty.windows++;
			state.empty.ns += ns;
			state.empty.unparks += window.unparks;
			state.empty.calls += window.all.calls;
		}
		if (!window.all.top) return;
		state.windows++;
		const thread = window.by.get(BY_THREAD);
		if (thread.top && isStorm(window, ns)) this.note(w, 'wake-storm', thread, ns, thread.calls, window.busy);
		else if (isSpin(window, ns)) this.note(w, 'spin', window.all, ns, window.all.top.calls, window.all.top.ns);
		else if (isIdle(window, ns)) this.note(w, 'idle-wakes', window.all, ns, window.all.top.calls, window.all.top.ns);
		else if (isLittle(window, ns) && !isEmpty(window, ns)) this.noteLittle(state, ns);
	}

	/** A window that is of |check|, for the callback that was called most. */
	note(w, check, share, ns, calls, busy) {
		const { window } = this.workers[w], { top } = share, key = `${check}/${top.site}/${w}`;
		if (!this.spells.has(key)) this.spells.set(key, { check, site: top.site, w, windows: 0, ns: 0, calls: 0, busy: 0, unparks: 0, tasks: 1, from: window.start, top: { calls: 0 } });
		const spell = this.spells.get(key);
		spell.windows++;
		spell.ns += ns;
		spell.calls += calls;
		spell.busy += busy;
		spell.unparks += window.unparks;
		if (areTogether(share)) spell.tasks = Math.max(spell.tasks, share.tasks);
		if (top.calls >= spell.top.calls) spell.top = top;
	}

	noteLittle(state, ns) {
		const { window } = state, little = state.little ??= { windows: 0, ns: 0, wakes: 0, calls: 0, busy: 0, from: window.start, by: new Map(CAUSES.map((cause) => [cause, emptyShare()])) };
		little.windows++;
		little.ns += ns;
		little.wakes += window.waits;
		little.calls += window.calls;
		little.busy += window.allBusy;
		for (const [cause, { calls, tasks, top }] of window.by) {
			const sum = little.by.get(cause);
			sum.calls += calls;
			sum.tasks = Math.max(sum.tasks, tasks);
			if (top && (!sum.top || top.calls > sum.top.calls)) sum.top = top;
		}
	}

	name(site) {
		return siteName(this.trace, site);
	}

	/** Who wakes: "produce", "worker 2", "a thread without a loop". */
	waker({ waker, wakeBy }) {
		const location = waker && this.trace.tasks.get(waker)?.location;
		if (location) return this.name(this.trace.strings.indexOf(location));
		return wakeBy < NO_LOOP_FROM ? `worker ${wakeBy}` : 'a thread without a loop';
	}

	/** What is ready again and again: "descriptor 7", "its timer", "it". */
	source({ top, tasks }) {
		const fd = this.trace.tasks.get(top.id)?.fd;
		if (fd >= 0) return `descriptor ${fd}${tasks > 1 ? ` (as were ${showCount(tasks - 1)} others)` : ''}`;
		return top.reason === BY_TIMER ? 'its timer' : 'it';
	}

	/** Whether half of the calls of a spell and more read, wrote or accepted something, as far as that is recorded. */
	brings({ calls, top }) {
		const { tasks } = this.trace, location = tasks.get(top.id)?.location;
		let useful = 0;
		for (const row of rowsNamed(this.trace, 'TaskIoEvent', ['task_id', 'reads', 'writes', 'accepts', 'again', 'eof', 'errors']))
			if (row.task_id === top.id || (location && tasks.get(row.task_id)?.location === location)) useful += Math.max(0, row.reads + row.writes + row.accepts - row.again - row.eof - row.errors);
		return 2 * useful >= calls;
	}

	spellFlag(spell) {
		const { check, site, w, ns, calls, busy, from, top } = spell, { id } = this.trace.workers[w], name = this.name(site), rate = flagRate(calls, ns), times = `${showCount(rate)} times a second`;
		const whole = 2 * spell.windows >= this.workers[w].windows, length = showDuration(ns);
		const more = { name, site, evidence: [{ text: `began; in all ${showCount(calls)} calls in ${length}, which took ${showDuration(busy)}, ${showShare(busy, ns)} of that time`, time: from, worker: id, task: top.id }] };
		switch (check) {
		case 'spin':
			return this.brings(spell) ? null : newFlag(check, whole ? 'critical' : 'warning', ns, `${name} is called ${times} and does next to nothing (${showDuration(busy / calls)} each time): ${this.source(spell)} was ready again at once, and worker ${id} never slept for ${length}.`,
				{ ...more, brief: `is called ${times} for nothing`, advice: this.trace.tasks.get(top.id)?.fd >= 0
					? 'Read until EAGAIN, remove EV_WRITE when the buffer is empty, free the event at end of file or error: the descriptor stays ready. If it listens, accept(2) fails, for lack of descriptors say.'
					: 'Give the timer a period, or wait for what it looks for: it makes itself ready again each time it runs, so that the loop never sleeps.' });
		case 'wake-storm':
			return newFlag(check, 'warning', calls, `${this.waker(top)} wakes worker ${id} ${times} to run ${name}: being woken takes the loop longer than what it is woken for.`, { ...more, brief: `is woken ${times} for little`,
				advice: 'Wake the loop only if nothing was waiting for it yet, hand over in batches, and let the callback take all there is: each wake costs both threads a system call and a switch.' });
		default:
			return whole ? newFlag(check, rate >= IDLE_WARNING ? 'warning' : 'info', calls, `The timer ${name} wakes worker ${id} ${times} while there is nothing else to do.`, { ...more, brief: `wakes an idle loop ${times}`,
				advice: 'Make the period longer, set the timer only while there is something to look for, or wait for the event instead of looking: it keeps the CPU from sleeping.' }) : null;
		}
	}

	emptyFlag(w, { ns, unparks, calls, from }) {
		const { id } = this.trace.workers[w], rate = flagRate(unparks, ns), times = `${showCount(rate)} times a second`;
		return newFlag('empty-wakes', rate >= EMPTY_WARNING ? 'warning' : 'info', unparks, `Worker ${id} woke ${times} and found nothing to run, for ${showDuration(ns)}.`, { brief: `worker ${id} wakes ${times} for nothing`,
			evidence: [{ text: `began; in all it woke ${showCount(unparks)} times for ${showCount(calls)} calls`, time: from, worker: id }],
			advice: 'Wake the loop when there is something to run: another thread wakes it and gives it no work, or a source asks for a short timeout and is not ready then.' });
	}

	causeText(cause, { tasks, top }) {
		const name = this.name(top.site), often = tasks > 1 ? `${name} most often` : name, fd = this.trace.tasks.get(top.id)?.fd;
		if (cause === BY_TIMER) return `${showCount(tasks)} timer${tasks === 1 ? '' : 's'}, ${often}`;
		if (cause === BY_SIGNAL) return `signals, for ${often}`;
		return cause === BY_FD ? `${showCount(tasks)} descriptor${tasks === 1 ? '' : 's'}, ${often}${fd >= 0 ? ` (${fd})` : ''}` : `${this.waker(top)}, for ${often}`;
	}

	littleFlag(w, { windows, ns, wakes, calls, busy, from, by }) {
		const { id } = this.trace.workers[w], state = this.workers[w], rate = flagRate(wakes, ns), [cause, share] = [...by].reduce((a, b) => (b[1].calls > a[1].calls ? b : a));
		// What has no cause that is known, what goes on for less than half of the time, and what is told for itself.
		if (!LITTLE_ADVICE.has(cause) || windows < WINDOWS_TOLD || 2 * windows < state.windows || state.told + (state.empty?.windows ?? 0) >= windows) return null;
		const few = cause !== BY_FD || (rate >= PEER_RATE && share.tasks <= PEERS && 10 * share.calls >= 9 * calls && busy < PEER_CALL * wakes), name = this.name(share.top.site);
		return newFlag('many-wakes', few && rate >= LITTLE_WARNING ? 'warning' : 'info', wakes, `Worker ${id} is woken ${showCount(rate)} times a second for little, ${showDuration(busy / wakes)} of callbacks each time: ${
			showShare(share.calls, calls)} of the calls are of ${this.causeText(cause, share)}.`, { name, site: share.top.site, brief: `the loop is woken ${showCount(rate)} times a second for little`, advice: LITTLE_ADVICE.get(cause),
			evidence: [{ text: `${showCount(flagRate(share.calls, ns))} calls a second by ${this.causeText(cause, share)}`, time: from, worker: id, task: share.top.id }] });
	}

	/** Call it when all calls were seen. */
	flags() {
		this.trace.workers.forEach((_, w) => {
			this.parksUntil(w, Infinity);
			const { window } = this.workers[w];
			if (window) this.judge(w, Math.max(0, this.trace.end - window.start));
		});
		const worst = new Map();
		for (const spell of this.spells.values()) {
			const key = `${spell.check}/${spell.site}`;
			this.workers[spell.w].told += spell.windows;
			if (spell.windows >= WINDOWS_TOLD && spell.windows > (worst.get(key)?.windows ?? 0)) worst.set(key, spell);
		}
		// What hooks do not see may well have run; GLib's own threads are nobody's doing.
		const seen = recordedOf(this.trace).poll === 'full', ofLibrary = (w) => /^(?:gmain|gdbus)$/.test(this.trace.workers[w].group ?? '');
		return [...[...worst.values()].map((spell) => this.spellFlag(spell)),
			...this.workers.flatMap(({ empty, little }, w) => [seen && empty?.windows >= WINDOWS_TOLD && !ofLibrary(w) ? this.emptyFlag(w, empty) : null, little ? this.littleFlag(w, little) : null])].filter(Boolean);
	}
}
