/* SPDX-License-Identifier: Apache-2.0 */
/* Arguments: the program's values, checked against a table of fields and encoded. */

#pragma once

#include <stddef.h>
#include <stdint.h>

#include <dial9/event.h>

#define D9__FIELDS_MAX 64

/* 0, or -EINVAL: a field has no name or no type that there is, or there are too many. */
int d9__fields_check(const struct d9_field *fields, size_t n);

/*
 * How a field of |type| is written, with the optional bit if it has it.  A stack pool per chunk would
 * serve samples only, so a pooled stack travels inline.
 */
uint8_t d9__field_wire_type(unsigned type);

/* Bytes of |arg| at most, in a field of wire |type| without the optional bit; -EINVAL. */
long d9__arg_measure(uint8_t type, const struct d9_arg *arg);

/* Write |arg|, which was measured.  The first byte behind it.  Not for pooled strings. */
uint8_t *d9__arg_put(uint8_t *p, uint8_t type, const struct d9_arg *arg);

/* |arg|, a text or a name, as a text of at most |max| bytes. */
struct d9_arg d9__arg_cut(const struct d9_arg *arg, size_t max);

/* The handle of |arg|, a text or a name.  A text is interned: takes a mutex. */
uint32_t d9__arg_name(const struct d9_arg *arg);
