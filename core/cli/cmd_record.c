/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/time.h"
#include "base/trigger_file.h"
#include "base/trigger_text.h"
#include "base/utf8.h"
#include "cli/cmd.h"
#include "cli/on_dump.h"
#include "cli/preload_path.h"
#include "cli/run/followers.h"
#include "cli/run/record_began.h"
#include "cli/run/record_cause.h"
#include "cli/run/record_child.h"
#include "cli/run/record_dir.h"
#include "cli/run/record_directory_helper.h"
#include "cli/run/record_line.h"
#include "cli/run/record_repack.h"
#include "cli/run/record_result.h"
#include "cli/run/record_ship.h"
#include "cli/trigger_names.h"
#include "symbol/elf_program.h"
#include "text/text.h"
#include "tool/args.h"
#include "watch/recover_users.h"

#define CPU_HZ_MAX 1000
#define HOUR_MS	   3600000
#define SHIP_NS	   (10 * D9__SECOND_NS)

#define MEMORY_MEAN	(UINT64_C(512) << 10) /* bytes between samples */
#define MEMORY_MEAN_MAX (UINT64_C(1) << 40)

/* The exit statuses of shells for a CMD that cannot be run. */
enum { EXIT_NOT_EXECUTABLE = 126, EXIT_NOT_FOUND = 127 };

enum {
	OPT_NAME = 256,
	OPT_MAX_TOTAL,
	OPT_MAX_DUMPS,
	OPT_ROTATE,
	OPT_COMPRESS,
	OPT_CPU,
	OPT_TASK_DUMPS,
	OPT_ACCEPT_QUEUES,
	OPT_QUEUE_INTERVAL,
	OPT_CPU_THREADS,
	OPT_CPU_BACKEND,
	OPT_OFF_CPU,
	OPT_PROFILE_ONLY,
	OPT_MEMORY,
	OPT_NO_BLOCKING,
	OPT_NO_IO,
	OPT_LOG_BRIDGE,
	OPT_NO_FOLLOW,
	OPT_REPORT,
	OPT_REQUIRE,
	OPT_EXEC,
	OPT_START_DISABLED,
	OPT_FLIGHT,
	OPT_TRIGGER,
	OPT_ON_DUMP,
	OPT_SHIP,
	OPT_SHIP_OPTIONS,
	OPT_SHIP_DEADLINE
};

static const struct d9__opt opts[] = {
	{ 'o', "output", "DIR", "write the trace below DIR [" D9__RECORD_DIR "]" },
	{ OPT_NAME, "name", "NAME", "service name in the trace [the program's name]" },
	{ OPT_MAX_TOTAL, "max-total", "SIZE", "keep at most SIZE on disk, such as 500M [1G]" },
	{ OPT_MAX_DUMPS, "max-dumps", "SIZE", "keep at most SIZE of dumps beside that [a fifth of it]" },
	{ OPT_ROTATE, "rotate", "DUR", "begin a new segment after DUR, whole seconds [60s]" },
	{ OPT_COMPRESS, "compress", "FORMAT", "zstd, gzip or none [zstd]" },
	{ OPT_CPU, "cpu", "HZ", "sample the stacks of loop threads HZ times per second of CPU time, or off [99]" },
	{ OPT_TASK_DUMPS, "task-dumps", "[=MS]",
	  "record where idle tasks wait, those idle for MS milliseconds by a chance of 63 % [10]" },
	{ OPT_ACCEPT_QUEUES, "accept-queues", "[=MS]",
	  "record every MS milliseconds how many connections wait at listening sockets [400]" },
	{ OPT_QUEUE_INTERVAL, "queue-interval", "MS",
	  "record every MS milliseconds what waits for loops [100]" },
	{ OPT_CPU_THREADS, "cpu-threads", "WHICH", "sample these threads: loop or all [loop]" },
	{ OPT_CPU_BACKEND, "cpu-backend", "WHAT", "sample by timer, perf, perf-thread or auto [auto]" },
	{ OPT_OFF_CPU, "off-cpu", NULL, "sample where threads leave the CPU: 100 ms in 10 s" },
	{ OPT_PROFILE_ONLY, "profile-only", NULL,
	  "sample all threads of any program, and record no loop" },
	{ OPT_MEMORY, "memory", "[=BYTES]",
	  "sample allocations, one in BYTES bytes on average [512K], and their frees" },
	{ OPT_NO_BLOCKING, "no-blocking", NULL, "do not time the calls of callbacks that can block" },
	{ OPT_NO_IO, "no-io", NULL, "do not count what came of reads, writes and accepts" },
	{ OPT_LOG_BRIDGE, "log-bridge", "LEVEL",
	  "record what loop libraries log: error, warning, info, debug" },
	{ OPT_NO_FOLLOW, "no-follow", NULL, "do not record the programs that CMD starts" },
	{ OPT_FLIGHT, "flight", NULL, "record into memory, and write nothing but dumps" },
	{ OPT_TRIGGER, "trigger", "TEXT", "dump when this happens, such as 'poll > 50ms'; may be given again" },
	{ OPT_ON_DUMP, "on-dump", "COMMAND",
	  "run it, without a shell, with the manifest of each dump; may be given again" },
	{ OPT_SHIP, "ship", "[=URL]", "send what is sealed to s3://BUCKET/PREFIX [DIAL9_S3_BUCKET]: dial9 ship" },
	{ OPT_SHIP_OPTIONS, "ship-options", "TEXT", "more options of dial9 ship, such as '--endpoint URL'" },
	{ OPT_SHIP_DEADLINE, "ship-deadline", "DUR", "how long to send once CMD has ended [10s]" },
	{ OPT_START_DISABLED, "start-disabled", NULL,
	  "record nothing until `dial9 enable PID` says so" },
	{ OPT_EXEC, "exec", NULL, "become CMD instead of waiting for it; no final line" },
	{ OPT_REPORT, "report", NULL, "print the report when CMD has ended" },
	{ 'q', "quiet", NULL, "no final line" },
	{ OPT_REQUIRE, "require", NULL,
	  "exit with 1 if nothing was recorded and CMD exits with 0" },
	{ 0, NULL, NULL, NULL },
};

