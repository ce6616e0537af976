/* SPDX-License-Identifier: Apache-2.0 */
/* Module file: where the file of a module is, and what stands in for its build-id. */

#pragma once

#include "segment/modules.h"

/*
 * Make |module|'s path, which is as the loader has it, an absolute one, and take the file's size,
 * time and inode if it has no build-id.
 *
 * The loader gives the main program no name, and a library that was found by a relative path that
 * path: the kernel knows where both are.  Without /proc, as in a bare chroot, there is only the
 * name that the program was started by.  Changes errno; not in a sandbox that is shut.
 */
void d9__module_find_file(struct d9__module *module);
