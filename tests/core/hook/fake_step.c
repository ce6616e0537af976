/* SPDX-License-Identifier: Apache-2.0 */
/* In a file and a frame of its own, so that no compiler binds the call at once, with LTO neither. */
#include "core/hook/fake_loop.h"

__attribute__((noinline)) int loop_step(int n)
{
	return n * 10;
}
