/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Summary: what the page over many segments knows of one, in a few kilobytes: which process wrote
 * it, how long its callbacks took and when, its findings, its stacks.  `dial9 serve` has one made
 * of each segment, by a process of its own, and adds them up.
 */

#pragma once

/* Print the summary of the segment |path| for |command| as one JSON object.  The exit status, after
 * a line on stderr. */
int d9__segment_summary(const char *command, const char *path);

/* The same for `dial9 ship`, as d9__program_run() calls it. */
int d9__summary_to_stdout(const char *path);
