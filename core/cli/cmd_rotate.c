/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stddef.h>

#include "cli/cmd.h"
#include "tool/args.h"
#include "watch/control.h"

static const struct d9__opt opts[] = {
	{ 0, NULL, NULL, NULL },
};

static const struct d9__usage usage = {
	.command = "rotate",
	.synopsis = "PID",
	.text = "Seal the segment that process PID is writing, with all that was recorded so far.\n"
		"Exit status: 0 it is sealed; 1 there is no recorder, it may not be asked, gives\n"
		"no answer, or cannot write; or it is in flight mode, which has no segments.\n",
	.opts = opts,
};

int d9__cmd_rotate(int argc, char **argv)
{
	return d9__control_command(argc, argv, &usage, 0);
}
