/* SPDX-License-Identifier: Apache-2.0 */
/* One of many modules: its frame is FRAME bytes large, so that the rows of another one would be wrong. */

#ifndef FRAME
#define FRAME 64
#endif

__attribute__((visibility("default"))) int module_call(int (*fn)(void *arg), void *arg);

int module_call(int (*fn)(void *arg), void *arg)
{
	volatile char frame[FRAME];

	frame[0] = frame[FRAME - 1] = 1;
	return fn(arg) + frame[0];
}
