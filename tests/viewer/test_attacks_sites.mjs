// SPDX-License-Identifier: Apache-2.0
// Other sites, in the browser of somebody who has a trace open: they read nothing of it, whatever they know.

import { after, before, test } from 'node:test';
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { serverTrace } from '../toolkit/trace_bytes.mjs';
import { WORK, eventually, forgive, foreignPage, open, page, serve, text, useBrowser } from './browser.mjs';

// Every name leads to this machine: as a name does whose owner changed what it resolves to.
useBrowser(() => {
	mkdirSync(`${WORK}/one`);
	writeFileSync(`${WORK}/one/trace.0.bin`, serverTrace());
}, { args: ['--host-resolver-rules=MAP *.example 127.0.0.1'], watched: true });

const evil = createServer((request, response) => {
	response.setHeader('content-type', 'text/html');
	response.end('<!doctype html><title>evil</title><body>');
});
let evilPort;
before(async () => {
	evil.listen(0, '127.0.0.1');
	await once(evil, 'listening');
	evilPort = evil.address().port;
});
after(() => evil.close());

/** The status and the text that a browser gets at |url|. */
async function got(url) {
	const foreign = await foreignPage(), response = await foreign.goto(url), answer = { status: response.status(), text: await response.text() };
	await foreign.close();
	return answer;
}

test('without the token, or with another, there is a sentence and nothing else', async () => {
	const url = new URL(await serve('one')), token = url.pathname.slice(1, -1), wrong = `${token.slice(0, -1)}${token.endsWith('0') ? '1' : '0'}`;
	for (const path of ['/', `/${wrong}/`, `/${token}`, `/${token.toUpperCase()}x/`, `/${wrong}/api/segments`, `/${wrong}/segment/trace.0.bin`, `/x/../${wrong}/viewer/app.js`, '/viewer/app.js', '/favicon.ico', `//${token}/`]) {
		const { status, text: said } = await got(url.origin + path);
		assert.deepEqual([path, status, said], [path, 403, 'open the URL that dial9 serve printed: it holds a token']);
	}
});

test('a name that was made to lead here opens nothing, even with the token', async () => {
	const url = new URL(await serve('one'));
	for (const host of ['evil.example', '127.0.0.1.example', 'localhost.example'])
		for (const path of ['', 'api/segments', 'segment/trace.0.bin', 'viewer/app.js']) {
			const { status, text: said } = await got(`http://${host}:${url.port}${url.pathname}${path}`);
			assert.deepEqual([status, said], [403, 'this server answers to its own address only']);
		}
});

/** What a page at |origin| gets of |secret|, by each way that pages have. */
async function steal(origin, secret) {
	const foreign = await foreignPage();
	await foreign.goto(origin);
	const found = await foreign.evaluate(async (address) => {
		const results = {}, settled = (promise) => promise.then((value) => value, () => 'refused');
		const loaded = (made, insert = true) => new Promise((resolve) => {
			made.onload = () => resolve('loaded');
			made.onerror = () => resolve('refused');
			if (insert) document.body.append(made);
		});
		const make = (tag, attributes) => Object.assign(document.createElement(tag), attributes);
		for (const path of ['api/segments', 'segment/trace.0.bin', 'api/report', '']) {
			results[`fetch ${path}`] = await settled(fetch(address + path).then((response) => response.text()));
			results[`fetch ${path} without being asked`] = await settled(fetch(address + path, { mode: 'no-cors' }).then(async (response) => (await response.text()) || 'nothing'));
			results[`fetch ${path} with cookies`] = await settled(fetch(address + path, { credentials: 'include' }).then((response) => response.text()));
		}
		results.script = await loaded(make('script', { src: `${address}viewer/app.js`, type: 'text/javascript' }));
		results.module = await loaded(make('script', { src: `${address}viewer/app.js`, type: 'module' }));
		results.style = await loaded(make('link', { rel: 'stylesheet', href: `${address}viewer/style.css` }));
		results.image = await loaded(make('img', { src: `${address}viewer/icon.svg` }));
		results.preload = await loaded(make('link', { rel: 'preload', as: 'fetch', href: `${address}api/segments`, crossOrigin: 'anonymous' }));
		results.import = await settled(import(`${address}toolkit/show.js`).then(() => 'loaded'));
		try {
			results.worker = await new Promise((resolve) => {
				const worker = new Worker(`${address}viewer/worker.js`);
				worker.onerror = () => resolve('refused');
				worker.onmessage = () => resolve('loaded');
			});
		} catch {
			results.worker = 'refused';
		}
		results.socket = await new Promise((resolve) => {
			const socket = new WebSocket(`${address.replace('http', 'ws')}api/segments`);
			socket.onerror = () => resolve('refused');
			socket.onopen = () => resolve('loaded');
		});
		results.stream = await new Promise((resolve) => {
			const stream = new EventSource(`${address}api/segments`);
			stream.onerror = () => {
				stream.close();
				resolve('refused');
			};
			stream.onmessage = () => resolve('loaded');
		});
		const frame = make('iframe', { src: address });
		await loaded(frame);
		try {
			results.frame = frame.contentDocument?.body?.innerText || frame.contentWindow[0] ? 'read' : 'nothing';
		} catch {
			results.frame = 'refused';
		}
		return results;
	}, secret);
	// What stands in the frame: never the page.
	found.framed = await Promise.all(foreign.frames().filter((frame) => frame !== foreign.mainFrame()).map((frame) => frame.evaluate(() => Boolean(document.getElementById('timeline'))).catch(() => false))).then((all) => all.includes(true));
	await foreign.close();
	return found;
}

