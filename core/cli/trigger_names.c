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
#include <unistd.h>

#include <dial9/error.h>

#include "base/array.h"
#include "base/trigger_text.h"
#include "cli/cmd.h"
#include "cli/trigger_names.h"
#include "symbol/elf_needs.h"
#include "symbol/elf_program.h"
#include "symbol/entries.h"

/* The program and its libraries. */
struct scope {
	const char *command, *option,
		*libraries; /* for messages: the command, its option, the libraries */
	char program[PATH_MAX];
	char **paths; /* the program's first */
	size_t n;
};

/* False: no memory. */
static bool add_path(struct scope *scope, const char *path)
{
	if (!d9__array_grow(scope->paths, scope->n) || !(scope->paths[scope->n] = strdup(path)))
		return false;
	scope->n++;
	return true;
}

/* Add the program and the libraries that the loader would map.  False: out of memory. */
static bool open_needed(struct scope *scope, const char *program)
{
	struct d9__elf_needs needs;
	bool fine;

	/* Its own name is the one that the kernel knows. */
	if (!realpath(program, scope->program))
		snprintf(scope->program, sizeof(scope->program), "%s", program);
	/* With another loader, or none, there is the program alone. */
	if (d9__elf_needs_list(scope->program, &needs))
		needs = (struct d9__elf_needs){ 0 };
	fine = add_path(scope, scope->program);
	for (size_t i = 0; fine && i < needs.n; i++)
		if (needs.items[i].path)
			fine = add_path(scope, needs.items[i].path);
	d9__elf_needs_release(&needs);
	return fine;
}

/*
 * Add a file that process |pid| has mapped.  Its path is used if it leads to the same inode here;
 * in another mount namespace only /proc/PID/root/PATH does.
 */
static bool add_mapped(struct scope *scope, pid_t pid, const char *path, uint64_t inode)
{
	char elsewhere[PATH_MAX + 64];
	struct stat st;

	if (!stat(path, &st) && st.st_ino == inode)
		return add_path(scope, path);
	snprintf(elsewhere, sizeof(elsewhere), "/proc/%d/root%s", (int)pid, path);
	return stat(elsewhere, &st) || st.st_ino != inode || add_path(scope, elsewhere);
}

/* The file that a line of /proc/PID/maps shows mapped to be executed; NULL: none is. */
static const char *mapped_file(const char *line, uint64_t *inode)
{
	int at = 0;

	if (sscanf(line, "%*x-%*x %*2cx%*c %*x %*x:%*x %" SCNu64 " %n", inode, &at) != 1 || !at || line[at] != '/')
		return NULL;
	return line + at;
}

/*
 * Add the files in |maps| of process |pid|: the program only, or all but the program.  False: out
 * of memory.
 */
static bool add_all_mapped(struct scope *scope, pid_t pid, FILE *maps, bool program)
{
	char *line = NULL;
	size_t size = 0;
	bool fine = true;
	ssize_t len;

	rewind(maps);
	while (fine && (len = getline(&line, &size, maps)) > 0) {
		uint64_t inode;
		const char *path;

		line[len - 1] = '\0';
		path = mapped_file(line, &inode);
		if (path && !strcmp(path, scope->program) == program)
			fine = add_mapped(scope, pid, path, inode);
	}
	free(line);
	return fine;
}

/* Add all files that process |pid| has mapped to execute, the program first.  0 or -errno. */
static int open_mapped(struct scope *scope, pid_t pid)
{
	char name[64];
	ssize_t len;
	bool fine;
	FILE *maps;

	snprintf(name, sizeof(name), "/proc/%d/exe", (int)pid);
	len = readlink(name, scope->program, sizeof(scope->program) - 1);
	if (len < 0)
		return -errno;
	scope->program[len] = '\0';
	snprintf(name, sizeof(name), "/proc/%d/maps", (int)pid);
	maps = fopen(name, "re");
	if (!maps)
		return -errno;
	fine = add_all_mapped(scope, pid, maps, true) && add_all_mapped(scope, pid, maps, false);
	fclose(maps);
	return fine ? 0 : -ENOMEM;
}

static void close_scope(struct scope *scope)
{
	while (scope->n)
		free(scope->paths[--scope->n]);
	free(scope->paths);
}

/* One trigger of the list. */
struct one {
	const char *text;
	size_t len;
	struct d9__trigger trigger;
	size_t n_offsets;
};

static unsigned column_of(const struct one *one, const struct d9__trigger_match *match)
{
	unsigned column = 1;

	for (size_t i = 0; i < match->from; i++)
		column += ((unsigned char)one->text[i] & 0xc0) != 0x80;
	return column;
}

