/* SPDX-License-Identifier: Apache-2.0 */
/* CFI: programs of call frame instructions, run into unwind rows. */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/cursor.h"
#include "sample/unwind_row.h"

/* A growing list of rows. */
struct d9__unwind_rows {
	struct d9__unwind_row *row;
	size_t n, capacity;
	size_t max; /* n <= max */
};

/* Append a row.  0, -ENOMEM, or -E2BIG if there are |max| already. */
int d9__unwind_rows_add(struct d9__unwind_rows *rows, const struct d9__unwind_row *row);

/* The state of the instructions so far for one range of code. */
struct d9__cfi_state {
	uint8_t cfa;           /* enum d9__cfa_rule */
	uint8_t rbp;           /* enum d9__rbp_rule */
	uint8_t return_address; /* where it is; private to cfi.c */
	bool cfa_is_expression;
	bool rbp_is_lost;      /* the caller's rbp is where no row can say it is */
	bool rsp_is_odd;       /* the caller's rsp is not the CFA */
	int64_t cfa_offset, rbp_offset;
};

/* The common part of several functions (CIE), understood. */
struct d9__cfi_common {
	uint64_t code_align;
	int64_t data_align;
	bool is_signal_frame;
	struct d9__cfi_state initial;
};

/*
 * Run the initial program of a CIE into |common->initial|; the other members are set already.  False
 * if it holds an instruction that is not understood.
 */
bool d9__cfi_run_initial(struct d9__cfi_common *common, struct d9__cursor program);

/*
 * Run the program of an FDE that covers the offsets [start, end) and append its rows, the first at
 * |start|.  From an instruction that is not understood to |end|, there is one row without a rule.  0
 * or an error of d9__unwind_rows_add().
 */
int d9__cfi_run(const struct d9__cfi_common *common, struct d9__cursor program, uint32_t start,
		uint32_t end, struct d9__unwind_rows *rows);

/* A signed LEB128 number.  False if the bytes do not suffice or it does not fit 64 bits. */
bool d9__cfi_sleb(struct d9__cursor *cursor, int64_t *out);

/* An unsigned one.  Nearly all have one byte. */
static inline bool d9__cfi_uleb(struct d9__cursor *cursor, uint64_t *out)
{
	uint8_t byte;

	if (d9__cursor_left(cursor) && *cursor->p < 0x80 && d9__cursor_u8(cursor, &byte)) {
		*out = byte;
		return true;
	}
	return d9__cursor_varint(cursor, out) == 1;
}
