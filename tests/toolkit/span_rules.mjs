// SPDX-License-Identifier: Apache-2.0
// The rules for spans (events.md, section 5): what each generation of foreign readers makes of the
// events of |events| ([{name, time, values, offset}]) must be the same, and agree with the closes.
//
// By id, as the first two generations read: an exit ends what an enter began, nothing follows a close.
// By (instance, thread), last in first out, as the third does; its close event is the authority.

export const isEnter = (name) => /^SpanEnter(:|__|Event$)/.test(name);
export const isExit = (name) => /^SpanExit(:|__|Event$)/.test(name);
export const isClose = (name) => /^SpanClose(Event$|__)/.test(name);
export const isSpanEvent = (name) => isEnter(name) || isExit(name) || isClose(name);

function checkFields(name, v, bad, offset) {
	if (typeof v.span_id !== 'bigint' || v.span_id === 0n) bad(offset, `${name} without a span_id`);
	if (v.span_instance_id !== undefined && v.span_instance_id !== v.span_id)
		bad(offset, `${name}: instance ${v.span_instance_id} of span ${v.span_id}`);
	if (isClose(name)) return;
	if (typeof v.worker_id !== 'bigint') bad(offset, `${name} without a worker_id`);
	if (typeof v.span_name !== 'string' || v.span_name === '') bad(offset, `${name} without a name`);
	if (v.span_instance_id !== undefined && !v.tid) bad(offset, `${name} without a tid`);
	if (v.parent_span_id === 0n || v.parent_span_id === v.span_id)
		bad(offset, `${name}: parent ${v.parent_span_id} of span ${v.span_id}`);
}

function checkClose(span, { time, values: v, offset }, bad, whole) {
	if (v.start_timestamp_ns === undefined) return; // of the older dialect
	if (typeof v.span_name !== 'string') bad(offset, 'a close without span_name');
	if (v.start_timestamp_ns > time) bad(offset, `span ${v.span_id} begins after its end`);
	if (v.first_enter_timestamp_ns != null && v.first_enter_timestamp_ns < v.start_timestamp_ns)
		bad(offset, `span ${v.span_id} is entered before it begins`);
	if (!whole) return;
	const first = span.first ?? null, told = v.first_enter_timestamp_ns ?? null;
	if (first !== told) bad(offset, `span ${v.span_id}: first entered at ${first}, the close says ${told}`);
	if (span.active !== v.active_ns)
		bad(offset, `span ${v.span_id}: active for ${span.active}, the close says ${v.active_ns}`);
	if (span.open) bad(offset, `span ${v.span_id} is closed while ${span.open} threads are inside`);
}

/** Calls bad(offset, text) for each broken rule.  |whole|: nothing was lost, switched or cut off. */
export function checkSpans(events, bad, whole) {
	const spans = new Map();
	const spanOf = (id) => {
		if (!spans.has(id)) spans.set(id, { active: 0n, open: 0, threads: new Map(), closed: false });
		return spans.get(id);
	};

	// Batches of several threads lie one behind the other; sorting is stable.
	for (const event of [...events].sort((a, b) => (a.time < b.time ? -1 : a.time > b.time ? 1 : 0))) {
		const { name, time, values: v, offset } = event;
		checkFields(name, v, bad, offset);
		const span = spanOf(v.span_id), key = v.tid ?? v.worker_id;
		if (span.closed) bad(offset, `${name} of span ${v.span_id} behind its close`);
		if (isEnter(name)) {
			if (!span.threads.has(key)) span.threads.set(key, []);
			span.threads.get(key).push(time);
			span.open++;
			span.first ??= time;
		} else if (isExit(name)) {
			const entered = span.threads.get(key)?.pop();
			if (entered === undefined) {
				if (whole) bad(offset, `span ${v.span_id} is left on thread ${key}, where it was not entered`);
				continue;
			}
			span.open--;
			span.active += time - entered;
		} else {
			checkClose(span, event, bad, whole);
			span.closed = true;
		}
	}
	return spans.size;
}
