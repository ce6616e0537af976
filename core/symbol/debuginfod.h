/* SPDX-License-Identifier: Apache-2.0 */

#pragma once

#include "symbol/elf_file.h"

/*
 * Ask the servers in $DEBUGINFOD_URLS for the debug file of |build_id|, lower-case hex, by elfutils' own client, which
 * keeps what it gets.  NULL: none is set, the client is not installed, or no server has it.
 */
struct d9__elf_file *d9__debuginfod_find(const char *build_id);
