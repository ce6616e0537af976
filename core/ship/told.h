/* SPDX-License-Identifier: Apache-2.0 */
/* Told: the lines that a service printed in this look or the one before, so that it prints a lasting fault only once. */

#pragma once

#include <stdbool.h>

struct d9__told_lines {
	void *before, *now; /* trees of lines, owned */
};

/* True if |line| is news; remembers it. */
bool d9__told_news(struct d9__told_lines *told, const char *line);

/* Forget the lines that were not told again in a whole look, so that they are news next time. */
void d9__told_looked(struct d9__told_lines *told);

void d9__told_release(struct d9__told_lines *told);
