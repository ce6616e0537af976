// SPDX-License-Identifier: Apache-2.0
// A finding has one figure, which every surface tells: $D9_DIAL9 report as text, on the first screen and as JSON, the card of the
// page, the red flags of the toolkit.  Of the demo traces, and of the traces in $D9_TRACES.

import { test } from 'node:test';
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { figureOfBrief } from '../../core/toolkit/flags.js';
import { figureOfFinding } from '../../core/viewer/finding_list.js';

const { D9_DIAL9: dial9, D9_TRACES: golden } = process.env, demo = fileURLToPath(new URL('../../core/demo', import.meta.url));
const script = fileURLToPath(new URL('../../core/toolkit/report.js', import.meta.url));
const traces = [...readdirSync(demo, { withFileTypes: true }).filter((entry) => entry.isDirectory()).map(({ name }) => join(demo, name)), ...(golden ? readdirSync(golden).map((name) => join(golden, name)) : [])];

const run = (program, ...args) => spawnSync(program, args, { encoding: 'utf8', maxBuffer: 2 ** 28 }).stdout;
const plain = (text) => text.replace(/(\d)\u2009(?=\d{3})/g, '$1,').replaceAll('µ', 'u').replace(/\s+/g, ' ');
let figures = 0, gains = 0;

for (const trace of traces)
	test(`the figure of each finding stands in all that tells it: ${trace.split('/').at(-1)}`, () => {
		const { findings } = JSON.parse(run(dial9, 'report', '--json', '--no-symbols', trace)), whole = plain(run(dial9, 'report', '--no-symbols', '--section', 'findings', '--top', '1000', '--width', '200', trace));
		const first = plain(run(dial9, 'report', '--no-symbols', '--width', '200', trace));
		for (const finding of findings) {
			const { check, message, brief, figure, gain } = finding, told = `${check}: ${message} / ${brief} / ${figure}`;
			assert.equal(figure, figureOfBrief(brief) && plain(figureOfBrief(brief)), told);
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
		for (const { check, name, message, brief, figure } of JSON.parse(run('node', script, '--json', trace)).findings ?? []) {
			if (figure) assert.ok(plain(message).includes(plain(figure)), `${check}: ${message} / ${brief} / ${figure}`);
			const theirs = findings.find((one) => one.check === check && one.name === name);
			// The toolkit has no accounts, of which the machine's figure is.
			if (theirs && check !== 'short-of-cpu') assert.equal(figure && plain(figure), theirs.figure, `${check} of ${name}: ${brief} by the toolkit, ${theirs.brief}`);
		}
	});

test('and there were some', () => {
	assert.ok(figures > 10 && gains > 0, `${figures} figures, ${gains} gains`);
});
