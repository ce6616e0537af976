/* SPDX-License-Identifier: Apache-2.0 */
/* One binary or debug file: its build-id, its functions by address, its lines. */

#ifndef D9_SYMBOL_ELF_FILE_H
#define D9_SYMBOL_ELF_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct d9__elf_file;

/* Open |path|.  0, -EBADMSG if it is no ELF file, -EFBIG if it takes far more than it has, -ENOMEM, or an error of open(2). */
int d9__elf_file_open(const char *path, struct d9__elf_file **out);

/* Whether both are the same file, by whatever names. */
bool d9__elf_file_same(const struct d9__elf_file *a, const struct d9__elf_file *b);

/* NULL is allowed.  Texts from it die with it. */
void d9__elf_file_close(struct d9__elf_file *file);

/* The build-id in lower-case hex, or "". */
const char *d9__elf_file_build_id(const struct d9__elf_file *file);

/* Whether static functions have names in it: there is a .symtab. */
bool d9__elf_file_has_symtab(const struct d9__elf_file *file);

/* The function that contains the file address |address|, or NULL. */
const char *d9__elf_file_function(struct d9__elf_file *file, uint64_t address);

/* Source path and line of |address|; false if there is no line information for it. */
bool d9__elf_file_line(struct d9__elf_file *file, uint64_t address, const char **path,
		       unsigned *line);

#endif /* D9_SYMBOL_ELF_FILE_H */
