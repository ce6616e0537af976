/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/options.h"
#include "cli/loop_libraries.h"
#include "cli/run/record_cause.h"
#include "symbol/elf_needs.h"
#include "symbol/elf_program.h"

#define SCRIPT_BYTES 16384
#define WORD_ENDS    " \t\r\n;&|()<>{}\"'`$="

static const char *name_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static bool is_one_of(const char *word, const char *const *words)
{
	for (; *words; words++)
		if (!strcmp(word, *words))
			return true;
	return false;
}

static void print_words(FILE *out, char *const *words)
{
	for (; *words; words++)
		fprintf(out, " %s", *words);
}

void d9__record_end_text(int wait_status, char *out, size_t size)
{
	if (WIFSIGNALED(wait_status))
		snprintf(out, size, "was ended by signal %d (%s)", WTERMSIG(wait_status), strsignal(WTERMSIG(wait_status)));
	else if (WEXITSTATUS(wait_status))
		snprintf(out, size, "ended with exit status %d", WEXITSTATUS(wait_status));
	else
		out[0] = '\0';
}

/* ---- programs that clear the environment ---- */

/* Skip the options before the program that sudo starts; |*user| is the user that it becomes. */
static char *const *behind_options(char *const *words, const char **user)
{
	static const char *const with_value[] = { "-C", "-D", "-R", "-T", "-U", "-g", "-h", "-p", "-r", "-t", NULL };

	for (; *words && (**words == '-' || strchr(*words, '=')); words++) {
		if (!strcmp(*words, "--"))
			return words + 1;
		if (!strncmp(*words, "--user=", 7))
			*user = *words + 7;
		else if (!strcmp(*words, "-u") && words[1])
			*user = *++words;
		else if (is_one_of(*words, with_value) && words[1])
			words++;
	}
	return words;
}

static bool explain_sudo(FILE *out, char *const *argv, const char *dir)
{
	static const char *const names[] = { "sudo", "doas", "pkexec", NULL };
	const char *name = name_of(argv[0]), *user = NULL;
	char *const *command;

	if (!is_one_of(name, names))
		return false;
	command = behind_options(argv + 1, &user);
	fprintf(out, "%s clears the environment, and with it what records; instead: %s dial9 record -o %s --",
		name, name, dir);
	if (user)
		fprintf(out, " runuser -u %s --", user);
	print_words(out, *command ? command : (char *const[]){ (char[]){ "CMD" }, NULL });
	return true;
}

/* As root these keep the environment, unless they begin a session. */
static bool explain_su(FILE *out, char *const *argv, const char *dir, bool secure)
{
	static const char *const names[] = { "su", "runuser", NULL };
	static const char *const sessions[] = { "-", "-l", "--login", NULL };
	const char *name = name_of(argv[0]);
	bool session = false;

	for (char *const *word = argv + 1; *word && strcmp(*word, "--") != 0; word++)
		session = session || is_one_of(*word, sessions);
	if (!is_one_of(name, names) || !(session || secure))
		return false;
	fprintf(out, "%s %s; instead, as root: dial9 record -o %s -- runuser -u USER -- CMD", name,
		session ? "begins a session with an environment of its own" :
			  "has other rights than who starts it, so the loader ignores what records", dir);
	return true;
}

static bool explain_env(FILE *out, char *const *argv)
{
	static const char *const clears[] = { "-", "-i", "--ignore-environment", NULL };

	if (strcmp(name_of(argv[0]), "env") != 0 || !argv[1] || !is_one_of(argv[1], clears))
		return false;
	fprintf(out, "env %s takes what records out of the environment; instead: env -i dial9 record -- CMD", argv[1]);
	return true;
}

/* ---- recorders that were told to write nothing ---- */

/* As the environment has it. */
static uint64_t option(enum d9__option id)
{
	struct d9_options options = { .no_environment = false };
	uint64_t value = 0;

	if (!d9__options_resolve(&options, NULL)) {
		value = d9__options_number(&options, id);
		d9__options_release(&options);
	}
	return value;
}

bool d9__record_is_flight(void)
{
	return option(D9__OPTION_MODE) == D9_MODE_FLIGHT;
}

static bool explain_options(FILE *out)
{
	uint64_t writer = option(D9__OPTION_WRITER);

	if (writer == D9_WRITER_MEMORY || writer == D9_WRITER_NULL)
		fprintf(out, "DIAL9_WRITER=%s writes no files", writer == D9_WRITER_NULL ? "null" : "memory");
	else if (d9__record_is_flight())
		fprintf(out, "DIAL9_MODE=flight keeps the newest events in memory until they are asked for; while it "
			"runs: dial9 dump PID");
	else
		return false;
	return true;
}

