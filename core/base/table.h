/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Table: the one hash table by number: ids, addresses, and hashes of what has several fields
 * (base/hash.h).  Texts that need a number of their own have analyze/texts.h.  What signal handlers
 * or threads without a lock look up has a fixed table of its own, beside its code.
 */

#pragma once

#include <stddef.h>
#include <stdint.h>

/*
 * Numbers to pointers, open addressing.  All zero is an empty table.  Borrows the pointers.  Each
 * process puts a number at another place: no output may depend on the order of the entries.
 */
struct d9__table {
	struct d9__table_entry {
		uint64_t key;
		void *value; /* NULL: free */
	} *entries;
	size_t n;
	unsigned bits; /* the table has 2^bits entries, or none */
	uint64_t secret;
};

void d9__table_release(struct d9__table *table);

/* The pointer under |key|, or NULL. */
void *d9__table_find(const struct d9__table *table, uint64_t key);

/* Put |value|, not NULL, under |key|, which has none.  0 or -ENOMEM. */
int d9__table_add(struct d9__table *table, uint64_t key, void *value);

/* Take |key| out, if it is there. */
void d9__table_remove(struct d9__table *table, uint64_t key);

/* Entries one by one: start with 0; returns the place after the entry, 0 at the end. */
size_t d9__table_next(const struct d9__table *table, size_t place, void **value);