static const struct d9__usage usage = {
	.command = "record",
	.synopsis = "[OPTIONS] [--] CMD [ARGUMENTS]",
	.text = "Run CMD and record every event loop in it and in the programs it starts.\n"
		"The exit status is CMD's; 126, 127: CMD could not be run; 2: dial9 could not\n"
		"start.\n",
	.opts = opts,
	.stop_at_operand = true,
};

struct options {
	const char *dir, *name; /* NULL: not given */
	const char *compress, *log_bridge, *cpu, *task_dumps, *accept_queues, *queue_interval,
		*cpu_threads, *cpu_backend; /* NULL: not given */
	char max_total[24], max_dumps[24]; /* MiB; empty: not given */
	char rotate[24];      /* seconds */
	char memory[24];      /* bytes; empty: not given */
	char triggers[PATH_MAX]; /* separated by ; */
	char *resolved;		 /* the same with function names replaced by addresses; owned */
	struct d9__on_dump_commands on_dump;
	struct d9__record_ship ship;
	bool quiet, require, no_follow, report, exec, start_disabled, flight, off_cpu, profile_only;
	bool no_blocking, no_io;
};

/* The libraries to load into CMD. */
struct libraries {
	char *preload, *memory; /* owned; the latter NULL unless allocations are to be sampled */
};

/* ---- environment ---- */

/* environ with our variables in the place of old ones of the same name. */
struct environment {
	char **list;
	size_t n;
	char *owned[30];
	size_t n_owned;
};

static int put_variable(struct environment *env, const char *name, const char *value)
{
	size_t len = strlen(name), i = 0;
	char *text;

	if (asprintf(&text, "%s=%s", name, value) < 0)
		return -ENOMEM;
	while (i < env->n && (strncmp(env->list[i], name, len) != 0 || env->list[i][len] != '='))
		i++;
	env->list[i] = text;
	env->n += i == env->n;
	env->owned[env->n_owned++] = text;
	return 0;
}

/* Remove a variable of another `dial9 record`, which is not for this trace. */
static void remove_variable(struct environment *env, const char *name)
{
	size_t len = strlen(name), kept = 0;

	for (size_t i = 0; i < env->n; i++)
		if (strncmp(env->list[i], name, len) != 0 || env->list[i][len] != '=')
			env->list[kept++] = env->list[i];
	env->n = kept;
	env->list[kept] = NULL;
}

/*
 * Put our libraries first, because other preloaded libraries then lie between us and the loop or
 * allocator, as they do without us.
 */
static int put_preload(struct environment *env, const struct libraries *libraries)
{
	const char *others = getenv("LD_PRELOAD");
	char *value;
	int err;

	if (asprintf(&value, "%s%s%s%s%s", libraries->preload, libraries->memory ? ":" : "",
		     libraries->memory ? libraries->memory : "", others && *others ? ":" : "", others ? others : "") < 0)
		return -ENOMEM;
	err = put_variable(env, "LD_PRELOAD", value);
	free(value);
	return err;
}

