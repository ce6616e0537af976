/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The self-test is a real recording: a small program that knows nothing of us, linked with the loop
 * library, runs under the preload library and counts its callbacks; its trace must have as many.
 * This program itself never loads a loop library.
 */

#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <limits.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/doctor/doctor.h"
#include "cli/doctor/doctor_libraries.h"
#include "cli/preload_path.h"
#include "cli/trace_facts.h"

#define PROGRAM "dial9-selftest-"

/* The libraries whose adapter was built into the preload library. */
#if WITH_LIBEVENT
#define LIBEVENT "libevent",
#else
#define LIBEVENT
#endif
#if WITH_LIBEV
#define LIBEV "libev",
#else
#define LIBEV
#endif
#if WITH_GLIB
#define GLIB "glib",
#else
#define GLIB
#endif
static const char *const built[] = { LIBEVENT LIBEV GLIB NULL };

/* A loop library to run the self-test with. */
struct subject {
	const char *library, *preload;
	const struct d9__loop_use *use; /* the files of a command's; NULL: the installed one */
};

/* The output and the end of the self-test program. */
struct run {
	int status; /* of waitpid(2), or -errno if it could not be started */
	bool spoke;
	uint64_t callbacks;
	char version[64], method[32];
};

/* ---- running it ---- */

/*
 * Find the self-test program beside the preload library, or in a folder above in a build tree.
 * Empty if there is none.
 */
static void find_program(const char *preload, const char *library, char path[PATH_MAX])
{
	static const char *const folders[] = { "", "../", "../../" };
	int len = (int)(strrchr(preload, '/') - preload) + 1;

	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
		snprintf(path, PATH_MAX, "%.*s%s" PROGRAM "%s", len, preload, folders[i], library);
		if (!access(path, X_OK))
			return;
	}
	path[0] = '\0';
}

/* Copy the environment without variables that could change the test: DIAL9_* and preloads. */
static char **make_environment(char *preload, char *dir)
{
	static char enabled[] = "DIAL9_ENABLED=true";
	size_t n = 0, kept = 0;
	char **env;

	while (environ[n])
		n++;
	env = calloc(n + 4, sizeof(*env));
	if (!env)
		return NULL;
	for (size_t i = 0; i < n; i++)
		if (strncmp(environ[i], "DIAL9_", 6) != 0 && strncmp(environ[i], "LD_PRELOAD=", 11) != 0)
			env[kept++] = environ[i];
	env[kept++] = preload;
	env[kept++] = dir;
	env[kept] = enabled;
	return env;
}

static int start(const char *program, char **env, int out, pid_t *pid)
{
	char *argv[] = { (char *)program, NULL };
	posix_spawn_file_actions_t actions;
	int err;

	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&actions, out, 1);
	posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
	err = posix_spawn(pid, program, &actions, NULL, argv, env);
	posix_spawn_file_actions_destroy(&actions);
	return -err;
}

static void run_in(const char *program, char **env, struct run *run)
{
	int fds[2];
	pid_t pid;
	FILE *in;

	if (pipe2(fds, O_CLOEXEC)) {
		run->status = -errno;
		return;
	}
	run->status = start(program, env, fds[1], &pid);
	close(fds[1]);
	in = fdopen(fds[0], "r");
	if (!in)
		close(fds[0]);
	run->spoke = in && fscanf(in, "%" SCNu64 " %63s %31s", &run->callbacks, run->version,
				  run->method) == 3;
	while (!run->status && waitpid(pid, &run->status, 0) < 0 && errno == EINTR)
		;
	if (in)
		fclose(in);
}

static void run_recorded(const char *program, const struct subject *subject, const char *dir,
			 struct run *run)
{
	char preload_variable[PATH_MAX + 16 + sizeof(subject->use->files)], dir_variable[PATH_MAX + 32];
	char **env;

	/*
	 * A file that the self-test links anyway is taken by its name; one of another name is
	 * loaded first.
	 */
	snprintf(preload_variable, sizeof(preload_variable), "LD_PRELOAD=%s%s%s", subject->preload,
		 subject->use ? ":" : "", subject->use ? subject->use->files : "");
	snprintf(dir_variable, sizeof(dir_variable), "DIAL9_TRACE_DIR=%s", dir);
	*run = (struct run){ .status = -ENOMEM };
	env = make_environment(preload_variable, dir_variable);
	if (env)
		run_in(program, env, run);
	free(env);
}

/* ---- reading it back ---- */

static uint64_t tally(const struct d9__tallies *tallies, const char *name)
{
	for (size_t i = 0; i < tallies->n; i++)
		if (!strcmp(tallies->items[i].name, name))
			return tallies->items[i].n;
	return 0;
}

