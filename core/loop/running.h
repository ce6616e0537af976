/* SPDX-License-Identifier: Apache-2.0 */
/* Running: which callback another thread is in, for the flush thread. */

#pragma once

/* From now on record/open_calls.h can name calls.  Idempotent. */
void d9__running_start(void);
