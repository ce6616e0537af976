/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Outgoing: a claimed segment on its way to the store: the bytes that its stages made, its key, and
 * its metadata.
 */

#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "ship/bucket.h"
#include "ship/explained.h"
#include "ship/object_key.h"
#include "ship/segment_facts.h"
#include "ship/tables.h"
#include "ship/tree.h"
#include "stage/stages.h"

struct d9__outgoing_options {
	const char *prefix;
	const char *service, *instance; /* NULL: as the segment has it; the host's name */
	struct d9__stages *stages;
	bool any_owner; /* the file may be anybody's, is not locked, and stays */
	bool dry_run;	/* no stages, but with |explained| */
	struct d9__explained
		*explained; /* gets the names of everything that would be sent; NULL: for none */
	/* Prints the summary of the segment |path| to standard output, in a process of its own; an
	 * exit status.  NULL: none is made. */
	int (*summarise)(const char *path);
	bool original_keys; /* object_key.h */
	bool gzip;	    /* compress with gzip before sending */
};

enum d9__outgoing_end {
	D9__OUTGOING_READY,
	D9__OUTGOING_TAKEN,   /* another process has it, or it was removed */
	D9__OUTGOING_DROPPED, /* by a stage, and removed */
	D9__OUTGOING_EMPTY,   /* of no bytes: there is nothing to store */
	D9__OUTGOING_FAILED,  /* and a line has told why */
};

#define D9__OUTGOING_PAIRS 40

struct d9__outgoing {
	struct d9__claim claim;
	int fd; /* of the bytes that go: the claim's, or a replacement's */
	uint64_t index, bytes, epoch_s;
	struct d9__segment_facts facts;
	char key[D9__BUCKET_KEY_MAX + 1];
	const char *type;
	char service[D9__OBJECT_PART + 1], instance[D9__OBJECT_PART + 1], boot_id[D9__OBJECT_PART + 1]; /* as in its key */
	struct json_object *summary; /* owned; NULL: there is none */
	uint64_t worst_ns, first_ns, last_ns; /* by the summary; the latter since 1970; 0: not known */
	struct d9__table_objects tables; /* that are stored before it */
	size_t next;			 /* of them, the one that is on its way; behind them the segment itself */
	struct d9__bucket_pair pairs[D9__OUTGOING_PAIRS];
	size_t n_pairs;
	char texts[D9__BUCKET_META_MAX]; /* that |pairs| point into */
	size_t texts_len, meta_len;
};

/*
 * Claim |segment| of |process| and make it ready.  |tell| gets a failure in one line.  Release it
 * after READY alone.
 */
enum d9__outgoing_end d9__outgoing_open(struct d9__outgoing *out, const struct d9__outgoing_options *options,
					const struct d9__ship_process *process, const struct d9__ship_segment *segment,
					void (*tell)(void *context, const char *path, const char *what), void *context);

/* Close the files: the bytes are no longer needed, and unnamed files give their space back. */
void d9__outgoing_let_go(struct d9__outgoing *out);

void d9__outgoing_release(struct d9__outgoing *out);
