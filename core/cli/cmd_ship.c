/* SPDX-License-Identifier: Apache-2.0 */
/* Sealed segments and dumps to an object store; what is confirmed there goes here. */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include <dial9/error.h>

#include "analyze/units.h"
#include "cli/args.h"
#include "cli/cmd.h"
#include "cli/recover_dir.h"
#include "cli/segment_summary.h"
#include "cli/ship_rings.h"
#include "cli/ship_status.h"
#include "cli/text.h"
#include "ship/shipper.h"
#include "stage/program.h"

#define SECOND_NS UINT64_C(1000000000)
#define STEP_NS	  100000000L /* between two looks for a signal */
#define GIVE_UP	  4 /* failures in a row of a store that is asked once */

enum key {
	KEY_TO = 256,
	KEY_ENDPOINT,
	KEY_REGION,
	KEY_PROFILE,
	KEY_CA,
	KEY_ALLOW_HTTP,
	KEY_ONCE,
	KEY_DEADLINE,
	KEY_DRY_RUN,
	KEY_STATUS,
	KEY_JSON,
	KEY_SERVICE,
	KEY_INSTANCE,
	KEY_PARALLEL,
	KEY_STAGE,
	KEY_LINK,
	KEY_RAW,
	KEY_EVERY,
	KEY_EXPIRES,
	KEY_FROM_RINGS,
};

static const struct d9__opt opts[] = {
	{ KEY_TO, "to", "URL", "s3://BUCKET[/PREFIX], where objects go" },
	{ KEY_FROM_RINGS, "from-rings", NULL, "where recorders of this user say: DIAL9_S3_BUCKET" },
	{ KEY_ENDPOINT, "endpoint", "URL", "address of a store that is not AWS" },
	{ KEY_REGION, "region", "NAME", "of the bucket [environment, profile, asked of the bucket]" },
	{ KEY_PROFILE, "profile", "NAME", "of the AWS configuration files [AWS_PROFILE, default]" },
	{ KEY_CA, "ca", "FILE", "certificates to trust, PEM [AWS_CA_BUNDLE, the system's]" },
	{ KEY_ALLOW_HTTP, "allow-http", NULL, "plain http to other machines" },
	{ KEY_ONCE, "once", NULL, "what is sealed now, then end" },
	{ KEY_EVERY, "every", "DURATION", "without --once: how often to look [10s]" },
	{ KEY_DEADLINE, "deadline", "DURATION", "end then, whatever is left" },
	{ KEY_DRY_RUN, "dry-run", NULL, "print keys, send nothing" },
	{ KEY_LINK, "link", "KEY", "print an address by which KEY is fetched without credentials" },
	{ KEY_EXPIRES, "expires", "DURATION", "of --link, a week at most [1h]" },
	{ KEY_STATUS, "status", NULL, "what is stored, waits and was refused; sends nothing" },
	{ KEY_JSON, "json", NULL, "the status as JSON" },
	{ KEY_SERVICE, "service", "NAME", "in keys [as recorded]" },
	{ KEY_INSTANCE, "instance", "NAME", "in keys [the host's name]" },
	{ KEY_PARALLEL, "parallel", "N", "uploads at once, 1 to 16 [2]" },
	{ KEY_STAGE, "stage", "STAGE", "as in dial9 process; may be repeated [symbolize]" },
	{ KEY_RAW, "raw", NULL, "no stages: segments as they were recorded" },
	{ 0, NULL, NULL, NULL },
};

static const struct d9__usage usage = {
	.command = "ship",
	.synopsis = "--to s3://BUCKET[/PREFIX]|--from-rings [--once] DIR...",
	.text = "Send sealed segments and dumps to an object store.  DIR is a trace directory, or\n"
		"one that holds such; what the store has confirmed is removed from it.  Named\n"
		"files are sent and kept.  Without --once it goes on until SIGTERM.  Credentials\n"
		"are found as AWS programs find them.\n"
		"Exit status: 0 all is stored; 1 something is left, and a line tells why;\n"
		"2 bad usage.\n",
	.opts = opts,
};

struct ship {
	struct d9__shipper shipper;
	struct d9__bucket_options store;
	struct d9__stages stages;
	struct d9__ship_tree tree;
	const char *to, *link;
	char *bucket, *prefix; /* owned */
	bool once, status, json, raw, from_rings;
	uint64_t deadline_ns, every_ns, expires_ns;
	char **paths;
};

