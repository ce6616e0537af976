/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwelf.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analyze/budget.h"
#include "symbol/elf_file.h"

#define BLOCK_BYTES   512 /* of st_blocks */
#define LOADED_FACTOR 4
#define EXCESS_MAX    ((uint64_t)32 << 20) /* some file systems tell late what they have stored */

/* A function.  Sorted by start; one per start address. */
struct function {
	uint64_t start, end;
	const char *name; /* in the ELF string table */
	unsigned rank;    /* of several names for one address the highest wins */
};

/* The addresses of a compilation unit, for files whose compiler wrote no .debug_aranges. */
struct unit {
	uint64_t start, end;
	Dwarf_Off die;
};

struct d9__elf_file {
	int fd;
	dev_t dev;
	ino_t ino;
	Elf *elf;
	Dwarf *dwarf;
	char build_id[2 * 64 + 1];
	bool has_symtab;
	bool functions_read, dwarf_opened, units_read;
	struct function *functions;
	size_t n_functions, max_functions;
	struct unit *units;
	size_t n_units, max_units;
};

static void read_build_id(struct d9__elf_file *file)
{
	static const char digits[] = "0123456789abcdef";
	const void *id;
	ssize_t len = dwelf_elf_gnu_build_id(file->elf, &id);

	for (ssize_t i = 0; i < len && i < 64; i++) {
		unsigned byte = ((const unsigned char *)id)[i];

		file->build_id[2 * i] = digits[byte >> 4];
		file->build_id[2 * i + 1] = digits[byte & 15];
	}
}

/* A path from a trace may name anything: regular files only, and a FIFO must not block. */
static int open_regular(const char *path, struct stat *st)
{
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);

	if (fd < 0)
		return -errno;
	if (fstat(fd, st) || !S_ISREG(st->st_mode)) {
		close(fd);
		return -EBADMSG;
	}
	return fd;
}

/* Bytes that |section| has in memory once it is read, and unpacked. */
static uint64_t loaded_bytes(Elf_Scn *section)
{
	GElf_Shdr header;
	GElf_Chdr packed;

	if (!gelf_getshdr(section, &header) || header.sh_type == SHT_NOBITS)
		return 0;
	if (header.sh_flags & SHF_COMPRESSED && gelf_getchdr(section, &packed) && packed.ch_size > header.sh_size)
		return packed.ch_size;
	return header.sh_size;
}

/*
 * Whether what libelf and libdw may read of |elf| is about as much as the |stored_bytes| of it that are on a
 * disk: files with holes, sections that overlap and what unpacks without end are not.  Debug information is
 * packed to a quarter.
 */
static bool is_bounded(Elf *elf, uint64_t stored_bytes)
{
	uint64_t justified = LOADED_FACTOR * stored_bytes, loaded = 0;
	Elf_Scn *section = NULL;

	while ((section = elf_nextscn(elf, section))) {
		uint64_t bytes = loaded_bytes(section);

		if (bytes > justified + EXCESS_MAX - loaded)
			return false;
		loaded += bytes;
	}
	return loaded <= justified || d9__budget_take(D9__KEPT_FILES, (size_t)(loaded - justified));
}

bool d9__elf_file_same(const struct d9__elf_file *a, const struct d9__elf_file *b)
{
	return a->dev == b->dev && a->ino == b->ino;
}

int d9__elf_file_open(const char *path, struct d9__elf_file **out)
{
	struct d9__elf_file *file;
	struct stat st;
	int fd = open_regular(path, &st);

	if (fd < 0)
		return fd;
	file = calloc(1, sizeof(*file));
	if (!file) {
		close(fd);
		return -ENOMEM;
	}
	file->fd = fd;
	file->dev = st.st_dev;
	file->ino = st.st_ino;
	elf_version(EV_CURRENT);
	/* Not mapped: a file that is cut while we read it must not be a SIGBUS. */
	file->elf = elf_begin(fd, ELF_C_READ, NULL);
	if (!file->elf || elf_kind(file->elf) != ELF_K_ELF) {
		d9__elf_file_close(file);
		return -EBADMSG;
	}
	if (!is_bounded(file->elf, (uint64_t)st.st_blocks * BLOCK_BYTES)) {
		d9__elf_file_close(file);
		return -EFBIG;
	}
	read_build_id(file);
	*out = file;
	return 0;
}

