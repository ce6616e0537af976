/* SPDX-License-Identifier: Apache-2.0 */
/* Running: which callback another thread is in, for the flush thread. */

#ifndef D9_LOOP_RUNNING_H
#define D9_LOOP_RUNNING_H

/* From now on record/open_calls.h can name calls.  Idempotent. */
void d9__running_start(void);

#endif /* D9_LOOP_RUNNING_H */
