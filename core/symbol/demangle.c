/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libiberty and not __cxa_demangle(): it can leave the parameters out, and it is a static archive, so
 * that neither the C++ library nor anything else is loaded at the start of each command.
 */
#include "config.h"

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
	jmp_buf too_long;
};

/* libiberty has nothing in memory while it prints, so it can be left. */
static void add(const char *piece, size_t len, void *context)
{
	struct plain *plain = context;

	if (len > PLAIN_MAX - plain->len)
		longjmp(plain->too_long, 1);
	memcpy(plain->text + plain->len, piece, len);
	plain->len += len;
}

char *d9__demangle(const char *name)
{
	static struct plain plain;

	if (strncmp(name, "_Z", 2) || strlen(name) > PLAIN_MAX)
		return NULL;
	plain.len = 0;
	if (setjmp(plain.too_long) || !cplus_demangle_v3_callback(name, DMGL_NO_OPTS, add, &plain))
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
