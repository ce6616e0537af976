/* SPDX-License-Identifier: Apache-2.0 */
/* Where dial9-store is: beside this program where it was built, or where both were installed to. */

#ifndef D9_SHIP_STORE_PROGRAM_H
#define D9_SHIP_STORE_PROGRAM_H

/* The path, owned; NULL: it is nowhere. */
char *d9__store_program(void);

#endif /* D9_SHIP_STORE_PROGRAM_H */
