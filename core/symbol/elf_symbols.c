/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <dial9/error.h>

#include "symbol/elf_symbols.h"

#include "analyze/budget.h"
#include "analyze/table.h"
#include "symbol/demangle.h"
#include "symbol/elf_file.h"
#include "symbol/ranges.h"

#define DEBUG_DIR    "/usr/lib/debug/.build-id"
#define MODULES_MAX  65536 /* far more than a process maps */
#define ALIKE_MAX    16    /* binaries of one base name that are looked into */
#define PROBLEMS_MAX 16384
#define OPENED_MAX   1024 /* files that are shared by their names */
#define UNINDEXED_MAX 1024 /* modules that are looked through one by one */

/* A file on disk, shared by all modules with its path and build-id. */
struct binary {
	char *path, *build_id;
	const char *name; /* base name, inside |path| */
	bool opened;
	struct d9__elf_file *file, *debug; /* NULL: missing, refused or not needed */
	bool shares_file;                  /* with another binary, which closes it */
	uint32_t older, n_alike;           /* of the same name: number + 1, 0: none; how many before it */
};

struct module {
	uint64_t base, start, end;
	uint32_t binary;
};

/* An answer given before, or a row of the trace's own table (binary == ROW). */
struct entry {
	uint64_t address;
	uint32_t binary;
	bool is_return, used, known;
	struct d9__symbol symbol;
};

enum { ROW = UINT32_MAX };

/* Of a table that is at least a third full, and while it grows. */
#define ROW_BYTES (4 * sizeof(struct entry))

struct d9__symbols {
	struct binary *binaries;
	size_t n_binaries;
	struct d9__texts binary_keys; /* binary i has text i */
	struct d9__texts names;       /* base names; newest[i]: number + 1 of the newest binary of text i */
	uint32_t *newest;
	size_t n_newest;
	struct module *modules; /* the newest last: it wins where two overlap */
	size_t n_modules;
	struct d9__texts module_keys; /* module i has text i */
	struct d9__ranges ranges;     /* of the first |n_indexed| modules */
	size_t n_indexed;
	struct d9__elf_file *opened[OPENED_MAX];
	size_t n_opened;
	struct entry *entries; /* open addressing; a power of two */
	size_t n_entries, max_entries;
	char **texts; /* what rows point into */
	size_t n_texts;
	char **problems; /* one sentence each */
	size_t n_problems;
};

int d9__symbols_new(struct d9__symbols **out)
{
	struct d9__symbols *symbols = calloc(1, sizeof(*symbols));

	if (!symbols)
		return -ENOMEM;
	*out = symbols;
	return 0;
}

void d9__symbols_free(struct d9__symbols *symbols)
{
	if (!symbols)
		return;
	for (size_t i = 0; i < symbols->n_binaries; i++) {
		if (!symbols->binaries[i].shares_file)
			d9__elf_file_close(symbols->binaries[i].file);
		d9__elf_file_close(symbols->binaries[i].debug);
		free(symbols->binaries[i].path);
		free(symbols->binaries[i].build_id);
	}
	for (size_t i = 0; i < symbols->n_texts; i++)
		free(symbols->texts[i]);
	for (size_t i = 0; i < symbols->n_problems; i++)
		free(symbols->problems[i]);
	free(symbols->binaries);
	free(symbols->modules);
	free(symbols->newest);
	d9__texts_release(&symbols->binary_keys);
	d9__texts_release(&symbols->names);
	d9__texts_release(&symbols->module_keys);
	d9__ranges_release(&symbols->ranges);
	free(symbols->entries);
	free(symbols->texts);
	free(symbols->problems);
	free(symbols);
}

/* Append |text| to a list of owned texts; takes it over.  NULL if out of memory. */
static char *keep_text(char ***list, size_t *n, char *text)
{
	char **bigger = text ? reallocarray(*list, *n + 1, sizeof(**list)) : NULL;

	if (!bigger) {
		free(text);
		return NULL;
	}
	*list = bigger;
	bigger[(*n)++] = text;
	return text;
}

/* ---- modules ---- */

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

/* Put |binary|, which has number |n|, before those of the same base name. */
static int link_name(struct d9__symbols *symbols, struct binary *binary, uint32_t n)
{
	uint32_t number, *newest;

	symbols->names.kind = D9__KEPT_MODULES;
	if (d9__texts_number(&symbols->names, binary->name, strlen(binary->name), &number))
		return -ENOMEM;
	if (number >= symbols->n_newest) {
		newest = reallocarray(symbols->newest, number + (size_t)64, sizeof(*newest));
		if (!newest)
			return -ENOMEM;
		memset(newest + symbols->n_newest, 0, (number + (size_t)64 - symbols->n_newest) * sizeof(*newest));
		symbols->newest = newest;
		symbols->n_newest = number + (size_t)64;
	}
	binary->older = symbols->newest[number];
	if (binary->older)
		binary->n_alike = symbols->binaries[binary->older - 1].n_alike + 1;
	symbols->newest[number] = n + 1;
	return 0;
}

