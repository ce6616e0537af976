// SPDX-License-Identifier: Apache-2.0
// Mouse, wheel and touch on the timeline, the ruler and the minimap.

import { showDuration, showTime } from '../toolkit/show.js';
import { sentenceOfFire } from './detail.js';
import { byId, element } from './dom.js';
import { OUTSIDE, hitLane, laneName } from './lanes.js';
import { gripAt } from './minimap.js';
import { listen, selectCall, selectFire, setView, state, update } from './state.js';
import { selectItem } from './timeline.js';
import { tellItem } from './track.js';

const CLICK_SLOP = 4;
const NOTCH = 1.2;
const TOOLTIP_AFTER_MS = 80;
const LONG_PRESS_MS = 500;

let tooltipTimer = 0;

function timeAt(box, event) {
	const rect = box.getBoundingClientRect(), [from, to] = state.view;
	return from + (event.clientX - rect.left) / rect.width * (to - from);
}

function hitOf(box, event, rowsOf) {
	const rect = box.getBoundingClientRect();
	return hitLane(state, rowsOf(), event.clientX - rect.left, event.clientY - rect.top, rect.width);
}

/** Follow a press until it is let go: |moved|(event), |done|(event, dragged). */
function follow(box, event, moved, done) {
	const { clientX, clientY, pointerId } = event;
	let dragged = false;
	box.setPointerCapture(pointerId);
	const move = (next) => {
		dragged ||= Math.abs(next.clientX - clientX) + Math.abs(next.clientY - clientY) > CLICK_SLOP;
		if (dragged) moved(next);
	};
	const end = (next) => {
		box.removeEventListener('pointermove', move);
		box.removeEventListener('pointerup', end);
		box.removeEventListener('pointercancel', end);
		done(next, dragged);
	};
	box.addEventListener('pointermove', move);
	box.addEventListener('pointerup', end);
	box.addEventListener('pointercancel', end);
}

function rangeBetween(a, b) {
	update({ range: [Math.min(a, b), Math.max(a, b)] });
}

function dragRange(box, event) {
	const first = timeAt(box, event);
	follow(box, event, (next) => rangeBetween(first, timeAt(box, next)), (next, dragged) => {
		if (!dragged) update({ range: null });
	});
}

/** Two fingers keep the times that they were put on: |fingers| are their places now, by pointer. */
function startPinch(box, fingers) {
	const held = [...fingers].map(([id, x]) => ({ id, time: timeAt(box, { clientX: x }) })).sort((a, b) => a.time - b.time);
	return () => {
		const { left, width } = box.getBoundingClientRect(), [a, b] = held.map(({ id }) => fingers.get(id) - left), scale = (held[1].time - held[0].time) / (b - a);
		if (scale > 0) setView(held[0].time - a * scale, held[0].time + (width - a) * scale);
	};
}

/** Calls of startPinch() for fingers on |box|; whether two are on it, and one drags nothing. */
function startTouch(box) {
	const fingers = new Map();
	let pinch = null;
	const isTouch = (event) => event.pointerType === 'touch' && state.model;
	box.addEventListener('pointerdown', (event) => {
		if (!isTouch(event)) return;
		fingers.set(event.pointerId, event.clientX);
		pinch = fingers.size === 2 ? startPinch(box, fingers) : null;
	});
	box.addEventListener('pointermove', (event) => {
		if (!fingers.has(event.pointerId)) return;
		fingers.set(event.pointerId, event.clientX);
		pinch?.();
	});
	for (const end of ['pointerup', 'pointercancel'])
		box.addEventListener(end, (event) => {
			fingers.delete(event.pointerId);
			pinch = null;
		});
	return () => pinch !== null;
}

function dragView(box, event, rowsOf, isPinched) {
	const [from, to] = state.view, rect = box.getBoundingClientRect(), x = event.clientX, first = timeAt(box, event), presses = event.timeStamp;
	let long = null;
	follow(box, event, (next) => {
		if (isPinched()) return;
		// A finger that rested before it moved selects a range.
		long ??= event.pointerType === 'touch' && next.timeStamp - presses >= LONG_PRESS_MS;
		if (long) {
			rangeBetween(first, timeAt(box, next));
			return;
		}
		const by = (x - next.clientX) / rect.width * (to - from);
		setView(from + by, to + by);
	}, (next, dragged) => {
		if (dragged) return;
		const hit = hitOf(box, next, rowsOf);
		if (hit?.fire !== undefined) selectFire(hit.fire);
		else if (hit?.item) selectItem(hit.item);
		else if (hit && hit.row >= 0) selectCall(hit.lane, hit.row);
		else update({ selected: null, range: null, finding: -1 });
	});
}

