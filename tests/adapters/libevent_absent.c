/* SPDX-License-Identifier: Apache-2.0 */
/* A program that links the adapter, but no libevent: attach tells, and touches nothing. */

#include "config.h"

#include <errno.h>
#include <stdint.h>

#include <dial9/libevent.h>

int main(void)
{
	static uintptr_t object[64];

	return d9_event_base_attach((struct event_base *)(void *)object) != -ENOENT || object[0];
}