/* ---- programs with other loops, or none ---- */

/*
 * Print the loop library that is linked into the program itself, where the preload library cannot
 * reach it.  False: none is.
 */
static bool explain_own_loop(FILE *out, const char *path)
{
	for (size_t i = 0; i < D9__LOOP_LIBRARIES; i++) {
		const struct d9__loop_library *library = &d9__loop_libraries[i];

		if (!d9__elf_defines(path, library->function))
			continue;
		fprintf(out, "%s has a copy of %s of its own, whose loops are not seen; %s", path, library->name,
			library->embedded);
		return true;
	}
	if (!d9__elf_defines(path, "uv_run"))
		return false;
	fprintf(out, "%s runs libuv's loop, which dial9 has no adapter for; <dial9/loop.h> is for other loops: "
		"dial9-loop(3)", path);
	return true;
}

/* |path| loads |library|.  |started|: by a shell or launcher, which may have changed the environment. */
static void explain_no_loop(FILE *out, const char *path, const char *library, const struct d9__record_command *command,
			    bool started)
{
	fprintf(out, "%s loads %s, but ", path, library);
	if (command->end[0])
		fprintf(out, "%s%s%s before a loop of it ran", started ? command->argv[0] : "", started ? " " : "", command->end);
	else
		fprintf(out, "ran no loop of it%s",
			started ? ", or what starts it takes LD_PRELOAD out of its environment" : "");
}

static bool explain_needs(FILE *out, const char *path, const struct d9__elf_needs *needs,
			  const struct d9__record_command *command, bool started)
{
	const char *other = NULL;

	for (size_t n = 0; n < needs->n; n++) {
		const char *name = needs->items[n].name;

		for (size_t i = 0; i < D9__LOOP_LIBRARIES; i++) {
			if (!d9__is_file_of(name, d9__loop_libraries[i].file))
				continue;
			explain_no_loop(out, path, name, command, started);
			return true;
		}
		if (d9__is_file_of(name, "libuv"))
			other = "libuv's loop, which dial9 has no adapter for";
	}
	if (!other && (d9__elf_calls(path, "epoll_wait") || d9__elf_calls(path, "epoll_pwait")))
		other = "a loop of its own on epoll_wait()";
	if (other)
		fprintf(out, "%s runs %s; <dial9/loop.h> is for other loops: dial9-loop(3)", path, other);
	return other;
}

/* ---- files ---- */

/*
 * Print how to record |path| all the same.  Without root's rights nothing can be loaded into a
 * set-user-ID file; root gains no rights by such a file, so for root the usual advice holds.
 */
static void advise(FILE *out, enum d9__preload_fate fate, const struct d9__record_command *command)
{
	if (fate != D9__PRELOAD_SECURE || geteuid() == 0) {
		fputs(d9__preload_advice(fate), out);
		return;
	}
	fprintf(out, "root can record it: dial9 record -o %s --", command->dir);
	print_words(out, command->argv);
}

/* Why nothing can be loaded into |path|, if that is so. */
static bool explain_fate(FILE *out, const char *path, enum d9__preload_fate fate,
			 const struct d9__record_command *command)
{
	if (!d9__preload_why(fate)[0])
		return false;
	fprintf(out, "%s %s; ", path, d9__preload_why(fate));
	advise(out, fate, command);
	return true;
}

/*
 * Print the reason, if the file at |path| shows one, why |command| was not recorded.  |started| as
 * above.
 */
static bool explain_file(FILE *out, const char *path, enum d9__preload_fate fate,
			 const struct d9__record_command *command, bool started)
{
	struct d9__elf_needs needs = { 0 };
	bool told = true;

	if (explain_fate(out, path, fate, command))
		return true;
	if (!explain_own_loop(out, path) && !explain_options(out)) {
		told = !d9__elf_needs_list(path, &needs) && explain_needs(out, path, &needs, command, started);
		d9__elf_needs_release(&needs);
	}
	return told;
}

/* ---- what shells and launchers start ---- */

static bool starts_others(const char *path)
{
	static const char *const names[] = { "bash", "busybox", "capsh", "chroot", "chrt", "dash", "env", "flock", "ionice",
					     "ksh", "nice", "nohup", "nsenter", "prlimit", "runuser", "setarch", "setpriv",
					     "setsid", "sh", "stdbuf", "su", "taskset", "timeout", "unshare", "xargs", "zsh",
					     NULL };

	return is_one_of(name_of(path), names);
}

