/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ship options: the options of `dial9 ship`, from its command line, the environment and a
 * configuration file, of which the earlier wins.
 */

#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "ship/bucket.h"
#include "ship/outgoing.h"
#include "stage/stages.h"

/* Texts are borrowed from the command line, the environment and |file|. */
struct d9__ship_options {
	struct d9__bucket_options store;
	struct d9__stages stages;
	struct d9__outgoing_options what; /* without |stages| */
	const char *to, *link, *config;
	char *bucket, *prefix; /* of |to|; owned */
	char *named;	       /* by the environment; owned */
	char *file;	       /* the text of |config|; owned */
	bool once, status, json, raw, explain, from_rings, keep_empty;
	unsigned parallel;
	uint64_t deadline_ns, every_ns, expires_ns;
	uint64_t max_disk; /* bytes that dead processes may leave; 0: not said */
};

/*
 * Read all of them.  Returns the index of the first operand in |argv|, or enum d9__args_result
 * below 0 after a line.  Release them in any case.
 */
int d9__ship_options_read(struct d9__ship_options *options, int argc, char **argv);

/* Take |to| apart.  0 or an exit status, and a line. */
int d9__ship_options_take_to(struct d9__ship_options *options);

/* Check that the options fit each other, then take |to| apart.  0 or an exit status, and a line. */
int d9__ship_options_check(struct d9__ship_options *options);

void d9__ship_options_release(struct d9__ship_options *options);
