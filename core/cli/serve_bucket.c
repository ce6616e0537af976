/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "cli/serve_bucket.h"

#include <limits.h>
#include <string.h>

#include "cli/cmd.h"
#include "cli/user_folder.h"
#include "serve/source.h"

#define PREFIX_MAX 256

/* As `dial9 ship --to` has it. */
static bool is_prefix(const char *prefix)
{
	return strlen(prefix) <= PREFIX_MAX && *prefix != '/' && !strstr(prefix, "//") &&
	       strspn(prefix, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/=") == strlen(prefix);
}

int d9__serve_bucket_open(const struct d9__serve_bucket *bucket, struct d9__source *out, const char **name)
{
	const char *prefix = bucket->prefix ? bucket->prefix : "";
	char folder[PATH_MAX], why[512];

	if (!bucket->store.bucket || !*bucket->store.bucket)
		return d9__cmd_fail("serve", "which bucket? --bucket NAME");
	if (!is_prefix(prefix))
		return d9__cmd_fail("serve", "--prefix has parts of A-Z a-z 0-9 . _ - =, and %d bytes at most, not '%s'", PREFIX_MAX, prefix);
	if (!d9__user_folder("XDG_CACHE_HOME", ".cache", folder))
		return d9__cmd_fail("serve", "there is no folder to keep what is fetched: set HOME, or XDG_CACHE_HOME to a whole path");
	if (d9__source_bucket(&bucket->store, prefix, folder, out, name, why, sizeof(why)))
		return d9__cmd_fail("serve", "%s", why);
	if (*why)
		d9__cmd_fail("serve", "warning: %s; the page goes on asking", why);
	return 0;
}
