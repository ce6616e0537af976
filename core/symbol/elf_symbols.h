/* SPDX-License-Identifier: Apache-2.0 */
/* Names and lines for addresses and "module+0xoffset", from the binaries on this machine. */

#ifndef D9_SYMBOL_ELF_SYMBOLS_H
#define D9_SYMBOL_ELF_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Feed it the ModuleEvents of a trace, then ask.  A binary is looked for at the recorded path,
 * then its debug file below /usr/lib/debug/.build-id; a file with another build-id than the
 * recorded one is refused and named (d9__symbols_problem()), never used.  Files are opened at the
 * first question about their module.  Answers are cached.
 *
 * Not thread-safe.
 */
struct d9__symbols;

/* A loaded object, as ModuleEvent has it.  Texts are not terminated, and copied. */
struct d9__module {
	uint64_t base;  /* load bias: file address = address - base */
	uint64_t start; /* lowest mapped address */
	uint64_t size;  /* bytes from |start| */
	const char *path, *build_id; /* build_id: lower-case hex, may be empty */
	size_t path_len, build_id_len;
};

/* An answer.  Texts are terminated and live as long as the struct d9__symbols. */
struct d9__symbol {
	const char *function; /* NULL: unknown */
	const char *file;     /* as the compiler wrote it, without folders; NULL: unknown */
	const char *path;     /* the same with folders, or NULL */
	unsigned line;        /* 0: unknown */
	const char *module;   /* base name ("memcached"), or NULL: no module is known there */
	uint64_t offset;      /* into the module: address - base */
};

/* 0 or -ENOMEM. */
int d9__symbols_new(struct d9__symbols **out);

/* NULL is allowed. */
void d9__symbols_free(struct d9__symbols *symbols);

/* Add a module; the same one again (each segment repeats them) changes nothing.  0, -ENOMEM. */
int d9__symbols_module_add(struct d9__symbols *symbols, const struct d9__module *module);

/*
 * Add a row of the trace's own symbol table (SymbolTableEntry at inline depth 0): it beats the
 * binaries in d9__symbols_address().  0, -ENOMEM.
 */
int d9__symbols_row_add(struct d9__symbols *symbols, uint64_t address, const char *name,
			size_t name_len, const char *file, size_t file_len, unsigned line);

/*
 * What is at |text|, |len| bytes of the form "memcached+0x1a2b0".  With |is_return| it is the
 * address after a call, and the call is meant.  false if nothing more is known than |text|
 * itself; |out| then has module and offset if |text| had that form, else zeroes.
 */
bool d9__symbols_name(struct d9__symbols *symbols, const char *text, size_t len, bool is_return,
		      struct d9__symbol *out);

/* The same for an address of the recorded process. */
bool d9__symbols_address(struct d9__symbols *symbols, uint64_t address, bool is_return,
			 struct d9__symbol *out);

/*
 * Line |i| of what went wrong so far: files refused or missing, one sentence each with the path;
 * NULL after the last.
 */
const char *d9__symbols_problem(const struct d9__symbols *symbols, size_t i);

#endif /* D9_SYMBOL_ELF_SYMBOLS_H */
