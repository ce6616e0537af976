/* SPDX-License-Identifier: Apache-2.0 */
/* Texts: the one hash table by text: names, locations and other byte strings, numbered in order. */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Longer texts are cut: those that begin with the same D9__TEXT_MAX bytes are one. */
#define D9__TEXT_MAX 4096

/*
 * Texts to small dense numbers.  All zero is empty.  Owns copies of the texts.  Beyond the budget
 * (budget.h) further texts share one number, of the text |others|.
 */
struct d9__texts {
	const char *others; /* NULL: "(left out)" */
	unsigned kind;	    /* enum d9__kept; 0: names */
	size_t each;	    /* what its user keeps for each text: goes from the budget as well */
	size_t bytes;	    /* taken from it */
	bool full;	    /* |others| is in use, with the number |others_number| */
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
