/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "cli/ship/ship_service.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include <dial9/error.h>

#include "base/time.h"
#include "cli/cmd.h"
#include "cli/segment_summary.h"
#include "cli/ship/notify.h"
#include "stage/program.h"
#include "text/units.h"
#include "tool/args.h"
#include "watch/recover_dir.h"

#define HOUR_NS		(3600 * D9__SECOND_NS)
#define MIB		(UINT64_C(1) << 20)
#define USUAL_BUDGET	(1024 * MIB) /* of a recorder */
#define BUDGETS		4	     /* that dead processes may leave */
#define MUCH		50	     /* per cent of a budget */
#define TOO_MUCH	80
#define LONGEST_WAIT_NS (20 * D9__SECOND_NS) /* hold files have to be touched before */

/* Requests from signal handlers; |interrupted|, set by each of them, makes the shipper return. */
static volatile sig_atomic_t ends, reloads, interrupted;

static void on_signal(int signal)
{
	if (signal == SIGHUP)
		reloads = 1;
	else
		ends = 1;
	interrupted = 1;
}

/* ---- looking ---- */

int d9__ship_service_look(struct d9__ship_service *ship)
{
	struct d9__ship_tree empty = { .tell = ship->tree.tell, .context = ship->tree.context };
	int err = 0;

	d9__ship_tree_release(&ship->tree);
	ship->tree = empty;
	for (char **path = ship->paths; *path && !err; path++) {
		err = d9__ship_tree_add(&ship->tree, *path);
		if (err && !ship->absent)
			d9__cmd_fail("ship", "%s: %s", *path, d9_strerror(err));
	}
	ship->absent = err != 0;
	return err;
}

static void watch_all(struct d9__ship_service *ship)
{
	d9__ship_hold_take(&ship->hold, &ship->tree);
	d9__ship_watch_add(&ship->watch, &ship->tree);
	for (char **path = ship->paths; *path; path++)
		d9__ship_watch_directory(&ship->watch, *path);
}

/* ---- what waits ---- */

/* Return the disk budget of a recorder, from the variable that the recorder reads, too. */
static uint64_t budget(void)
{
	const char *text = getenv("DIAL9_MAX_DISK_USAGE_MB");
	uint64_t n;

	return text && d9__parse_u64(text, &n) && n && n < UINT64_MAX / MIB ? n * MIB : USUAL_BUDGET;
}

static uint64_t bytes_of(const struct d9__ship_process *process)
{
	uint64_t bytes = 0;
	struct stat st;

	for (size_t i = 0; i < process->n_segments; i++)
		if (!lstat(process->segments[i].path, &st))
			bytes += (uint64_t)st.st_size;
	return bytes;
}

/* The process with most to send, and how much that is. */
static const struct d9__ship_process *furthest_behind(const struct d9__ship_tree *tree, uint64_t *bytes)
{
	const struct d9__ship_process *most = NULL;

	*bytes = 0;
	for (size_t i = 0; i < tree->n; i++) {
		uint64_t its = bytes_of(&tree->processes[i]);

		if (its > *bytes) {
			*bytes = its;
			most = &tree->processes[i];
		}
	}
	return most;
}

/* Of the stages those that nothing may leave without. */
static void keep_few(struct d9__ship_service *ship)
{
	ship->few = ship->options.stages;
	ship->few.n = 0;
	ship->few.tables = false;
	for (size_t i = 0; i < ship->options.stages.n; i++)
		if (ship->options.stages.items[i].kind == D9__STAGE_REDACT)
			ship->few.items[ship->few.n++] = ship->options.stages.items[i];
	ship->shipper.what.stages = &ship->few;
}

/*
 * If a process's backlog fills much of its recorder's budget, warn; if more, send without stages
 * but redact, before the recorder removes segments that were not sent.
 */
