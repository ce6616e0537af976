/* SPDX-License-Identifier: Apache-2.0 */
/* `dial9 symbolize`, as a stage of `dial9 ship` runs it. */

#pragma once

#include "cli/cmd.h"

/* Write the segment |path| with symbols to standard output, for stages.  An exit status. */
int d9__symbolize_to_stdout(const char *path);
