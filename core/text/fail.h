/* SPDX-License-Identifier: Apache-2.0 */
/* How a command ends. */
#pragma once

/* The value that a command's run function returns, and with which the program exits. */
enum d9__exit {
	D9__EXIT_OK = 0,
	D9__EXIT_FINDING = 1, /* done, and something was found or a check failed */
	D9__EXIT_USAGE = 2,   /* bad usage, unreadable input, output that could not be written */
};

/*
 * Print "dial9 COMMAND: ..." and a newline to stderr.  |command| may be NULL.  Returns
 * D9__EXIT_USAGE, so that a command can end with `return d9__cmd_fail(...)`.
 */
int d9__cmd_fail(const char *command, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
