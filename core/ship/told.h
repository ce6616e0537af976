/* SPDX-License-Identifier: Apache-2.0 */
/* Told: which lines were told in this look or in the one before.  What goes on being wrong is told once, until it has changed. */

#pragma once

#include <stdbool.h>

struct d9__told {
	void *before, *now; /* trees of lines, owned */
};

/* Whether |line| is news; from now on it is none. */
bool d9__told_news(struct d9__told *told, const char *line);

/* A look at everything is over: what it did not tell is news again. */
void d9__told_looked(struct d9__told *told);

void d9__told_release(struct d9__told *told);
