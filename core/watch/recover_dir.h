/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Write segments of what processes of the trace directory |dir| held in their rings when they were killed.  |command| tells a line
 * of each ring that cannot be read.
 */
void d9__recover_dir(const char *command, const char *dir);
