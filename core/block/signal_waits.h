/* SPDX-License-Identifier: Apache-2.0 */
/* Signal waits: sigwait(3) and its like. */

#pragma once

/* Redirect them: they are timed, and where threads are sampled leave out the signal of samples. */
void d9__signal_waits_watch(void);
