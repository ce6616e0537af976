/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <dial9/error.h>

#include "base/array.h"
#include "base/artefact.h"
#include "base/dir.h"
#include "base/directory.h"
#include "base/time.h"
#include "cli/cmd.h"
#include "ship/shipped.h"
#include "text/text.h"
#include "tool/args.h"
#include "watch/control.h"
#include "watch/dir_fault.h"

#define PAUSE_NS 200000000L /* between two looks */

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

/*
 * Make |dir| absolute, because the process has another working directory.  False: it is too long.
 */
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

/* Ask for a dump.  The answer is copied to |*out|, because the process still owns the original. */
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

/* ---- the receipt of a shipper ---- */

static int print_key(const char *key)
{
	static struct d9__text_out out;

	d9__text_init(&out, STDOUT_FILENO);
	d9__text_escaped(&out, key, strlen(key));
	d9__text_char(&out, '\n');
	return d9__text_finish(&out, "dump");
}

/* ---- segments that are waited for ---- */

/* In one folder. */
struct wanted {
	char *folder;
	uint64_t *indexes;
	size_t n;
};

static int add(struct wanted *wanted, uint64_t index)
{
	if (!d9__array_grow(wanted->indexes, wanted->n))
		return -ENOMEM;
	wanted->indexes[wanted->n++] = index;
	return 0;
}

/* Wait for each segment that is sealed in the folder now. */
static int add_all(struct wanted *wanted)
{
	struct d9__dir dir;
	const char *name;
	uint64_t index;
	int err = d9__dir_open(&dir, wanted->folder);

	if (err)
		return err;
	while (!err && (name = d9__dir_next(&dir)))
		if (d9__artefact_of(name, &index) == D9__ARTEFACT_SEGMENT)
			err = add(wanted, index);
	d9__dir_close(&dir);
	return err;
}

/*
 * Note the segments of the dump at |path|: the one it is, or in continuous mode those of its
 * folder.
 */
static int want(struct wanted *wanted, const char *path)
{
	const char *slash = strrchr(path, '/');
	struct stat st;
	uint64_t index;
	bool all = !stat(path, &st) && S_ISDIR(st.st_mode);

	if (!all && (!slash || d9__artefact_of(slash + 1, &index) != D9__ARTEFACT_SEGMENT))
		return -EINVAL;
	wanted->folder = all ? strdup(path) : strndup(path, (size_t)(slash - path));
	if (!wanted->folder)
		return -ENOMEM;
	return all ? add_all(wanted) : add(wanted, index);
}

static bool is_there(int dir, uint64_t index)
{
	struct d9__dir names;
	bool found = false;
	const char *name;
	uint64_t other;
	int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return false;
	d9__dir_of(&names, fd);
	while (!found && (name = d9__dir_next(&names)))
		found = d9__artefact_of(name, &other) == D9__ARTEFACT_SEGMENT && other == index;
	d9__dir_close(&names);
	return found;
}

/*
 * Print the keys of the segments that the shipper has stored, and wait for these no longer.  0;
 * -EAGAIN: it has not stored all of them yet; or an exit status.
 */
static int take_stored(struct wanted *wanted, int dir, const struct d9__shipped *shipped)
{
	size_t left = 0;

	for (size_t i = 0; i < wanted->n; i++) {
		const char *key = d9__shipped_key(shipped, wanted->indexes[i]);

		if (!key && !is_there(dir, wanted->indexes[i])) {
			d9__cmd_fail("dump",
				     "%s: segment %" PRIu64 " was removed before it was stored",
				     wanted->folder, wanted->indexes[i]);
			return D9__EXIT_FINDING;
		}
		if (!key)
			wanted->indexes[left++] = wanted->indexes[i];
		else if (print_key(key))
			return D9__EXIT_USAGE;
	}
	wanted->n = left;
	return left ? -EAGAIN : 0;
}

static int look(struct wanted *wanted)
{
	struct d9__shipped shipped = { 0 };
	int dir = d9__directory_open(wanted->folder, D9__DIRECTORY_ANY), err = dir < 0 ? dir : 0,
	    status;

	if (!err)
		err = d9__shipped_read(&shipped, dir);
	status = err ? d9__cmd_fail("dump", "%s: %s", wanted->folder, d9_strerror(err))
		     : take_stored(wanted, dir, &shipped);
	d9__shipped_release(&shipped);
	if (dir >= 0)
		close(dir);
	return status;
}

/*
 * Wait until the segment |path| is in the list of shipped ones, for |timeout_ns|, then print its
 * key.  Returns an exit status, with one line on stderr unless that is 0.
 */
static int await_receipt(const char *path, uint64_t timeout_ns)
{
	uint64_t until_ns = d9__mono_ns() + timeout_ns;
	struct wanted wanted = { .n = 0 };
	int status = want(&wanted, path);

	if (status)
		status = d9__cmd_fail("dump", "%s: %s", path, d9_strerror(status));
	else
		while ((status = look(&wanted)) == -EAGAIN && d9__mono_ns() < until_ns)
			nanosleep(&(struct timespec) { .tv_nsec = PAUSE_NS }, NULL);
	if (status == -EAGAIN) {
		d9__cmd_fail(
			"dump",
			"%s: no shipper has stored it in that time; it stays; see dial9 help ship",
			path);
		status = D9__EXIT_FINDING;
	}
	free(wanted.folder);
	free(wanted.indexes);
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
		status = await_receipt(dump.path, options->timeout_ns);
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
