// SPDX-License-Identifier: Apache-2.0
// The browser that the viewer's tests share: pages of `dial9 serve` and of files, and what is asked of them.
// A message on the console, a failed request or a violation of the policy fails every test.

import { after, afterEach, before } from 'node:test';
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readFileSync } from 'node:fs';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createRequire } from 'node:module';

const { CHROMIUM, D9_TEST_NPM, D9_TEST_PICTURES } = process.env;
export const { DIAL9 } = process.env;
/** A folder of this test file's own. */
export const WORK = mkdtempSync(`${process.env.WORK}/`);

const puppeteer = createRequire(`${D9_TEST_NPM}/package.json`)('puppeteer-core').default;
const servers = new Map();
let browser, complaints, watching;

/** The page that the running test has opened. */
export let page;
let keep = false; // the next test may have it
let kept = ''; // the trace of the one that this test may have

/** The pages of a test do each other no harm, and a process for each costs twice the CPU; so do threads for what is short. */
const SMALL = ['--single-process', '--no-zygote', '--js-flags=--single-threaded', '--disable-features=ScriptStreaming'];

/**
 * Call once in a test file, with what writes its traces below WORK; |args|: how Chromium is to be started; |watched|: tests
 * listen to requests.  A page makes a hundred; to be told of them is a third of the CPU that opening it takes.
 */
export function useBrowser(writeTraces, { args = SMALL, watched = false } = {}) {
	watching = watched;
	before(async () => {
		await writeTraces();
		browser = await puppeteer.launch({ executablePath: CHROMIUM, headless: /shell/.test(CHROMIUM) ? 'shell' : true, args: ['--no-sandbox', '--disable-dev-shm-usage', ...args], networkEnabled: watched });
	});
	afterEach(async () => {
		const said = complaints ?? [];
		complaints = [];
		if (!keep || said.length) await closePage();
		keep = false;
		assert.deepEqual(said, []);
	});
	after(async () => {
		await browser?.close();
		for (const { child } of servers.values()) child.kill('SIGINT');
	});
}

async function closePage() {
	kept = '';
	await page?.close();
	page = null;
}

/** The address of a server for |trace| below WORK, one for all tests. */
export async function serve(trace, ...options) {
	if (!servers.has(trace)) {
		const child = spawn(DIAL9, ['serve', ...options, `${WORK}/${trace}`], { stdio: ['ignore', 'pipe', 'inherit'] });
		const [line] = await once(child.stdout, 'data');
		servers.set(trace, { child, url: String(line).trim() });
	}
	return servers.get(trace).url;
}

/** Open |url|, and wait for |ready|, else for the trace to be there. */
export async function visit(url, size = { width: 1280, height: 800 }, ready = 'body[data-ready]') {
	if (kept) await closePage();
	page = await browser.newPage();
	complaints = [];
	// Of a request that fails too the console tells.
	page.on('console', (message) => complaints.push(`${message.type()}: ${message.text()}${/^Failed to load/.test(message.text()) ? ` ${message.location().url}` : ''}`));
	page.on('pageerror', (error) => complaints.push(`error: ${error.message}`));
	await page.setViewport(size);
	await page.goto(url);
	await page.waitForSelector(ready, { timeout: 15000 }).catch((error) => assert.fail(`${error.message}; the page says ${complaints.join(', ')}`));
}

/** Call |listener| with each request that the page makes from now on. */
export function listenToRequests(listener) {
	assert.ok(watching, 'useBrowser() was not told that somebody listens');
	page.on('request', listener);
}

/** A page of somebody else's, who may see errors: the caller closes it. */
export function foreignPage() {
	return browser.newPage();
}

/** Drop a file on the page, and wait until it is shown or refused. */
export async function drop(name, bytes) {
	await page.evaluate((fileName, base64) => {
		const files = new DataTransfer(), content = atob(base64), unpacked = new Uint8Array(content.length);
		for (let i = 0; i < content.length; i++) unpacked[i] = content.charCodeAt(i);
		files.items.add(new File([unpacked], fileName));
		dispatchEvent(new DragEvent('drop', { dataTransfer: files }));
	}, name, Buffer.from(bytes).toString('base64'));
	await eventually(() => page.$('#message progress'), (bar) => bar === null);
}

/** Open what `dial9 serve` shows of |trace|; its address. */
export async function open(trace, fragment = '', size = undefined, ready = undefined) {
	const url = await serve(trace);
	await visit(url + fragment, size, ready);
	return url;
}

/** Use a page of |trace| as the test before left it, if that passed and called keepPage(); else open one.  Its address. */
export async function openKept(trace) {
	if (kept !== trace) {
		await open(trace);
		// What it has asked for stays known.
		await page.evaluate(() => performance.setResourceTimingBufferSize(100000));
	}
	kept = '';
	return serve(trace);
}

/** The last that a test does which leaves its page of |trace| to the next one. */
export function keepPage(trace) {
	keep = true;
	kept = trace;
}

export const text = (selector) => page.$eval(selector, (e) => e.innerText);
export const fragment = () => page.evaluate(() => location.hash);

/** Keep a picture of the page as it is, for a person to look at. */
export async function picture(name) {
	mkdirSync(D9_TEST_PICTURES, { recursive: true });
	await page.screenshot({ path: `${D9_TEST_PICTURES}/${name}.png` });
}

/** Click the button in |scope| that says |words|. */
export async function clickOn(scope, words) {
	await eventually(() => text(scope), (said) => said.includes(words));
	const button = await page.evaluateHandle((selector, said) => [...document.querySelectorAll(`${selector} button`)].find((b) => b.checkVisibility() && b.innerText.trim() === said), scope, words);
	await button.click();
}

/** Wait until |read|() gives what |wanted| accepts; the page needs a frame or two. */
export async function eventually(read, wanted) {
	const deadline = Date.now() + 60000;
	for (;;) {
		const value = await read();
		if (wanted instanceof RegExp ? wanted.test(value) : wanted(value)) return value;
		if (Date.now() > deadline) assert.fail(`still ${value}, not ${wanted}`);
		await new Promise((resolve) => setTimeout(resolve, 50));
	}
}

/** What axe finds wrong with the page as it is now; in the dark, where only colours are others, with those. */
export async function violations(theme = 'light') {
	if (!await page.evaluate(() => Boolean(globalThis.axe))) {
		const session = await page.createCDPSession();
		await session.send('Runtime.evaluate', { expression: readFileSync(`${D9_TEST_NPM}/node_modules/axe-core/axe.min.js`, 'utf8') });
		await session.detach();
	}
	return page.evaluate(async (options) => {
		const found = await globalThis.axe.run(document, options);
		return found.violations.flatMap(({ id, nodes }) => nodes.map((node) => `${id}: ${node.target} ${node.any[0]?.message ?? ''}`));
	}, theme === 'dark' ? { runOnly: ['color-contrast', 'link-in-text-block'] } : {});
}

/** Complaints that the test has asked for: each is like |pattern|. */
export function forgive(pattern) {
	assert.deepEqual(complaints.filter((complaint) => !pattern.test(complaint)), []);
	complaints = [];
}

/** Colours as they stay: one that is on its way to another is none of the page's. */
export async function inTheme(theme) {
	await page.emulateMediaFeatures([{ name: 'prefers-reduced-motion', value: 'reduce' }]);
	if (await page.$eval('html', (e) => e.dataset.theme) !== theme) await page.keyboard.press('t');
}
