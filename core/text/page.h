/* SPDX-License-Identifier: Apache-2.0 */
/* Text for a terminal or a pipe: wrapped paragraphs and aligned tables of a given width. */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum d9__page_color {
	D9__PLAIN,
	D9__BOLD,
	D9__RED,
	D9__YELLOW,
	D9__CYAN,
	D9__FAINT,
};

/* All output passes through here, and is shown by the rule of shown.h. */
struct d9__page {
	FILE *out;
	unsigned width; /* columns */
	bool color, utf8;
	bool fresh; /* nothing is on it yet that a gap would have to separate */
	int err; /* -ENOMEM once a table could not be held */
};

/* |text| as it is, in |color|. */
void d9__page_put(struct d9__page *page, enum d9__page_color color, const char *text);
void d9__page_printf(struct d9__page *page, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* A line of its own, two spaces in, wrapped. */
void d9__page_line(struct d9__page *page, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* An empty line, unless |page| is fresh; it is not any more. */
void d9__page_gap(struct d9__page *page);

/* A gap and |title|. */
void d9__page_section(struct d9__page *page, const char *title);

/*
 * |text| broken at spaces to the width of the page, 120 columns at most; its first line comes after |column| columns
 * already written, the others after |indent| spaces.  Ends the line.
 */
void d9__page_wrap(struct d9__page *page, const char *text, unsigned column, unsigned indent);

/* Columns that |text| takes. */
size_t d9__page_columns(const struct d9__page *page, const char *text);

/*
 * |text| in at most |columns| columns, in new memory: what does not fit is taken from its middle,
 * sparing the first |keep| bytes; what follows them is left out altogether if little of it would
 * fit, or if they do not fit themselves: then a remark in parentheses gives way before the name in
 * front of it.  NULL: out of memory.
 */
char *d9__page_shorten(const struct d9__page *page, const char *text, size_t keep, size_t columns);

#define D9__GRID_COLUMNS 12

/* A table.  Declare its columns, add rows cell by cell, print. */
struct d9__grid {
	struct d9__grid_column {
		const char *title;
		bool left;     /* aligned; numbers are aligned right */
		bool flexible; /* takes the space that the others leave; at most one */
		unsigned spare; /* left out where the page is too narrow, 1 first; 0: never */
	} columns[D9__GRID_COLUMNS];
	size_t n_columns;
	struct d9__grid_cell {
		char *text;
		size_t keep;
	} *cells;
	size_t n_cells;
	bool failed;
};

void d9__grid_column(struct d9__grid *grid, const char *title, bool left, bool flexible);

/* Where the page is too narrow, leave out the columns |titles|, which end with NULL, in this order. */
void d9__grid_spare(struct d9__grid *grid, const char *const titles[]);

/* The next cell of the next row.  |keep|: as for d9__page_shorten(). */
void d9__grid_cell(struct d9__grid *grid, const char *text, size_t keep);

/* Print with two spaces before each column, and release.  Nothing without rows. */
void d9__grid_print(struct d9__grid *grid, struct d9__page *page);