/* 0 or -errno; then nothing is left to be released. */
static int read_back(const char *dir, struct d9_reader **out, struct d9__trace_facts *facts)
{
	const struct d9_event *event;
	struct d9_reader *reader = NULL;
	int err = d9_reader_new(&reader);

	if (err)
		return err;
	err = d9_reader_add(reader, dir);
	if (!err)
		err = d9__trace_facts_init(facts, reader);
	if (err) {
		d9_reader_free(reader);
		return err;
	}
	while (d9_reader_next(reader, &event) == 1 && !d9__trace_facts_add(facts, event))
		;
	d9__trace_facts_finish(facts);
	*out = reader;
	return 0;
}

/* The fact loop.LIBRARY.|key|, "" without one. */
static const char *fact_of(const struct subject *subject, const struct d9__process *process,
			   const char *key)
{
	char full[64];
	const char *value;

	snprintf(full, sizeof(full), "loop.%s.%s", subject->library, key);
	value = d9__process_fact(process, full);
	return value ? value : "";
}

static void advise_degraded(struct d9__doctor *doctor, const char *library, const struct run *run,
			    const char *capabilities)
{
	/* No way of building it changes that. */
	if (!strcmp(library, "libevent") && !strncmp(run->version, "2.2", strlen("2.2")) &&
	    strstr(capabilities, "wake=public") && !strstr(capabilities, "partial"))
		d9__doctor_advise(doctor, "nothing: libevent 2.2 hides what makes callbacks ready; calls, waits "
					  "and lateness are complete, and who woke a callback is told of timers, of "
					  "event_active() and of deferred callbacks");
	else
		d9__doctor_advise(doctor, "recording works, with less; a %s built as usual, as a shared "
					  "library, has it all", library);
}

static void note_hooks(struct d9__doctor *doctor, const struct subject *subject,
		       const struct d9__process *process, const struct run *run)
{
	const char *library = subject->library, *capabilities, *degraded, *refused, *files, *between;

	capabilities = fact_of(subject, process, "capabilities");
	degraded = fact_of(subject, process, "degraded");
	refused = fact_of(subject, process, "refused");
	files = subject->use ? subject->use->files : "";
	between = subject->use ? ": " : "";
	if (*refused) {
		d9__doctor_note(doctor, library, D9__CHECK_FAIL,
				"%s%s%s, %s: refused, so nothing of it is recorded: %s", files, between,
				run->version, run->method, refused);
		d9__doctor_advise(doctor, "a %s built as usual, as a shared library, can be recorded: "
					  "dial9-%s(3)", library, library);
	} else if (*degraded) {
		d9__doctor_note(doctor, library, D9__CHECK_WARN, "%s%s%s, %s, degraded: %s: %s", files,
				between, run->version, run->method, degraded, capabilities);
		advise_degraded(doctor, library, run, capabilities);
	} else {
		d9__doctor_note(doctor, library, D9__CHECK_OK, "%s%s%s, %s: %s", files, between,
				run->version, run->method, capabilities);
	}
}

static void note_counts(struct d9__doctor *doctor, const char *library,
			const struct d9__trace_facts *facts, const struct run *run)
{
	uint64_t starts = tally(&facts->types, "PollStartEvent");
	uint64_t ends = tally(&facts->types, "PollEndEvent");

	if (starts == run->callbacks && ends == starts && !facts->processes[0].loss.n) {
		d9__doctor_note(doctor, "self-test", D9__CHECK_OK,
				"%s: %" PRIu64 " callbacks run, recorded and read back", library,
				starts);
		return;
	}
	d9__doctor_note(doctor, "self-test", D9__CHECK_FAIL,
			"%s: %" PRIu64 " callbacks ran; the trace has %" PRIu64 " starts and %" PRIu64
			" ends", library, run->callbacks, starts, ends);
	d9__doctor_advise(doctor, "report this, with the output of dial9 doctor --json");
}

static void read_and_note(struct d9__doctor *doctor, const struct subject *subject, const char *dir,
			  const struct run *run)
{
	const char *library = subject->library;
	struct d9__trace_facts facts;
	struct d9_reader *reader = NULL;
	int err = read_back(dir, &reader, &facts);

	if (!err && facts.n_processes) {
		note_hooks(doctor, subject, &facts.processes[0], run);
		if (!*fact_of(subject, &facts.processes[0], "refused"))
			note_counts(doctor, library, &facts, run);
	} else {
		d9__doctor_note(doctor, "self-test", D9__CHECK_FAIL,
				"%s %s ran, and nothing of it was recorded", library, run->version);
		d9__doctor_advise(doctor, "%s has to be a shared library that lets its functions be "
					  "found: see dial9-%s(3)", library, library);
	}
	if (!err) {
		d9__trace_facts_release(&facts);
		d9_reader_free(reader);
	}
}

