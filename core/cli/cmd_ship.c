/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `dial9 ship`: send sealed segments and dumps to an object store and remove them here once the
 * store has confirmed them.
 */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <time.h>

#include <dial9/error.h>

#include "base/time.h"
#include "cli/cmd.h"
#include "cli/cmd_symbolize.h"
#include "cli/ship/ship_options.h"
#include "cli/ship/ship_rings.h"
#include "cli/ship/ship_service.h"
#include "cli/ship/ship_status.h"
#include "ship/shipper.h"
#include "text/units.h"
#include "tool/args.h"
#include "watch/recover_dir.h"

#define GIVE_UP	  4 /* failures in a row of a store that is asked once */

/* ---- what is told ---- */

/* Print what is wrong with |path|, or with the store; of a path only once, because the service looks again and again. */
static void tell(void *context, const char *path, const char *what)
{
	struct d9__ship_service *ship = context;
	char *line;

	if (asprintf(&line, "%s: %s", path ? path : ship->options.to, what) < 0) {
		d9__cmd_fail("ship", "%s", what);
		return;
	}
	if (!path || d9__told_news(&ship->told, line))
		d9__cmd_fail("ship", "%s", line);
	free(line);
}

static void tell_stage(void *context, const char *path, const char *stage, const char *what)
{
	char *line;

	if (asprintf(&line, "%s%s%s%s", stage ? "stage '" : "", stage ? stage : "", stage ? "': " : "", what) < 0) {
		tell(context, path, what);
		return;
	}
	tell(context, path, line);
	free(line);
}

static void show(void *context, const char *key, uint64_t bytes)
{
	const struct d9__ship_service *ship = context;

	(void)bytes;
	if (ship->shipper.what.dry_run && !ship->options.explain)
		puts(key);
}

static void print_part(size_t n, const char *what)
{
	if (n)
		printf(", %s %s", d9__units_count(n).text, what);
}

static int sum_up(const struct d9__ship_service *ship)
{
	const struct d9__shipper *shipper = &ship->shipper;

	if (!shipper->what.dry_run) {
		printf("%s segment%s stored, %s", d9__units_count(shipper->stored).text, shipper->stored == 1 ? "" : "s",
		       d9__units_bytes(shipper->bytes).text);
		print_part(shipper->dumps, shipper->dumps == 1 ? "dump" : "dumps");
		print_part(shipper->hours, shipper->hours == 1 ? "hour" : "hours");
		print_part(shipper->dropped, "dropped by a stage");
		print_part(shipper->taken, "in use by another process, or gone");
		print_part(shipper->refused, "refused");
		print_part(shipper->failed, "failed");
		print_part(shipper->left, "left for another time");
		print_part(ship->dead.evicted, "of dead processes removed unsent");
		putchar('\n');
	}
	return shipper->left || shipper->failed || shipper->refused || ship->tree.n_refused ? D9__EXIT_FINDING : D9__EXIT_OK;
}

/* ---- one time, or on and on ---- */

static int run_once(struct d9__ship_service *ship)
{
	int err;

	if (!ship->shipper.what.dry_run && !ship->keeps)
		d9__ship_hold_take(&ship->hold, &ship->tree);
	err = d9__shipper_run(&ship->shipper, &ship->tree);
	if (ship->options.explain)
		d9__explained_print(&ship->explained, stdout);
	return err ? d9__cmd_fail("ship", "%s", d9_strerror(err)) : sum_up(ship);
}

static int run_on(struct d9__ship_service *ship)
{
	int err = d9__ship_service_run(ship);

	if (err)
		return d9__cmd_fail("ship", "%s", d9_strerror(err));
	sum_up(ship);
	return D9__EXIT_OK;
}

static int run_tree(struct d9__ship_service *ship)
{
	bool dry = ship->options.what.dry_run;
	char why[512];

	if (!dry && d9__bucket_start(&ship->options.store, &ship->shipper.bucket, why, sizeof(why)))
		return d9__cmd_fail("ship", "%s: %s", ship->options.to, why);
	return dry || ship->options.once ? run_once(ship) : run_on(ship);
}

/* ---- from where ---- */

static int take_paths(struct d9__ship_service *ship, char **paths)
{
	size_t n_files = 0, n = 0;
	struct stat st;
	int status;

	for (; paths[n]; n++) {
		bool is_file = !stat(paths[n], &st) && !S_ISDIR(st.st_mode);

		n_files += is_file;
		if (!is_file && !ship->options.status && !ship->options.what.dry_run)
			d9__recover_dir("ship", paths[n]);
	}
	ship->paths = paths;
	ship->tree.tell = tell;
	ship->tree.context = ship;
	status = d9__ship_service_look(ship) ? D9__EXIT_USAGE : D9__EXIT_OK;
	if (!status && n_files && n_files < n)
		status = d9__cmd_fail("ship", "name directories, or files to keep, not both");
	ship->keeps = n_files > 0;
	ship->options.once |= n_files > 0;
	return status;
}

