/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "cli/serve_bucket.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/directory.h"
#include "cli/cmd.h"
#include "serve/bucket_source.h"
#include "serve/source.h"
#include "tool/user_folder.h"

#define FOLDER "fleet"

#define PREFIX_MAX 256

/* True for a prefix as `dial9 ship --to` takes it. */
static bool is_prefix(const char *prefix)
{
	return strlen(prefix) <= PREFIX_MAX && *prefix != '/' && !strstr(prefix, "//") &&
	       strspn(prefix, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/=") == strlen(prefix);
}

/* Print why fetched files cannot be put into |path|. */
static int refuse(int err, const char *path)
{
	struct stat st;

	if (!lstat(path, &st) && S_ISLNK(st.st_mode))
		return d9__cmd_fail("serve", "%s: it is a link, and what is fetched stays in a folder of yours: remove it", path);
	if (err == -EPERM || err == -EACCES)
		return d9__cmd_fail("serve", "%s: it has to be a folder of yours that nobody else can look into (chmod 700); or name "
					     "another by XDG_CACHE_HOME", path);
	return d9__cmd_fail("serve", "%s: %s", path, strerror(-err));
}

/*
 * Make the folder of fetched files with mode 0700 and put its path into |path|.  The exit status,
 * or 0.
 */
static int open_folder(char path[PATH_MAX], int *out)
{
	char own[PATH_MAX];
	int parent;

	if (!d9__user_folder("XDG_CACHE_HOME", ".cache", own) || snprintf(path, PATH_MAX, "%s/" FOLDER, own) >= PATH_MAX)
		return d9__cmd_fail("serve", "there is no folder to keep what is fetched: set HOME, or XDG_CACHE_HOME to a whole path");
	parent = d9__directory_open(own, D9__DIRECTORY_MAKE);
	if (parent < 0)
		return refuse(parent, own);
	*out = d9__directory_enter(parent, FOLDER, D9__DIRECTORY_MAKE | D9__DIRECTORY_PRIVATE);
	close(parent);
	return *out < 0 ? refuse(*out, path) : 0;
}

int d9__serve_bucket_open(const struct d9__serve_bucket *bucket, struct d9__segment_source *out, const char **name)
{
	const char *prefix = bucket->prefix ? bucket->prefix : "";
	char path[PATH_MAX], why[512];
	int folder = -1, status;

	if (!bucket->store.bucket || !*bucket->store.bucket)
		return d9__cmd_fail("serve", "which bucket? --bucket NAME");
	if (!is_prefix(prefix))
		return d9__cmd_fail("serve", "--prefix has parts of A-Z a-z 0-9 . _ - =, and %d bytes at most, not '%s'", PREFIX_MAX, prefix);
	status = open_folder(path, &folder);
	if (status)
		return status;
	if (d9__bucket_source(&bucket->store, prefix, folder, path, out, name, why, sizeof(why)))
		return d9__cmd_fail("serve", "%s", why);
	if (*why)
		d9__cmd_fail("serve", "warning: %s; the page goes on asking", why);
	return 0;
}