/* Enable a source if |value| is not NULL; a |value| that is not empty sets its number. */
static int put_source(struct environment *env, const char *value, const char *enabled, const char *number)
{
	int err = value ? put_variable(env, enabled, "true") : 0;

	return err || !value || !value[0] ? err : put_variable(env, number, value);
}

/* Samples of allocations are asked for. */
static int put_memory(struct environment *env, const char *mean_bytes)
{
	int err = put_variable(env, "DIAL9_MEMORY_PROFILE_ENABLED", "true");

	if (!err)
		err = put_variable(env, "DIAL9_MEMORY_SAMPLE_RATE_BYTES", mean_bytes);
	return err ? err : put_variable(env, "DIAL9_MEMORY_TRACK_LIVESET", "true");
}

/* Write the options into the environment variables that the recorder reads. */
static int put_settings(struct environment *env, const struct options *options)
{
	bool cpu_off = options->cpu && !strcmp(options->cpu, "off");
	const struct {
		const char *name, *value; /* NULL or empty: not told */
	} settings[] = {
		/* `dial9 record` asks for recording; the other variables only decide how. */
		{ "DIAL9_ENABLED", options->start_disabled ? "false" : "true" },
		{ "DIAL9_SERVICE_NAME", options->name },
		{ "DIAL9_MAX_DISK_USAGE_MB", options->max_total },
		{ "DIAL9_MAX_DUMPS_MB", options->max_dumps },
		{ "DIAL9_ROTATION_SECS", options->rotate },
		{ "DIAL9_COMPRESS", options->compress },
		{ cpu_off ? "DIAL9_CPU_PROFILE_ENABLED" : "DIAL9_CPU_SAMPLE_HZ", options->cpu },
		{ "DIAL9_CPU_PROFILE_THREADS",
		  options->profile_only ? "all" : options->cpu_threads },
		{ "DIAL9_CPU_BACKEND", options->cpu_backend },
		{ "DIAL9_QUEUE_SAMPLE_INTERVAL_MS", options->queue_interval },
		{ "DIAL9_SCHEDULE_PROFILE_ENABLED", options->off_cpu ? "true" : NULL },
		{ "DIAL9_LOOP_INSTRUMENTATION_ENABLED", options->profile_only ? "false" : NULL },
		{ "DIAL9_BLOCKING_CALLS_ENABLED", options->no_blocking ? "false" : NULL },
		{ "DIAL9_IO_ENABLED", options->no_io ? "false" : NULL },
		{ "DIAL9_LOG_BRIDGE", options->log_bridge },
		{ "DIAL9_MODE", options->flight ? "flight" : NULL },
		{ "DIAL9_TRIGGERS", options->resolved },
		/* The preload library reads it, and takes itself and DIAL9_* out before main(). */
		{ "DIAL9_FOLLOW", options->no_follow ? "0" : NULL },
	};
	int err = 0;

	for (size_t i = 0; !err && i < sizeof(settings) / sizeof(settings[0]); i++)
		if (settings[i].value && settings[i].value[0])
			err = put_variable(env, settings[i].name, settings[i].value);
	return err;
}

static int put_sources(struct environment *env, const struct options *options)
{
	int err = put_source(env, options->task_dumps, "DIAL9_TASK_DUMP_ENABLED", "DIAL9_TASK_DUMP_IDLE_THRESHOLD_MS");

	if (!err)
		err = put_source(env, options->accept_queues, "DIAL9_SOCKET_ACCEPT_QUEUES_ENABLED",
				 "DIAL9_SOCKET_ACCEPT_QUEUES_SAMPLE_INTERVAL_MS");
	return err || !options->memory[0] ? err : put_memory(env, options->memory);
}

/* Copy this process's environment into new memory, with room for more variables. */
static int copy_environment(struct environment *env)
{
	size_t n = 0;

	while (environ[n])
		n++;
	env->list = calloc(n + sizeof(env->owned) / sizeof(env->owned[0]) + 1, sizeof(*env->list));
	if (!env->list)
		return -ENOMEM;
	memcpy(env->list, environ, n * sizeof(*env->list));
	env->n = n;
	return 0;
}