static void weigh_backlog(struct d9__ship_service *ship)
{
	uint64_t bytes, percent;
	const struct d9__ship_process *process = furthest_behind(&ship->tree, &bytes);
	bool few = ship->shipper.what.stages == &ship->few;

	percent = bytes * 100 / budget();
	if (percent < TOO_MUCH)
		ship->shipper.what.stages = &ship->options.stages;
	else
		keep_few(ship);
	if (percent < MUCH || (ship->told_ns && d9__mono_ns() - ship->told_ns < HOUR_NS &&
			       (few || percent < TOO_MUCH)))
		return;
	ship->told_ns = d9__mono_ns();
	d9__cmd_fail("ship", "%s: %s wait, %" PRIu64 " %% of what a recorder keeps before it removes the oldest%s", process->path,
		     d9__units_bytes(bytes).text, percent,
		     percent >= TOO_MUCH ? "; they go without stages but redact until that is less" : "");
}

/* ---- those that are dead ---- */

static void recover(const struct d9__ship_service *ship)
{
	for (char **path = ship->paths; *path; path++)
		d9__recover_dir("ship", *path);
}

static void make_room(struct d9__ship_service *ship)
{
	uint64_t most = ship->options.max_disk ? ship->options.max_disk : BUDGETS * budget(), before = ship->dead.evicted_bytes;
	size_t n = d9__ship_dead_make_room(&ship->dead, &ship->tree, most);

	if (n)
		d9__cmd_fail("ship", "%zu segment%s of dead processes, %s, %s removed unsent: --max-disk is %s", n, n == 1 ? "" : "s",
			     d9__units_bytes(ship->dead.evicted_bytes - before).text, n == 1 ? "was" : "were",
			     d9__units_bytes(most).text);
}

/* ---- signals, and a file of configuration ---- */

volatile sig_atomic_t *d9__ship_service_signals(void)
{
	struct sigaction action = { .sa_handler = on_signal };

	/*
	 * Install our handlers after the guard's, because a stage's running program is waited for,
	 * as uploads are.
	 */
	d9__program_guard();
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	return &ends;
}

void d9__ship_service_prepare(struct d9__ship_service *ship)
{
	struct sigaction action = { .sa_handler = on_signal };

	ship->shipper.what = ship->options.what;
	ship->shipper.what.stages = &ship->options.stages;
	ship->shipper.what.any_owner = ship->keeps;
	ship->shipper.what.explained = ship->options.explain ? &ship->explained : NULL;
	ship->shipper.what.summarise = ship->options.raw ? NULL : d9__segment_summary_to_stdout;
	ship->shipper.parallel = ship->options.parallel;
	ship->shipper.stop = &interrupted;
	d9__ship_service_signals();
	if (ship->options.config && !ship->options.once)
		sigaction(SIGHUP, &action, NULL);
}

/* With options that were read and are good. */
static int change(struct d9__ship_service *ship, struct d9__ship_options *options)
{
	struct d9__bucket *bucket;
	char why[512];

	if (d9__bucket_start(&options->store, &bucket, why, sizeof(why)))
		return d9__cmd_fail("ship", "%s: %s", options->to, why);
	d9__bucket_free(ship->shipper.bucket);
	ship->shipper.bucket = bucket;
	options->stages.symbolize = ship->options.stages.symbolize;
	options->stages.tell = ship->options.stages.tell;
	options->stages.pulse = ship->options.stages.pulse;
	options->stages.context = ship;
	d9__ship_options_release(&ship->options);
	ship->options = *options;
	ship->shipper.breaker = (struct d9__breaker) { 0 };
	ship->shipper.told[0] = '\0';
	d9__ship_service_prepare(ship);
	return 0;
}

static void reload(struct d9__ship_service *ship)
{
	struct d9__ship_options options;
	int status = d9__ship_options_read(&options, ship->argc, ship->argv) < 0;

	reloads = 0;
	if (!status)
		status = d9__ship_options_check(&options);
	options.once = options.what.dry_run = options.explain = false;
	if (!status)
		status = change(ship, &options);
	if (!status) {
		d9__cmd_fail("ship", "the configuration was read again");
		return;
	}
	d9__ship_options_release(&options);
	d9__cmd_fail("ship", "the configuration stays as it was");
}