/* The binary |n_binaries|, whose path stands behind its build-id and a newline in |key|. */
static int add_binary(struct d9__symbols *symbols, const char *key)
{
	struct binary *bigger = reallocarray(symbols->binaries, symbols->n_binaries + 1, sizeof(*bigger)), *binary;
	const char *end = strchrnul(key, '\n');
	int err = -ENOMEM;

	if (!bigger)
		return -ENOMEM;
	symbols->binaries = bigger;
	binary = &bigger[symbols->n_binaries];
	*binary = (struct binary){ .path = strdup(*end ? end + 1 : end), .build_id = strndup(key, (size_t)(end - key)) };
	if (binary->path && binary->build_id) {
		binary->name = base_name(binary->path);
		err = link_name(symbols, binary, (uint32_t)symbols->n_binaries);
	}
	if (err) {
		free(binary->path);
		free(binary->build_id);
		return err;
	}
	symbols->n_binaries++;
	return 0;
}

static int find_or_add_binary(struct d9__symbols *symbols, const struct d9__module *module,
			      uint32_t *out)
{
	size_t len = module->build_id_len + 1 + module->path_len;
	char *key = malloc(len);
	int err;

	if (!key)
		return -ENOMEM;
	if (module->build_id_len)
		memcpy(key, module->build_id, module->build_id_len);
	key[module->build_id_len] = '\n';
	if (module->path_len)
		memcpy(key + module->build_id_len + 1, module->path, module->path_len);
	symbols->binary_keys.each = 2 * sizeof(struct binary) + len;
	symbols->binary_keys.kind = D9__KEPT_MODULES;
	err = d9__texts_number(&symbols->binary_keys, key, len, out);
	free(key);
	while (!err && *out >= symbols->n_binaries)
		err = add_binary(symbols, symbols->binary_keys.items[symbols->n_binaries]);
	return err;
}

int d9__symbols_module_add(struct d9__symbols *symbols, const struct d9__module *module)
{
	struct module new = { .base = module->base, .start = module->start }, *bigger;
	uint64_t key[4];
	uint32_t number;
	int err;

	if (symbols->n_modules == MODULES_MAX) {
		d9__budget_leave_out(D9__KEPT_MODULES, 1);
		return 0;
	}
	err = find_or_add_binary(symbols, module, &new.binary);
	if (err)
		return err;
	if (__builtin_add_overflow(module->start, module->size, &new.end))
		new.end = UINT64_MAX;
	key[0] = new.base;
	key[1] = new.start;
	key[2] = new.end;
	key[3] = new.binary;
	symbols->module_keys.each = 4 * sizeof(new);
	symbols->module_keys.kind = D9__KEPT_MODULES;
	err = d9__texts_number(&symbols->module_keys, (const char *)key, sizeof(key), &number);
	/* It is there already, or there is no room for it. */
	if (err || number < symbols->n_modules || symbols->module_keys.full)
		return err;
	bigger = reallocarray(symbols->modules, symbols->n_modules + 1, sizeof(*bigger));
	if (!bigger)
		return -ENOMEM;
	symbols->modules = bigger;
	bigger[symbols->n_modules++] = new;
	return 0;
}

/* ---- files ---- */

static void note_problem(struct d9__symbols *symbols, const char *path, const char *what,
			 const char *advice)
{
	char *line;

	if (symbols->n_problems == PROBLEMS_MAX)
		d9__budget_leave_out(D9__KEPT_FILES, 1);
	else if (asprintf(&line, "%s: %s; %s", path, what, advice) >= 0)
		keep_text(&symbols->problems, &symbols->n_problems, line);
}

/* The debug file of |build_id| where distributions put it; NULL if there is none. */
static struct d9__elf_file *open_debug(const char *build_id)
{
	struct d9__elf_file *file = NULL;
	char path[sizeof(DEBUG_DIR) + 160];

	/* Hex only: the build-id comes from the trace and becomes part of a path. */
	if (strlen(build_id) < 3 || strlen(build_id) > 128 ||
	    build_id[strspn(build_id, "0123456789abcdef")])
		return NULL;
	snprintf(path, sizeof(path), DEBUG_DIR "/%.2s/%s.debug", build_id, build_id + 2);
	if (d9__elf_file_open(path, &file))
		return NULL;
	if (strcmp(d9__elf_file_build_id(file), build_id) != 0) {
		d9__elf_file_close(file);
		return NULL;
	}
	return file;
}

