/* SPDX-License-Identifier: Apache-2.0 */
/* Field types: what an event's fields may hold; the numbers are those of the wire format. */

#ifndef DIAL9_FIELD_TYPE_H
#define DIAL9_FIELD_TYPE_H

/** Types of field values. */
enum d9_field_type {
	D9_FIELD_I64 = 1,
	D9_FIELD_F64 = 2,
	D9_FIELD_BOOL = 3,
	D9_FIELD_STRING = 4,
	D9_FIELD_BYTES = 5,
	D9_FIELD_POOLED_STACK = 6,  /* read back as D9_FIELD_STACK */
	D9_FIELD_POOLED_STRING = 7, /* read back as D9_FIELD_STRING */
	D9_FIELD_STACK = 8,
	D9_FIELD_VARINT = 9,
	D9_FIELD_STRING_MAP = 10,
	D9_FIELD_U8 = 11,
	D9_FIELD_U16 = 12,
	D9_FIELD_U32 = 13,
	D9_FIELD_LIST = 14,
	D9_FIELD_MAP = 15
};

#endif /* DIAL9_FIELD_TYPE_H */
