/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `dial9 doctor -- CMD`: check CMD's file with the loader's help.  CMD is not run, because it would
 * have effects.
 */

#include "config.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/doctor/doctor.h"
#include "cli/doctor/doctor_command.h"
#include "cli/doctor/doctor_symbols.h"
#include "symbol/elf_needs.h"
#include "symbol/elf_program.h"

static const char *file_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* ---- the program ---- */

/* False: no library is of any use to it. */
static bool check_program(struct d9__doctor *doctor, const char *command, char path[PATH_MAX])
{
	static const char name[] = "command";
	enum d9__preload_fate fate = d9__preload_judge(command, path, PATH_MAX);
	bool is_script = strcmp(file_of(command), file_of(path)) != 0;

	if (fate == D9__PRELOAD_WORKS) {
		d9__doctor_note(doctor, name, D9__CHECK_OK, "%s%s%s: a library can be preloaded into it",
				is_script ? command : "", is_script ? " is a script of " : "", path);
	} else if (fate == D9__PRELOAD_UNKNOWN) {
		d9__doctor_note(doctor, name, D9__CHECK_FAIL, "%s: not found, or no program", command);
		d9__doctor_advise(doctor, "give its path, or mend PATH");
	} else {
		d9__doctor_note(doctor, name, D9__CHECK_FAIL, "%s %s", path, d9__preload_why(fate));
		d9__doctor_advise(doctor, "%s", d9__preload_advice(fate));
	}
	return fate == D9__PRELOAD_WORKS || fate == D9__PRELOAD_SECURE;
}

/* ---- its libraries ---- */

static void add_file(struct d9__loop_use *use, const char *path)
{
	size_t len = strlen(use->files);

	snprintf(use->files + len, sizeof(use->files) - len, "%s%s", len ? ":" : "", path);
}

/* Loops in a file that is no loop library: nothing of them is in anybody's reach. */
static bool note_embedded(struct d9__doctor *doctor, const char *path)
{
	bool any = false;

	for (size_t i = 0; i < D9__LOOP_LIBRARIES; i++) {
		const struct d9__loop_library *library = &d9__loop_libraries[i];

		if (!d9__elf_defines(path, library->function))
			continue;
		d9__doctor_note(doctor, library->name, D9__CHECK_WARN,
				"%s has a copy of its own, whose loops are not seen", path);
		d9__doctor_advise(doctor, "%s", library->embedded);
		any = true;
	}
	return any;
}

static bool is_loop_library(const char *path, struct d9__loop_uses *uses)
{
	bool named = false;

	for (size_t i = 0; i < D9__LOOP_LIBRARIES; i++) {
		if (!d9__is_file_of(path, d9__loop_libraries[i].file))
			continue;
		named = true;
		/*
		 * Only the library itself: its companions, such as libevent_openssl, lack the
		 * function.
		 */
		if (d9__elf_defines(path, d9__loop_libraries[i].function))
			add_file(&uses->list[i], path);
	}
	return named;
}

static void check_symbols(struct d9__doctor *doctor, const char *path, const struct d9__elf_needs *needs)
{
	const char **files = calloc(needs->n + 1, sizeof(*files));
	size_t n = 0;

	if (!files)
		return;
	files[n++] = path;
	for (size_t i = 0; i < needs->n; i++)
		if (needs->items[i].path)
			files[n++] = needs->items[i].path;
	d9__doctor_symbols(doctor, files, n);
	free(files);
}

static void check_needs(struct d9__doctor *doctor, const char *path, struct d9__loop_uses *uses)
{
	struct d9__elf_needs needs = { 0 };
	bool any = note_embedded(doctor, path), missing = false;
	int err = d9__elf_needs_list(path, &needs);

	if (err) {
		d9__doctor_note(doctor, "loop libraries", D9__CHECK_WARN, "%s: %s", path,
				err == -ENOTSUP ? "what it loads is not known: it has a loader of its own"
						: strerror(-err));
		d9__doctor_advise(doctor, "see what dial9 record -- says of it");
		return;
	}
	for (size_t i = 0; i < needs.n; i++) {
		const struct d9__elf_need *need = &needs.items[i];

		if (!need->path) {
			d9__doctor_note(doctor, "loader", D9__CHECK_FAIL, "%s: not found, so %s does not "
					"start", need->name, path);
			d9__doctor_advise(doctor, "install the library, or set LD_LIBRARY_PATH");
			missing = true;
		} else if (!is_loop_library(need->path, uses)) {
			any = note_embedded(doctor, need->path) || any;
		}
	}
	for (size_t i = 0; i < D9__LOOP_LIBRARIES; i++)
		any = any || uses->list[i].files[0];
	if (!any && !missing) {
		d9__doctor_note(doctor, "loop libraries", D9__CHECK_WARN,
				"none among the %zu libraries that %s loads at its start", needs.n, path);
		d9__doctor_advise(doctor, "none is needed if it loads one later, as a plugin does: that "
					  "one is recorded from then on, as are programs that it starts");
	}
	check_symbols(doctor, path, &needs);
	d9__elf_needs_release(&needs);
}

void d9__doctor_command(struct d9__doctor *doctor, const char *command, struct d9__loop_uses *uses)
{
	char path[PATH_MAX] = "";

	for (size_t i = 0; i < D9__LOOP_LIBRARIES; i++)
		uses->list[i] = (struct d9__loop_use){ .library = d9__loop_libraries[i].name };
	if (check_program(doctor, command, path))
		check_needs(doctor, path, uses);
	else if (path[0])
		note_embedded(doctor, path);
}
