/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stages: the treatment of a sealed segment before it is kept or sent, one after the other: write
 * symbols into it, redact it, or run a program on it.  The segment itself is not changed: a
 * replacement has no name until the caller gives it one, and is a trace that decodes as a whole.
 */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stage/claim.h"
#include "stage/redact_rules.h"

#define D9__STAGES_MAX	 16
#define D9__STAGES_TRIES 4 /* of a program that asks for another one, the first included */

enum d9__stage_kind { D9__STAGE_SYMBOLIZE, D9__STAGE_REDACT, D9__STAGE_PROGRAM };

/* The treatment of a segment whose stage failed. */
enum d9__stage_error {
	D9__STAGE_ERROR_UNSET, /* as SHIP; once one of them redacts, as KEEP */
	D9__STAGE_ERROR_SHIP,  /* it goes on as it was before that stage; never if that is redact */
	D9__STAGE_ERROR_KEEP,
	D9__STAGE_ERROR_DROP,
};

enum d9__stages_end {
	D9__STAGES_SAME,     /* there is nothing to change */
	D9__STAGES_REPLACED, /* by a descriptor */
	D9__STAGES_DROPPED,  /* remove it */
	D9__STAGES_KEPT,     /* leave it, and do not send it */
	D9__STAGES_AGAIN,    /* a program asks for another time */
	D9__STAGES_GONE,     /* it was removed meanwhile */
};

struct d9__stage {
	enum d9__stage_kind kind;
	const char *text; /* as it was given, borrowed */
	struct d9__redact_rules rules;
	char **argv;
	uint64_t runs; /* that it has finished */
};

struct d9__stages {
	struct d9__stage items[D9__STAGES_MAX];
	size_t n;
	bool tables; /* "parquet" is among them: the shipper makes the tables from the others'
			output */
	enum d9__stage_error on_error;
	uint64_t timeout_ns;
	uint64_t limit_bytes; /* of a program's memory, and of its output; 0: no limit */
	/* Writes |path| with symbols to standard output, in a process of its own; an exit status.
	 */
	int (*symbolize)(const char *path);
	/* Called with each error, in one line, with the segment |path|; |stage| is NULL if that is no
	 * stage's fault. */
	void (*tell)(void *context, const char *path, const char *stage, const char *what);
	void (*pulse)(void *context); /* called now and then while a program runs; may be NULL */
	void *context;
	uint64_t failures;
};

/* Begin without stages, with the limits of shipping: 30 s, 512 MiB. */
void d9__stages_init(struct d9__stages *stages);

/*
 * Add the stage |text|: "symbolize", "redact:GLOB[,...]" (redact_rules.h), "parquet", or a program with its
 * arguments (words.h), which is looked for at once.  0, -EINVAL with a reason in |why|, -ENOMEM.
 */
int d9__stages_add(struct d9__stages *stages, const char *text, char *why, size_t why_size);

/* |last|: a program that asks for another time has failed.  After REPLACED |*fd| is the caller's.
 */
enum d9__stages_end d9__stages_run(struct d9__stages *stages, const struct d9__claim *claim,
				   bool last, int *fd);

/* The |i|th glob that has matched nothing in all segments that were redacted; NULL: there are no
 * more. */
const char *d9__stages_unmatched(const struct d9__stages *stages, size_t i);

void d9__stages_release(struct d9__stages *stages);