/* One file by many names is in memory once. */
static void share_file(struct d9__symbols *symbols, struct binary *binary)
{
	for (size_t i = 0; i < symbols->n_opened; i++) {
		struct d9__elf_file *other = symbols->opened[i];

		if (!d9__elf_file_same(other, binary->file))
			continue;
		d9__elf_file_close(binary->file);
		binary->file = other;
		binary->shares_file = true;
		return;
	}
	if (symbols->n_opened < OPENED_MAX)
		symbols->opened[symbols->n_opened++] = binary->file;
}

static void open_binary(struct d9__symbols *symbols, struct binary *binary)
{
	const char *advice = "its functions are shown as module+offset";
	int err;

	binary->opened = true;
	if (binary->path[0] != '/') /* the vDSO */
		return;
	err = d9__elf_file_open(binary->path, &binary->file);
	if (!err && strcmp(d9__elf_file_build_id(binary->file), binary->build_id) != 0) {
		d9__elf_file_close(binary->file);
		binary->file = NULL;
		err = -ESTALE;
	}
	if (!err)
		share_file(symbols, binary);
	binary->debug = open_debug(binary->build_id);
	if (binary->debug)
		return;
	if (err == -ESTALE)
		note_problem(symbols, binary->path, "has another build-id than the one recorded, not used",
			     advice);
	else if (err)
		note_problem(symbols, binary->path,
			     err == -EBADMSG ? "no ELF file"
			     : err == -EFBIG ? "its contents would take far more memory than the file"
					     : d9_strerror(err),
			     advice);
}

/* |name|, or what it stands for if it is mangled, which lives as long as |symbols|. */
static const char *readable(struct d9__symbols *symbols, const char *name)
{
	char *plain = name ? d9__demangle(name) : NULL;

	if (plain)
		plain = keep_text(&symbols->texts, &symbols->n_texts, plain);
	return plain ? plain : name;
}

static void look_up(struct d9__symbols *symbols, struct binary *binary, uint64_t address,
		    struct d9__symbol *out)
{
	struct d9__elf_file *files[2];

	if (!binary->opened)
		open_binary(symbols, binary);
	files[0] = binary->debug;
	files[1] = binary->file;
	for (size_t i = 0; i < 2; i++) {
		if (!files[i])
			continue;
		if (!out->function)
			out->function = readable(symbols, d9__elf_file_function(files[i], address));
		if (!out->path &&
		    d9__elf_file_line(files[i], address, &out->path, &out->line))
			out->file = base_name(out->path);
	}
}

/* ---- answers ---- */

static size_t hash(uint64_t address, uint32_t binary, bool is_return)
{
	uint64_t h = (address ^ ((uint64_t)binary << 40) ^ ((uint64_t)is_return << 63)) *
		     UINT64_C(0x9e3779b97f4a7c15);

	return (size_t)(h ^ h >> 29);
}

/* The place of a key: its entry, or the free one where it belongs. */
static struct entry *find_place(struct entry *entries, size_t max, uint64_t address,
				uint32_t binary, bool is_return)
{
	size_t i = hash(address, binary, is_return) & (max - 1);

	while (entries[i].used &&
	       (entries[i].address != address || entries[i].binary != binary ||
		entries[i].is_return != is_return))
		i = (i + 1) & (max - 1);
	return &entries[i];
}

/* Keep at least a third of the table free. */
static int make_room(struct d9__symbols *symbols)
{
	size_t max = symbols->max_entries ? symbols->max_entries * 2 : 1024;
	struct entry *entries;

	if (symbols->n_entries * 3 < symbols->max_entries * 2)
		return 0;
	entries = calloc(max, sizeof(*entries));
	if (!entries)
		return -ENOMEM;
	for (size_t i = 0; i < symbols->max_entries; i++) {
		const struct entry *old = &symbols->entries[i];

		if (old->used)
			*find_place(entries, max, old->address, old->binary, old->is_return) = *old;
	}
	free(symbols->entries);
	symbols->entries = entries;
	symbols->max_entries = max;
	return 0;
}

/* The answer for |address| of |binary|, from the cache or the files. */
static bool answer(struct d9__symbols *symbols, uint32_t binary, uint64_t address, bool is_return,
		   struct d9__symbol *out)
{
	struct entry *entry, fresh = { .address = address, .binary = binary,
				       .is_return = is_return, .used = true };
	int err = make_room(symbols);

	entry = err ? &fresh
		    : find_place(symbols->entries, symbols->max_entries, address, binary, is_return);
	if (err || !entry->used) {
		fresh.symbol.module = symbols->binaries[binary].name;
		fresh.symbol.offset = address;
		look_up(symbols, &symbols->binaries[binary], address - is_return, &fresh.symbol);
		fresh.known = fresh.symbol.function || fresh.symbol.file;
		*entry = fresh;
		symbols->n_entries += !err;
	}
	*out = entry->symbol;
	return entry->known;
}

