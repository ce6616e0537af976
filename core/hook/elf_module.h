/* SPDX-License-Identifier: Apache-2.0 */
/* One mapped module, as the loader shows it: ranges, symbols and relocations. */

#ifndef D9_HOOK_ELF_MODULE_H
#define D9_HOOK_ELF_MODULE_H

#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Valid inside the walk that made it: the loader may unmap the module afterwards. */
struct d9__elf_module {
	const char *path; /* empty for the program itself */
	const struct dl_phdr_info *info;
	uintptr_t base;      /* load bias; 0 is legal */
	uintptr_t low, high; /* all of it, one past the last byte */
	uintptr_t dynamic;
	uintptr_t relro_low, relro_high; /* pages that are read-only after relocation; empty if none */
	const char *strings;
	size_t strings_len;
	const ElfW(Sym) *symbols;
	const ElfW(Rela) *rela, *jmprel;
	size_t n_rela, n_jmprel;
	const uint32_t *gnu_hash, *sysv_hash;
};

/* False for what has no symbols to look at, the kernel's own page included. */
bool d9__elf_module_init(struct d9__elf_module *mod, const struct dl_phdr_info *info);

/* Relocation kinds that fill a word with a function's address. */
enum d9__elf_word { D9__ELF_WORD_OTHER, D9__ELF_WORD_SLOT, D9__ELF_WORD_ABSOLUTE };

/* Of a relocation for |machine| (EM_X86_64, EM_AARCH64). */
enum d9__elf_word d9__elf_word_of(unsigned machine, const ElfW(Rela) *rela);

/* The machine this code runs on; 0 if its relocations are not known. */
unsigned d9__elf_machine(void);

/* The name of |symbol|, or "" if the module's tables do not hold it. */
const char *d9__elf_symbol_name(const struct d9__elf_module *mod, const ElfW(Sym) *symbol);

/* The function or object |name| that |mod| defines and exports, or NULL. */
void *d9__elf_module_define(const struct d9__elf_module *mod, const char *name);

/* Does it have a DT_NEEDED whose file name is one of |names|, as d9__elf_file_is()? */
bool d9__elf_module_needs(const struct d9__elf_module *mod, const char *const *names);

/* Is the file name of |path| one of |names| (NULL-ended), or one that only a suffix follows? */
bool d9__elf_file_is(const char *path, const char *const *names);

static inline bool d9__elf_module_holds(const struct d9__elf_module *mod, uintptr_t addr)
{
	return addr >= mod->low && addr < mod->high;
}

/* Is the word at |addr| in a writable data segment, RELRO included? */
bool d9__elf_module_is_data(const struct d9__elf_module *mod, uintptr_t addr);

#endif /* D9_HOOK_ELF_MODULE_H */
