/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <string.h>

#include "base/spelling.h"

static unsigned char lower(char c)
{
	return (unsigned char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
}

static size_t length(const char *text)
{
	return strnlen(text, D9__NEAREST_MAX);
}

/* Whether |part|, which is not empty, stands in |whole|, in any case. */
static int is_in(const char *part, const char *whole)
{
	size_t n = length(part), all = length(whole);

	for (size_t at = 0; n > 2 && at + n <= all; at++) {
		size_t same = 0;

		while (same < n && lower(part[same]) == lower(whole[at + same]))
			same++;
		if (same == n)
			return 1;
	}
	return 0;
}

/* Levenshtein's distance of |a| and |b|, in any case. */
static size_t distance(const char *a, const char *b)
{
	size_t row[D9__NEAREST_MAX + 1], n = length(a), m = length(b);

	for (size_t j = 0; j <= m; j++)
		row[j] = j;
	for (size_t i = 1; i <= n; i++) {
		size_t diagonal = row[0];

		row[0] = i;
		for (size_t j = 1; j <= m; j++) {
			size_t best = diagonal + (lower(a[i - 1]) != lower(b[j - 1]));

			diagonal = row[j];
			if (row[j] + 1 < best)
				best = row[j] + 1;
			if (row[j - 1] + 1 < best)
				best = row[j - 1] + 1;
			row[j] = best;
		}
	}
	return row[m];
}

void d9__spelling_try(struct d9__spelling *nearest, const char *name)
{
	size_t steps = distance(nearest->word, name), most = length(nearest->word) / 3 + 1;

	/* Somebody wrote a part of the name only. */
	if (steps > 1 && is_in(nearest->word, name))
		steps = 1;
	if (steps > most || (nearest->name && steps >= nearest->steps))
		return;
	nearest->name = name;
	nearest->steps = steps;
}
