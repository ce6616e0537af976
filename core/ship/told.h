/* SPDX-License-Identifier: Apache-2.0 */
/* Told: the lines that a service printed in this look or the one before, so that it prints a lasting fault only once. */

#pragma once

#include <stdbool.h>

struct d9__told_lines {
	void *before, *now; /* trees of lines, owned */
};

/* Whether |line| is news; from now on it is none. */
bool d9__told_news(struct d9__told_lines *told, const char *line);

/* A look at everything is over: what it did not tell is news again. */
void d9__told_looked(struct d9__told_lines *told);

void d9__told_release(struct d9__told_lines *told);