static void blank_comments(char *text)
{
	for (char *c = text; *c; c++) {
		if (*c == '#' && (c == text || strchr(" \t\n", c[-1])))
			memset(c, ' ', strcspn(c, "\n"));
	}
}

/* Read the beginning of the script |path|; "" if it is not a script. */
static void read_script(const char *path, char *text, size_t size)
{
	FILE *in = fopen(path, "re");
	size_t n = in ? fread(text, 1, size - 1, in) : 0;

	text[n > 2 && !memcmp(text, "#!", 2) ? n : 0] = '\0';
	blank_comments(text);
	if (in)
		fclose(in);
}

/* Which programs it starts only it knows; which ones |text| names can be seen, in a script that it names, too. */
static bool explain_words(FILE *out, char *text, const struct d9__record_command *command, bool scripts)
{
	char path[PATH_MAX], script[SCRIPT_BYTES], *rest;
	bool told = false;

	for (char *word = strtok_r(text, WORD_ENDS, &rest); word && !told; word = strtok_r(NULL, WORD_ENDS, &rest)) {
		enum d9__preload_fate fate = d9__preload_judge(word, path, sizeof(path));
		char *const alone[] = { word, NULL };

		if (fate == D9__PRELOAD_UNKNOWN)
			continue;
		told = explain_sudo(out, alone, command->dir) ||
		       explain_su(out, alone, command->dir, fate == D9__PRELOAD_SECURE) ||
		       explain_file(out, path, fate, command, true);
		if (told || !scripts || !strchr(word, '/'))
			continue;
		read_script(word, script, sizeof(script));
		told = explain_words(out, script, command, false);
	}
	return told;
}

static bool explain_started(FILE *out, const struct d9__record_command *command)
{
	bool told = false;

	for (char *const *word = command->argv; *word && !told; word++) {
		char *copy = strdup(*word);

		told = copy && explain_words(out, copy, command, true);
		free(copy);
	}
	return told;
}

/* Explain a launcher that could not start its program, which it tells by its exit status. */
static bool explain_launcher(FILE *out, const struct d9__record_command *command)
{
	int status = WIFEXITED(command->wait_status) ? WEXITSTATUS(command->wait_status) : 0;

	if (status != 126 && status != 127)
		return false;
	fprintf(out, "%s %s: what it was to start %s", command->argv[0], command->end,
		status == 126 ? "could not be executed" : "was not found, or could not be started");
	return true;
}

static bool explain_environment(FILE *out, const struct d9__record_command *command, enum d9__preload_fate fate)
{
	return explain_sudo(out, command->argv, command->dir) ||
	       explain_su(out, command->argv, command->dir, fate == D9__PRELOAD_SECURE) || explain_env(out, command->argv);
}

void d9__record_cause(FILE *out, const struct d9__record_command *command, bool follows)
{
	char path[PATH_MAX] = "";
	const char *name = command->argv[0];
	enum d9__preload_fate fate = d9__preload_judge(name, path, sizeof(path));
	bool others = starts_others(path);

	if (explain_environment(out, command, fate) || (others && explain_launcher(out, command)))
		return;
	if (others && !follows)
		fprintf(out, "%s starts other programs, which --no-follow leaves out", name);
	else if (!(others ? explain_started(out, command) : explain_file(out, path, fate, command, false)) &&
		 !explain_options(out))
		fprintf(out, "no loop of a shared libevent, libev or GLib ran in %s%s%s%s", name,
			others ? " or in what it started" : "", command->end[0] ? ", which " : "", command->end);
}

void d9__record_cause_of_profile(FILE *out, const struct d9__record_command *command)
{
	char path[PATH_MAX] = "";
	const char *name = command->argv[0];
	enum d9__preload_fate fate = d9__preload_judge(name, path, sizeof(path));

	if (!explain_environment(out, command, fate) &&
	    !(starts_others(path) && explain_launcher(out, command)) && !explain_fate(out, path, fate, command) &&
	    !explain_options(out))
		fprintf(out,
			"%s%s%s used too little CPU time for a sample (--cpu HZ takes more), or made no call behind its first "
			"0.1 s at which they could begin: DIAL9_LATE_START_ENABLED=false",
			name, command->end[0] ? ", which " : "", command->end[0] ? command->end : "");
}
