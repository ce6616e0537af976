/* SPDX-License-Identifier: Apache-2.0 */
/* Assets: the viewer's own files, read once at the start, so that no request ever opens one. */

#pragma once

#include <stddef.h>

struct d9__asset {
	char *name;	  /* "viewer/app.js"; owned */
	const char *type; /* MIME; static */
	char *data;	  /* owned */
	size_t len;
};

struct d9__assets {
	struct d9__asset *items;
	size_t n;
};

/* Read the folders viewer and toolkit of |dir|, and the guide doc/ANALYSIS.md.  0, -ENOMEM, or an error of reading; release in
 * all cases. */
int d9__assets_load(struct d9__assets *assets, const char *dir);

/* The one called |name|, or NULL. */
const struct d9__asset *d9__assets_find(const struct d9__assets *assets, const char *name);

void d9__assets_release(struct d9__assets *assets);
