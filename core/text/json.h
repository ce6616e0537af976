/* SPDX-License-Identifier: Apache-2.0 */
/* JSON written piece by piece, indented, with nothing kept in memory. */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Set |out|, the rest 0.  Errors stay in |out|: see ferror(3). */
struct d9__json {
	FILE *out;
	unsigned depth;
	bool filled; /* the open object or array has an element */
};

/* |key| is NULL inside arrays and at the top. */
void d9__json_open(struct d9__json *json, const char *key, char bracket); /* '{' or '[' */
void d9__json_close(struct d9__json *json, char bracket);                 /* '}' or ']' */

/* Bytes that are not UTF-8 become U+FFFD; what no terminal should get is escaped (shown.h). */
void d9__json_text(struct d9__json *json, const char *key, const char *text, size_t len);

/* NULL writes null. */
void d9__json_string(struct d9__json *json, const char *key, const char *text);
void d9__json_u64(struct d9__json *json, const char *key, uint64_t value);
void d9__json_i64(struct d9__json *json, const char *key, int64_t value);
void d9__json_double(struct d9__json *json, const char *key, double value); /* 6 decimals */
void d9__json_bool(struct d9__json *json, const char *key, bool value);
void d9__json_null(struct d9__json *json, const char *key);
