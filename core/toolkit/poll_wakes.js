// SPDX-License-Identifier: Apache-2.0
// The wakes that the polls of a batch tell (FORMAT.md 9.3), by what stands in front of them in the batch.

const OF_UNPARK = 1, ISSUER_MAX = 255;
const REASON = { FD: 1, SIGNAL: 3, DEFERRED: 6 };

class PollsOfWorker {
	constructor() {
		this.unpark = NaN;
		this.starts = [];
		this.ends = [];
		this.tasks = [];
		this.n = 0;
		this.open = false;
	}

	/** The place of the poll that was open at |time|, or -1; it is near the end, nearly always. */
	openAt(time) {
		let low = 0, high = this.n;
		if (high && this.starts[high - 1] < time) low = high - 1;
		while (low < high) {
			const middle = low + high >> 1;
			if (this.starts[middle] < time) low = middle + 1;
			else high = middle;
		}
		return low && this.ends[low - 1] >= time ? low - 1 : -1;
	}
}

export class PollWakes {
	constructor() {
		this.workers = new Map();
	}

	of(worker) {
		let polls = this.workers.get(worker);
		if (!polls) this.workers.set(worker, polls = new PollsOfWorker());
		return polls;
	}

	unpark(worker, time) {
		this.of(worker).unpark = time;
	}

	end(worker, time) {
		const polls = this.of(worker);
		if (polls.open) polls.ends[polls.n - 1] = time;
		polls.open = false;
	}

	/** A poll that tells |told| of its wake: hands that to |model|.  False: it has none. */
	start(model, worker, time, task, told) {
		const polls = this.of(worker), tells = told > 0 && Math.floor(told / 16) < time + model.origin[0] + model.origin[1] * 2 ** 32;
		if (tells) this.tell(model, polls, worker, time, task, told);
		if (polls.open) polls.ends[polls.n - 1] = time;
		polls.starts[polls.n] = time;
		polls.ends[polls.n] = Infinity;
		polls.tasks[polls.n++] = task;
		polls.open = true;
		return tells;
	}

	tell(model, polls, worker, time, task, told) {
		const by = Math.min(ISSUER_MAX, worker), reason = told % 16;
		if (told === OF_UNPARK) {
			model.wake(Number.isNaN(polls.unpark) ? time : polls.unpark, 0, task, by, REASON.FD);
			return;
		}
		const at = time - Math.floor(told / 16);
		let waker = reason === REASON.FD || reason === REASON.SIGNAL ? -1 : polls.openAt(at);
		// It has stayed ready behind its own poll.
		if (waker >= 0 && reason === REASON.DEFERRED && polls.tasks[waker] === task && polls.ends[waker] === at) waker = -1;
		model.wake(at, waker < 0 ? 0 : polls.tasks[waker], task, by, reason);
	}
}
