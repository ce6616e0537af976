/* SPDX-License-Identifier: Apache-2.0 */
/* A command's options: one table that is both parsed and printed by --help. */

#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "text/parse.h"

/* One option.  A table of them ends with a row without |name|.  --help is added to each. */
struct d9__opt {
	int key;           /* what d9__args_next() returns: the short letter, or >= 256 for none */
	const char *name;  /* without the dashes */
	const char *value; /* placeholder of its value: "DIR"; "[=MS]" if it may be left out; or NULL for a flag */
	const char *help;  /* lower case, no full stop */
};

/* The texts of a command's --help around its options. */
struct d9__usage {
	const char *command;  /* "events" */
	const char *synopsis; /* "[OPTIONS] TRACE..." */
	const char *text;     /* one or a few lines; ends with a newline */
	const struct d9__opt *opts;
	bool stop_at_operand; /* options end at the first operand: `record CMD --its-option` */
};

/* Results of d9__args_next() besides the keys. */
enum d9__args_result {
	D9__ARGS_END = 0,
	D9__ARGS_HELP = -1,  /* printed to stdout: exit 0 */
	D9__ARGS_ERROR = -2, /* one line is on stderr: exit 2 */
};

/* One walk over a command line.  Set |usage|, |argc| and |argv|; the rest 0. */
struct d9__args {
	const struct d9__usage *usage;
	int argc;
	char **argv;
	const char *value; /* of the option just returned; NULL: it was left out */
	const char *name;  /* of the option just returned, for messages */
	int first;         /* after D9__ARGS_END: index in argv of the first operand */
	bool started;
};

/* The key of the next option, or enum d9__args_result.  One walk at a time. */
int d9__args_next(struct d9__args *args);

/* The exit status for a result below 0. */
int d9__args_exit(int result);

/*
 * The value of the option just returned.  false, with one line on stderr, if it is not one.
 *
 *	u64        decimal
 *	duration   a number and a unit: 250ms, 1.5s, 10us, 2m, 1h; without a unit, seconds
 *	bytes      a number and a unit: 64K, 10M, 1G (powers of 1024); without a unit, bytes
 */
bool d9__args_u64(const struct d9__args *args, uint64_t *out);
bool d9__args_duration_ns(const struct d9__args *args, uint64_t *out_ns);
bool d9__args_bytes(const struct d9__args *args, uint64_t *out_bytes);
