/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Directory: the one way into every directory that dial9 writes or removes files in.  A path is
 * walked one name after the other from descriptors, because then the directory that was looked at
 * is the one that is entered:
 *
 *   - A symbolic link is followed if root or we own it, in a directory that root or we own and in which
 *     strangers cannot rename it: /home may be a link, and so may /var/run.  No other is.
 *   - Directories of other users are walked through, as they were named, but no link in them is followed.
 *   - The last one has to be ours, and no other user may write to it; see the flags.
 *
 * "Ours" is the effective user's.
 */

#pragma once

#include <stdbool.h>
#include <sys/stat.h>

enum d9__directory_flags {
	D9__DIRECTORY_MAKE = 1,	   /* what is missing is made, with mode 0700 each */
	D9__DIRECTORY_PRIVATE = 2, /* no other user may even look into it */
	D9__DIRECTORY_SHARED = 4,  /* it may be anybody's in which others cannot rename what is ours, as /tmp is */
	D9__DIRECTORY_ANY = 8,	   /* it may be anybody's: the caller looks */
	D9__DIRECTORY_STICKY = 16, /* or it is root's or ours with the sticky bit: what is ours in it stays ours */
};

/*
 * The descriptor of the directory |path|, or -errno: -EPERM if it is not as the flags say, -ELOOP if a link
 * leads there that must not be followed.
 */
int d9__directory_open(const char *path, unsigned flags);

/*
 * Enter |name| in the directory |at|: one component, and no link.  Returns as d9__directory_open().
 */
int d9__directory_enter(int at, const char *name, unsigned flags);

/* Whether a directory of this |st| is as |flags| say, for the effective user. */
bool d9__directory_is_fit(const struct stat *st, unsigned flags);
