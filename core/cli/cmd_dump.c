/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <dial9/error.h>

#include "base/time.h"
#include "cli/cmd.h"
#include "cli/dump_receipt.h"
#include "text/text.h"
#include "tool/args.h"
#include "watch/control.h"
#include "watch/dir_fault.h"


enum { OPT_TIMEOUT = 256, OPT_SHIPPED };

static const struct d9__opt opts[] = {
	{ 'l', "last", "DUR", "how far back, such as 30s [all that there is]" },
	{ 'o', "output", "DIR", "write below DIR [the trace directory of the process]" },
	{ OPT_TIMEOUT, "timeout", "DUR", "how long to wait for it [60s]" },
	{ OPT_SHIPPED, "shipped", NULL, "wait until dial9 ship has stored it, and print its key" },
	{ 0, NULL, NULL, NULL },
};

static const struct d9__usage usage = {
	.command = "dump",
	.synopsis = "[OPTIONS] PID",
	.text = "Make process PID keep the last seconds: in flight mode write what its ring holds\n"
		"of them to a segment, else bring the segments that hold them to DIR.  Prints\n"
		"where they are.\n"
		"Exit status: 0 done; 1 nothing was recorded then, or it could not be done;\n"
		"2 bad usage.\n",
	.opts = opts,
};

struct options {
	uint64_t last_ns, timeout_ns;
	const char *dir;
	bool shipped;
};

/* The process has another working directory.  False: too long. */
static bool make_absolute(const char *dir, char out[D9__RING_DIR])
{
	char cwd[PATH_MAX];
	int n;

	if (!dir)
		n = snprintf(out, D9__RING_DIR, "%s", "");
	else if (dir[0] == '/')
		n = snprintf(out, D9__RING_DIR, "%s", dir);
	else if (getcwd(cwd, sizeof(cwd)))
		n = snprintf(out, D9__RING_DIR, "%s/%s", cwd, dir);
	else
		return false;
	return n >= 0 && n < D9__RING_DIR;
}

/* The answer is copied to |*out|: the process goes on to own the original. */
static int ask(struct d9__control *control, const struct options *options, const char *dir,
	       struct d9__ring_dump *out)
{
	struct d9__ring_control *words = control->words;
	uint32_t before = atomic_load(&words->dump_requested);
	/*
	 * Wait until an earlier request is answered, because its requester may not have waited for
	 * it.
	 */
	int status = d9__control_await(control, &words->dump_done, before, options->timeout_ns);

	if (status)
		return status;
	words->dump_last_ns = options->last_ns;
	snprintf(words->dump_dir, sizeof(words->dump_dir), "%s", dir);
	/* release: the process that reads the new number also reads the two words above */
	atomic_store_explicit(&words->dump_requested, before + 1, memory_order_release);
	d9__control_wake(control);
	status = d9__control_await(control, &words->dump_done, before + 1, options->timeout_ns);
	*out = words->dump;
	out->path[sizeof(out->path) - 1] = '\0';
	return status;
}

static int print(const struct options *options, const struct d9__control *control, const char *dir,
		 const struct d9__ring_dump *dump)
{
	static struct d9__text_out out;
	char size[D9__SIZE_LEN], span[D9__DURATION_LEN], fault[D9__DIR_FAULT_LEN];
	int status;

	if (dump->err && dump->path[0])
		return d9__control_cannot_write(control, dump->path, dump->err);
	if (dump->err) {
		d9__cmd_fail("dump", "process %d could not write%s%s: %s%s", (int)control->pid,
			     dir[0] ? " to " : "", dir,
			     d9_strerror(dump->err),
			     d9__dir_fault(fault, control->pid, dir, control->view.header.boot_id, D9__DIR_DUMP,
					   dump->err));
		return D9__EXIT_FINDING;
	}
	if (!dump->path[0]) {
		d9__cmd_fail("dump", "nothing was recorded%s",
			     options->last_ns ? " in that time" : "");
		return D9__EXIT_FINDING;
	}
	d9__text_init(&out, STDOUT_FILENO);
	d9__text_escaped(&out, dump->path, strlen(dump->path));
	d9__text_char(&out, '\n');
	status = d9__text_finish(&out, "dump");
	d9__text_init(&out, STDERR_FILENO);
	if (dump->events)
		d9__text_printf(&out, "dial9: %" PRIu64 " events of the last %s", dump->events,
				d9__duration_text(dump->to_ns - dump->from_ns, span));
	else
		d9__text_printf(&out, "dial9: %" PRIu32 " segment%s", dump->segments,
				dump->segments == 1 ? "" : "s");
	d9__text_printf(&out, ", %s%s; see: dial9 report ", d9__size_text(dump->bytes, size),
			dump->complete ? "" : ", some lost");
	d9__text_escaped(&out, dump->path, strlen(dump->path));
	d9__text_char(&out, '\n');
	d9__text_finish(&out, "dump");
	return status;
}

static int run(const struct options *options, const char *pid)
{
	struct d9__control control;
	struct d9__ring_dump dump;
	char dir[D9__RING_DIR];
	int status;

	if (options->dir && !*options->dir)
		return d9__cmd_fail("dump", "--output wants a directory, not ''");
	if (!make_absolute(options->dir, dir))
		return d9__cmd_fail("dump", "%s: %s", options->dir, strerror(ENAMETOOLONG));
	status = d9__control_open(&control, "dump", pid);
	if (status)
		return status;
	status = d9__control_take_turn(&control, &control.words->dump_owner, options->timeout_ns);
	if (!status) {
		status = ask(&control, options, dir, &dump);
		d9__control_end_turn(&control.words->dump_owner);
	}
	if (!status)
		status = print(options, &control, dir, &dump);
	d9__control_close(&control);
	if (!status && options->shipped)
		status = d9__dump_receipt(dump.path, options->timeout_ns);
	return status;
}

/* To the recorder, 0 is all that there is. */
static bool set_last(const struct d9__args *args, struct options *options)
{
	if (!d9__args_duration_ns(args, &options->last_ns))
		return false;
	if (!options->last_ns)
		d9__cmd_fail("dump", "--last %s is no time at all; leave it out for all that there is", args->value);
	return options->last_ns;
}

int d9__cmd_dump(int argc, char **argv)
{
	struct d9__args args = { .usage = &usage, .argc = argc, .argv = argv };
	struct options options = { .timeout_ns = 60 * D9__SECOND_NS };
	int key;

	while ((key = d9__args_next(&args)) > 0) {
		if (key == 'l' && !set_last(&args, &options))
			return D9__EXIT_USAGE;
		if (key == OPT_TIMEOUT && !d9__args_duration_ns(&args, &options.timeout_ns))
			return D9__EXIT_USAGE;
		if (key == OPT_SHIPPED)
			options.shipped = true;
		if (key == 'o')
			options.dir = args.value;
	}
	if (key < 0)
		return d9__args_exit(key);
	if (args.first + 1 != argc)
		return d9__cmd_fail("dump", "which PID? see dial9 dump --help");
	return run(&options, argv[args.first]);
}
