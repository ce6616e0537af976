// SPDX-License-Identifier: Apache-2.0
// A finding has one figure, which every surface tells: $D9_DIAL9 report as text, on the first screen and as JSON, and the card of
// the page.  Of the demo traces, and of the traces in $D9_TRACES.

import { test } from 'node:test';
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { figureOfFinding } from '../../core/viewer/finding_list.js';

const { D9_DIAL9: dial9, D9_TRACES: golden } = process.env, demo = fileURLToPath(new URL('../../core/demo', import.meta.url));
const traces = [...readdirSync(demo, { withFileTypes: true }).filter((entry) => entry.isDirectory()).map(({ name }) => join(demo, name)), ...(golden ? readdirSync(golden).filter((name) => name.includes('.bin')).map((name) => join(golden, name)) : [])];

const run = (program, ...args) => spawnSync(program, args, { encoding: 'utf8', maxBuffer: 2 ** 28 }).stdout;
const plain = (text) => text.replace(/(\d)\u2009(?=\d{3})/g, '$1,').replaceAll('µ', 'u').replace(/\s+/g, ' ');
/** The first with a unit. */
const figureOfBrief = (brief) => /(?<![^\s(])\d[\d.,]*\s(?:times a second|[nuµm]?s|[KMGT]iB|B|%)(?![A-Za-z])/.exec(brief ?? '')?.[0] ?? null;
let figures = 0, gains = 0;

for (const trace of traces)
	test(`the figure of each finding stands in all that tells it: ${trace.split('/').at(-1)}`, () => {
		const { findings } = JSON.parse(run(dial9, 'report', '--json', '--no-symbols', trace)), whole = plain(run(dial9, 'report', '--no-symbols', '--section', 'findings', '--top', '1000', '--width', '200', trace));
		const first = plain(run(dial9, 'report', '--no-symbols', '--width', '200', trace));
		for (const finding of findings) {
			const { check, message, brief, figure, gain } = finding, told = `${check}: ${message} / ${brief} / ${figure}`;
			assert.equal(figure, figureOfBrief(brief), told);
			assert.ok(whole.includes(plain(message)), `${told} is not in the report`);
			if (gain) {
				gains++;
				assert.ok(gain.text && gain.changed > 0 && whole.includes(`without it: ${gain.text}`), `${told}: ${JSON.stringify(gain)}`);
			}
			if (!figure) continue;
			figures++;
			assert.ok(brief.includes(figure) && message.includes(figure), `${told}: the sentence has another figure`);
			assert.ok([figure, check.replaceAll('-', ' ')].includes(plain(figureOfFinding(finding))) || /^[a-z ]+$/.test(figureOfFinding(finding)), `${told}: ${figureOfFinding(finding)} on the card`);
			if (first.includes(brief)) assert.ok(first.includes(figure), told);
		}
	});

test('and there were some', () => {
	assert.ok(figures > 10 && gains > 0, `${figures} figures, ${gains} gains`);
});
