// SPDX-License-Identifier: Apache-2.0
// Long work in slices between frames, so that the page never stands still for it.

const SLICE_MS = 8;

/** Run the generator |steps| as long as |wanted|() holds: another question drops this one; |done|(what it returned). */
export function runInSlices(steps, wanted, done) {
	const slice = () => {
		const until = performance.now() + SLICE_MS;
		while (wanted() && performance.now() < until) {
			const { done: ended, value } = steps.next();
			if (!ended) continue;
			done(value);
			return;
		}
		if (wanted()) setTimeout(slice);
	};
	setTimeout(slice);
}
