// SPDX-License-Identifier: Apache-2.0
import { test } from 'node:test';
import assert from 'node:assert/strict';
import { checkSpans } from './span_rules.mjs';

const enter = (time, id, tid, more) =>
	({ name: 'SpanEnter:a', time, offset: 0, values: { worker_id: 255n, span_id: id, span_name: 'a', span_instance_id: id, tid, ...more } });
const exit = (time, id, tid) => ({ ...enter(time, id, tid), name: 'SpanExit:a' });
const close = (time, id, more) => ({
	name: 'SpanCloseEvent', time, offset: 0,
	values: { span_id: id, span_instance_id: id, span_name: 'a', start_timestamp_ns: 1n, active_ns: 0n, ...more },
});
const problems = (events, whole = true) => {
	const found = [];
	checkSpans(events, (offset, what) => found.push(what), whole);
	return found;
};

test('spans of two threads, one inside the other, keep the rules', () => {
	assert.deepEqual(problems([
		enter(2n, 7n, 1n), enter(3n, 8n, 1n, { parent_span_id: 7n }), exit(4n, 8n, 1n),
		close(4n, 8n, { first_enter_timestamp_ns: 3n, active_ns: 1n, parent_span_instance_id: 7n }),
		enter(5n, 7n, 2n), exit(6n, 7n, 1n), exit(9n, 7n, 2n),
		close(9n, 7n, { first_enter_timestamp_ns: 2n, active_ns: 8n }),
	]), []);
});

test('a span that was never entered is one close', () => {
	assert.deepEqual(problems([close(4n, 8n)]), []);
});

test('each broken rule of spans is named', () => {
	for (const [wanted, events] of [
		[/without a span_id/, [enter(2n, 0n, 1n)]],
		[/without a tid/, [enter(2n, 7n, 0n)]],
		[/parent 7 of span 7/, [enter(2n, 7n, 1n, { parent_span_id: 7n })]],
		[/left on thread 2/, [enter(2n, 7n, 1n), exit(3n, 7n, 2n)]],
		[/behind its close/, [close(2n, 7n), enter(3n, 7n, 1n)]],
		[/behind its close/, [close(2n, 7n), close(3n, 7n)]],
		[/active for 1/, [enter(2n, 7n, 1n), exit(3n, 7n, 1n), close(3n, 7n, { first_enter_timestamp_ns: 2n, active_ns: 2n })]],
		[/first entered at 2/, [enter(2n, 7n, 1n), exit(2n, 7n, 1n), close(3n, 7n)]],
		[/begins after its end/, [close(2n, 7n, { start_timestamp_ns: 3n })]],
		[/threads are inside/, [enter(2n, 7n, 1n), close(3n, 7n, { first_enter_timestamp_ns: 2n })]],
	])
		assert.match(problems(events).join('\n'), wanted);
});

test('what was lost or cut off breaks no rule', () => {
	assert.deepEqual(problems([exit(3n, 7n, 2n), close(3n, 7n, { active_ns: 5n, first_enter_timestamp_ns: 1n })], false), []);
});
