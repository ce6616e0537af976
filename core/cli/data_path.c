/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "cli/data_path.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/own_path.h"

#define PAGE "viewer/index.html"

/* |folder|/|relative| in new memory if the viewer is there; |*out| stays NULL if not.  0 or
 * -ENOMEM. */
static int try_folder(const char *folder, const char *relative, char **out)
{
	char *page;
	int found;

	if (asprintf(&page, "%s/%s/" PAGE, folder, relative) < 0)
		return -ENOMEM;
	found = !access(page, R_OK);
	free(page);
	if (!found)
		return 0;
	if (asprintf(out, "%s/%s", folder, relative) >= 0)
		return 0;
	*out = NULL;
	return -ENOMEM;
}

int d9__data_path(char **out)
{
	char folder[PATH_MAX], relative[PATH_MAX], *path = NULL;
	int err = 0;

	if (!d9__own_folder(folder, sizeof(folder))) {
		d9__relative_path(BINDIR, PKGDATADIR, relative, sizeof(relative));
		err = try_folder(folder, ".", &path);
		if (!err && !path)
			err = try_folder(folder, relative, &path);
	}
	if (!err && !path)
		err = try_folder(PKGDATADIR, ".", &path);
	if (!err && !path)
		err = -ENOENT;
	if (!err)
		*out = path;
	return err;
}
