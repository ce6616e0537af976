// SPDX-License-Identifier: Apache-2.0
// Time to the first picture and frame times of the viewer in a headless Chromium, beside the budgets of its design:
//
//	D9_TEST_NPM=DIR CHROMIUM=PROGRAM node bench_viewer.mjs DIAL9 DIRECTORY MILLIONS
//
// DIRECTORY has a trace of so many million events.  Figures are printed; nothing fails by them.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createRequire } from 'node:module';

const [dial9, directory, millions] = process.argv.slice(2);
const puppeteer = createRequire(`${process.env.D9_TEST_NPM}/package.json`)('puppeteer-core').default;
const OPENED = { 1: 1.5, 10: 5, 30: 12 }, ZOOM = { 1: 8, 10: 12, 30: 12 }, PAN = { 1: 8, 10: 12, 30: 4 };
const LONGEST_FRAME = 50, STEPS = 240;

function figure(what, value, unit, budget) {
	console.log(['FIGURE', `viewer, ${millions} M events: ${what}`, value.toPrecision(3), unit, '', 0, value.toPrecision(3), value.toPrecision(3), value.toPrecision(3), budget].join('\t'));
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
	figure('first picture', (Date.now() - began) / 1000, 's', OPENED[millions] ?? '');
	await page.waitForSelector('body[data-ready]', { timeout: 300000 });
	figure('with findings', (Date.now() - began) / 1000, 's', '');
	figure('longest frame while loading', await page.evaluate(() => globalThis.longestGap), 'ms', LONGEST_FRAME);
	await page.keyboard.press('0');
	for (const [kind, budgets] of [['zoom', ZOOM], ['pan', PAN]]) {
		// A pass to warm up, then the one that counts.
		await page.evaluate(gesture, STEPS / 4, kind);
		const { script, gaps } = await page.evaluate(gesture, STEPS, kind);
		figure(`${kind}, script of a frame, p50`, quantile(script, 0.5), 'ms', '');
		figure(`${kind}, script of a frame, p95`, quantile(script, 0.95), 'ms', budgets[millions] ?? '');
		figure(`${kind}, longest gap between frames`, Math.max(...gaps), 'ms', 34);
	}
	const { JSHeapUsedSize } = await page.metrics();
	figure('heap of the page', JSHeapUsedSize / 2 ** 20, 'MiB', '');
} finally {
	await browser.close();
	server.kill('SIGINT');
}
