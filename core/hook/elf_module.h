/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One mapped module, as the loader shows it: ranges, symbols and relocations.
 *
 * Its file may have been cut since it was loaded, see base/own_memory.h.  What a walk reads of all modules is copied: headers,
 * the dynamic section, relocations, and what they name.  What a module defines is looked up in place, and only in the C
 * library and loop libraries, which the program calls itself.
 */

#pragma once

#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define D9__ELF_DATA_MAX 4
#define D9__ELF_NAME_MAX 64 /* bytes of a symbol's name that are read, with its end */

/* Valid inside the walk that made it: the loader may unmap the module afterwards. */
struct d9__elf_module {
	const char *path; /* empty for the program itself */
	uintptr_t base;      /* load bias; 0 is legal */
	uintptr_t low, high; /* all of it, one past the last byte */
	uintptr_t dynamic;
	struct {
		uintptr_t low, high;
	} data[D9__ELF_DATA_MAX]; /* segments that can be written and hold no code */
	unsigned n_data;
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

/* Forget pages that the next four have read.  All five: under the patch lock, in a walk of the loader's list. */
void d9__elf_forget_pages(void);

/* A word of data, as it was when its page was first looked at.  Of a file that was cut also what was written there is gone. */
bool d9__elf_read_word(const uintptr_t *word, uintptr_t *out);

/* Symbol |i|.  False: it cannot be read. */
bool d9__elf_read_symbol(const struct d9__elf_module *mod, size_t i, ElfW(Sym) *out);

/* The name at |offset|, cut to what |out| holds; "" if the module's tables do not hold it. */
void d9__elf_read_name(const struct d9__elf_module *mod, size_t offset, char out[D9__ELF_NAME_MAX]);

/* The function or object |name| that |mod| defines and exports, or NULL. */
void *d9__elf_module_define(const struct d9__elf_module *mod, const char *name);

/* True if it has a DT_NEEDED whose file name is one of |names|, as d9__elf_file_is(). */
bool d9__elf_module_needs(const struct d9__elf_module *mod, const char *const *names);

/* True if the file name of |path| is one of |names| (NULL-ended), or one with a suffix behind. */
bool d9__elf_file_is(const char *path, const char *const *names);

static inline bool d9__elf_module_holds(const struct d9__elf_module *mod, uintptr_t addr)
{
	return addr >= mod->low && addr < mod->high;
}

/* True if the word at |addr| is in a writable data segment, RELRO included. */
bool d9__elf_module_is_data(const struct d9__elf_module *mod, uintptr_t addr);
