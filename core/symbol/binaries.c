/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <dial9/error.h>

#include "analyze/budget.h"
#include "analyze/texts.h"
#include "base/array.h"
#include "base/hash.h"
#include "symbol/binaries.h"

#define ALIKE_MAX    16 /* binaries of one base name that are looked into */
#define PROBLEMS_MAX 16384
#define OPENED_MAX   1024 /* files that are shared by their names */

struct d9__binaries {
	struct d9__debug_places places;
	struct d9__binary *items;
	size_t n;
	struct d9__texts keys;	/* binary i has text i */
	struct d9__texts names; /* base names; newest[i]: number + 1 of the newest binary of text i */
	uint32_t *newest;
	size_t n_newest;
	struct d9__elf_file *opened[OPENED_MAX];
	size_t n_opened;
	char **problems; /* one sentence each */
	size_t n_problems;
};

int d9__binaries_new(const struct d9__debug_places *places, struct d9__binaries **out)
{
	struct d9__binaries *binaries = calloc(1, sizeof(*binaries));

	if (!binaries)
		return -ENOMEM;
	if (places)
		binaries->places = *places;
	binaries->names.kind = binaries->keys.kind = D9__KEPT_MODULES;
	*out = binaries;
	return 0;
}

static void release_binary(struct d9__binary *binary)
{
	d9__elf_functions_release(&binary->functions);
	d9__dwarf_close(binary->dwarf);
	d9__elf_file_close(binary->packed);
	d9__elf_file_close(binary->debug);
	free(binary->path);
	free(binary->build_id);
	free(binary->refused);
}

void d9__binaries_free(struct d9__binaries *binaries)
{
	if (!binaries)
		return;
	for (size_t i = 0; i < binaries->n; i++)
		release_binary(&binaries->items[i]);
	/* Several may share one, and what was made of it is gone by now. */
	for (size_t i = 0; i < binaries->n; i++)
		if (!binaries->items[i].shares_file)
			d9__elf_file_close(binaries->items[i].file);
	for (size_t i = 0; i < binaries->n_problems; i++)
		free(binaries->problems[i]);
	free(binaries->items);
	free(binaries->newest);
	free(binaries->problems);
	d9__texts_release(&binaries->keys);
	d9__texts_release(&binaries->names);
	free(binaries);
}

/* ---- which there are ---- */

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

/* Put |binary|, which has number |n|, before those of the same base name. */
static int link_name(struct d9__binaries *binaries, struct d9__binary *binary, uint32_t n)
{
	uint32_t number;

	if (d9__texts_number(&binaries->names, binary->name, strlen(binary->name), &number))
		return -ENOMEM;
	if (!d9__array_reach(binaries->newest, &binaries->n_newest, number))
		return -ENOMEM;
	binary->older = binaries->newest[number];
	if (binary->older)
		binary->n_alike = binaries->items[binary->older - 1].n_alike + 1;
	binaries->newest[number] = n + 1;
	return 0;
}

/* Read three numbers, each with a space behind it, into |out|.  Returns the byte behind them. */
static const char *read_facts(const char *key, struct d9__elf_facts *out)
{
	uint64_t *const numbers[] = { &out->size, &out->mtime_ns, &out->inode };
	char *end;

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		*numbers[i] = strtoull(key, &end, 16);
		key = end + 1;
	}
	return key;
}

/* Make the next binary: |key| has its facts, its build-id, and behind a newline its path. */
static int add_binary(struct d9__binaries *binaries, const char *key)
{
	struct d9__elf_facts facts;
	struct d9__binary *binary;
	const char *end;
	int err = -ENOMEM;

	key = read_facts(key, &facts);
	end = strchrnul(key, '\n');

	if (!d9__array_grow(binaries->items, binaries->n))
		return -ENOMEM;
	binary = &binaries->items[binaries->n];
	*binary = (struct d9__binary) { .path = strdup(*end ? end + 1 : end),
					.build_id = strndup(key, (size_t)(end - key)),
					.facts = facts };
	if (binary->path && binary->build_id) {
		/* Old traces have no path of a program that had no /proc. */
		binary->name = *binary->path ? base_name(binary->path) : "[program]";
		err = link_name(binaries, binary, (uint32_t)binaries->n);
	}
	if (err) {
		free(binary->path);
		free(binary->build_id);
		return err;
	}
	binaries->n++;
	return 0;
}

/* Bytes of |text| that count: a longer path is none. */
static int width_of(const struct d9_text *text)
{
	return text->len < PATH_MAX ? (int)text->len : PATH_MAX;
}

