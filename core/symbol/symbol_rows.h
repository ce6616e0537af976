/* SPDX-License-Identifier: Apache-2.0 */
/* Symbol rows: what a trace itself says of addresses (SymbolTableEntry), by address and depth of inlining. */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <dial9/reader.h>

#include "base/table.h"
#include "symbol/answers.h"
#include "symbol/symbol.h"

struct d9__row {
	struct d9__symbol symbol;
	uint32_t depth; /* 0: the real function; 1: inlined into it, and so on */
	uint32_t next;	/* of the same address: number + 1, 0: none */
};

/* All zero is empty. */
struct d9__symbol_rows {
	struct d9__row *items;
	size_t n;
	struct d9__table by_address; /* number + 1 of the newest row, as a pointer */
};

/*
 * Take the row |event|, with its texts into |answers|.  Of two for one address and depth the first counts; one that
 * says only where an address lies ("memcached+0x1a2b0", "[kernel] 0x...") never does.  0 or -ENOMEM.
 */
int d9__symbol_rows_learn(struct d9__symbol_rows *rows, struct d9__answers *answers, const struct d9_event *event);

/* The frames at |address|, the innermost first; how many.  |*placed|: one of them has a position in a source file. */
size_t d9__symbol_rows_find(const struct d9__symbol_rows *rows, uint64_t address, struct d9__symbol frames[D9__SYMBOL_DEPTH_MAX],
		     bool *placed);

/* Whether |name| says only where an address lies. */
bool d9__symbol_rows_is_mere_place(const char *name, size_t len);

void d9__symbol_rows_release(struct d9__symbol_rows *rows);
