// SPDX-License-Identifier: Apache-2.0
// Time to the first picture and frame times of the viewer in a headless Chromium, beside the budgets of its design:
//
//	D9_TEST_NPM=DIR CHROMIUM=PROGRAM node bench_viewer.mjs DIAL9 DIRECTORY MILLIONS
//
// DIRECTORY has a trace of so many million events.  Of ten million the toolkit's own pace is printed, too, in Node and in
// the page.  Figures are printed; nothing fails by them.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, readdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import { pace } from './toolkit_pace.mjs';

const [dial9, directory, millions] = process.argv.slice(2);
const puppeteer = createRequire(`${process.env.D9_TEST_NPM}/package.json`)('puppeteer-core').default;
const OPENED = { 1: 1.5, 10: 5, 30: 12 }, ZOOM = { 1: 8, 10: 12, 30: 12 }, PAN = { 1: 8, 10: 12, 30: 4 };
const LONGEST_FRAME = 50, STEPS = 240;

const PACE_OF = '10';
// At least so much, as a negative number; in Node and in Chromium.
const PACE = [['the first million', 0, -2.5], ['hot events', -15, -8], ['any schema', -5, 0], ['columns of', 20, 20], ['and indices', 40, 40],
	['zstd', -80, -80], ['gzip', -100, -100], ['fold', 150, 150], ['draw', 0, 8]];

function figure(what, value, unit, budget, of = 'viewer') {
	console.log(['FIGURE', `${of}, ${millions} M events: ${what}`, value.toPrecision(3), unit, '', 0, value.toPrecision(3), value.toPrecision(3), value.toPrecision(3), budget].join('\t'));
}

/** Script time of each frame and the gaps between frames, while wheel events zoom or move the view. */
function gesture(steps, kind) {
	return new Promise((resolve) => {
		const lanes = document.getElementById('lanes'), box = lanes.getBoundingClientRect(), script = [], gaps = [];
		let step = 0, before = 0;
		const turn = () => {
			const began = performance.now();
			// In, out again, twice; or to and fro.
			const forth = Math.floor(step / (steps / 4)) % 2 === 0;
			const more = kind === 'zoom' ? { ctrlKey: true, deltaY: forth ? -100 : 100 } : { deltaX: forth ? 60 : -60 };
			lanes.dispatchEvent(new WheelEvent('wheel', { clientX: box.left + box.width * 0.4, clientY: box.top + 20, bubbles: true, cancelable: true, ...more }));
			// The page's own frame was asked for first, so it is drawn when this runs.
			requestAnimationFrame((now) => {
				script.push(performance.now() - Math.max(began, now));
				if (before) gaps.push(now - before);
				before = now;
				if (++step < steps) turn();
				else resolve({ script, gaps });
			});
		};
		turn();
	});
}

function tellPace(of, side, figures) {
	for (const [what, value, unit] of figures) figure(what, value, unit, PACE.find(([name]) => what.includes(name))[side], of);
}

const quantile = (values, q) => [...values].sort((a, b) => a - b)[Math.min(values.length - 1, Math.floor(q * values.length))];

const server = spawn(dial9, ['serve', directory], { stdio: ['ignore', 'pipe', 'inherit'] });
const [line] = await once(server.stdout, 'data');
const browser = await puppeteer.launch({ executablePath: process.env.CHROMIUM, headless: true, args: ['--no-sandbox', '--disable-dev-shm-usage'], protocolTimeout: 600000 });
try {
	const page = await browser.newPage();
	page.on('pageerror', (error) => console.error(error.message));
	await page.setViewport({ width: 1600, height: 1000 });
	await page.evaluateOnNewDocument(() => {
		globalThis.longestGap = 0;
		let before = performance.now();
		const frame = (now) => {
			globalThis.longestGap = Math.max(globalThis.longestGap, now - before);
			before = now;
			requestAnimationFrame(frame);
		};
		requestAnimationFrame(frame);
	});
	const began = Date.now();
	await page.goto(String(line).trim());
	await page.waitForFunction(() => document.getElementById('message').hidden && document.getElementById('lane-canvas').width > 300, { timeout: 300000, polling: 50 });
	figure('first picture', (Date.now() - began) / 1000, 's', OPENED[millions] ?? 0);
	await page.waitForSelector('body[data-ready]', { timeout: 300000 });
	figure('with findings', (Date.now() - began) / 1000, 's', 0);
	figure('longest frame while loading', await page.evaluate(() => globalThis.longestGap), 'ms', LONGEST_FRAME);
	await page.keyboard.press('0');
	for (const [kind, budgets] of [['zoom', ZOOM], ['pan', PAN]]) {
		// A pass to warm up, then the one that counts.
		await page.evaluate(gesture, STEPS / 4, kind);
		const { script, gaps } = await page.evaluate(gesture, STEPS, kind);
		figure(`${kind}, script of a frame, p50`, quantile(script, 0.5), 'ms', 0);
		figure(`${kind}, script of a frame, p95`, quantile(script, 0.95), 'ms', budgets[millions] ?? 0);
		figure(`${kind}, longest gap between frames`, Math.max(...gaps), 'ms', 34);
	}
	const { JSHeapUsedSize } = await page.metrics();
	figure('heap of the page', JSHeapUsedSize / 2 ** 20, 'MiB', 0);
	if (millions === PACE_OF) {
		const [segment] = readdirSync(directory, { recursive: true }).filter((name) => name.includes('.bin'));
		tellPace('toolkit in Node', 1, await pace(new URL('../../core/toolkit/', import.meta.url).href, null, new Uint8Array(readFileSync(`${directory}/${segment}`))));
		tellPace('toolkit in Chromium', 2, await page.evaluate(`(async () => {
			const listing = await (await fetch('api/segments')).json();
			const packed = new Uint8Array(await (await fetch(listing.segments[0].url)).arrayBuffer());
			return (${pace})(new URL('toolkit/', document.baseURI).href, new URL('viewer/', document.baseURI).href, packed);
		})()`));
	}
} finally {
	await browser.close();
	server.kill('SIGINT');
}
