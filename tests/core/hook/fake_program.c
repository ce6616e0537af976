/* SPDX-License-Identifier: Apache-2.0 */
/* Calls the fake loop library directly, through a pointer in data and through a table. */
#include <stdio.h>

#include "core/hook/fake_loop.h"

static int (*const table[])(int) = { loop_run };
int (*pointer)(int) = loop_run;

int main(void)
{
	int (*volatile address)(int) = loop_run;

	/* Its address must stay what it is for the program: all of them lead to the hook or none. */
	printf("%d %d %d %d\n", loop_run(4), pointer(4), table[0](4), address(4));
	return 0;
}
