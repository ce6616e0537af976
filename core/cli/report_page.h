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
 * Write the page of what |reader| has read.  The exit status, after a line on stderr that says why
 * there is no page, or how large it is.
 */
int d9__report_page(const struct d9__report_page *page, char **paths,
		    const struct d9_reader *reader, const struct d9__report *reports, size_t n,
		    const struct d9__report_more *more);
