// SPDX-License-Identifier: Apache-2.0
// Traces without callbacks explain themselves, and say how to get more.

import { showCount, showName } from '../toolkit/show.js';
import { contentsOf } from '../toolkit/trust.js';
import { commandLine } from './about.js';
import { element } from './dom.js';

const ATTACH_LINES = '#include <dial9/libevent.h>\n\nd9_event_base_attach(base);';

function emptyStep(number, text, ...children) {
	return element('li', {}, element('p', {}, text), ...children);
}

/** What there is instead of callbacks, in a sentence. */
function instead(model) {
	const held = model.traces.flatMap(contentsOf).filter(({ n }) => n > 0), threads = new Set(model.traces.flatMap((trace) => trace.samples.tid)).size;
	if (!held.length) return 'It holds nothing but what the recorder says of itself: the program may have ended before a loop ran.';
	return `It holds ${held.map(({ name, n }) => `${showCount(n)} ${name}`).join(', ')}${threads ? ` of ${threads} thread${threads === 1 ? '' : 's'}` : ''}. Was a loop attached?`;
}

/** Fill |box|, or hide it where there are callbacks. */
export function showEmpty(box, model) {
	const events = model.traces.reduce((sum, trace) => sum + trace.events, 0), library = [...model.main.metadata.keys()].find((key) => /^loop\..*\.version$/.test(key));
	box.hidden = model.lanes.length > 0;
	if (box.hidden) return;
	// What is no trace says nothing about recording.
	const unread = events ? null : model.traces.flatMap((trace) => trace.segments).find((segment) => segment.error || segment.unread);
	if (unread) {
		box.replaceChildren(element('h2', {}, 'This cannot be read as a trace.'), element('p', {}, `${showName(unread.name)}: ${showName(unread.error ?? unread.unread)}.`),
			element('p', {}, 'Give dial9 a file that it wrote, trace.*.bin*, or the directory that holds them; or copy the file again.'));
		return;
	}
	const program = model.main.metadata.get('program');
	box.replaceChildren(element('h2', {}, events ? 'This trace has no loop events.' : 'This trace is empty.'),
		element('p', {}, events ? instead(model) : 'It was begun, and not one event was written to it.'),
		element('ol', {},
			emptyStep(1, 'Record again without changing the program', commandLine(`dial9 record -- ${program && /^[\w./-]+$/.test(program) ? program : 'PROGRAM'}`)),
			emptyStep(2, library ? 'The loop library was loaded: attach the loop where you make it' : 'Or attach the loop where you make it', commandLine(ATTACH_LINES),
				element('p', { class: 'small' }, 'For libev d9_ev_loop_attach(loop); for GLib d9_g_main_context_attach(context).')),
			emptyStep(3, 'Ask what can be recorded on this machine', commandLine('dial9 doctor -- PROGRAM'))));
}