/* ---- a library ---- */

static int remove_entry(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
	(void)st;
	(void)kind;
	(void)ftw;
	remove(path);
	return 0;
}

static void explain_silence(struct d9__doctor *doctor, const struct subject *subject,
			    const struct run *run)
{
	const char *library = subject->library;
	/* The loader found a library, or a function, missing. */
	bool unloadable = run->status > 0 && WIFEXITED(run->status) && WEXITSTATUS(run->status) == 127;

	if (unloadable && subject->use) {
		d9__doctor_note(doctor, library, D9__CHECK_FAIL,
				"%s: lacks functions that every program on %s uses",
				subject->use->files, library);
		d9__doctor_advise(doctor, "install a %s that is built as usual", library);
		return;
	}
	if (unloadable) {
		d9__doctor_note(doctor, library, D9__CHECK_WARN, "not installed on this machine");
		d9__doctor_advise(doctor, "install the library %s, if your programs use it", library);
		return;
	}
	if (run->status < 0)
		d9__doctor_note(doctor, "self-test", D9__CHECK_FAIL, "%s: cannot run: %s",
				library, strerror(-run->status));
	else if (WIFSIGNALED(run->status))
		d9__doctor_note(doctor, "self-test", D9__CHECK_FAIL, "%s: died of signal %d",
				library, WTERMSIG(run->status));
	else
		d9__doctor_note(doctor, "self-test", D9__CHECK_FAIL, "%s: failed with status %d",
				library, WEXITSTATUS(run->status));
	d9__doctor_advise(doctor, "report this, with the output of dial9 doctor --json");
}

static void check_library(struct d9__doctor *doctor, const struct subject *subject)
{
	const char *preload = subject->preload, *library = subject->library;
	const char *tmp = getenv("TMPDIR");
	char program[PATH_MAX], dir[PATH_MAX];
	struct run run;

	find_program(preload, library, program);
	if (!program[0]) {
		d9__doctor_note(doctor, "self-test", D9__CHECK_WARN, PROGRAM "%s is not beside %s",
				library, preload);
		d9__doctor_advise(doctor, "install dial9 completely");
		return;
	}
	snprintf(dir, sizeof(dir), "%s/dial9-doctor-XXXXXX", tmp && *tmp ? tmp : "/tmp");
	if (!mkdtemp(dir)) {
		d9__doctor_note(doctor, "self-test", D9__CHECK_FAIL, "%s: %s", dir, strerror(errno));
		d9__doctor_advise(doctor, "set TMPDIR to a folder that may be written");
		return;
	}
	run_recorded(program, subject, dir, &run);
	if (run.status == 0 && run.spoke)
		read_and_note(doctor, subject, dir, &run);
	else
		explain_silence(doctor, subject, &run);
	nftw(dir, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

static bool is_built(const char *library)
{
	for (const char *const *name = built; *name; name++)
		if (!strcmp(*name, library))
			return true;
	return false;
}

static void check_all(struct d9__doctor *doctor, const char *preload)
{
	for (const char *const *name = built; *name; name++)
		check_library(doctor, &(struct subject){ .library = *name, .preload = preload });
}

static void check_used(struct d9__doctor *doctor, const char *preload,
		       const struct d9__loop_uses *uses)
{
	for (size_t i = 0; i < D9__LOOP_LIBRARIES; i++) {
		const struct d9__loop_use *use = &uses->list[i];

		if (!use->files[0])
			continue;
		if (is_built(use->library)) {
			check_library(doctor, &(struct subject){ use->library, preload, use });
			continue;
		}
		d9__doctor_note(doctor, use->library, D9__CHECK_FAIL,
				"%s: this dial9 is built without its adapter", use->files);
		d9__doctor_advise(doctor, "configure --with-%s", use->library);
	}
}

void d9__doctor_libraries(struct d9__doctor *doctor, const struct d9__loop_uses *uses)
{
	static const char name[] = "preload library";
	char *preload = NULL;
	int err = d9__preload_path(&preload);

	if (err == -EINVAL) {
		d9__doctor_note(doctor, name, D9__CHECK_FAIL, "its path has a space or a colon");
		d9__doctor_advise(doctor, "install dial9 in a folder without; LD_PRELOAD cannot "
					  "hold one");
	} else if (err) {
		d9__doctor_note(doctor, name, D9__CHECK_FAIL, "not found in " PKGLIBDIR);
		d9__doctor_advise(doctor, "install dial9 completely, or set DIAL9_PRELOAD");
	}
	if (err)
		return;
	d9__doctor_note(doctor, name, D9__CHECK_OK, "%s", preload);
	if (uses)
		check_used(doctor, preload, uses);
	else
		check_all(doctor, preload);
	free(preload);
}
