/* SPDX-License-Identifier: Apache-2.0 */
/* The facts of a segment that its stage's program gets, as JSON in DIAL9_SEGMENT. */

#pragma once

/*
 * Return "DIAL9_SEGMENT={...}" for the segment |fd| at |path|, in new memory: its time, its number,
 * and its metadata as far as they fit into an environment.  NULL: out of memory.
 */
char *d9__program_facts(int fd, const char *path);