void d9__elf_file_close(struct d9__elf_file *file)
{
	if (!file)
		return;
	if (file->dwarf)
		dwarf_end(file->dwarf);
	if (file->elf)
		elf_end(file->elf);
	close(file->fd);
	free(file->functions);
	free(file->units);
	free(file);
}

const char *d9__elf_file_build_id(const struct d9__elf_file *file)
{
	return file->build_id;
}

/* Room for one more element of |size| bytes; false if out of memory. */
static bool grow(void **array, size_t n, size_t *max, size_t size)
{
	size_t wanted = *max ? *max * 2 : 256;
	void *bigger;

	if (n < *max)
		return true;
	bigger = reallocarray(*array, wanted, size);
	if (!bigger)
		return false;
	*array = bigger;
	*max = wanted;
	return true;
}

static unsigned rank_symbol(const GElf_Sym *sym, const char *name)
{
	unsigned rank = name[0] == '_' ? 0 : 1;

	if (GELF_ST_BIND(sym->st_info) == STB_GLOBAL)
		rank += 4;
	else if (GELF_ST_BIND(sym->st_info) == STB_WEAK)
		rank += 2;
	return sym->st_size ? rank + 8 : rank;
}

static void add_function(struct d9__elf_file *file, const GElf_Sym *sym, const char *name)
{
	unsigned type = GELF_ST_TYPE(sym->st_info);
	struct function *function;

	if ((type != STT_FUNC && type != STT_GNU_IFUNC) || sym->st_shndx == SHN_UNDEF)
		return;
	if (!name || !*name ||
	    !grow((void **)&file->functions, file->n_functions, &file->max_functions,
		  sizeof(*file->functions)))
		return;
	function = &file->functions[file->n_functions++];
	function->start = sym->st_value;
	if (__builtin_add_overflow(sym->st_value, sym->st_size, &function->end))
		function->end = UINT64_MAX;
	function->name = name;
	function->rank = rank_symbol(sym, name);
}

static void add_table(struct d9__elf_file *file, Elf_Scn *section, const GElf_Shdr *header)
{
	Elf_Data *data = elf_getdata(section, NULL);
	size_t n = header->sh_entsize ? header->sh_size / header->sh_entsize : 0;
	GElf_Sym sym;

	for (size_t i = 0; data && i < n && i <= INT32_MAX; i++)
		if (gelf_getsym(data, (int)i, &sym))
			add_function(file, &sym,
				     elf_strptr(file->elf, header->sh_link, sym.st_name));
}

static int compare_functions(const void *a, const void *b)
{
	const struct function *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	if (x->rank != y->rank)
		return x->rank > y->rank ? -1 : 1;
	return strcmp(x->name, y->name);
}

/* Sort, keep the best name of each address, and let a function without size reach to the next. */
static void order_functions(struct d9__elf_file *file)
{
	struct function *functions = file->functions;
	size_t n = 0;

	if (!file->n_functions)
		return;
	qsort(functions, file->n_functions, sizeof(*functions), compare_functions);
	for (size_t i = 0; i < file->n_functions; i++)
		if (!n || functions[n - 1].start != functions[i].start)
			functions[n++] = functions[i];
	file->n_functions = n;
	for (size_t i = 0; i < n; i++)
		if (functions[i].end == functions[i].start)
			functions[i].end = i + 1 < n ? functions[i + 1].start : UINT64_MAX;
}

static void read_functions(struct d9__elf_file *file)
{
	Elf_Scn *section = NULL;
	GElf_Shdr header;

	if (file->functions_read)
		return;
	file->functions_read = true;
	while ((section = elf_nextscn(file->elf, section))) {
		if (!gelf_getshdr(section, &header))
			continue;
		if (header.sh_type == SHT_SYMTAB)
			file->has_symtab = true;
		if (header.sh_type == SHT_SYMTAB || header.sh_type == SHT_DYNSYM)
			add_table(file, section, &header);
	}
	order_functions(file);
}

