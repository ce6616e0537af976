/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "text/fail.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "text/shown.h"

int d9__cmd_fail(const char *command, const char *format, ...)
{
	char *text = NULL;
	va_list args;

	va_start(args, format);
	if (vasprintf(&text, format, args) < 0)
		text = NULL;
	va_end(args);
	fprintf(stderr, command ? "dial9 %s: " : "dial9: ", command);
	/* Names in it may come from a trace or a directory. */
	if (text)
		d9__shown_write(stderr, text, strlen(text));
	else
		fputs("out of memory", stderr);
	fputc('\n', stderr);
	free(text);
	return D9__EXIT_USAGE;
}