/* ---- a link ---- */

static int print_link(struct d9__ship_service *ship)
{
	const struct d9__ship_options *options = &ship->options;
	const struct d9__bucket_answer *answer;
	char why[512];
	int status = d9__ship_options_take_to(&ship->options);

	if (status)
		return status;
	if (options->expires_ns < D9__SECOND_NS || options->expires_ns > 7 * 86400 * D9__SECOND_NS)
		return d9__cmd_fail("ship", "--expires is 1s to 168h");
	if (d9__bucket_start(&options->store, &ship->shipper.bucket, why, sizeof(why)))
		return d9__cmd_fail("ship", "%s: %s", options->to, why);
	if (d9__bucket_presign(ship->shipper.bucket, 0, options->link,
			       (unsigned)(options->expires_ns / D9__SECOND_NS)) ||
	    d9__bucket_wait(ship->shipper.bucket, -1, &answer) != 1)
		return d9__cmd_fail("ship", "--link '%s': no object has such a key", options->link);
	if (answer->class != D9__BUCKET_DONE) {
		d9__cmd_fail("ship", "%s: %s", options->to, answer->message);
		return D9__EXIT_FINDING;
	}
	puts(answer->url);
	return D9__EXIT_OK;
}

/* ---- where rings say ---- */

static int run(struct d9__ship_service *ship, char **paths);

/* In a process of its own. */
static int run_target(void *context, const char *to, char **paths, uint64_t deadline_ns)
{
	struct d9__ship_service *ship = context;

	ship->options.to = to;
	ship->options.deadline_ns = deadline_ns;
	ship->options.from_rings = false;
	ship->options.once = true;
	return run(ship, paths);
}

static int run_rings(struct d9__ship_service *ship, char **dirs)
{
	const struct d9__ship_options *options = &ship->options;
	const struct d9__ship_rings how = { .dirs = dirs,
					    .every_ns = options->every_ns,
					    .deadline_ns = options->deadline_ns,
					    .once = options->once || options->deadline_ns || options->what.dry_run,
					    .dry_run = options->what.dry_run,
					    .ship = run_target,
					    .context = ship,
					    .stop = d9__ship_service_signals() };

	if ((options->to && !options->named) || options->status)
		return d9__cmd_fail("ship", "--from-rings and --%s exclude each other", options->status ? "status" : "to");
	return d9__ship_rings(&how);
}

/* ---- the command ---- */

static int run(struct d9__ship_service *ship, char **paths)
{
	int status;

	if (ship->options.link)
		return *paths ? d9__cmd_fail("ship", "--link prints an address, and ships nothing: leave out %s", *paths) :
				print_link(ship);
	if (ship->options.from_rings)
		return run_rings(ship, paths);
	if (!*paths)
		return d9__cmd_fail("ship", "name a trace directory, or files; see dial9 help ship");
	status = take_paths(ship, paths);
	if (status || ship->options.status)
		return status ? status : d9__ship_status(&ship->tree, ship->options.json);
	status = d9__ship_options_check(&ship->options);
	if (status)
		return status;
	ship->options.stages.symbolize = d9__symbolize_to_stdout;
	ship->options.stages.tell = tell_stage;
	ship->options.stages.context = ship;
	ship->shipper.tell = tell;
	ship->shipper.show = show;
	ship->shipper.context = ship;
	ship->shipper.give_up = ship->options.once ? GIVE_UP : 0;
	if (ship->options.deadline_ns)
		ship->shipper.deadline_ns = d9__mono_ns() + ship->options.deadline_ns;
	d9__ship_service_prepare(ship);
	return run_tree(ship);
}

int d9__cmd_ship(int argc, char **argv)
{
	struct d9__ship_service ship = { .argc = argc, .argv = argv, .watch.fd = -1 };
	int first, status;

	/*
	 * Do this first: it makes /proc/PID/environ, which can hold keys, unreadable for this
	 * user's other processes.
	 */
	prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	first = d9__ship_options_read(&ship.options, argc, argv);
	status = first < 0 ? d9__args_exit(first) : run(&ship, argv + first);
	d9__ship_service_release(&ship);
	return status;
}
