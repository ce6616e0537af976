// SPDX-License-Identifier: Apache-2.0
// What only a program that really ran can show: names that lie in its binaries and not in the trace.

import { test } from 'node:test';
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { DIAL9, WORK, eventually, open, text, useBrowser } from './browser.mjs';

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
let why = false; // a build that cannot record this

function recordProgram() {
	writeFileSync(`${WORK}/compute.c`, PROGRAM);
	try {
		execFileSync('cc', ['-g', '-O2', '-rdynamic', '-o', `${WORK}/compute`, `${WORK}/compute.c`, '-levent']);
		execFileSync(DIAL9, ['record', '--quiet', '-o', `${WORK}/recorded`, '--', `${WORK}/compute`], { stdio: 'pipe' });
	} catch (error) {
		why = String(error.stderr ?? error).trim();
	}
}

useBrowser(recordProgram);

test('stacks in the page name functions and lines of the binaries that ran', async (t) => {
	if (why) return t.skip(why);
	await open('recorded');
	await eventually(() => text('#detail'), /samples[^]*compute\s+compute\.c:\d+[^]*on_timer\s+compute\.c:\d+[^]*main\s+compute\.c:\d+/);
	assert.doesNotMatch(await text('#detail'), /dial9 symbolize/);
	return undefined;
});
