/* SPDX-License-Identifier: Apache-2.0 */
/* Look-up by number (ids, addresses) and by text (locations, names). */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Numbers to pointers, open addressing.  All zero is an empty table.  Borrows the pointers.  Where a number
 * stands is another place in each run: nothing that is told may depend on the order of the entries.
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

/* Longer texts are cut: those that begin with the same D9__TEXT_MAX bytes are one. */
#define D9__TEXT_MAX 4096

/*
 * Texts to small dense numbers.  All zero is empty.  Owns copies of the texts.  Beyond the budget (budget.h)
 * further texts share one number, of the text |others|.
 */
struct d9__texts {
	const char *others; /* NULL: "(left out)" */
	unsigned kind;      /* enum d9__kept; 0: names */
	size_t each;        /* what its user keeps for each text: goes from the budget as well */
	size_t bytes;       /* taken from it */
	bool full;          /* |others| is in use, with the number |others_number| */
	uint32_t others_number;
	char **items; /* terminated */
	size_t *lens;
	size_t n;
	uint32_t *slots; /* number + 1, or 0 */
	unsigned bits;
	uint64_t secret;
};

void d9__texts_release(struct d9__texts *texts);

/* Whether |text| has a number. */
bool d9__texts_find(const struct d9__texts *texts, const char *text, size_t len, uint32_t *number);

/* The number of |text|, given at its first sight.  0 or -ENOMEM. */
int d9__texts_number(struct d9__texts *texts, const char *text, size_t len, uint32_t *number);
