/* SPDX-License-Identifier: Apache-2.0 */
/* Definition: an event type as a trace defines it, with a plan for passing its events quickly. */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/table.h"
#include "format/cursor.h"

#define D9__DEFINITION_KNOWN_MAX 13 /* fields of the largest catalogue entry */

/* How to pass one field, or several neighbours of fixed size. */
enum d9__step_op {
	D9__STEP_FIXED,  /* n bytes */
	D9__STEP_VARINT, /* up to its last byte */
	D9__STEP_VALUE,  /* anything with a count or a length; n is the field's type */
};

struct d9__step {
	uint8_t op;       /* enum d9__step_op */
	uint8_t optional; /* a presence byte comes first */
	uint16_t n;
};

struct d9__field_definition {
	const char *name; /* terminated; may hold zero bytes of its own */
	uint8_t type;     /* enum d9_field_type; another number makes the schema unusable */
	uint8_t optional;
};

struct d9__annotation_definition {
	const char *key, *value; /* terminated */
	uint32_t field;          /* < n_fields */
};

/* Immutable once it is in a set; name <d9_schema> because <dial9/reader.h> shows it, opaque. */
struct d9_schema {
	uint32_t id; /* dense in its set */
	bool has_timestamp;
	bool unusable; /* |unusable_field| has an unknown type */
	uint32_t unusable_field;
	uint32_t n_fields, n_annotations, n_steps;
	const char *name;
	const struct d9__field_definition *fields;
	const struct d9__annotation_definition *annotations; /* by field, and as they came */
	const struct d9__step *steps;
	/* All steps are fixed or varint, and take at most this many bytes; 0: not so. */
	uint32_t quick_bytes;
	bool borrows; /* a value may point to what is elsewhere: a text, a stack, ... */

	/* Filled in by the set's classify(): the catalogue's view. */
	uint8_t kind;
	int32_t known[D9__DEFINITION_KNOWN_MAX]; /* catalogue place -> field, or -1 */
	uint32_t must;   /* bit k: known[k] is mandatory but optional here, so look at each event */
	bool tells_wakes; /* d9__poll_wakes_tell() */
	bool incomplete; /* built-in name, but lacks a mandatory field */
	const struct d9_schema *written_as; /* of events that a reader makes out of those of another
					       schema; else NULL */
	bool begins_earlier;		    /* its events also tell of a moment before their time */

	/* Identity: the frame behind its type id, and the annotation entries that apply. */
	const uint8_t *definition, *notes;
	size_t definition_len, notes_len;
};

/* The schemas of one reader: equal ones once.  All zero is an empty set. */
struct d9__definitions {
	struct d9__table by_hash;                   /* of definition and annotations */
	struct d9_schema **list;                    /* by id */
	uint32_t n;
	uint64_t bytes;                             /* that all of them take */
	uint64_t limit_bytes;                       /* 0: none */
	void (*classify)(struct d9_schema *schema); /* may be NULL */
};

/*
 * Pass a schema frame behind its tag and type id.  1, with the definition in |*out| and |*len|;
 * 0 if the bytes do not suffice.
 */
int d9__definition_pass(struct d9__cursor *cursor, const uint8_t **out, size_t *len);

/*
 * The schema with this definition, which d9__definition_pass() has passed, and these annotations.
 * Owned by the set.  0, -ENOMEM, -EFBIG over the limit.
 */
int d9__definitions_intern(struct d9__definitions *set, const uint8_t *definition, size_t len,
			   const uint8_t *notes, size_t notes_len, const struct d9_schema **out);

/*
 * |schema| with the entries of an annotation frame added, which begin at |entries| and are |n|
 * complete ones.  Entries for fields that do not exist, and repeated ones, are left out.
 */
int d9__definitions_annotate(struct d9__definitions *set, const struct d9_schema *schema,
			     const uint8_t *entries, size_t len, uint32_t n,
			     const struct d9_schema **out);

void d9__definitions_release(struct d9__definitions *set);

/* The value of the annotation |key| of field |i|, of several the last; NULL: there is none. */
const char *d9__definition_annotation(const struct d9_schema *schema, size_t i, const char *key);

/* Index of the field |name|, or -1. */
int d9__definition_find(const struct d9_schema *schema, const char *name);
