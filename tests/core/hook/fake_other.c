/* SPDX-License-Identifier: Apache-2.0 */
/* Another library that defines one of the loop library's names. */
#include "core/hook/fake_loop.h"

int loop_run(int n)
{
	return 1000 + n;
}
