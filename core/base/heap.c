/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "base/heap.h"

#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Where record/own_heap.c is linked, its functions take the place of these. */
#define UNLESS_OWN __attribute__((weak))

UNLESS_OWN void *d9__malloc(size_t size)
{
	return malloc(size);
}

UNLESS_OWN void *d9__calloc(size_t n, size_t size)
{
	return calloc(n, size);
}

UNLESS_OWN void *d9__realloc(void *block, size_t size)
{
	return realloc(block, size);
}

UNLESS_OWN void d9__free(void *block)
{
	int saved = errno;

	free(block);
	errno = saved;
}

UNLESS_OWN void d9__heap_fork_child(void)
{
}

void *d9__reallocarray(void *block, size_t n, size_t size)
{
	size_t bytes;

	if (__builtin_mul_overflow(n, size, &bytes)) {
		errno = ENOMEM;
		return NULL;
	}
	return d9__realloc(block, bytes);
}

char *d9__strdup(const char *text)
{
	size_t size = strlen(text) + 1;
	char *copy = d9__malloc(size);

	return copy ? memcpy(copy, text, size) : NULL;
}

char *d9__text_of(const char *format, ...)
{
	va_list args;
	char *text = NULL;
	int len;

	va_start(args, format);
	len = vsnprintf(NULL, 0, format, args);
	va_end(args);
	if (len >= 0)
		text = d9__malloc((size_t)len + 1);
	if (!text)
		return NULL;
	va_start(args, format);
	vsnprintf(text, (size_t)len + 1, format, args);
	va_end(args);
	return text;
}
