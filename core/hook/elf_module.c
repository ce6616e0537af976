/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <ctype.h>
#include <string.h>
#include <sys/auxv.h>

#include "base/own_memory.h"
#include "hook/elf_module.h"

#define DYN_AT_ONCE 32

/* ---- reading ---- */

#define PAGE	   4096u
#define BLOCK	   16384u
#define PAGES	   2u  /* blocks of what is read in order */
#define NAME_PAGES 16u /* names are read here and there */

/* Of a block of memory from the page on that was asked for first: what lies before it may not be mapped. */
struct page {
	uintptr_t at, end; /* both 0: none */
	size_t len;	   /* that could be read */
	uint8_t bytes[BLOCK];
};

/* Under the patch lock. */
static struct page pages[PAGES], word_pages[PAGES], name_pages[NAME_PAGES];

void d9__elf_forget_pages(void)
{
	for (unsigned i = 0; i < PAGES; i++)
		pages[i].end = word_pages[i].end = 0;
	for (unsigned i = 0; i < NAME_PAGES; i++)
		name_pages[i].end = 0;
}

/* As much of |address| as is in one of the |n| blocks. */
static size_t read_in_page(struct page *page, unsigned n, uintptr_t address, void *out, size_t len)
{
	uintptr_t offset;

	page += address / BLOCK % n;
	if (address < page->at || address >= page->end) {
		page->at = address & ~(uintptr_t)(PAGE - 1);
		page->end = (address / BLOCK + 1) * BLOCK;
		page->len = d9__own_memory_read(page->at, page->bytes, page->end - page->at);
	}
	offset = address - page->at;
	if (offset >= page->len)
		return 0;
	if (len > page->len - offset)
		len = page->len - offset;
	memcpy(out, page->bytes + offset, len);
	return len;
}

static bool read_by_pages(struct page *page, unsigned n_pages, uintptr_t address, void *out, size_t len)
{
	size_t got = 0, n = 1;

	for (; got < len && n; got += n)
		n = read_in_page(page, n_pages, address + got, (char *)out + got, len - got);
	return got == len;
}

static bool read_in_order(uintptr_t address, void *out, size_t len)
{
	return read_by_pages(pages, PAGES, address, out, len);
}

/* ---- modules ---- */

/* glibc relocates the addresses of a dynamic section in place, other C libraries leave offsets. */
static uintptr_t absolute(const struct d9__elf_module *mod, uintptr_t addr)
{
	return addr < mod->base ? addr + mod->base : addr;
}

static const void *table_at(const struct d9__elf_module *mod, uintptr_t addr)
{
	return (const void *)absolute(mod, addr);
}

static void read_segment(struct d9__elf_module *mod, const ElfW(Phdr) *seg, uintptr_t page)
{
	uintptr_t start = mod->base + seg->p_vaddr, end = start + seg->p_memsz;

	switch (seg->p_type) {
	case PT_LOAD:
		if (start < mod->low)
			mod->low = start;
		if (end > mod->high)
			mod->high = end;
		if ((seg->p_flags & (PF_W | PF_X)) == PF_W && mod->n_data < D9__ELF_DATA_MAX) {
			mod->data[mod->n_data].low = start;
			mod->data[mod->n_data++].high = end;
		}
		break;
	case PT_DYNAMIC:
		mod->dynamic = start;
		break;
	case PT_GNU_RELRO:
		/* Rounded as the loader does: the last partial page stays writable. */
		mod->relro_low = start & ~(page - 1);
		mod->relro_high = end & ~(page - 1);
		break;
	default:
		break;
	}
}

static void read_entry(struct d9__elf_module *mod, const ElfW(Dyn) *dyn)
{
	switch (dyn->d_tag) {
	case DT_STRTAB:
		mod->strings = table_at(mod, dyn->d_un.d_ptr);
		break;
	case DT_STRSZ:
		mod->strings_len = dyn->d_un.d_val;
		break;
	case DT_SYMTAB:
		mod->symbols = table_at(mod, dyn->d_un.d_ptr);
		break;
	case DT_RELA:
		mod->rela = table_at(mod, dyn->d_un.d_ptr);
		break;
	case DT_RELASZ:
		mod->n_rela = dyn->d_un.d_val / sizeof(ElfW(Rela));
		break;
	case DT_JMPREL:
		mod->jmprel = table_at(mod, dyn->d_un.d_ptr);
		break;
	case DT_PLTRELSZ:
		mod->n_jmprel = dyn->d_un.d_val / sizeof(ElfW(Rela));
		break;
	case DT_GNU_HASH:
		mod->gnu_hash = table_at(mod, dyn->d_un.d_ptr);
		break;
	case DT_HASH:
		mod->sysv_hash = table_at(mod, dyn->d_un.d_ptr);
		break;
	default:
		break;
	}
}