static int make_environment(const struct options *options, const char *command, const char *dir,
			    const char *directory_helper, const struct libraries *libraries, struct environment *env)
{
	char path[PATH_MAX];
	int err = copy_environment(env);

	if (err)
		return err;
	remove_variable(env, D9__DIRECTORY_HELPER_VARIABLE);
	if (!d9__preload_is_harmful(d9__preload_judge(command, path, sizeof(path))))
		err = put_preload(env, libraries);
	if (!err)
		err = put_variable(env, "DIAL9_TRACE_DIR", dir);
	if (!err && directory_helper[0])
		err = put_variable(env, D9__DIRECTORY_HELPER_VARIABLE, directory_helper);
	if (!err)
		err = put_settings(env, options);
	return err ? err : put_sources(env, options);
}

static void release_environment(struct environment *env)
{
	for (size_t i = 0; i < env->n_owned; i++)
		free(env->owned[i]);
	free(env->list);
}

/* ---- what came of it ---- */

/*
 * Recover root's rings of processes that ended before, because no other recorder does so.  Errors
 * are ignored here: recover_rest() meets them again and tells them.
 */
static void recover_before(const char *dir)
{
	struct d9__recover_users users;
	struct d9__recovered unused;

	if (geteuid() || d9__recover_users_begin(&users, dir, NULL, 0))
		return;
	while (d9__recover_users_next(&users, &unused) == 1)
		;
	d9__recover_users_end(&users);
}

/*
 * Recover the rings of CMD and of programs that it started, if one was killed or could not write.
 */
static void recover_rest(const char *dir, struct d9__record_line *line)
{
	struct d9__recover_users users;
	struct d9__recovered found;
	char why[D9__RECOVER_WHY_LEN];

	if (d9__recover_users_begin(&users, dir, NULL, 0))
		return;
	while (d9__recover_users_next(&users, &found) == 1) {
		if (found.err)
			d9__cmd_fail("record", "%s: cannot recover what was not written: %s%s", found.dir,
				     strerror(-found.err), d9__recover_why(why, &found));
		else
			line->recovered = true;
		if (found.err && found.ring)
			line->unwritten++;
	}
	d9__recover_users_end(&users);
}

/*
 * Print the report behind CMD's own output, as `dial9 report` does; the trace is complete, and
 * Ctrl-C ends it.
 */
static void report(const struct d9__record_result *result)
{
	char **argv = calloc(result->processes + 3, sizeof(*argv));
	size_t n = 0;

	if (!argv) {
		d9__cmd_fail("record", "no memory for the report");
		return;
	}
	argv[n++] = (char[]) { "report" };
	argv[n++] = (char[]) { "--" };
	for (size_t i = 0; i < result->processes; i++)
		argv[n++] = result->paths[i];
	d9__record_child_give_signals_back();
	d9__cmd_report((int)n, argv);
	free(argv);
}

/* Print the summary.  Returns D9__EXIT_FINDING if nothing was recorded and --require was given. */
static int conclude(struct options *options, char **argv, struct d9__record_dir *dir, const struct stat *st,
		    const struct d9__namespaces *before, int watch, int wait_status, struct d9__on_dump *on_dump,
		    struct d9__on_dump_outcome *outcome)
{
	const char *triggers = getenv("DIAL9_TRIGGERS");
	struct d9__record_result result;
	struct d9__record_line line = {
		.argv = argv, .dir = dir, .result = &result, .wait_status = wait_status,
		.start_disabled = options->start_disabled, .profile_only = options->profile_only, .follows = !options->no_follow,
		.only_dumps = d9__record_began(watch) && (options->flight || d9__record_is_flight()),
		.gone = d9__record_dir_is_gone(dir, st),
		.triggers = options->resolved[0] || (triggers && triggers[0]),
	};
	bool nothing;
	int err;

	d9__failure_take(dir->path, &line.failure);
	line.follower = d9__followers_of_dir(dir->path);
	recover_rest(dir->path, &line);
	d9__on_dump_end(on_dump, outcome);
	d9__record_ship_end(&options->ship, before, &line.shipped);
	d9__record_repack(dir->path, before);
	if (line.unwritten)
		dir->made = false; /* keep it for the processes that still record */
	err = d9__record_result_collect(dir->path, before, &result);
	if (err) {
		d9__cmd_fail("record", "%s: %s", dir->path, strerror(-err));
		return options->require ? D9__EXIT_FINDING : 0;
	}
	nothing = d9__record_result_is_empty(&result) && !line.shipped.stored;
	if (options->report && result.processes && !nothing)
		report(&result);
	if (!options->quiet || line.shipped.left || line.shipped.dumps_left)
		d9__record_line(&line);
	d9__record_result_release(&result);
	return nothing && !result.living && options->require ? D9__EXIT_FINDING : 0;
}