function showTooltip(box, event, rowsOf) {
	const tooltip = byId('tooltip'), hit = hitOf(box, event, rowsOf);
	const same = state.selected && hit?.lane === state.selected.lane && hit.row === state.selected.row;
	if (hit?.item) {
		const { track } = hit.item;
		tooltip.replaceChildren(element('div', {}, tellItem(state.model, hit.item, state.clock)), element('div', { class: 'small' }, track.plain));
		placeTooltip(tooltip, event);
		return;
	}
	if (hit?.fire !== undefined) {
		tooltip.replaceChildren(element('div', {}, sentenceOfFire(state.model.fires[hit.fire])));
		placeTooltip(tooltip, event);
		return;
	}
	const outside = hit ? state.model.outsideAt(hit.lane, hit.time) : null;
	if (outside && (hit.row < 0 || outside.kind === 'stopped')) {
		const start = outside.start + hit.lane.shift;
		tooltip.replaceChildren(element('div', {}, `${OUTSIDE[outside.kind]} ${showDuration(outside.dur)}`),
			element('div', { class: 'small' }, [laneName(state.model, hit.lane), showTime(start - state.model.first, state.model.wall(start), state.clock, 6)].join(' · ')));
		placeTooltip(tooltip, event);
		return;
	}
	const wait = hit?.row < 0 ? state.model.waitAt(hit.lane, hit.time) : null;
	if (!hit || (hit.row < 0 && !wait) || same) {
		tooltip.hidden = true;
		return;
	}
	const { lane, row } = hit, { name, source, site } = wait ? {} : state.model.label(lane, row), start = (wait?.start ?? lane.polls.start[row]) + lane.shift;
	tooltip.replaceChildren(element('div', {}, wait ? 'waiting for events' : element('span', { class: 'code' }, name), ` ${showDuration(wait?.dur ?? lane.polls.dur[row])}`),
		element('div', { class: 'small' }, [source || site, laneName(state.model, lane), showTime(start - state.model.first, state.model.wall(start), state.clock, 6)].filter(Boolean).join(' · ')));
	placeTooltip(tooltip, event);
}

function placeTooltip(tooltip, event) {
	tooltip.hidden = false;
	const { width, height } = tooltip.getBoundingClientRect();
	tooltip.style.left = `${Math.min(event.clientX + 12, innerWidth - width - 8)}px`;
	tooltip.style.top = `${event.clientY + 18 + height > innerHeight ? event.clientY - height - 12 : event.clientY + 18}px`;
}

function startTimeline(rowsOf) {
	const box = byId('lanes'), isPinched = startTouch(box);
	box.addEventListener('pointerdown', (event) => {
		if (event.button !== 0 || !state.model || isPinched()) return;
		byId('timeline').focus({ preventScroll: true });
		if (event.shiftKey) dragRange(box, event);
		else dragView(box, event, rowsOf, isPinched);
	});
	box.addEventListener('dblclick', (event) => {
		const hit = state.model && hitOf(box, event, rowsOf);
		if (hit && hit.row >= 0) selectCall(hit.lane, hit.row, true);
	});
	box.addEventListener('pointermove', (event) => {
		if (!state.model) return;
		update({ pointer: { time: timeAt(box, event) } });
		clearTimeout(tooltipTimer);
		if (event.buttons) byId('tooltip').hidden = true;
		else tooltipTimer = setTimeout(() => showTooltip(box, event, rowsOf), TOOLTIP_AFTER_MS);
	});
	box.addEventListener('pointerleave', () => {
		clearTimeout(tooltipTimer);
		byId('tooltip').hidden = true;
		if (state.model) update({ pointer: null });
	});
	box.addEventListener('wheel', (event) => {
		if (!state.model) return;
		const sideways = Math.abs(event.deltaX) > Math.abs(event.deltaY) || event.shiftKey;
		if (!event.ctrlKey && !sideways) return;
		event.preventDefault();
		const [from, to] = state.view;
		if (event.ctrlKey) {
			const at = timeAt(box, event), factor = NOTCH ** (event.deltaY / (event.deltaMode ? 3 : 100));
			setView(at - (at - from) * factor, at + (to - at) * factor);
		} else {
			const by = (event.deltaX || event.deltaY) / box.clientWidth * (to - from);
			setView(from + by, to + by);
		}
	}, { passive: false });
}

function startMinimap() {
	const box = byId('minimap').parentElement;
	const timeOf = (event) => {
		const rect = box.getBoundingClientRect(), { model } = state;
		return model.first + (event.clientX - rect.left) / rect.width * (model.last - model.first);
	};
	box.addEventListener('pointerdown', (event) => {
		if (event.button !== 0 || !state.model) return;
		const rect = box.getBoundingClientRect(), grip = gripAt(state, event.clientX - rect.left, rect.width), [from, to] = state.view, at = timeOf(event);
		follow(box, event, (next) => {
			const now = timeOf(next);
			if (grip === 'frame') setView(from + now - at, to + now - at);
			else if (grip === 'from') setView(Math.min(now, to - 100), to);
			else if (grip === 'to') setView(from, Math.max(now, from + 100));
			else setView(Math.min(at, now), Math.max(at, now));
		}, (next, dragged) => {
			if (!dragged) setView(at - (to - from) / 2, at + (to - from) / 2);
		});
	});
}

/** |rowsOf|() gives the rows of the timeline as they are laid out now. */
export function startInput(rowsOf) {
	// What it tells of is no longer under the pointer.
	listen((patch) => {
		if ('view' in patch) byId('tooltip').hidden = true;
	});
	startTimeline(rowsOf);
	startMinimap();
	const ruler = byId('ruler').parentElement;
	ruler.addEventListener('pointerdown', (event) => {
		if (event.button === 0 && state.model) dragRange(ruler, event);
	});
}