test('a page of another site, that knows even the token, reads nothing and shows nothing of it in itself', async () => {
	const secret = await serve('one');
	// Another site; the same machine under another port, which browsers take for the same site; and a file.
	for (const origin of [`http://evil.example:${evilPort}/`, `http://127.0.0.1:${evilPort}/`, 'data:text/html,<body>']) {
		const found = await steal(origin, secret);
		for (const [way, result] of Object.entries(found)) assert.ok([false, 'refused', 'nothing'].includes(result), `${origin}, ${way}: ${result}`);
	}
});

test('a window that another site opens on it is none of that site\'s', async () => {
	const secret = await serve('one'), foreign = await foreignPage();
	await foreign.goto(`http://127.0.0.1:${evilPort}/`);
	const opened = new Promise((resolve) => { foreign.once('popup', resolve); });
	await foreign.evaluate((address) => {
		const button = document.createElement('button');
		button.onclick = () => { globalThis.opened = open(address); };
		document.body.append(button);
	}, secret);
	await foreign.click('button');
	const window = await opened;
	await window.waitForFunction?.(() => true).catch(() => {});
	assert.deepEqual(await foreign.evaluate(() => {
		try {
			return [opened.document.title];
		} catch {
			return 'refused';
		}
	}), 'refused');
	// It knew the token, and may lead the user there; neither of the two has the other.
	assert.equal(await window.evaluate(() => window.opener), null);
	await window.close();
	await foreign.close();
});

test('the policy of the page lets no other script run, no text become one, and nobody be asked', async () => {
	const own = await open('one');
	const tried = await page.evaluate(async () => {
		// What the debugger calls may call eval(); what the page calls later may not.
		await new Promise((resolve) => setTimeout(resolve));
		const refused = {}, attempts = {
			'text of a script': () => { document.createElement('script').text = 'globalThis.harmed = 1'; },
			'markup': () => { document.body.innerHTML = '<b>'; }, 'markup beside': () => document.body.insertAdjacentHTML('beforeend', '<b>'), 'a document': () => document.write('<b>'), 'a parser': () => new DOMParser().parseFromString('<b>', 'text/html'),
			'a worker': () => new Worker('data:text/javascript,1'), 'eval': () => (0, eval)('1'), 'a function': () => new Function('return 1'), 'a policy': () => trustedTypes.createPolicy('dial9', {}), 'another policy': () => trustedTypes.createPolicy('evil', {}),
			'an attribute': () => document.body.setAttribute('onclick', 'globalThis.harmed = 1'),
		};
		for (const [name, attempt] of Object.entries(attempts)) {
			try {
				attempt();
				refused[name] = false;
			} catch {
				refused[name] = true;
			}
		}
		const script = document.createElement('script');
		script.append('globalThis.harmed = 1');
		document.body.append(script);
		document.body.click();
		refused['another server'] = await fetch('http://evil.example/').then(() => false, () => true);
		refused['a beacon'] = !navigator.sendBeacon('http://evil.example/') || true;
		const image = new Image();
		refused['an image'] = await new Promise((resolve) => {
			image.onload = () => resolve(false);
			image.onerror = () => resolve(true);
			image.src = 'http://evil.example/x.png';
		});
		return { refused, harmed: globalThis.harmed ?? 'unharmed' };
	});
	assert.equal(tried.harmed, 'unharmed');
	for (const [name, was] of Object.entries(tried.refused)) assert.ok(name === 'an attribute' || was, name);
	const asked = await page.evaluate(() => performance.getEntriesByType('resource').map((e) => e.name));
	assert.deepEqual(asked.filter((name) => !name.startsWith(own) && !/^(blob|data):/.test(name) && !name.includes('evil.example')), []);
	await eventually(() => text('#selected'), /on_read/);
	forgive(/Content Security Policy|Trusted|violates/);
});