/* ---- the command ---- */

static int find_libraries(const struct options *options, struct libraries *libraries)
{
	int err = d9__preload_path(&libraries->preload);

	if (!err && options->memory[0])
		err = d9__preload_memory_path(libraries->preload, &libraries->memory);
	return err;
}

static void release_libraries(struct libraries *libraries)
{
	free(libraries->preload);
	free(libraries->memory);
}

static int explain_preload(const struct libraries *libraries, int err)
{
	if (libraries->preload)
		return d9__cmd_fail("record", "cannot find libdial9-memory.so, which --memory needs, beside %s; install dial9 "
				    "completely", libraries->preload);
	if (err == -EINVAL)
		return d9__cmd_fail("record",
				    "the path of libdial9-preload.so has a space or colon, "
				    "which LD_PRELOAD cannot hold; move it");
	return d9__cmd_fail("record", "cannot find libdial9-preload.so in " PKGLIBDIR
				      "; install dial9 completely or set DIAL9_PRELOAD");
}

static int explain_exec(const char *command, int err)
{
	d9__cmd_fail("record", "%s: %s", command,
		     err == -ENOENT && !strchr(command, '/') ? "command not found"
							     : strerror(-err));
	return err == -ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE;
}

/* Run CMD, or become it.  Its status is in |*wait_status| if 0. */
static int run(const struct options *options, char **argv, char **env, int *wait_status)
{
	if (!options->exec)
		return d9__record_child_run(argv, env, wait_status);
	execvpe(argv[0], argv, env);
	return -errno;
}

/* Run CMD with its trace below |dir|, an absolute path.  Returns 0 or -errno. */
static int run_recorded(const struct options *options, char **argv, const char *dir, const char *directory_helper,
			const struct libraries *libraries, int *wait_status)
{
	struct environment env = { 0 };
	int err = make_environment(options, argv[0], dir, directory_helper, libraries, &env);

	if (!err)
		err = run(options, argv, env.list, wait_status);
	release_environment(&env);
	return err;
}

/*
 * Run CMD without recording: without -o it must start even if no directory can be written.  Returns
 * as record() does.
 */
static int run_unrecorded(const struct options *options, char **argv, const struct d9__record_dir *place, int err,
			  int *wait_status, bool *ran)
{
	d9__cmd_fail("record", "nothing is recorded: %s: %s, and nothing can be written in $TMPDIR, /tmp or /dev/shm; "
		     "name a directory: -o DIR", place->path, d9__record_dir_fault(place, err));
	err = run(options, argv, environ, wait_status);
	*ran = !err;
	if (err)
		return explain_exec(argv[0], err);
	return options->require ? D9__EXIT_FINDING : 0;
}

/* CMD's end is in |*wait_status| and |*ran| true, or the result is an exit status. */
static int record(struct options *options, char **argv, int *wait_status, bool *ran)
{
	struct d9__namespaces before = { 0 };
	struct d9__record_dir place;
	struct d9__record_directory_helper directory_helper;
	struct libraries libraries = { NULL, NULL };
	struct d9__on_dump_outcome outcome;
	struct d9__on_dump *on_dump;
	struct stat st;
	char *dir = NULL;
	int err = find_libraries(options, &libraries), status, watch;

	if (err) {
		status = explain_preload(&libraries, err);
		release_libraries(&libraries);
		return status;
	}
	err = d9__record_dir_make(options->dir, &place);
	if (!err && !place.made)
		recover_before(place.path);
	if (!err)
		err = d9__namespaces_list(place.path, &before);
	dir = err ? NULL : realpath(place.path, NULL); /* CMD may change its directory */
	if (dir && !stat(dir, &st)) {
		d9__failure_take(dir, &(struct d9__failure){ .err = 0 }); /* an earlier run's */
		d9__record_directory_helper_begin(&directory_helper, dir, place.made);
		if (options->exec && place.made)
			d9__record_directory_helper_let_go(&directory_helper);
		watch = d9__record_began_watch(dir);
		d9__record_ship_begin(&options->ship, dir);
		on_dump = d9__on_dump_begin(&(struct d9__on_dump_plan){ &options->on_dump, dir, &before, D9__ON_DUMP_LIMIT_NS });
		err = run_recorded(options, argv, dir, directory_helper.text, &libraries, wait_status);
		*ran = !err;
		if (err)
			d9__on_dump_end(on_dump, &outcome);
		status = err ? explain_exec(argv[0], err)
			     : conclude(options, argv, &place, &st, &before, watch, *wait_status, on_dump, &outcome);
		d9__on_dump_tell(&outcome);
		/*
		 * Remove the trace directory if it is empty; else let the helper do so once no
		 * process can ask it any more.
		 */
		if (place.made && !d9__followers_remove_dir(dir))
			d9__record_directory_helper_let_go(&directory_helper);
		d9__record_directory_helper_end(&directory_helper);
	} else if (!options->dir) {
		status = run_unrecorded(options, argv, &place, err ? err : -errno, wait_status, ran);
	} else if (place.shared && err == -EPERM) {
		status = d9__cmd_fail("record", "%s: others may write to it, so no recorder would; "
				      "chmod go-w, or give another -o", place.path);
	} else {
		status = d9__cmd_fail("record", "%s: %s", place.path,
				      d9__record_dir_fault(&place, err ? err : -errno));
	}
	d9__namespaces_release(&before);
	free(dir);
	release_libraries(&libraries);
	return status;
}

