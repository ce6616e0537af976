/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Check whether functions and lines of a program and its libraries can be named: which files lack
 * debug information, and the packages that have it.
 */
#include "config.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/doctor/doctor.h"
#include "cli/doctor/doctor_symbols.h"
#include "symbol/debian_packages.h"
#include "symbol/debug_files.h"
#include "symbol/elf_file.h"

/* True if |path|, or a debug file of it on this machine, has lines. */
static bool has_lines(const char *path)
{
	struct d9__debug_places places = { NULL, false };
	struct d9__debug_search search = { .places = &places, .path = path };
	struct d9__elf_file *file, *debug = NULL;
	bool has;

	if (d9__elf_file_open(path, &file))
		return false;
	search.build_id = d9__elf_file_build_id(file);
	search.binary = file;
	has = d9__elf_file_section(file, ".debug_info") != NULL;
	if (!has)
		debug = d9__debug_file_find(&search);
	has = has || debug;
	d9__elf_file_close(debug);
	d9__elf_file_close(file);
	return has;
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static bool is_among(char *const *packages, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (packages[i] && !strcmp(packages[i], name))
			return true;
	return false;
}

/*
 * Advise "apt install libc6-dbg libevent-2.1-7-dbgsym", each package once, and list the files
 * without one.
 */
static void advise(struct d9__doctor *doctor, char *const *packages, size_t n)
{
	char known[256] = "";
	bool own = false;

	for (size_t i = 0; i < n; i++) {
		size_t used = strlen(known);

		if (!packages[i])
			own = true;
		else if (!is_among(packages, i, packages[i]) && used + strlen(packages[i]) + 2 < sizeof(known))
			snprintf(known + used, sizeof(known) - used, " %s", packages[i]);
	}
	d9__doctor_advise(doctor, "%s%s%s%s", known[0] ? "apt install" : "", known, known[0] && own ? "; " : "",
			  own ? "build what is your own with -g" : "");
}

static void tell(struct d9__doctor *doctor, const char *const *lacking, size_t n, size_t all)
{
	char **packages = calloc(n, sizeof(*packages));
	char names[512] = "";

	for (size_t i = 0; i < n; i++) {
		size_t used = strlen(names);

		snprintf(names + used, sizeof(names) - used, "%s%s", i ? ", " : "", base_name(lacking[i]));
	}
	d9__doctor_note(doctor, "symbols", D9__CHECK_WARN, "no lines, and no functions but exported ones, of %zu of %zu "
			"files: %s", n, all, names);
	if (packages && !d9__debian_debug_packages(D9__DPKG_INFO, lacking, n, packages))
		advise(doctor, packages, n);
	for (size_t i = 0; packages && i < n; i++)
		free(packages[i]);
	free(packages);
}

void d9__doctor_symbols(struct d9__doctor *doctor, const char *const *files, size_t n)
{
	const char **lacking = calloc(n + 1, sizeof(*lacking));
	size_t n_lacking = 0;

	for (size_t i = 0; lacking && i < n; i++)
		if (!has_lines(files[i]))
			lacking[n_lacking++] = files[i];
	if (n_lacking)
		tell(doctor, lacking, n_lacking, n);
	else if (lacking)
		d9__doctor_note(doctor, "symbols", D9__CHECK_OK, "functions and lines of %zu file%s can be told", n,
				n == 1 ? "" : "s");
	free(lacking);
}
