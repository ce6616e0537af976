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
	.command = "disable",
	.synopsis = "PID",
	.text = "Switch recording off in process PID: its hooks stay and record nothing.\n"
		"Exit status: 0 it is off; 1 there is no recorder, it may not be asked, or gives\n"
		"no answer.\n",
	.opts = opts,
};

int d9__cmd_disable(int argc, char **argv)
{
	return d9__control_command(argc, argv, &usage, 2);
}
