/* SPDX-License-Identifier: Apache-2.0 */
/* Dir fault: what about a directory made a recorder refuse it, or the kernel refuse it to the recorder. */

#pragma once

#include <limits.h>
#include <sys/types.h>

enum d9__dir_use {
	D9__DIR_TRACE, /* of segments: no other user may write to it */
	D9__DIR_DUMP,  /* of a dump: what others write to it they may not rename */
};

#define D9__DIR_FAULT_LEN (2 * PATH_MAX + 160)

/*
 * A clause that begins with "; ": whose or how open |dir| is, or |boot_id| in it, where that explains why |pid|,
 * which lives, got |err| (negative errno), and what to do; else "".
 */
const char *d9__dir_fault(char out[D9__DIR_FAULT_LEN], pid_t pid, const char *dir, const char *boot_id,
			  enum d9__dir_use use, int err);