/* ---- the loop ---- */

static void feed(struct d9__ship_service *ship, uint64_t now)
{
	if (!ship->watchdog_ns || now - ship->fed_ns < ship->watchdog_ns / 4)
		return;
	ship->fed_ns = now;
	d9__notify("WATCHDOG=1");
}

/*
 * Called while the shipper runs.  A shipper that waits for a failing store returns for the look
 * that is due.
 */
static void pulse(void *context)
{
	struct d9__ship_service *ship = context;
	uint64_t now = d9__mono_ns();

	feed(ship, now);
	d9__ship_hold_touch(&ship->hold, now);
	if (now >= ship->look_ns && ship->shipper.breaker.failures && !d9__bucket_outstanding(ship->shipper.bucket))
		interrupted = 1;
}

/* Block signals up to the wait itself, so that none is missed between the test and the wait. */
static void wait_for_more(struct d9__ship_service *ship)
{
	uint64_t now = d9__mono_ns(), until = ship->look_ns;
	sigset_t all, before;

	if (until > now + LONGEST_WAIT_NS)
		until = now + LONGEST_WAIT_NS;
	if (ship->watchdog_ns && until > now + ship->watchdog_ns / 3)
		until = now + ship->watchdog_ns / 3;
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, &before);
	if (!interrupted)
		d9__ship_watch_wait(&ship->watch, until, &before);
	sigprocmask(SIG_SETMASK, &before, NULL);
}

/* The look at all, from time to time. */
static void look_at_all(struct d9__ship_service *ship)
{
	uint64_t now = d9__mono_ns();

	ship->look_ns = now + ship->options.every_ns;
	if (d9__ship_dead_look(&ship->dead, &ship->tree, now, ship->options.every_ns)) {
		recover(ship);
		d9__ship_service_look(ship);
	}
	weigh_backlog(ship);
}

static int ship_once(struct d9__ship_service *ship, bool all)
{
	int err;

	watch_all(ship);
	if (all)
		look_at_all(ship);
	interrupted = ends;
	ship->shipper.left = 0;
	err = d9__shipper_run(&ship->shipper, &ship->tree);
	/*
	 * Without a signal to end, clear the deadline: a return for a look does not end anything.
	 */
	if (!ends) {
		ship->shipper.deadline_ns = 0;
		ship->shipper.over = false;
	}
	/* One that was broken off has not seen everything. */
	if (!interrupted)
		d9__told_looked(&ship->told);
	interrupted = ends || reloads;
	if (all)
		make_room(ship);
	if (all && !ship->options.keep_empty)
		d9__ship_dead_remove_empty(&ship->dead, &ship->tree);
	return err;
}

int d9__ship_service_run(struct d9__ship_service *ship)
{
	int err;

	ship->watchdog_ns = d9__notify_watchdog_ns();
	ship->shipper.pulse = ship->options.stages.pulse = pulse;
	ship->options.stages.context = ship;
	d9__ship_watch_open(&ship->watch);
	d9__notify("READY=1");
	err = ship_once(ship, true);
	while (!err && !ends) {
		wait_for_more(ship);
		feed(ship, d9__mono_ns());
		d9__ship_hold_touch(&ship->hold, d9__mono_ns());
		if (reloads)
			reload(ship);
		if (!ends && d9__ship_service_look(ship))
			ship->look_ns = d9__mono_ns() + ship->options.every_ns;
		else if (!ends)
			err = ship_once(ship, d9__mono_ns() >= ship->look_ns);
	}
	d9__notify("STOPPING=1");
	return err;
}

void d9__ship_service_release(struct d9__ship_service *ship)
{
	if (ship->shipper.bucket)
		d9__bucket_free(ship->shipper.bucket);
	d9__ship_watch_close(&ship->watch);
	d9__ship_dead_release(&ship->dead);
	d9__told_release(&ship->told);
	d9__explained_release(&ship->explained);
	d9__ship_hold_release(&ship->hold);
	d9__ship_tree_release(&ship->tree);
	d9__ship_options_release(&ship->options);
}