/* True: |args| holds whole MiB, as DIAL9_MAX_DISK_USAGE_MB and DIAL9_MAX_DUMPS_MB take them. */
static bool take_size(const struct d9__args *args, char *out, size_t size)
{
	uint64_t bytes;

	if (!d9__args_bytes(args, &bytes))
		return false;
	if (bytes >> 20 == 0) {
		d9__cmd_fail("record", "--%s %s: at least 1M", args->name, args->value);
		return false;
	}
	snprintf(out, size, "%" PRIu64, bytes >> 20);
	return true;
}

/* True: |args| holds whole seconds, as DIAL9_ROTATION_SECS takes them. */
static bool take_period(const struct d9__args *args, char *out, size_t size)
{
	uint64_t ns;

	if (!d9__args_duration_ns(args, &ns))
		return false;
	if (ns == 0 || ns % D9__SECOND_NS) {
		d9__cmd_fail("record", "--rotate %s: whole seconds, at least 1s", args->value);
		return false;
	}
	snprintf(out, size, "%" PRIu64, ns / D9__SECOND_NS);
	return true;
}

/* One of |words| (NULL-ended), which |all| lists for the reader. */
static bool take_word(const struct d9__args *args, const char *option, const char *const *words,
		      const char *all, const char **out)
{
	for (; *words; words++) {
		if (!strcmp(args->value, *words)) {
			*out = *words;
			return true;
		}
	}
	d9__cmd_fail("record", "--%s %s: %s", option, args->value, all);
	return false;
}

static bool take_format(const struct d9__args *args, const char **out)
{
	static const char *const words[] = { "zstd", "gzip", "none", NULL };

	return take_word(args, "compress", words, "zstd, gzip or none", out);
}

/* True: |args| holds milliseconds.  Without a value, "" keeps the recorder's default. */
static bool take_ms(const struct d9__args *args, const char **out)
{
	uint64_t ms;

	*out = args->value ? args->value : "";
	if (!args->value || (d9__parse_u64(args->value, &ms) && ms >= 1 && ms <= HOUR_MS))
		return true;
	d9__cmd_fail("record", "--%s=%s: 1 to %d milliseconds", args->name, args->value, HOUR_MS);
	return false;
}

static bool take_cpu(const struct d9__args *args, const char **out)
{
	char *end;
	unsigned long hz = strtoul(args->value, &end, 10);

	*out = args->value;
	if (!strcmp(args->value, "off") || (!*end && args->value[0] >= '1' && args->value[0] <= '9' && hz <= CPU_HZ_MAX))
		return true;
	d9__cmd_fail("record", "--cpu %s: 1 to %d, or off", args->value, CPU_HZ_MAX);
	return false;
}

static bool take_cpu_threads(const struct d9__args *args, const char **out)
{
	static const char *const words[] = { "loop", "all", NULL };

	return take_word(args, "cpu-threads", words, "loop or all", out);
}

static bool take_cpu_backend(const struct d9__args *args, const char **out)
{
	static const char *const words[] = { "auto", "timer", "perf", "perf-thread", NULL };

	return take_word(args, "cpu-backend", words, "auto, timer, perf or perf-thread", out);
}

