/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "hook/libc_calls.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/auxv.h>

/* Before glibc 2.34 the second has what threads wait by. */
static const char *const libc_names[] = { "libc", "libpthread", NULL };

struct d9__images d9__libc_images = { .names = libc_names };

const char *const d9__libc_skip[] = { "ld-linux-x86-64", "ld-linux-aarch64", "libasan", "libtsan", "libubsan",
				      "libclang_rt", NULL };

bool d9__libc_is_out_of_reach(const void *address)
{
	struct d9__module_range own;
	uintptr_t entry = getauxval(AT_ENTRY);

	return d9__module_range_of(address, &own) && entry >= own.low && entry < own.high;
}

void d9__libc_watch(struct d9__got_table *table)
{
	if (!d9__libc_is_out_of_reach(table))
		d9__got_install(table);
}