int d9__symbols_row_add(struct d9__symbols *symbols, uint64_t address, const char *name,
			size_t name_len, const char *file, size_t file_len, unsigned line)
{
	struct d9__symbol symbol = { .line = line };
	struct entry *entry;

	if (make_room(symbols))
		return -ENOMEM;
	entry = find_place(symbols->entries, symbols->max_entries, address, ROW, false);
	if (entry->used || !d9__budget_take(D9__KEPT_SYMBOLS, ROW_BYTES + name_len + file_len))
		return 0;
	symbol.function = readable(symbols, keep_text(&symbols->texts, &symbols->n_texts,
						      strndup(name, name_len)));
	if (file_len)
		symbol.path = keep_text(&symbols->texts, &symbols->n_texts, strndup(file, file_len));
	if (!symbol.function || (file_len && !symbol.path))
		return -ENOMEM;
	symbol.file = symbol.path ? base_name(symbol.path) : NULL;
	*entry = (struct entry){ .address = address, .binary = ROW, .used = true, .known = true,
				 .symbol = symbol };
	symbols->n_entries++;
	return 0;
}

static bool parse_offset(const char *text, const char *end, uint64_t *out)
{
	uint64_t n = 0;

	if (text == end || end - text > 16)
		return false;
	for (; text < end; text++) {
		const char *digits = "0123456789abcdef", *digit = strchr(digits, *text);

		if (!*text || !digit)
			return false;
		n = n << 4 | (uint64_t)(digit - digits);
	}
	*out = n;
	return true;
}

/* The newest binary of that base name, with a usable file if there is one.  n_binaries if none. */
static size_t find_binary(struct d9__symbols *symbols, const char *name, size_t len)
{
	size_t found = symbols->n_binaries;
	uint32_t number, next, looks = 0;

	if (!d9__texts_find(&symbols->names, name, len, &number) || number >= symbols->n_newest)
		return found;
	for (next = symbols->newest[number]; next && looks < ALIKE_MAX; looks++) {
		struct binary *binary = &symbols->binaries[next - 1];

		if (!binary->opened)
			open_binary(symbols, binary);
		if (binary->file || binary->debug)
			return next - 1;
		if (found == symbols->n_binaries)
			found = next - 1;
		next = binary->older;
	}
	if (next)
		d9__budget_leave_out(D9__KEPT_FILES, 1);
	return found;
}

bool d9__symbols_name(struct d9__symbols *symbols, const char *text, size_t len, bool is_return,
		      struct d9__symbol *out)
{
	const char *plus = memrchr(text, '+', len);
	uint64_t offset;
	size_t binary;

	*out = (struct d9__symbol){ 0 };
	if (!plus || len - (size_t)(plus - text) < 4 || plus[1] != '0' || plus[2] != 'x' ||
	    !parse_offset(plus + 3, text + len, &offset))
		return false;
	binary = find_binary(symbols, text, (size_t)(plus - text));
	if (binary == symbols->n_binaries)
		return false;
	return answer(symbols, (uint32_t)binary, offset, is_return, out);
}

/* The newest module wins where two overlap. */
static const struct module *find_module(struct d9__symbols *symbols, uint64_t address)
{
	const struct module *modules = symbols->modules;
	size_t i;

	if (symbols->n_modules - symbols->n_indexed > UNINDEXED_MAX &&
	    !d9__ranges_build(&symbols->ranges, &modules->start, &modules->end, sizeof(*modules), symbols->n_modules))
		symbols->n_indexed = symbols->n_modules;
	for (i = symbols->n_modules; i-- > symbols->n_indexed;)
		if (address >= modules[i].start && address < modules[i].end)
			return &modules[i];
	i = d9__ranges_find(&symbols->ranges, address);
	return i < symbols->n_indexed ? &modules[i] : NULL;
}

static bool find_row(const struct d9__symbols *symbols, uint64_t address, struct d9__symbol *out)
{
	const struct entry *entry;

	if (!symbols->max_entries)
		return false;
	entry = find_place(symbols->entries, symbols->max_entries, address, ROW, false);
	if (entry->used)
		*out = entry->symbol;
	return entry->used;
}

bool d9__symbols_address(struct d9__symbols *symbols, uint64_t address, bool is_return,
			 struct d9__symbol *out)
{
	const struct module *module;

	*out = (struct d9__symbol){ 0 };
	if (find_row(symbols, address, out))
		return true;
	module = find_module(symbols, address);
	return module && answer(symbols, module->binary, address - module->base, is_return, out);
}

const char *d9__symbols_problem(const struct d9__symbols *symbols, size_t i)
{
	return i < symbols->n_problems ? symbols->problems[i] : NULL;
}
