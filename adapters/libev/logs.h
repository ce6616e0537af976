/* SPDX-License-Identifier: Apache-2.0 */
/* libev's complaints, as events; only if the recorder is to have them. */

#pragma once

/* Patch ev_set_syserr_cb() if that is wanted and was not done yet. */
void d9__libev_logs_look(void);
