/* SPDX-License-Identifier: Apache-2.0 */
/* The facts of a segment that its stage's program gets, as JSON in DIAL9_SEGMENT. */

#pragma once

/*
 * "DIAL9_SEGMENT={...}" for the segment |fd|, which lies at |path|, in new memory: when it begins,
 * its number, what its metadata says as far as that fits into an environment.  NULL: out of memory.
 */
char *d9__program_facts(int fd, const char *path);
