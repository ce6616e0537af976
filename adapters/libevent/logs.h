/* SPDX-License-Identifier: Apache-2.0 */
/* Lines that libevent logs, as events; only if the recorder is to have them. */

#pragma once

/* Patch libevent's logging if that is wanted and was not done yet.  Not under a base's lock. */
void d9__libevent_logs_look(void);
