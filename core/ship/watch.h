/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Watch: wakes the shipper for a sealed segment, a closed dump, a new process.  It may miss one,
 * because the kernel's queue can overflow and a directory be watched too late: read all directories
 * from time to time, too.
 */

#pragma once

#include <signal.h>
#include <stddef.h>
#include <stdint.h>

#include "ship/tree.h"

struct d9__ship_watch {
	int fd; /* of inotify; -1: none, and waiting is sleeping */
};

void d9__ship_watch_open(struct d9__ship_watch *watch);

/* Watch the directories of |tree|, and those that they are in, too. */
void d9__ship_watch_add(const struct d9__ship_watch *watch, const struct d9__ship_tree *tree);

/* Watch the directory |path|, in which processes begin. */
void d9__ship_watch_directory(const struct d9__ship_watch *watch, const char *path);

/* Wait for a notice, a signal that |mask| lets through, or |until_ns| (CLOCK_MONOTONIC). */
void d9__ship_watch_wait(const struct d9__ship_watch *watch, uint64_t until_ns, const sigset_t *mask);

void d9__ship_watch_close(struct d9__ship_watch *watch);
