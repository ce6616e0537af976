/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scrub: the redaction of a trace for strangers.  Times, structure and functions stay, so that a
 * report finds the same; texts, paths and addresses do not.  Equal ones get equal stand-ins in all
 * segments, such as "span-3" and "library-2.so+0x1f0", so that they can still be matched.  Data is
 * removed unless it is known to be harmless: of the program's own events only times, numbers that
 * an annotation calls a measure, and the ids of worker, task and span stay.
 */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/decoder.h"
#include "stage/redact_rules.h"

/* The texts that are kept, by their kind. */
enum d9__scrub_kept {
	D9__SCRUB_FUNCTIONS,
	D9__SCRUB_LIBRARIES, /* of the system */
	D9__SCRUB_WORDS,     /* of the recorder: system calls, kinds of tasks, causes of loss */
	D9__SCRUB_METADATA,  /* "key=value" */
	D9__SCRUB_TYPES,     /* of events */
	D9__SCRUB_KEPT,
};

struct d9__scrub;

/* NULL: out of memory. */
struct d9__scrub *d9__scrub_new(void);
void d9__scrub_free(struct d9__scrub *scrub);

/* Begin the segment |path|.  Each process has a folder and addresses of its own. */
void d9__scrub_begin(struct d9__scrub *scrub, const char *path);

/* Take a module that |frame|, an event, tells of, before anything of its segment is written.  0 or -ENOMEM. */
int d9__scrub_learn(struct d9__scrub *scrub, const struct d9__frame *frame);

/* True if |event| is to be written. */
bool d9__scrub_event(struct d9__scrub *scrub, const struct d9__frame *event);

/* Get the replacement of |text| in a field whose plan is |how|.  |*out| is valid until the next call.  0 or -ENOMEM. */
int d9__scrub_text(struct d9__scrub *scrub, uint8_t how, const char *text, size_t len, const char **out, size_t *out_len);

/* Get the replacement of the number or address |value| there.  Returns 0 or -ENOMEM. */
int d9__scrub_number(struct d9__scrub *scrub, uint8_t how, uint64_t value, uint64_t *out);

/* Get the replacement of a pair of metadata, for free(3).  1; 0: it is left out; -ENOMEM. */
int d9__scrub_pair(struct d9__scrub *scrub, const char *key, size_t key_len, const char *value, size_t value_len,
		   char **out_key, char **out_value);

/*
 * Get the definition of |schema|, or its annotations, as frames of the output.  Owned by |scrub|
 * until the next call; |*len| is 0 if there is nothing to write.  0 or -ENOMEM.
 */
int d9__scrub_definition(struct d9__scrub *scrub, const struct d9_schema *schema, uint16_t type_id, const uint8_t **out,
			 size_t *len);
int d9__scrub_annotations(struct d9__scrub *scrub, const struct d9_schema *schema, uint16_t type_id, const uint8_t **out,
			  size_t *len);

/* The |i|th text that has left, sorted; NULL: there are no more.  Ends the work: no segment may follow. */
const char *d9__scrub_kept(struct d9__scrub *scrub, enum d9__scrub_kept what, size_t i);

/* How many different texts and addresses have stand-ins. */
void d9__scrub_stand_ins(const struct d9__scrub *scrub, size_t *texts, size_t *addresses);