static void explain(const struct one *one, const struct d9__trigger_match *match, const struct scope *scope,
		    const struct d9__entries *found)
{
	const char *slash = strrchr(scope->program, '/'), *name = slash ? slash + 1 : scope->program, *glob = match->glob;
	char *why;
	int n;

	if (found->n > D9__TRIGGER_OFFSETS - one->n_offsets)
		n = asprintf(&why, "%zu functions of %s and the libraries that it %s match %s: a trigger can have %d", found->n,
			     scope->program, scope->libraries, glob, D9__TRIGGER_OFFSETS);
	else if (found->stripped)
		n = asprintf(&why, "%s is stripped, so which function is called %s is not known: install its debug symbols, or "
			     "give its place, such as %s+0x12a0", scope->program, glob, name);
	else
		n = asprintf(&why, "no function of %s, or of a library that it %s, is called %s", scope->program, scope->libraries,
			     glob);
	d9__cmd_fail(scope->command, "%s'%.*s', column %u: %s", scope->option, (int)one->len, one->text, column_of(one, match),
		     n < 0 ? "out of memory" : why);
	if (n >= 0)
		free(why);
}

/* Of a stripped program a glob is known to match all that it can, if it has one name and that is a library's. */
static bool is_all(const struct d9__entries *found, const char *glob)
{
	return found->n && (!found->stripped || found->n_first || !strpbrk(glob, "*?"));
}

/* False: one line was printed. */
static bool resolve_match(struct one *one, const struct d9__trigger_match *match, const struct scope *scope, FILE *out)
{
	struct d9__entries found;
	bool fine = !d9__entries_find((const char *const *)scope->paths, scope->n, match->glob, D9__TRIGGER_OFFSETS - one->n_offsets, &found);

	if (!fine) {
		d9__cmd_fail(scope->command, "out of memory");
	} else if (is_all(&found, match->glob) && found.text[0]) {
		one->n_offsets += found.n;
		fprintf(out, " resolved \"%s\"", found.text);
	} else if (found.n || !strpbrk(match->glob, "+ ")) {
		/* A text with a blank can also be one that a loop library has for a callback of its own. */
		explain(one, match, scope, &found);
		fine = false;
	}
	d9__entries_release(&found);
	return fine;
}

static bool resolve_one(struct one *one, const struct scope *scope, FILE *out)
{
	size_t from = 0;

	for (unsigned i = 0; i < one->trigger.n_matches; i++) {
		const struct d9__trigger_match *match = &one->trigger.matches[i];

		if (!match->is_name)
			continue;
		fprintf(out, "%.*s", (int)(match->to - from), one->text + from);
		from = match->to;
		if (!resolve_match(one, match, scope, out))
			return false;
	}
	fprintf(out, "%.*s", (int)(one->len - from), one->text + from);
	return true;
}

static bool resolve_all(const char *texts, const struct scope *scope, FILE *out)
{
	struct d9__trigger_fault fault;
	struct one one;

	for (const char *between = ""; d9__trigger_next(&texts, &one.text, &one.len); between = ";") {
		one.n_offsets = 0;
		if (!d9__trigger_parse_names(one.text, one.len, &one.trigger, &fault))
			continue;
		fputs(between, out);
		if (!resolve_one(&one, scope, out))
			return false;
	}
	return true;
}

static bool has_names(const char *texts)
{
	struct d9__trigger trigger;
	struct d9__trigger_fault fault;
	const char *one;
	size_t len;

	while (d9__trigger_next(&texts, &one, &len))
		for (unsigned i = 0; d9__trigger_parse_names(one, len, &trigger, &fault) && i < trigger.n_matches; i++)
			if (trigger.matches[i].is_name)
				return true;
	return false;
}

/* Return |texts| with names replaced by addresses.  NULL: one line was printed. */
static char *resolve(const char *texts, const struct scope *scope)
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);
	bool fine = out && resolve_all(texts, scope, out);

	if (!out || (fclose(out) && fine)) {
		d9__cmd_fail(scope->command, "out of memory");
		fine = false;
	}
	if (fine)
		return text;
	free(text);
	return NULL;
}

char *d9__trigger_names_resolve(const char *texts, const char *command)
{
	struct scope scope = { .command = "record", .option = "--trigger ", .libraries = "needs" };
	char path[PATH_MAX], *text = NULL;

	d9__preload_judge(command, path, sizeof(path));
	if (!has_names(texts) || access(path, X_OK))
		return strdup(texts);
	if (open_needed(&scope, path))
		text = resolve(texts, &scope);
	else
		d9__cmd_fail("record", "out of memory");
	close_scope(&scope);
	return text;
}

char *d9__trigger_names_resolve_in(const char *texts, pid_t pid)
{
	struct scope scope = { .command = "trigger", .option = "", .libraries = "has loaded" };
	char *text = NULL;
	int err;

	if (!has_names(texts))
		return strdup(texts);
	err = open_mapped(&scope, pid);
	if (err)
		d9__cmd_fail("trigger", "what process %d has loaded cannot be read: %s", (int)pid, d9_strerror(err));
	else
		text = resolve(texts, &scope);
	close_scope(&scope);
	return text;
}
