/* SPDX-License-Identifier: Apache-2.0 */
/* Thrift's compact protocol, as far as a writer of Parquet's headers needs it. */

#pragma once

#include "fleet/bytes.h"

enum d9__thrift_type {
	D9__THRIFT_TRUE = 1,
	D9__THRIFT_FALSE = 2,
	D9__THRIFT_I16 = 4,
	D9__THRIFT_I32 = 5,
	D9__THRIFT_I64 = 6,
	D9__THRIFT_BINARY = 8,
	D9__THRIFT_LIST = 9,
	D9__THRIFT_STRUCT = 12,
};

#define D9__THRIFT_DEPTH 8

/* A struct that is being written: { .out = ... } to begin with.  Fields come with their ids in rising order. */
struct d9__thrift {
	struct d9__bytes *out;
	int last[D9__THRIFT_DEPTH]; /* id, of each struct that is open */
	unsigned depth;
};

void d9__thrift_bool(struct d9__thrift *thrift, int id, bool value);
void d9__thrift_i16(struct d9__thrift *thrift, int id, int value);
void d9__thrift_i32(struct d9__thrift *thrift, int id, int32_t value);
void d9__thrift_i64(struct d9__thrift *thrift, int id, int64_t value);
void d9__thrift_binary(struct d9__thrift *thrift, int id, const void *data, size_t len);
void d9__thrift_text(struct d9__thrift *thrift, int id, const char *text);

/*
 * Begin a list of |n| elements, which follow: structs between begin and end, the others as items.
 */
void d9__thrift_list(struct d9__thrift *thrift, int id, enum d9__thrift_type type, size_t n);
void d9__thrift_item_i32(struct d9__thrift *thrift, int32_t value);
void d9__thrift_item_text(struct d9__thrift *thrift, const char *text);

/* Begin a struct as a field, or with the id 0 as an element of a list. */
void d9__thrift_begin(struct d9__thrift *thrift, int id);
void d9__thrift_end(struct d9__thrift *thrift);

/* End the outermost struct. */
void d9__thrift_stop(struct d9__thrift *thrift);