/* True: |args| holds bytes, or nothing, as DIAL9_MEMORY_SAMPLE_RATE_BYTES takes them. */
static bool take_memory(const struct d9__args *args, char *out, size_t size)
{
	uint64_t bytes = MEMORY_MEAN;

	if (args->value && !d9__args_bytes(args, &bytes))
		return false;
	if (!bytes || bytes > MEMORY_MEAN_MAX) {
		d9__cmd_fail("record", "--memory=%s: 1 to 1024G bytes", args->value);
		return false;
	}
	snprintf(out, size, "%" PRIu64, bytes);
	return true;
}

static bool take_log_level(const struct d9__args *args, const char **out)
{
	static const char *const words[] = { "error", "warning", "info", "debug", "off", NULL };

	return take_word(args, "log-bridge", words, "error, warning, info, debug or off", out);
}

/* Triggers as they are given, or as they stand in a file. */
struct trigger_list {
	const char *text, *file; /* NULL: in none */
};

static void refuse_trigger(const struct trigger_list *list, const char *one, size_t len, const struct d9__trigger_fault *fault)
{
	uint32_t before, line = d9__trigger_line(list->text, one, &before);

	if (list->file)
		d9__cmd_fail("record", "%s, line %u, column %u: %s", list->file, line, before + fault->column, fault->text);
	else
		d9__cmd_fail("record", "--trigger '%.*s', column %u: %s", d9__precision(len), one, fault->column, fault->text);
}

/* Append a trigger to those given before. */
static bool add_trigger(const struct trigger_list *list, const char *one, size_t len, char *out, size_t size)
{
	struct d9__trigger_fault fault;
	struct d9__trigger trigger;
	size_t used = strlen(out);

	if (!d9__trigger_parse_names(one, len, &trigger, &fault)) {
		refuse_trigger(list, one, len, &fault);
		return false;
	}
	if ((size_t)snprintf(out + used, size - used, "%s%.*s", used ? ";" : "", d9__precision(len), one) >= size - used) {
		d9__cmd_fail("record", "--trigger: all of them are longer than %zu bytes", size - 1);
		return false;
	}
	return true;
}

static bool add_trigger_file(const char *path, char *out, size_t size)
{
	struct trigger_list list = { .file = path };
	const char *at, *one;
	size_t len, used = strlen(out);
	char *text;
	int err = d9__trigger_file_read(path, &text);
	bool fine = true;

	if (err) {
		d9__cmd_fail("record", "--trigger: %s: %s", path, d9__trigger_file_fault(err));
		return false;
	}
	for (list.text = at = text; fine && d9__trigger_next(&at, &one, &len);)
		fine = add_trigger(&list, one, len, out, size);
	free(text);
	if (fine && strlen(out) == used)
		fine = !d9__cmd_fail("record", "--trigger: %s has no trigger", path);
	return fine;
}

static bool take_trigger(const struct d9__args *args, char *out, size_t size)
{
	const struct trigger_list list = { .text = args->value };
	const char *at = args->value, *one;
	char path[PATH_MAX];
	bool fine = true;
	size_t len;
	int n = 0;

	for (; fine && d9__trigger_next(&at, &one, &len); n++)
		fine = d9__trigger_file_name(one, len, path) > 0 ? add_trigger_file(path, out, size) :
								   add_trigger(&list, one, len, out, size);
	if (!n)
		d9__cmd_fail("record", "--trigger wants a condition, such as 'poll > 50ms', not '%s'", args->value);
	return fine && n;
}

/* Print the faults of DIAL9_TRIGGERS here, because the recorder could only log them. */
static void warn_of_environment(void)
{
	const char *at = getenv("DIAL9_TRIGGERS"), *one;
	struct d9__trigger_fault fault;
	struct d9__trigger trigger;
	char path[PATH_MAX];
	size_t len;

	while (at && d9__trigger_next(&at, &one, &len))
		if (d9__trigger_file_name(one, len, path) <= 0 && !d9__trigger_parse(one, len, &trigger, &fault))
			d9__cmd_fail("record", "DIAL9_TRIGGERS: '%.*s' never fires: column %u: %s", d9__precision(len), one,
				     fault.column, fault.text);
}

