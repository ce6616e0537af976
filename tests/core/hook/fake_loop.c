/* SPDX-License-Identifier: Apache-2.0 */
/* A loop library for the tests of hook/: calls itself and libc through its PLT. */
#include <unistd.h>

#include "core/hook/fake_loop.h"

int loop_run(int n)
{
	return loop_step(n) + 1;
}

int loop_parent(void)
{
	return (int)getppid();
}
