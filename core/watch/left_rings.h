/* SPDX-License-Identifier: Apache-2.0 */
/* Left rings: what belongs to a trace and is in the rings of processes alone. */

#pragma once

#include <stddef.h>

struct d9__left_rings {
	size_t all;  /* processes without a segment */
	size_t ends; /* those whose segments are all sealed: nothing in them says that there is more */
	size_t living; /* processes that live and have no segment yet */
};

/*
 * |all| and |ends| are of those that were killed, or cannot write, and that have events in their
 * ring; they belong to the directories among |paths|.  Elsewhere than on their machine there are no
 * rings.
 */
struct d9__left_rings d9__left_rings(char *const *paths);
