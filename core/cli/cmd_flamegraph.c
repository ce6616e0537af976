/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "cli/cmd.h"
#include "export/flame_svg.h"
#include "export/profile_export.h"
#include "tool/args.h"

static const struct d9__opt opts[] = {
	{ 'o', "output", "FILE", "write to FILE, - for standard output; needed" },
	D9__PROFILE_OPTS,
	{ 0, NULL, NULL, NULL },
};

static const struct d9__usage usage = {
	.command = "flamegraph",
	.synopsis = "[OPTIONS] -o FILE.svg TRACE...",
	.text = "Draw where a program computed, or what --kind says, by its samples: a box for\n"
		"each function, above the one that called it, as wide as it has samples.  In a\n"
		"browser: click to zoom, Ctrl-F to search.\n",
	.opts = opts,
};

int d9__cmd_flamegraph(int argc, char **argv)
{
	struct d9__args args = { .usage = &usage, .argc = argc, .argv = argv };
	struct d9__profile_target target = { .write = d9__flame_svg };
	struct d9__profile_options options;
	int key;

	d9__profile_options_init(&options);
	while ((key = d9__args_next(&args)) > 0) {
		if (key == 'o')
			target.path = args.value;
		else if (!d9__profile_options_take(&options, &args, key))
			return D9__EXIT_USAGE;
	}
	if (key < 0)
		return d9__args_exit(key);
	if (!target.path)
		return d9__cmd_fail("flamegraph", "where to? give -o FILE.svg, - for standard output");
	return d9__profile_export("flamegraph", argv + args.first, &options, &target);
}