int d9__binaries_number(struct d9__binaries *binaries, const struct d9_text *path,
			const struct d9_text *build_id, const struct d9__elf_facts *facts,
			uint32_t *number)
{
	char *key;
	int err, len = asprintf(&key, "%" PRIx64 " %" PRIx64 " %" PRIx64 " %.*s\n%.*s", facts->size,
				facts->mtime_ns, facts->inode, width_of(build_id), build_id->data,
				width_of(path), path->data);

	if (len < 0)
		return -ENOMEM;
	binaries->keys.each = 2 * sizeof(struct d9__binary) + (size_t)len;
	err = d9__texts_number(&binaries->keys, key, (size_t)len, number);
	free(key);
	while (!err && *number >= binaries->n)
		err = add_binary(binaries, binaries->keys.items[binaries->n]);
	return err;
}

size_t d9__binaries_count(const struct d9__binaries *binaries)
{
	return binaries->n;
}

const struct d9__binary *d9__binaries_get(const struct d9__binaries *binaries, uint32_t number)
{
	return &binaries->items[number];
}

uint32_t d9__binaries_find(struct d9__binaries *binaries, const char *name, size_t len)
{
	uint32_t found = D9__NO_BINARY, number, next, looks = 0;

	if (!d9__texts_find(&binaries->names, name, len, &number) || number >= binaries->n_newest)
		return found;
	for (next = binaries->newest[number]; next && looks < ALIKE_MAX; looks++) {
		const struct d9__binary *binary = d9__binaries_open(binaries, next - 1);

		if (binary->fate == D9__BINARY_FOUND)
			return next - 1;
		if (found == D9__NO_BINARY)
			found = next - 1;
		next = binary->older;
	}
	if (next)
		d9__budget_leave_out(D9__KEPT_FILES, 1);
	return found;
}

/* ---- files ---- */

void d9__binaries_note_answer(struct d9__binaries *binaries, uint32_t number, bool named)
{
	binaries->items[number].answers++;
	binaries->items[number].nameless += !named;
}

static void add_problem(struct d9__binaries *binaries, const char *path, const char *what,
			const char *end)
{
	char *line;

	if (binaries->n_problems == PROBLEMS_MAX) {
		d9__budget_leave_out(D9__KEPT_FILES, 1);
		return;
	}
	if (asprintf(&line, "%s: %s; %s", path, what, end) < 0)
		return;
	if (d9__array_grow(binaries->problems, binaries->n_problems))
		binaries->problems[binaries->n_problems++] = line;
	else
		free(line);
}

static void note_problem(struct d9__binaries *binaries, const char *path, const char *what)
{
	add_problem(binaries, path, what, "its functions are shown as module+offset");
}

/* One file by many names is in memory once. */
static void share_file(struct d9__binaries *binaries, struct d9__binary *binary)
{
	for (size_t i = 0; i < binaries->n_opened; i++) {
		struct d9__elf_file *other = binaries->opened[i];

		if (!d9__elf_file_same(other, binary->file))
			continue;
		d9__elf_file_close(binary->file);
		binary->file = other;
		binary->shares_file = true;
		return;
	}
	if (binaries->n_opened < OPENED_MAX)
		binaries->opened[binaries->n_opened++] = binary->file;
}

/* Open the file at the recorded path.  0, -ESTALE if it is another one, or why it cannot be used.
 */
static int open_file(struct d9__binaries *binaries, struct d9__binary *binary)
{
	int err = d9__elf_file_open(binary->path, &binary->file);

	if (err)
		return err;
	if (!strcmp(d9__elf_file_build_id(binary->file), binary->build_id) &&
	    d9__elf_file_fits(binary->file, &binary->facts, false)) {
		share_file(binaries, binary);
		return 0;
	}
	d9__elf_file_close(binary->file);
	binary->file = NULL;
	return -ESTALE;
}

/* The vDSO has a name and no path.  That of another kernel has another build-id. */
static void open_vdso(struct d9__binary *binary)
{
	struct d9__elf_file *file = strstr(binary->path, "vdso") ? d9__debug_vdso_open() : NULL;

	binary->fate = D9__BINARY_NO_FILE;
	if (file && *binary->build_id && !strcmp(d9__elf_file_build_id(file), binary->build_id)) {
		binary->fate = D9__BINARY_FOUND;
		binary->file = file;
	} else {
		d9__elf_file_close(file);
	}
}

const char *d9__binary_refusal(const struct d9__binary *binary)
{
	return *binary->build_id
		       ? "has another build-id than the recorded one, not used"
		       : "has another size, time or inode than the recorded one, not used";
}

/* Note once that lines of |binary| are left out: a part of its debug information is not there. */
static void note_split(struct d9__binaries *binaries, struct d9__binary *binary)
{
	const char *missing =
		binary->dwarf && !binary->split ? d9__dwarf_missing(binary->dwarf) : NULL;

	if (!missing)
		return;
	binary->split = missing;
	add_problem(binaries, missing, "not found",
		    "lines and inlined functions of its program are left out");
}

