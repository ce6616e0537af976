/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "symbol/elf_needs.h"
#include "symbol/elf_program.h"
#include "cli/loop_libraries.h"
#include "cli/record_cause.h"
#include "record/options.h"

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

/* ---- programs that clear the environment ---- */

/* The options before the program that sudo starts; |*user| is whose it becomes. */
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

static bool explain_options(FILE *out)
{
	struct d9_options options = { .no_environment = false };
	uint64_t writer, mode;

	if (d9__options_resolve(&options, NULL))
		return false;
	writer = d9__options_number(&options, D9__OPTION_WRITER);
	mode = d9__options_number(&options, D9__OPTION_MODE);
	d9__options_release(&options);
	if (writer == D9_WRITER_MEMORY || writer == D9_WRITER_NULL)
		fprintf(out, "DIAL9_WRITER=%s writes no files", writer == D9_WRITER_NULL ? "null" : "memory");
	else if (mode == D9_MODE_FLIGHT)
		fprintf(out, "DIAL9_MODE=flight keeps the newest events in memory until they are asked for; while it "
			"runs: dial9 dump PID");
	else
		return false;
	return true;
}

/* ---- programs with other loops, or none ---- */

/* What a program has in itself: loops that nobody reaches. */
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

/* |started|: by a shell or launcher, which may have changed the environment. */
static bool explain_needs(FILE *out, const char *path, const struct d9__elf_needs *needs, bool started)
{
	const char *other = NULL;

	for (size_t n = 0; n < needs->n; n++) {
		const char *name = needs->items[n].name;

		for (size_t i = 0; i < D9__LOOP_LIBRARIES; i++) {
			if (!d9__is_file_of(name, d9__loop_libraries[i].file))
				continue;
			fprintf(out, "%s loads %s, but ran no loop of it%s", path, name,
				started ? ", or what starts it takes LD_PRELOAD out of its environment" : "");
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

/* As an ordinary user nobody can; root has no rights to gain by such a file. */
static void advise(FILE *out, enum d9__preload_fate fate, char *const *argv, const char *dir)
{
	if (fate != D9__PRELOAD_SECURE || geteuid() == 0) {
		fputs(d9__preload_advice(fate), out);
		return;
	}
	fprintf(out, "root can record it: dial9 record -o %s --", dir);
	print_words(out, argv);
}

/* Why nothing can be loaded into |path|, if that is so. */
static bool explain_fate(FILE *out, const char *path, enum d9__preload_fate fate, char *const *argv, const char *dir)
{
	if (!d9__preload_why(fate)[0])
		return false;
	fprintf(out, "%s %s; ", path, d9__preload_why(fate));
	advise(out, fate, argv, dir);
	return true;
}

/* What keeps |path|, of the command |argv|, from being recorded, if its file tells.  |started| as above. */
static bool explain_file(FILE *out, const char *path, enum d9__preload_fate fate, char *const *argv,
			 const char *dir, bool started)
{
	struct d9__elf_needs needs = { 0 };
	bool told = true;

	if (explain_fate(out, path, fate, argv, dir))
		return true;
	if (!explain_own_loop(out, path) && !explain_options(out)) {
		told = !d9__elf_needs_list(path, &needs) && explain_needs(out, path, &needs, started);
		d9__elf_needs_release(&needs);
	}
	return told;
}

/* ---- what shells and launchers start ---- */

static bool starts_others(const char *path)
{
	static const char *const names[] = { "bash", "dash", "env", "nice", "nohup", "runuser", "setpriv", "sh", "su",
					     "setsid", "timeout", "chroot", "zsh", NULL };

	return is_one_of(name_of(path), names);
}

static void blank_comments(char *text)
{
	for (char *c = text; *c; c++) {
		if (*c == '#' && (c == text || strchr(" \t\n", c[-1])))
			memset(c, ' ', strcspn(c, "\n"));
	}
}

/* The beginning of the script |path|; "" of anything else. */
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
static bool explain_words(FILE *out, char *text, char *const *argv, const char *dir, bool scripts)
{
	char path[PATH_MAX], script[SCRIPT_BYTES], *rest;
	bool told = false;

	for (char *word = strtok_r(text, WORD_ENDS, &rest); word && !told; word = strtok_r(NULL, WORD_ENDS, &rest)) {
		enum d9__preload_fate fate = d9__preload_judge(word, path, sizeof(path));
		char *const alone[] = { word, NULL };

		if (fate == D9__PRELOAD_UNKNOWN)
			continue;
		told = explain_sudo(out, alone, dir) || explain_su(out, alone, dir, fate == D9__PRELOAD_SECURE) ||
		       explain_file(out, path, fate, argv, dir, true);
		if (told || !scripts || !strchr(word, '/'))
			continue;
		read_script(word, script, sizeof(script));
		told = explain_words(out, script, argv, dir, false);
	}
	return told;
}

static bool explain_started(FILE *out, char *const *argv, const char *dir)
{
	bool told = false;

	for (char *const *word = argv; *word && !told; word++) {
		char *copy = strdup(*word);

		told = copy && explain_words(out, copy, argv, dir, true);
		free(copy);
	}
	return told;
}

void d9__record_cause(FILE *out, char *const *argv, const char *dir, bool follows)
{
	char path[PATH_MAX] = "";
	enum d9__preload_fate fate = d9__preload_judge(argv[0], path, sizeof(path));
	bool others = starts_others(path);

	fprintf(out, "nothing was recorded: ");
	if (explain_sudo(out, argv, dir) || explain_su(out, argv, dir, fate == D9__PRELOAD_SECURE) ||
	    explain_env(out, argv))
		return;
	if (others && !follows)
		fprintf(out, "%s starts other programs, which --no-follow leaves out", argv[0]);
	else if (!(others ? explain_started(out, argv, dir) : explain_file(out, path, fate, argv, dir, false)) &&
		 !explain_options(out))
		fprintf(out, "no loop of a shared libevent, libev or GLib ran in %s%s", argv[0],
			others ? " or in what it started" : "");
}

void d9__record_cause_of_profile(FILE *out, char *const *argv, const char *dir)
{
	char path[PATH_MAX] = "";
	enum d9__preload_fate fate = d9__preload_judge(argv[0], path, sizeof(path));

	fprintf(out, "nothing was recorded: ");
	if (!explain_sudo(out, argv, dir) && !explain_su(out, argv, dir, fate == D9__PRELOAD_SECURE) &&
	    !explain_env(out, argv) && !explain_fate(out, path, fate, argv, dir) && !explain_options(out))
		fprintf(out, "%s used too little CPU time for a sample; more of them: --cpu HZ", argv[0]);
}
