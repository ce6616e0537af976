/* SPDX-License-Identifier: Apache-2.0 */
/* Schema: an event type as its producer declares it, and the frames that define it in a batch. */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* FORMAT.md, field types.  | D9__WIRE_OPTIONAL for a value that may be absent. */
enum d9__field_type {
	D9__FIELD_I64 = 1,
	D9__FIELD_F64,
	D9__FIELD_BOOL,
	D9__FIELD_STRING,
	D9__FIELD_BYTES,
	D9__FIELD_POOLED_STACK,
	D9__FIELD_POOLED_STRING,
	D9__FIELD_STACK,
	D9__FIELD_VARINT,
	D9__FIELD_STRING_MAP,
	D9__FIELD_U8,
	D9__FIELD_U16,
	D9__FIELD_U32,
	D9__FIELD_LIST,
	D9__FIELD_MAP,
};

struct d9__field {
	const char *name;
	uint8_t type;     /* enum d9__field_type, maybe | D9__WIRE_OPTIONAL */
	const char *unit; /* annotation `unit`, or NULL */
	const char *kind; /* annotation `kind`, or NULL */
};

/* An annotation of a field beside `unit` and `kind`. */
struct d9__annotation {
	uint16_t field;
	const char *key, *value;
};

/* Carries a time always: rule 3 for producers. */
struct d9__schema {
	const char *name;
	const struct d9__field *fields;
	uint16_t field_count;
	const struct d9__annotation *more;
	uint16_t more_count;
};

/* Are all names short enough for the wire and all field types known? */
bool d9__schema_valid(const struct d9__schema *schema);

/* Bytes that d9__schema_encode() writes for |schema|, which is valid, under |type_id|. */
size_t d9__schema_encoded_len(const struct d9__schema *schema, uint16_t type_id);

/*
 * Write the schema frame and, if a field has annotations, the annotations frame.  |p| has room
 * for d9__schema_encoded_len() bytes.  Returns the first byte behind.
 */
uint8_t *d9__schema_encode(uint8_t *p, const struct d9__schema *schema, uint16_t type_id);

bool d9__schema_equal(const struct d9__schema *a, const struct d9__schema *b);