static volatile sig_atomic_t stop;

static void on_signal(int signal)
{
	(void)signal;
	stop = 1;
}

/* ---- what is told ---- */

static void tell(void *context, const char *path, const char *what)
{
	const struct ship *ship = context;

	d9__cmd_fail("ship", "%s: %s", path ? path : ship->to, what);
}

static void tell_stage(void *context, const char *path, const char *stage, const char *what)
{
	(void)context;
	if (stage)
		d9__cmd_fail("ship", "%s: stage '%s': %s", path, stage, what);
	else
		d9__cmd_fail("ship", "%s: %s", path, what);
}

static void show(void *context, const char *key, uint64_t bytes)
{
	const struct ship *ship = context;

	(void)bytes;
	if (ship->shipper.what.dry_run)
		puts(key);
}

static void print_part(size_t n, const char *what)
{
	if (n)
		printf(", %s %s", d9__units_count(n).text, what);
}

static int sum_up(const struct ship *ship)
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
		putchar('\n');
	}
	return shipper->left || shipper->failed || shipper->refused || ship->tree.n_refused ? D9__EXIT_FINDING : D9__EXIT_OK;
}

/* ---- where to ---- */

static int take_to(struct ship *ship)
{
	static const char scheme[] = "s3://";
	const char *at, *slash;
	size_t len;

	if (!ship->to)
		return d9__cmd_fail("ship", "say where to: --to s3://BUCKET/PREFIX; see dial9 help ship");
	at = ship->to + strlen(scheme);
	if (strncmp(ship->to, scheme, strlen(scheme)) || !*at || *at == '/')
		return d9__cmd_fail("ship", "--to is s3://BUCKET or s3://BUCKET/PREFIX, not '%s'", ship->to);
	slash = strchr(at, '/');
	ship->bucket = slash ? strndup(at, (size_t)(slash - at)) : strdup(at);
	ship->prefix = strdup(slash ? slash + 1 : "");
	if (!ship->bucket || !ship->prefix)
		return d9__cmd_fail("ship", "out of memory");
	len = strlen(ship->prefix);
	while (len && ship->prefix[len - 1] == '/')
		ship->prefix[--len] = '\0';
	if (len > 256 || ship->prefix[0] == '/' || strstr(ship->prefix, "//") ||
	    strspn(ship->prefix, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/=") != len)
		return d9__cmd_fail("ship", "--to: a prefix has parts of A-Z a-z 0-9 . _ - =, and 256 bytes at most, not '%s'",
				    ship->prefix);
	ship->shipper.what.prefix = ship->prefix;
	ship->store.bucket = ship->bucket;
	return 0;
}

/* ---- the command ---- */

static int add_paths(struct ship *ship)
{
	ship->tree.tell = tell;
	ship->tree.context = ship;
	for (char **path = ship->paths; *path; path++) {
		int err = d9__ship_tree_add(&ship->tree, *path);

		if (err)
			return d9__cmd_fail("ship", "%s: %s", *path, d9_strerror(err));
	}
	return 0;
}

/* Until the next look, or a signal. */
static void pause_until_next(const struct ship *ship)
{
	for (uint64_t slept_ns = 0; !stop && slept_ns < ship->every_ns; slept_ns += STEP_NS)
		nanosleep(&(struct timespec) { .tv_nsec = STEP_NS }, NULL);
}

static int look_again(struct ship *ship)
{
	d9__ship_tree_release(&ship->tree);
	return add_paths(ship);
}

static int run_rounds(struct ship *ship)
{
	int err = d9__shipper_run(&ship->shipper, &ship->tree);

	while (!err && !ship->once && !stop && !ship->shipper.what.dry_run) {
		pause_until_next(ship);
		ship->shipper.left = 0;
		if (!stop && !look_again(ship))
			err = d9__shipper_run(&ship->shipper, &ship->tree);
	}
	return err;
}

static int run_tree(struct ship *ship)
{
	char why[512];
	int err;

	if (!ship->shipper.what.dry_run) {
		err = d9__bucket_start(&ship->store, &ship->shipper.bucket, why, sizeof(why));
		if (err)
			return d9__cmd_fail("ship", "%s: %s", ship->to, why);
	}
	err = run_rounds(ship);
	if (ship->shipper.bucket)
		d9__bucket_free(ship->shipper.bucket);
	if (err)
		return d9__cmd_fail("ship", "%s", d9_strerror(err));
	err = sum_up(ship);
	return ship->once || ship->shipper.what.dry_run ? err : D9__EXIT_OK;
}

static int take_paths(struct ship *ship, char **paths)
{
	size_t n_files = 0, n = 0;
	struct stat st;
	int status;

	for (; paths[n]; n++) {
		bool is_file = !stat(paths[n], &st) && !S_ISDIR(st.st_mode);

		n_files += is_file;
		if (!is_file && !ship->status && !ship->shipper.what.dry_run)
			d9__recover_dir("ship", paths[n]);
	}
	ship->paths = paths;
	status = add_paths(ship);
	if (!status && n_files && n_files < n)
		status = d9__cmd_fail("ship", "name directories, or files to keep, not both");
	ship->shipper.what.any_owner = n_files > 0;
	ship->once |= n_files > 0;
	return status;
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

static int prepare(struct ship *ship)
{
	char why[512];

	if (!ship->raw && !ship->stages.n && d9__stages_add(&ship->stages, "symbolize", why, sizeof(why)))
		return d9__cmd_fail("ship", "out of memory");
	if (ship->raw && ship->stages.n)
		return d9__cmd_fail("ship", "--raw and --stage exclude each other");
	ship->stages.symbolize = d9__symbolize_to_stdout;
	ship->stages.tell = tell_stage;
	ship->shipper.what.stages = &ship->stages;
	ship->shipper.what.summarise = ship->raw ? NULL : d9__summary_to_stdout;
	ship->shipper.tell = tell;
	ship->shipper.show = show;
	ship->shipper.context = ship;
	ship->shipper.give_up = ship->once || ship->deadline_ns ? GIVE_UP : 0;
	ship->once |= ship->deadline_ns != 0;
	ship->shipper.stop = &stop;
	ship->store.parallel = ship->shipper.parallel;
	if (ship->deadline_ns)
		ship->shipper.deadline_ns = now_ns() + ship->deadline_ns;
	return 0;
}

/* ---- a link ---- */

static int print_link(struct ship *ship)
{
	const struct d9__bucket_answer *answer;
	char why[512];
	int status = take_to(ship);

	if (status)
		return status;
	if (ship->expires_ns < SECOND_NS || ship->expires_ns > 7 * 86400 * SECOND_NS)
		return d9__cmd_fail("ship", "--expires is 1s to 168h");
	if (d9__bucket_start(&ship->store, &ship->shipper.bucket, why, sizeof(why)))
		return d9__cmd_fail("ship", "%s: %s", ship->to, why);
	if (d9__bucket_presign(ship->shipper.bucket, 0, ship->link, (unsigned)(ship->expires_ns / SECOND_NS)) ||
	    d9__bucket_wait(ship->shipper.bucket, -1, &answer) != 1) {
		status = d9__cmd_fail("ship", "--link '%s': no object has such a key", ship->link);
	} else if (answer->class != D9__BUCKET_DONE) {
		d9__cmd_fail("ship", "%s: %s", ship->to, answer->message);
		status = D9__EXIT_FINDING;
	} else {
		puts(answer->url);
	}
	d9__bucket_free(ship->shipper.bucket);
	return status;
}

static int run(struct ship *ship, char **paths);

/* In a process of its own. */
static int run_target(void *context, const char *to, char **paths, uint64_t deadline_ns)
{
	struct ship *ship = context;

	ship->to = to;
	ship->deadline_ns = deadline_ns;
	ship->from_rings = false;
	ship->once = true;
	return run(ship, paths);
}

static int run_rings(struct ship *ship, char **dirs)
{
	const struct d9__ship_rings how = { .dirs = dirs,
					    .every_ns = ship->every_ns,
					    .deadline_ns = ship->deadline_ns,
					    .once = ship->once || ship->deadline_ns || ship->shipper.what.dry_run,
					    .dry_run = ship->shipper.what.dry_run,
					    .ship = run_target,
					    .context = ship,
					    .stop = &stop };
	struct sigaction action = { .sa_handler = on_signal };

	if (ship->to || ship->status)
		return d9__cmd_fail("ship", "--from-rings and --%s exclude each other", ship->to ? "to" : "status");
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	return d9__ship_rings(&how);
}

static int run(struct ship *ship, char **paths)
{
	struct sigaction action = { .sa_handler = on_signal };
	int status;

	if (ship->link)
		return *paths ? d9__cmd_fail("ship", "--link prints an address, and ships nothing: leave out %s", *paths) :
				print_link(ship);
	if (ship->from_rings)
		return run_rings(ship, paths);
	if (!*paths)
		return d9__cmd_fail("ship", "name a trace directory, or files; see dial9 help ship");
	status = take_paths(ship, paths);
	if (status || ship->status)
		return status ? status : d9__ship_status(&ship->tree, ship->json);
	status = take_to(ship);
	if (!status)
		status = prepare(ship);
	if (status)
		return status;
	/* Ours come last: a stage's program that runs is waited for, as uploads are. */
	d9__program_guard();
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	return run_tree(ship);
}

static bool take_parallel(const struct d9__args *args, unsigned *out)
{
	uint64_t n;

	if (!d9__args_u64(args, &n))
		return false;
	if (!n || n > D9__SHIPPER_PARALLEL_MAX) {
		d9__cmd_fail("ship", "--parallel is 1 to %d, not %s", D9__SHIPPER_PARALLEL_MAX, args->value);
		return false;
	}
	*out = (unsigned)n;
	return true;
}

static bool take_stage(const struct d9__args *args, struct d9__stages *stages)
{
	char why[512];
	int err = d9__stages_add(stages, args->value, why, sizeof(why));

	if (err)
		d9__cmd_fail("ship", "--stage: %s", err == -ENOMEM ? d9_strerror(err) : why);
	return !err;
}

static bool take_option(const struct d9__args *args, int key, struct ship *ship)
{
	const char **texts[] = { &ship->to, /* KEY_TO */
				 [KEY_ENDPOINT - KEY_TO] = &ship->store.endpoint,
				 [KEY_REGION - KEY_TO] = &ship->store.region,
				 [KEY_PROFILE - KEY_TO] = &ship->store.profile,
				 [KEY_CA - KEY_TO] = &ship->store.ca,
				 [KEY_SERVICE - KEY_TO] = &ship->shipper.what.service,
				 [KEY_INSTANCE - KEY_TO] = &ship->shipper.what.instance,
				 [KEY_LINK - KEY_TO] = &ship->link,
				 [KEY_FROM_RINGS - KEY_TO] = NULL };
	bool *flags[] = { [KEY_ALLOW_HTTP - KEY_TO] = &ship->store.allow_http,
			  [KEY_ONCE - KEY_TO] = &ship->once,
			  [KEY_DRY_RUN - KEY_TO] = &ship->shipper.what.dry_run,
			  [KEY_STATUS - KEY_TO] = &ship->status,
			  [KEY_JSON - KEY_TO] = &ship->json,
			  [KEY_RAW - KEY_TO] = &ship->raw,
			  [KEY_FROM_RINGS - KEY_TO] = &ship->from_rings };

	switch (key) {
	case KEY_DEADLINE:
		return d9__args_duration_ns(args, &ship->deadline_ns);
	case KEY_EXPIRES:
		return d9__args_duration_ns(args, &ship->expires_ns);
	case KEY_EVERY:
		return d9__args_duration_ns(args, &ship->every_ns);
	case KEY_PARALLEL:
		return take_parallel(args, &ship->shipper.parallel);
	case KEY_STAGE:
		return take_stage(args, &ship->stages);
	default:
		if (texts[key - KEY_TO])
			*texts[key - KEY_TO] = args->value;
		else
			*flags[key - KEY_TO] = true;
		return true;
	}
}

int d9__cmd_ship(int argc, char **argv)
{
	struct d9__args args = { .usage = &usage, .argc = argc, .argv = argv };
	struct ship ship = { .shipper.parallel = 2, .every_ns = 10 * SECOND_NS, .expires_ns = 3600 * SECOND_NS };
	int key, status = D9__EXIT_USAGE;

	d9__stages_init(&ship.stages);
	while ((key = d9__args_next(&args)) > 0)
		if (!take_option(&args, key, &ship))
			break;
	if (key < 0)
		status = d9__args_exit(key);
	else if (!key)
		status = run(&ship, argv + args.first);
	d9__ship_tree_release(&ship.tree);
	d9__stages_release(&ship.stages);
	free(ship.bucket);
	free(ship.prefix);
	return status;
}
