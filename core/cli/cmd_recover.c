/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <dial9/error.h>

#include "cli/cmd.h"
#include "text/text.h"
#include "tool/args.h"
#include "watch/recover_users.h"

enum { OPT_JSON = 256, OPT_DISCARD };

static const struct d9__opt opts[] = {
	{ 'a', "all", NULL, "of all your programs, each into its own trace directory (root: -o)" },
	{ 'o', "output", "DIR", "with --all: into directories below DIR" },
	{ OPT_DISCARD, "discard", NULL, "remove what is left instead, without writing it" },
	{ OPT_JSON, "json", NULL, "one JSON object per process" },
	{ 0, NULL, NULL, NULL },
};

static const struct d9__usage usage = {
	.command = "recover",
	.synopsis = "[--json] [--discard] DIR|--all [-o DIR]",
	.text = "Write what killed programs had recorded and not yet written into their traces\n"
		"below DIR, the trace directory, and complete the segments they left open.\n"
		"Exit status: 0 done, or nothing to do; 1 something could not be recovered;\n"
		"2 bad usage.\n",
	.opts = opts,
};

static const char *error_text(int err)
{
	switch (err) {
	case -EPROTONOSUPPORT:
		return "the ring is of another version of dial9";
	case -EBADMSG:
		return "the ring is damaged";
	}
	return strerror(-err);
}

static void print_json(struct d9__text_out *out, const struct d9__recovered *found)
{
	d9__text_string(out, "{\"dir\":");
	d9__text_json(out, found->dir, strlen(found->dir));
	d9__text_string(out, ",\"service\":");
	d9__text_json(out, found->service, strlen(found->service));
	d9__text_printf(out, ",\"pid\":%" PRIu32 ",\"ring\":%s,\"sealed\":%s,\"events\":%" PRIu64
			",\"lost\":%" PRIu64 ",\"bad_batches\":%" PRIu32, found->pid,
			found->ring ? "true" : "false", found->sealed ? "true" : "false",
			found->events, found->lost, found->bad);
	if (found->bytes)
		d9__text_printf(out, ",\"discarded_bytes\":%" PRIu64, found->bytes);
	d9__text_string(out, ",\"error\":");
	if (found->err)
		d9__text_json(out, error_text(found->err), strlen(error_text(found->err)));
	else
		d9__text_string(out, "null");
	d9__text_string(out, "}\n");
}

static void print_line(struct d9__text_out *out, const struct d9__recovered *found)
{
	char size[D9__SIZE_LEN];

	if (found->err)
		return;
	d9__text_escaped(out, found->dir, strlen(found->dir));
	if (found->bytes) {
		d9__text_printf(out, ": removed, %s; ", d9__size_text(found->bytes, size));
		d9__text_escaped(out, found->service, strlen(found->service));
		d9__text_printf(out, ", process %" PRIu32 "\n", found->pid);
	} else if (found->ring) {
		d9__text_printf(out, ": %" PRIu64 " events recovered", found->events);
		if (found->lost)
			d9__text_printf(out, ", %" PRIu64 " lost", found->lost);
		if (found->bad)
			d9__text_printf(out, ", %" PRIu32 " damaged batches left out", found->bad);
		d9__text_string(out, "; ");
		d9__text_escaped(out, found->service, strlen(found->service));
		d9__text_printf(out, ", process %" PRIu32 "\n", found->pid);
	} else {
		d9__text_string(out, ": its last segment was completed\n");
	}
}

struct options {
	const char *dir, *into; /* NULL: all; where each ring says */
	bool json, discard;
};

static int recover(const struct options *options)
{
	unsigned flags = options->discard ? D9__RECOVER_DISCARD : D9__RECOVER_OTHERS;
	struct d9__recover_users users;
	struct d9__recovered found;
	struct d9__text_out out;
	int status = D9__EXIT_OK, err = d9__recover_users_begin(&users, options->dir, options->into, flags);
	char why[D9__RECOVER_WHY_LEN];

	if (err == -EINVAL && !options->dir)
		return d9__cmd_fail("recover", "--all as root: where to? with -o DIR; what a ring says itself, "
				    "some other user may have written");
	if (err)
		return d9__cmd_fail("recover", "%s: %s", options->into ? options->into :
				    options->dir ? options->dir : "/dev/shm", strerror(-err));
	d9__text_init(&out, STDOUT_FILENO);
	while (d9__recover_users_next(&users, &found) == 1) {
		if (options->json)
			print_json(&out, &found);
		else
			print_line(&out, &found);
		if (found.err) {
			d9__cmd_fail("recover", "%s: cannot %s: %s%s", found.dir,
				     options->discard ? "remove" : found.op ? found.op : "recover",
				     error_text(found.err), d9__recover_why(why, &found));
			status = D9__EXIT_FINDING;
		}
	}
	d9__recover_users_end(&users);
	err = d9__text_finish(&out, "recover");
	return err ? err : status;
}

static int explain(const struct options *options, bool all, int operands)
{
	struct stat st;

	if (all && operands)
		return d9__cmd_fail("recover", "a DIR, or --all; see dial9 recover --help");
	if (options->into && (!all || options->discard))
		return d9__cmd_fail("recover", "-o goes with --all, and not with --discard");
	if (all)
		return 0;
	if (operands != 1)
		return d9__cmd_fail("recover", "which DIR? see dial9 recover --help");
	if (stat(options->dir, &st))
		return d9__cmd_fail("recover", "%s: %s", options->dir, strerror(errno));
	if (!S_ISDIR(st.st_mode))
		return d9__cmd_fail("recover", "%s: %s", options->dir, strerror(ENOTDIR));
	return 0;
}

int d9__cmd_recover(int argc, char **argv)
{
	struct d9__args args = { .usage = &usage, .argc = argc, .argv = argv };
	struct options options = { 0 };
	bool all = false;
	int key, wrong;

	while ((key = d9__args_next(&args)) > 0) {
		switch (key) {
		case 'a':
			all = true;
			break;
		case 'o':
			options.into = args.value;
			break;
		case OPT_DISCARD:
			options.discard = true;
			break;
		default:
			options.json = true;
		}
	}
	if (key < 0)
		return d9__args_exit(key);
	if (args.first < argc)
		options.dir = argv[args.first];
	wrong = explain(&options, all, argc - args.first);
	return wrong ? wrong : recover(&options);
}
