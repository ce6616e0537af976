/* SPDX-License-Identifier: Apache-2.0 */
/* Opening an address that holds a secret in the desktop's browser. */

#pragma once

/* A page on disk that redirects to an address; all zero is none. */
struct d9__open_page {
	char *path;
	int until; /* closed when this process ends: then a helper process removes the page */
};

/*
 * Open |url| by xdg-open(1).  Every user of the machine can read its command line, so it gets a file that redirects,
 * which is this user's alone and goes after a minute, or when this process ends in whatever way.  0, -ENODATA if the user
 * has no directory of its own to put it in, -ENOENT if there is no xdg-open, or -errno: then the user opens the address.
 */
int d9__open_page(struct d9__open_page *page, const char *url);

/* Remove the page now. */
void d9__open_page_end(struct d9__open_page *page);
