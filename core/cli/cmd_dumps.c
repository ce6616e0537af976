/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/cmd.h"
#include "cli/dump_list.h"
#include "read/folder.h"
#include "text/text.h"
#include "tool/args.h"

static const struct d9__opt opts[] = {
	{ 'j', "json", NULL, "print one JSON object" },
	{ 0, NULL, NULL, NULL },
};

static const struct d9__usage usage = {
	.command = "dumps",
	.synopsis = "[OPTIONS] DIR...",
	.text = "List the dumps that triggers made below DIR, the latest last: when which one\n"
		"fired, at what value, how large the dump is, whether all of it is there.\n"
		"See one: dial9 report DIR/BOOT_ID/dump.ID.json\n",
	.opts = opts,
};

static int gather(struct d9__dump_list *list, char **paths)
{
	for (; *paths; paths++) {
		int err = d9__dump_list_add(list, *paths);

		if (err == -EFBIG)
			return d9__cmd_fail("dumps", "%s: more than %d folders; give one of them", *paths, D9__FOLDER_MAX);
		if (err)
			return d9__cmd_fail("dumps", "%s: %s", *paths, strerror(-err));
	}
	return D9__EXIT_OK;
}

/* A closed pipe is not an error, because its reader may have seen enough. */
static int print_json(const struct d9__dump_list *list)
{
	d9__dump_list_json(list);
	if ((fflush(stdout) == 0 && !ferror(stdout)) || errno == EPIPE)
		return D9__EXIT_OK;
	return d9__cmd_fail("dumps", "cannot write: %s", strerror(errno));
}

static int print_text(const struct d9__dump_list *list, char **paths)
{
	static struct d9__text_out out;

	d9__text_init(&out, STDOUT_FILENO);
	if (list->n)
		d9__dump_list_text(&out, list);
	for (; *paths && !list->n && !list->n_broken; paths++) {
		d9__text_string(&out, "no dumps in ");
		d9__text_escaped(&out, *paths, strlen(*paths));
		d9__text_char(&out, '\n');
	}
	return d9__text_finish(&out, "dumps");
}

static int run(char **paths, bool json)
{
	struct d9__dump_list list = { 0 };
	int status = gather(&list, paths);

	if (!status)
		status = json ? print_json(&list) : print_text(&list, paths);
	for (size_t i = 0; i < list.n_broken; i++)
		status = d9__cmd_fail("dumps", "%s: no manifest of a dump: %s", list.broken[i].path, list.broken[i].why);
	d9__dump_list_release(&list);
	return status;
}

int d9__cmd_dumps(int argc, char **argv)
{
	struct d9__args args = { .usage = &usage, .argc = argc, .argv = argv };
	bool json = false;
	int key;

	while ((key = d9__args_next(&args)) > 0)
		json = true;
	if (key < 0)
		return d9__args_exit(key);
	if (args.first == argc)
		return d9__cmd_fail("dumps", "which DIR? see dial9 dumps --help");
	signal(SIGPIPE, SIG_IGN);
	return run(argv + args.first, json);
}
