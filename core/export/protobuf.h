/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages of Protocol Buffers, written field by field: numbers as varints, other values behind
 * their length.
 */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/*
 * A message in the making.  All zero is empty.  Out of memory, it stays as it is and |failed| is
 * set.
 */
struct d9__protobuf {
	unsigned char *bytes; /* owned */
	size_t len, max;
	bool failed;
};

/* A bare number, as packed fields hold them. */
void d9__protobuf_varint(struct d9__protobuf *message, uint64_t n);

/* Write the field |field|; leave out 0, which readers take a missing field for. */
void d9__protobuf_number(struct d9__protobuf *message, unsigned field, uint64_t n);

/*
 * Write the field |field| with |len| bytes: text, packed numbers or a message; also if there are
 * none.
 */
void d9__protobuf_bytes(struct d9__protobuf *message, unsigned field, const void *bytes, size_t len);

/* The field |field| of |outer| is |inner|, which is empty after that. */
void d9__protobuf_put(struct d9__protobuf *outer, unsigned field, struct d9__protobuf *inner);

/* The field |field| of the message that |out| holds, likewise. */
void d9__protobuf_write(FILE *out, unsigned field, struct d9__protobuf *inner);

void d9__protobuf_release(struct d9__protobuf *message);
