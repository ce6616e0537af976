/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server that computes for 30 % of the time, and comes under a limit while it runs: it joins the
 * cgroup whose file of processes is named.
 *
 *	quota [FILE]
 */
#include <stdio.h>

#include "burn.h"
#include "loop.h"

static const char *group;

ON_TIMER(on_request, arg)
{
	(void)arg;
	BURN(3);
}

ON_TIMER(join, arg)
{
	FILE *file = group ? fopen(group, "w") : NULL;

	(void)arg;
	if (group && (!file || fprintf(file, "0\n") < 0 || fclose(file)))
		exit(77);
	group = NULL;
}

int main(int argc, char **argv)
{
	loop_t *loop = loop_new();

	group = argc > 1 ? argv[1] : NULL;
	loop_every(loop, 0.01, on_request, NULL);
	loop_every(loop, 0.5, join, NULL);
	loop_run(loop, 2);
	return 0;
}
