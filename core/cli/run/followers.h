/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Followers: the processes that `dial9 record` started directly or indirectly, recognised by a
 * variable in their environment.
 */

#pragma once

#include <stdbool.h>
#include <sys/types.h>

/* Called with each; true ends the search. */
typedef bool (*d9__follower_fn)(void *arg, pid_t pid);

/*
 * Look for processes that were started with |variable|, "NAME=VALUE", in their environment, as far as this user
 * may see that.  True if |fn| ended the search.
 */
bool d9__followers_any(const char *variable, d9__follower_fn fn, void *arg);

/* One that was started with the trace directory |dir|, which exists; 0: none lives. */
pid_t d9__followers_of_dir(const char *dir);

/*
 * Remove the empty trace directory |dir|, unless a process lives that was started with it: that may
 * yet make its own directory there, and the result is false.
 */
bool d9__followers_remove_dir(const char *dir);

/* Return the effective user of |pid|, (uid_t)-1 if it has ended. */
uid_t d9__follower_uid(pid_t pid);