/* How many entries of the dynamic section from |at| on are in |out|, of which the last one may end it. */
static size_t read_entries(uintptr_t at, ElfW(Dyn) out[DYN_AT_ONCE])
{
	return d9__own_memory_read(at, out, DYN_AT_ONCE * sizeof(out[0])) / sizeof(out[0]);
}

static void read_dynamic(struct d9__elf_module *mod)
{
	ElfW(Dyn) dyn[DYN_AT_ONCE];
	uintptr_t at = mod->dynamic;
	bool ended = false;

	for (size_t n; !ended && (n = read_entries(at, dyn)); at += n * sizeof(dyn[0]))
		for (size_t i = 0; i < n && !ended; i++) {
			ended = dyn[i].d_tag == DT_NULL;
			read_entry(mod, &dyn[i]);
		}
	if (!mod->rela)
		mod->n_rela = 0;
	if (!mod->jmprel)
		mod->n_jmprel = 0;
}

bool d9__elf_module_init(struct d9__elf_module *mod, const struct dl_phdr_info *info)
{
	uintptr_t page = getauxval(AT_PAGESZ);
	struct d9__own_headers headers;

	*mod = (struct d9__elf_module){
		.path = info->dlpi_name ? info->dlpi_name : "",
		.base = info->dlpi_addr,
		.low = UINTPTR_MAX,
	};
	info = d9__own_headers_read(&headers, info);
	for (unsigned i = 0; info && i < info->dlpi_phnum; i++)
		read_segment(mod, &info->dlpi_phdr[i], page ? page : 4096);
	/* The kernel's page has a dynamic section that the loader does not relocate. */
	if (!mod->dynamic || mod->low >= mod->high || mod->low == getauxval(AT_SYSINFO_EHDR))
		return false;
	read_dynamic(mod);
	return mod->strings && mod->symbols;
}

unsigned d9__elf_machine(void)
{
#if defined(__x86_64__) && defined(__LP64__)
	return EM_X86_64;
#elif defined(__aarch64__) && defined(__LP64__)
	return EM_AARCH64;
#else
	return 0;
#endif
}

enum d9__elf_word d9__elf_word_of(unsigned machine, const ElfW(Rela) *rela)
{
	static const struct {
		unsigned machine, jump_slot, glob_dat, absolute;
	} kinds[] = {
		{ EM_X86_64, R_X86_64_JUMP_SLOT, R_X86_64_GLOB_DAT, R_X86_64_64 },
		{ EM_AARCH64, R_AARCH64_JUMP_SLOT, R_AARCH64_GLOB_DAT, R_AARCH64_ABS64 },
	};
	unsigned type = (unsigned)ELF64_R_TYPE(rela->r_info);

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (kinds[i].machine != machine || ELF64_R_SYM(rela->r_info) == 0)
			continue;
		if (type == kinds[i].jump_slot || type == kinds[i].glob_dat)
			return D9__ELF_WORD_SLOT;
		if (type == kinds[i].absolute && rela->r_addend == 0)
			return D9__ELF_WORD_ABSOLUTE;
	}
	return D9__ELF_WORD_OTHER;
}

bool d9__elf_read_word(const uintptr_t *word, uintptr_t *out)
{
	return read_by_pages(word_pages, PAGES, (uintptr_t)word, out, sizeof(*out));
}

bool d9__elf_read_symbol(const struct d9__elf_module *mod, size_t i, ElfW(Sym) *out)
{
	return read_in_order((uintptr_t)&mod->symbols[i], out, sizeof(*out));
}

void d9__elf_read_name(const struct d9__elf_module *mod, size_t offset, char out[D9__ELF_NAME_MAX])
{
	size_t len = offset < mod->strings_len ? mod->strings_len - offset : 0;

	if (len > D9__ELF_NAME_MAX - 1)
		len = D9__ELF_NAME_MAX - 1;
	out[len] = '\0';
	if (!read_by_pages(name_pages, NAME_PAGES, (uintptr_t)mod->strings + offset, out, len))
		out[0] = '\0';
}

