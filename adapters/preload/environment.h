/* SPDX-License-Identifier: Apache-2.0 */
/* Environment: the variables that children of the recorded program inherit of us. */

#pragma once

/*
 * With DIAL9_FOLLOW=0 (`dial9 record --no-follow`), take our entry out of LD_PRELOAD and our
 * variables out of the environment, before main() can hand them on; the recorder of this process
 * still reads them, from a copy.  Without it change nothing.
 */
void d9__environment_take_out(void);
