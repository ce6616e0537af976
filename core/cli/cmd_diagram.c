/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "cli/cmd.h"
#include "cli/diagram/task_life.h"
#include "cli/diagram/task_life_svg.h"
#include "tool/args.h"

static const struct d9__opt opts[] = {
	{ 't', "task", "ID", "of the task ID" },
	{ 's', "span", "ID", "of the span ID" },
	{ 'o', "output", "FILE", "write there and not to standard output" },
	{ 0, NULL, NULL, NULL },
};

static const struct d9__usage usage = {
	.command = "diagram",
	.synopsis = "--task ID|--span ID [-o FILE.svg] TRACE...",
	.text = "Draw the life of one task or span, to scale: when it was busy, what happened\n"
		"inside, who woke it, and how long it was ready before it ran.\n",
	.opts = opts,
};

static int write_diagram(const struct d9__task_life *life, const char *path)
{
	FILE *out = path ? fopen(path, "we") : stdout;
	int err;

	if (!out)
		return d9__cmd_fail("diagram", "%s: %s", path, strerror(errno));
	err = -d9__task_life_svg(life, out);
	if (fflush(out) || ferror(out))
		err = errno;
	if (path && fclose(out) && !err)
		err = errno;
	if (!err || (!path && err == EPIPE))
		return 0;
	return d9__cmd_fail("diagram", "%s: %s", path ? path : "standard output", strerror(err));
}

int d9__cmd_diagram(int argc, char **argv)
{
	struct d9__args args = { .usage = &usage, .argc = argc, .argv = argv };
	struct d9__task_life life = { .id = 0 };
	const char *output = NULL;
	int key, status, written = 0, n = 0;

	while ((key = d9__args_next(&args)) > 0) {
		if (key == 'o') {
			output = args.value;
			continue;
		}
		life.is_span = key == 's';
		n++;
		if (!d9__args_u64(&args, &life.id))
			return D9__EXIT_USAGE;
	}
	if (key < 0)
		return d9__args_exit(key);
	if (n != 1)
		return d9__cmd_fail("diagram", "of what? give one --task ID or --span ID");
	signal(SIGPIPE, SIG_IGN);
	status = d9__task_life_read(&life, "diagram", argv + args.first);
	if (life.name)
		written = write_diagram(&life, output);
	d9__task_life_release(&life);
	return written ? written : status;
}
