/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libiberty and not __cxa_demangle(): it can leave the parameters out, and it is a static archive, so
 * that neither the C++ library nor anything else is loaded at the start of each command.
 */
#include "config.h"

#include <stdbool.h>
#include <string.h>

#include "symbol/demangle.h"

#ifdef HAVE_LIBIBERTY

#include <demangle.h>
#include <setjmp.h>

/* A few bytes, each of which stands for all before it twice, are a text without end. */
#define PLAIN_MAX ((size_t)16 << 10)

struct plain {
	char text[PLAIN_MAX];
	size_t len;
	bool is_full;
	jmp_buf too_long;
};

/*
 * libiberty has nothing in memory while it prints, so it can be left; but a Rust name that is not
 * ASCII: it is printed at once, from memory that is freed then.  So the piece behind the one
 * without room ends it.
 */
static void add(const char *piece, size_t len, void *context)
{
	struct plain *plain = context;

	if (plain->is_full)
		longjmp(plain->too_long, 1);
	plain->is_full = len > PLAIN_MAX - plain->len;
	if (plain->is_full)
		return;
	memcpy(plain->text + plain->len, piece, len);
	plain->len += len;
}

/* Rust's names are "_R...", and before 2021 those of C++ with a hash as the last part, which C++
 * would show. */
static bool print_plain(const char *name, struct plain *plain)
{
	if (rust_demangle_callback(name, DMGL_NO_OPTS, add, plain))
		return true;
	plain->len = 0;
	return !strncmp(name, "_Z", 2) &&
	       cplus_demangle_v3_callback(name, DMGL_NO_OPTS, add, plain);
}

char *d9__demangle(const char *name)
{
	static struct plain plain;

	if ((strncmp(name, "_Z", 2) && strncmp(name, "_R", 2)) || strlen(name) > PLAIN_MAX)
		return NULL;
	plain.len = 0;
	plain.is_full = false;
	if (setjmp(plain.too_long) || !print_plain(name, &plain) || plain.is_full)
		return NULL;
	return strndup(plain.text, plain.len);
}

#else

char *d9__demangle(const char *name)
{
	(void)name;
	return NULL;
}

#endif
