/* SPDX-License-Identifier: Apache-2.0 */
/* The path of dial9-store: beside this program in its build tree, or installed. */

#pragma once

/* Return the path of dial9-store, owned; NULL: it is not installed. */
char *d9__store_program(void);