/* False: one line was printed. */
static bool take_option(const struct d9__args *args, int key, struct options *options)
{
	switch (key) {
	case 'o':
		options->dir = args->value;
		return true;
	case OPT_NAME:
		options->name = args->value;
		return true;
	case OPT_MAX_TOTAL:
		return take_size(args, options->max_total, sizeof(options->max_total));
	case OPT_MAX_DUMPS:
		return take_size(args, options->max_dumps, sizeof(options->max_dumps));
	case OPT_ROTATE:
		return take_period(args, options->rotate, sizeof(options->rotate));
	case OPT_COMPRESS:
		return take_format(args, &options->compress);
	case OPT_CPU:
		return take_cpu(args, &options->cpu);
	case OPT_TASK_DUMPS:
		return take_ms(args, &options->task_dumps);
	case OPT_ACCEPT_QUEUES:
		return take_ms(args, &options->accept_queues);
	case OPT_QUEUE_INTERVAL:
		return take_ms(args, &options->queue_interval);
	case OPT_CPU_THREADS:
		return take_cpu_threads(args, &options->cpu_threads);
	case OPT_CPU_BACKEND:
		return take_cpu_backend(args, &options->cpu_backend);
	case OPT_OFF_CPU:
		return options->off_cpu = true;
	case OPT_PROFILE_ONLY:
		return options->profile_only = true;
	case OPT_MEMORY:
		return take_memory(args, options->memory, sizeof(options->memory));
	case OPT_NO_BLOCKING:
		return options->no_blocking = true;
	case OPT_NO_IO:
		return options->no_io = true;
	case OPT_LOG_BRIDGE:
		return take_log_level(args, &options->log_bridge);
	case OPT_NO_FOLLOW:
		return options->no_follow = true;
	case OPT_EXEC:
		return options->exec = true;
	case OPT_FLIGHT:
		return options->flight = true;
	case OPT_TRIGGER:
		return take_trigger(args, options->triggers, sizeof(options->triggers));
	case OPT_ON_DUMP:
		return d9__on_dump_add(&options->on_dump, args->value);
	case OPT_SHIP:
		options->ship.url = args->value;
		return options->ship.wanted = true;
	case OPT_SHIP_OPTIONS:
		options->ship.more = args->value;
		return true;
	case OPT_SHIP_DEADLINE:
		return d9__args_duration_ns(args, &options->ship.deadline_ns);
	case OPT_START_DISABLED:
		return options->start_disabled = true;
	case OPT_REPORT:
		return options->report = true;
	case 'q':
		return options->quiet = true;
	default:
		return options->require = true;
	}
}

/* Take the options before CMD.  Returns -1, or an exit status after a line. */
static int take_options(struct d9__args *args, struct options *options)
{
	int key;

	while ((key = d9__args_next(args)) > 0) {
		if (!take_option(args, key, options))
			return D9__EXIT_USAGE;
	}
	if (key < 0)
		return d9__args_exit(key);
	if (options->exec && (options->report || options->require || options->on_dump.n || options->ship.wanted))
		return d9__cmd_fail("record", "with --exec dial9 does not wait for CMD, so there is no %s",
				    options->report  ? "--report" :
				    options->require ? "--require" :
				    options->on_dump.n ? "--on-dump" : "--ship");
	if (options->ship.wanted && (options->report || options->on_dump.n))
		return d9__cmd_fail("record", "--ship takes away what %s is to see; leave one of them out",
				    options->report ? "--report" : "--on-dump");
	if (options->ship.more && !options->ship.wanted)
		return d9__cmd_fail("record", "--ship-options without --ship");
	if (options->profile_only && options->cpu && !strcmp(options->cpu, "off"))
		return d9__cmd_fail("record", "--profile-only records samples, and --cpu off takes none");
	if (options->profile_only && options->cpu_threads && strcmp(options->cpu_threads, "all") != 0)
		return d9__cmd_fail("record", "--profile-only samples all threads: no thread runs a loop that it knows");
	if (args->first >= args->argc)
		return d9__cmd_fail("record", "which CMD? see dial9 record --help");
	options->resolved = d9__trigger_names_resolve(options->triggers, args->argv[args->first]);
	if (!options->triggers[0] && !options->quiet)
		warn_of_environment();
	return options->resolved && d9__record_ship_check(&options->ship) ? -1 : D9__EXIT_USAGE;
}

int d9__cmd_record(int argc, char **argv)
{
	struct d9__args args = { .usage = &usage, .argc = argc, .argv = argv };
	struct options options = { .ship.deadline_ns = SHIP_NS };
	int status = take_options(&args, &options), wait_status = 0;
	bool ran = false;

	if (status < 0)
		status = record(&options, argv + args.first, &wait_status, &ran);
	free(options.resolved);
	d9__on_dump_release(&options.on_dump);
	d9__record_ship_release(&options.ship);
	if (ran)
		d9__record_child_exit_like(wait_status, status);
	return status;
}
