/* SPDX-License-Identifier: Apache-2.0 */
/* The section .eh_frame of a module, compiled into unwind rows. */

#pragma once

#include <stddef.h>
#include <stdint.h>

#include "sample/unwind_row.h"

/*
 * A copy of the section.  Nobody vouches for what is in it.  The addresses are those of the process, or
 * any others that agree with each other.
 */
struct d9__eh_frame {
	const uint8_t *bytes;
	size_t len;
	uint64_t address;   /* of the first byte */
	uint64_t low, high; /* of the module; functions outside are ignored, as is what lies 4 GiB above low */
};

struct d9__eh_frame_rows {
	struct d9__unwind_row *row; /* free() it; NULL if there are none */
	size_t n;
};

/*
 * Compile |section| into at most |max| rows in the order of their pc.  Code that no function of the section
 * covers has rows without a rule, also behind the last function.  Where functions overlap, the one that
 * begins later holds.  0, -ENOMEM, or -E2BIG if there would be more than |max|; then |out| is untouched.
 */
int d9__eh_frame_compile(const struct d9__eh_frame *section, size_t max,
			 struct d9__eh_frame_rows *out);

/*
 * The length of the section that begins at |bytes|, of which |len| may be read: up to the entry of length
 * 0 that ends it, or to the first entry that does not fit.
 */
size_t d9__eh_frame_length(const uint8_t *bytes, size_t len);

/* The header of a module (.eh_frame_hdr, of which |len| bytes are at |address|): where .eh_frame is; 0: unknown. */
uint64_t d9__eh_frame_find(const uint8_t *header, size_t len, uint64_t address);
