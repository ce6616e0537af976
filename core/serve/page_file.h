/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Page file: the viewer, a trace and its report as one HTML file that opens from disk, without a
 * network and without us.  A policy in it lets a browser run exactly our script, told by its
 * SHA-256; what a trace says is in it as base64, or as JSON in which no '<' can occur.
 */

#pragma once

#include <stddef.h>
#include <stdint.h>

#include "serve/assets.h"

struct d9__page_segment {
	const char *path;     /* to be read */
	const char *name;     /* "web-1/trace.0.bin": segments of one process have one folder */
	uint64_t bytes;	      /* of it, that go into the page */
	uint64_t modified_ms; /* since 1970 */
};

struct d9__page_data {
	const char *name;   /* of the trace, for people */
	const char *report; /* the output of `dial9 report --json` */
	size_t report_len;
	const struct d9__page_segment *segments;
	size_t n;
};

/* Takes the next |len| bytes of the page.  0, or an error that ends the work. */
typedef int d9__page_put(void *context, const void *bytes, size_t len);

/*
 * Write the page.  0, -ENOMEM, -ENOENT if |assets| is no whole viewer, -ESTALE if a segment became
 * shorter meanwhile, an error of reading it, or one of |put|; |*culprit|, if not NULL, is the
 * segment that could not be read, or NULL.
 */
int d9__page_file(const struct d9__assets *assets, const struct d9__page_data *data,
		  d9__page_put *put, void *context, const struct d9__page_segment **culprit);

/* About how many bytes d9__page_file() writes. */
uint64_t d9__page_file_bytes(const struct d9__assets *assets, const struct d9__page_data *data);

/*
 * All modules that |name| imports, and itself last, as one script, in new memory.  0, -ENOMEM, or
 * -ENOENT if one of them is not there.  Modules give each name at their top once among all of them,
 * and begin imports and exports at the start of a line: tests/toolkit holds them to it.
 */
int d9__page_join(const struct d9__assets *assets, const char *name, char **out, size_t *len);