static const char *name_of(const struct d9__elf_module *mod, const ElfW(Sym) *symbol)
{
	return symbol->st_name < mod->strings_len ? mod->strings + symbol->st_name : "";
}

static bool is_definition(const struct d9__elf_module *mod, const ElfW(Sym) *symbol,
			  const char *name)
{
	unsigned type = ELF64_ST_TYPE(symbol->st_info);

	return symbol->st_shndx != SHN_UNDEF && symbol->st_value != 0 &&
	       ELF64_ST_BIND(symbol->st_info) != STB_LOCAL &&
	       (type == STT_FUNC || type == STT_OBJECT || type == STT_NOTYPE) &&
	       strcmp(name_of(mod, symbol), name) == 0;
}

static const ElfW(Sym) *find_by_gnu_hash(const struct d9__elf_module *mod, const char *name)
{
	const uint32_t *table = mod->gnu_hash;
	uint32_t n_buckets = table[0], first = table[1], n_bloom = table[2], hash = 5381;
	const ElfW(Addr) *bloom = (const ElfW(Addr) *)(const void *)&table[4];
	const uint32_t *buckets = (const uint32_t *)(const void *)(bloom + n_bloom);
	const uint32_t *chain = buckets + n_buckets;
	const unsigned bits = 8 * sizeof(ElfW(Addr));

	for (const char *c = name; *c; c++)
		hash = hash * 33 + (unsigned char)*c;
	if (!n_buckets || !n_bloom)
		return NULL;
	ElfW(Addr) word = bloom[(hash / bits) % n_bloom];
	if (!(word >> (hash % bits) & 1) || !(word >> ((hash >> table[3]) % bits) & 1))
		return NULL;
	for (uint32_t i = buckets[hash % n_buckets]; i >= first && i != 0; i++) {
		if ((chain[i - first] | 1) == (hash | 1) && is_definition(mod, &mod->symbols[i], name))
			return &mod->symbols[i];
		if (chain[i - first] & 1) /* last of its bucket */
			break;
	}
	return NULL;
}

static const ElfW(Sym) *find_by_sysv_hash(const struct d9__elf_module *mod, const char *name)
{
	uint32_t n_symbols = mod->sysv_hash[1];

	/* Only linkers of long ago write this table alone: no need to be quick. */
	for (uint32_t i = 1; i < n_symbols; i++) {
		if (is_definition(mod, &mod->symbols[i], name))
			return &mod->symbols[i];
	}
	return NULL;
}

void *d9__elf_module_define(const struct d9__elf_module *mod, const char *name)
{
	const ElfW(Sym) *symbol = mod->gnu_hash	   ? find_by_gnu_hash(mod, name) :
				  mod->sysv_hash ? find_by_sysv_hash(mod, name) :
						   NULL;

	return symbol ? (void *)(mod->base + symbol->st_value) : NULL;
}

/*
 * The loader's own strings are read by hand and without ThreadSanitizer: the loader's lock orders their making before
 * their reading, and that lock it does not see.
 */
#define UNSEEN __attribute__((no_sanitize("thread")))

UNSEEN static const char *behind_last_slash(const char *path)
{
	const char *file = path;

	for (; *path; path++)
		if (*path == '/')
			file = path + 1;
	return file;
}

UNSEEN static bool is_named(const char *file, const char *name)
{
	while (*name && *file == *name)
		file++, name++;
	return !*name && !isalnum((unsigned char)*file);
}

bool d9__elf_file_is(const char *path, const char *const *names)
{
	const char *file = behind_last_slash(path);

	for (; names && *names; names++)
		if (is_named(file, *names))
			return true;
	return false;
}

bool d9__elf_module_needs(const struct d9__elf_module *mod, const char *const *names)
{
	uintptr_t at = mod->dynamic;
	ElfW(Dyn) dyn;

	for (; read_in_order(at, &dyn, sizeof(dyn)) && dyn.d_tag != DT_NULL; at += sizeof(dyn)) {
		char name[D9__ELF_NAME_MAX];

		if (dyn.d_tag != DT_NEEDED)
			continue;
		d9__elf_read_name(mod, dyn.d_un.d_val, name);
		if (d9__elf_file_is(name, names))
			return true;
	}
	return false;
}

bool d9__elf_module_is_data(const struct d9__elf_module *mod, uintptr_t addr)
{
	for (unsigned i = 0; i < mod->n_data; i++)
		if (addr >= mod->data[i].low && addr + sizeof(uintptr_t) <= mod->data[i].high)
			return true;
	return false;
}
