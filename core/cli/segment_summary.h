/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Summary: the few kilobytes that the page over many segments keeps of one: its process, how long
 * its callbacks took and when, its findings, its stacks. `dial9 serve` has each segment summed up
 * by a process of its own, and adds the summaries up.
 */

#pragma once

/* Print the summary of the segment |path| for |command| as one JSON object.  The exit status, after
 * a line on stderr. */
int d9__segment_summary(const char *command, const char *path);

/*
 * Write the summary of the segment at |path| to standard output; for d9__program_run() in `dial9
 * ship`.
 */
int d9__segment_summary_to_stdout(const char *path);
