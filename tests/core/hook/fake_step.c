/* SPDX-License-Identifier: Apache-2.0 */
/* In a file of its own, so that no compiler binds the call at once. */
#include "core/hook/fake_loop.h"

int loop_step(int n)
{
	return n * 10;
}
