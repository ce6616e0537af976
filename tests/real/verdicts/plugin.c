/* SPDX-License-Identifier: Apache-2.0 */
/* A plug-in of trampolines.cc: a callback's work, and a function that a callback of the program
 * calls. */
#include "burn.h"

void plugin_tick(double ms);
void plugin_scale(double ms);

static __attribute__((noinline)) void transform_image(double ms)
{
	BURN(ms);
}

void plugin_tick(double ms)
{
	transform_image(ms);
	STAY;
}

void plugin_scale(double ms)
{
	BURN(ms);
}
