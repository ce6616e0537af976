/* SPDX-License-Identifier: Apache-2.0 */
/* Where dial9-store is: beside this program where it was built, or where both were installed to. */

#pragma once

/* Return the path of dial9-store, owned; NULL: it is not installed. */
char *d9__store_program(void);
