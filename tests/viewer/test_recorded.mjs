// SPDX-License-Identifier: Apache-2.0
// What only a program that really ran can show: names that lie in its binaries and not in the trace.

import { test } from 'node:test';
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { cpSync, writeFileSync } from 'node:fs';
import { DIAL9, WORK, clickOn, eventually, open, page, text, useBrowser } from './browser.mjs';

const PROGRAM = `
#include <event2/event.h>
#include <time.h>

static volatile double sink;
static int left = 3;

__attribute__((noinline)) static void compute(void)
{
	struct timespec t;

	do {
		for (int i = 0; i < 20000; i++)
			sink = sink * 1.0000001 + i;
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	} while (t.tv_sec * 5 + t.tv_nsec / 200000000 < 4 - left);
}

static void on_timer(evutil_socket_t fd, short what, void *base)
{
	(void)fd, (void)what;
	compute();
	if (!left--)
		event_base_loopbreak(base);
}

int main(void)
{
	struct event_base *base = event_base_new();

	event_add(event_new(base, -1, EV_PERSIST, on_timer, base), &(struct timeval){ 0, 5000 });
	event_base_dispatch(base);
	return 0;
}
`;

// It keeps 4 MiB in 64 pieces and frees as many; a thread wakes the loop each time.
const HOLDER = `
#include <event2/event.h>
#include <event2/thread.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct event *poke;
static void *volatile kept[64];
static int n;

__attribute__((noinline)) static void *keep(size_t size)
{
	return memset(malloc(size), 1, size);
}

__attribute__((noinline)) static void *borrow(size_t size)
{
	return memset(malloc(size), 2, size);
}

static void on_poke(evutil_socket_t fd, short what, void *base)
{
	(void)fd, (void)what;
	kept[n] = keep(65536);
	free(borrow(65536));
	if (++n == 64)
		event_base_loopbreak(base);
}

static void *call_often(void *arg)
{
	while (1) {
		event_active(poke, EV_READ, 0);
		usleep(2000);
	}
	return arg;
}

int main(void)
{
	struct event_base *base;
	pthread_t thread;

	evthread_use_pthreads();
	base = event_base_new();
	poke = event_new(base, -1, EV_PERSIST, on_poke, base);
	event_add(poke, &(struct timeval){ 60, 0 });
	pthread_create(&thread, NULL, call_often, NULL);
	event_base_dispatch(base);
	return 0;
}
`;
let why = false; // a build that cannot record this

function recordPrograms() {
	const run = (name, program, libraries, ...options) => {
		writeFileSync(`${WORK}/${name}.c`, program);
		execFileSync('cc', ['-g', '-O2', '-rdynamic', '-o', `${WORK}/${name}`, `${WORK}/${name}.c`, ...libraries]);
		execFileSync(DIAL9, ['record', '--quiet', ...options, '-o', `${WORK}/${name}-traces`, '--', `${WORK}/${name}`], { stdio: 'pipe' });
	};
	try {
		run('compute', PROGRAM, ['-levent']);
		run('holder', HOLDER, ['-levent', '-levent_pthreads', '-lpthread'], '--memory=16384');
	} catch (error) {
		why = String(error.stderr ?? error).trim();
	}
}

useBrowser(recordPrograms);

test('stacks in the page name functions and lines of the binaries that ran', async (t) => {
	if (why) return t.skip(why);
	await open('compute-traces');
	await eventually(() => text('#findings'), /on_timer/);
	// On a machine that gave it no CPU it is an information, on which no page opens.
	await page.evaluate(() => [...document.querySelectorAll('.finding')].find((finding) => finding.innerText.includes('on_timer')).click());
	await eventually(() => text('#detail'), /samples[^]*compute\s+compute\.c:\d+[^]*on_timer\s+compute\.c:\d+[^]*main\s+compute\.c:\d+/);
	assert.doesNotMatch(await text('#detail'), /dial9 symbolize/);
	return undefined;
});

test('the page tells which function holds the memory, and who wakes the loop', async (t) => {
	if (why) return t.skip(why);
	await open('holder-traces', '', { width: 1600, height: 1000 });
	const rows = () => page.$$eval('#panel-body tr[data-row]', (all) => all.map((row) => row.innerText.replace(/\s+/g, ' ')).join('\n'));
	await page.click('#profile');
	await page.click('#tab-functions');
	await clickOn('#panel-body', 'not freed');
	const holding = await eventually(rows, /MiB/);
	assert.match(holding.split('\n').find((row) => /holder\.c/.test(row)), /^keep holder\.c:\d+ the program [34]\.\d\d MiB/);
	assert.doesNotMatch(holding, /borrow/);
	await page.click('#tab-wakes');
	await eventually(rows, /^another thread – – on_poke \d\d /m);
	return undefined;
});

test('a program that hung is open in its lane until it was last seen, and opens the page', async () => {
	cpSync(new URL('../../core/demo/hang', import.meta.url), `${WORK}/hang/run`, { recursive: true });
	await open('hang');
	await eventually(() => text('#gutter'), /scenario_hang\s+100.% busy/);
	const detail = await text('#detail');
	assert.match(detail, /^Callback[^]*on_request\s+2\.7\d.s[^]*called by\s+bufferevent read[^]*end\s+it had not ended when it was last seen/);
	assert.match(detail, /Called inside\s+1\s+on_request/);
});