static void explain(struct d9__binaries *binaries, struct d9__binary *binary, int err)
{
	binary->fate = err == -ESTALE ? D9__BINARY_REFUSED : D9__BINARY_MISSING;
	note_problem(binaries, binary->path,
		     err == -ESTALE    ? d9__binary_refusal(binary)
		     : err == -EBADMSG ? "no ELF file"
		     : err == -EFBIG   ? "its contents would take far more memory than the file"
				       : d9_strerror(err));
}

static void open_binary(struct d9__binaries *binaries, struct d9__binary *binary)
{
	struct d9__debug_search search = { .places = &binaries->places,
					   .path = binary->path,
					   .build_id = binary->build_id,
					   .facts = &binary->facts };
	int err;

	if (binary->path[0] != '/') {
		open_vdso(binary);
		return;
	}
	err = open_file(binaries, binary);
	search.binary = binary->file;
	binary->debug = d9__debug_file_find(&search);
	if (!binary->debug && *search.refused)
		binary->refused = strdup(search.refused);
	if (binary->refused)
		note_problem(binaries, search.refused,
			     "has another build-id than its binary, not used");
	if (err && !binary->debug)
		explain(binaries, binary, err);
	else
		binary->fate = D9__BINARY_FOUND;
}

const struct d9__binary *d9__binaries_open(struct d9__binaries *binaries, uint32_t number)
{
	struct d9__binary *binary = &binaries->items[number];

	if (binary->fate == D9__BINARY_UNOPENED)
		open_binary(binaries, binary);
	return binary;
}

uint64_t d9__binaries_stamp(struct d9__binaries *binaries, uint32_t number)
{
	const struct d9__binary *binary = d9__binaries_open(binaries, number);
	const uint64_t facts[] = {
		binary->file ? d9__elf_file_bytes(binary->file) : 0,
		binary->debug ? d9__elf_file_bytes(binary->debug) : 0,
#ifdef HAVE_LIBIBERTY
		4, /* C++ and Rust, and .dwo files */
#endif
#ifdef HAVE_LZMA
		2,
#endif
	};

	/* Not a secret: it has to be the same in the next run. */
	return binary->fate == D9__BINARY_FOUND ? d9__hash_bytes(1, facts, sizeof(facts)) | 1 : 0;
}

/* ---- what is in them ---- */

static void read_binary(struct d9__binary *binary)
{
	struct d9__elf_file *files[] = { binary->debug, binary->file, NULL };

	binary->read = true;
	if (binary->file && !binary->debug)
		files[2] = binary->packed = d9__debug_data_open(binary->file);
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		if (!files[i])
			continue;
		d9__elf_functions_add(&binary->functions, files[i]);
		if (!binary->dwarf && d9__dwarf_open(files[i], &binary->dwarf))
			binary->dwarf = NULL;
	}
	d9__elf_functions_order(&binary->functions);
}

/*
 * The name in the symbol table is what people call the function by (read, and not __GI___libc_read), unless the
 * compiler made it of a function's name and a dot: then that function is meant.
 */
static const char *choose_name(const struct d9__elf_function *function, const char *in_source)
{
	if (!function)
		return in_source;
	return in_source && strchr(function->name, '.') ? in_source : function->name;
}

size_t d9__binaries_frames(struct d9__binaries *binaries, uint32_t number, uint64_t address,
			   enum d9__address_role role, struct d9__dwarf_frame frames[D9__DWARF_DEPTH_MAX])
{
	struct d9__binary *binary = &binaries->items[number];
	const struct d9__elf_function *function;
	size_t n = 0;

	if (d9__binaries_open(binaries, number)->fate != D9__BINARY_FOUND)
		return 0;
	if (!binary->read)
		read_binary(binary);
	address -= role == D9__RETURN;
	function = d9__elf_functions_find(&binary->functions, address);
	if (binary->dwarf && role == D9__ENTRY)
		n = d9__dwarf_entry(binary->dwarf, address, frames);
	if (binary->dwarf && !n)
		n = d9__dwarf_frames(binary->dwarf, address, frames);
	note_split(binaries, binary);
	if (!n && function) {
		frames[0] = (struct d9__dwarf_frame){ 0 };
		n = 1;
	}
	if (n)
		frames[n - 1].function = choose_name(function, frames[n - 1].function);
	if (n && role == D9__ENTRY) {
		frames[0] = frames[n - 1];
		n = 1;
	}
	return n;
}

const char *d9__binaries_problem(const struct d9__binaries *binaries, size_t i)
{
	return i < binaries->n_problems ? binaries->problems[i] : NULL;
}