bool d9__elf_file_has_symtab(const struct d9__elf_file *file)
{
	read_functions((struct d9__elf_file *)file);
	return file->has_symtab;
}

const char *d9__elf_file_function(struct d9__elf_file *file, uint64_t address)
{
	size_t low = 0, high;

	read_functions(file);
	high = file->n_functions;
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (file->functions[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low || address >= file->functions[low - 1].end)
		return NULL;
	return file->functions[low - 1].name;
}

static void add_unit(struct d9__elf_file *file, Dwarf_Die *die)
{
	Dwarf_Addr base, start, end;
	ptrdiff_t next = 0;

	while ((next = dwarf_ranges(die, next, &base, &start, &end)) > 0) {
		if (!grow((void **)&file->units, file->n_units, &file->max_units,
			  sizeof(*file->units)))
			return;
		file->units[file->n_units++] =
			(struct unit){ start, end, dwarf_dieoffset(die) };
	}
}

static int compare_units(const void *a, const void *b)
{
	const struct unit *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

static void read_units(struct d9__elf_file *file)
{
	Dwarf_Off offset = 0, next;
	size_t header_len;
	Dwarf_Die die;

	file->units_read = true;
	while (!dwarf_nextcu(file->dwarf, offset, &next, &header_len, NULL, NULL, NULL)) {
		if (dwarf_offdie(file->dwarf, offset + header_len, &die))
			add_unit(file, &die);
		offset = next;
	}
	if (file->n_units)
		qsort(file->units, file->n_units, sizeof(*file->units), compare_units);
}

/* The unit of |address| by our own table: clang writes no .debug_aranges. */
static Dwarf_Die *find_unit(struct d9__elf_file *file, uint64_t address, Dwarf_Die *die)
{
	size_t low = 0, high;

	if (!file->units_read)
		read_units(file);
	high = file->n_units;
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (file->units[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low || address >= file->units[low - 1].end)
		return NULL;
	return dwarf_offdie(file->dwarf, file->units[low - 1].die, die);
}

static bool open_dwarf(struct d9__elf_file *file)
{
	if (!file->dwarf_opened)
		file->dwarf = dwarf_begin_elf(file->elf, DWARF_C_READ, NULL);
	file->dwarf_opened = true;
	return file->dwarf != NULL;
}

/*
 * Where the function that begins at |address| is written: by the rows of lines that is in another one, if the compiler
 * put a call of that one inline at its beginning.  One level of the tree is enough, and of any depth safe.
 */
static bool find_function(Dwarf_Die *unit, uint64_t address, const char **path, unsigned *line)
{
	Dwarf_Addr start;
	Dwarf_Die die;
	int number;

	for (int err = dwarf_child(unit, &die); !err; err = dwarf_siblingof(&die, &die)) {
		if (dwarf_tag(&die) != DW_TAG_subprogram || dwarf_entrypc(&die, &start) || start != address)
			continue;
		if (dwarf_decl_line(&die, &number) || number <= 0)
			return false;
		*path = dwarf_decl_file(&die);
		*line = (unsigned)number;
		return *path != NULL;
	}
	return false;
}

bool d9__elf_file_line(struct d9__elf_file *file, uint64_t address, const char **path,
		       unsigned *line)
{
	Dwarf_Die memory, *die;
	Dwarf_Line *row;
	int number;

	if (!open_dwarf(file))
		return false;
	die = dwarf_addrdie(file->dwarf, address, &memory);
	if (!die)
		die = find_unit(file, address, &memory);
	if (die && find_function(die, address, path, line))
		return true;
	row = die ? dwarf_getsrc_die(die, address) : NULL;
	if (!row || dwarf_lineno(row, &number) || number <= 0)
		return false;
	*path = dwarf_linesrc(row, NULL, NULL);
	*line = (unsigned)number;
	return *path != NULL;
}
