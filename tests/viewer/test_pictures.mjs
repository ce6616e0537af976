// SPDX-License-Identifier: Apache-2.0
// The states of the page in four widths and both themes: pictures for a person to look at, and nothing wider than the window.

import { test } from 'node:test';
import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { loadTrace } from '../toolkit/load_bytes.mjs';
import { profileTrace } from '../toolkit/profile_bytes.mjs';
import { HEADER, stream } from '../toolkit/trace_bytes.mjs';
import { WORK, eventually, inTheme, open, page, picture, text, useBrowser } from './browser.mjs';
import { writeMany } from './many_traces.mjs';
import { shopTrace } from './question_traces.mjs';

const MINUTE = 'r=m97000000000~60000000000';
/** Name of the picture: the trace, its address, what is there when it is whole, and the keys that lead to it. */
const STATES = {
	finding: ['shop', '', '#selected', /on_log, 180/],
	range: ['shop', `#v=m90000000000~80000000000&${MINUTE}&p=callbacks`, '#panel', /rebuild_index/],
	wakes: ['shop', '#v=m7000000000~240000000000&p=wakes&th=0.w0', '#panel', /render_report/],
	about: ['shop', '#v=m7000000000~240000000000', '#detail', /About this trace/],
	help: ['shop', '#v=m7000000000~240000000000', '#keys', /next finding/, '?'],
	guide: ['shop', '#v=m7000000000~240000000000', '#guide', /A timer is late/, 'g'],
	search: ['shop', '#v=m7000000000~240000000000', '#results', /spans/, '/', 'r', 'e', 'p', 'o', 'r', 't'],
	flame: ['stacks', '#p=flame', '#panel', /67 of 67 samples/],
	functions: ['stacks', '#p=functions', '#panel', /copy/],
	events: ['stacks', '#p=events', '#panel', /228 of 228 events/],
	compare: ['runs', 'view#p=compare&cmp=p0~p1', '#panel', /slower in B: on_request/],
	difference: ['runs', 'view#p=compare&cmp=p0~p1&cv=stacks', '.stack-sides', /match_route/],
	empty: ['empty', '', '#empty', /This trace is empty/],
	map: ['many', '#c=utc', '#services', /echo-server/],
};
/** What more width does not change. */
const NARROW_ONLY = ['about', 'help', 'guide', 'search', 'functions', 'events', 'difference'];

useBrowser(() => {
	const write = (path, bytes) => {
		mkdirSync(`${WORK}/${path}`, { recursive: true });
		writeFileSync(`${WORK}/${path}/trace.0.bin`, bytes);
	};
	write('shop', shopTrace());
	write('stacks', profileTrace());
	write('runs/1-yesterday', loadTrace({ seed: 1, samples: 8 }));
	write('runs/2-today', loadTrace({ seed: 2, slower: 1.2, samples: 8 }));
	write('empty', stream(HEADER));
	writeMany(`${WORK}/many`);
});

for (const [name, [trace, place, where, wanted, ...keys]] of Object.entries(STATES))
	test(`the page fits every window in both themes: ${name}`, async () => {
		await open(trace, place, { width: 700, height: 1200 });
		await inTheme('light');
		for (const key of keys) await page.keyboard.press(key);
		await page.waitForSelector(where);
		for (const theme of ['light', 'dark']) {
			// By no key, which would be typed where the page searches, and cannot be pressed under a dialog.
			if (theme === 'dark') await page.$eval('#theme', (button) => button.click());
			assert.equal(await page.$eval('html', (e) => e.dataset.theme), theme);
			for (const [width, height] of [[700, 1200], [1280, 800], [1600, 1000], [2560, 1440]]) {
				if (width > 1280 && NARROW_ONLY.includes(name)) continue;
				await page.setViewport({ width, height });
				await eventually(() => text(where), wanted);
				await eventually(() => page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), (fits) => fits);
				await picture(`${name}-${width}-${theme}`);
			}
		}
	});
