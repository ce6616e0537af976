/* SPDX-License-Identifier: Apache-2.0 */
/* `dial9 report --html`: a trace, its report and the viewer as one file. */

#pragma once

#include <stdbool.h>
#include <stddef.h>

struct d9_reader;
struct d9__report;
struct d9__report_more;

struct d9__report_page {
	const char *output; /* "-": standard output */
	bool force;	    /* however large */
};

/*
 * Write the page of the trace that |reader| has read.  Returns an exit status, after a line on
 * stderr that tells the page's size or why there is none.
 */
int d9__report_page(const struct d9__report_page *page, char **paths,
		    const struct d9_reader *reader, const struct d9__report *reports, size_t n,
		    const struct d9__report_more *more);
