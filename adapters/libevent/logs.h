/* SPDX-License-Identifier: Apache-2.0 */
/* What libevent logs, as events; only if the recorder is to have them. */

#ifndef D9_LIBEVENT_LOGS_H
#define D9_LIBEVENT_LOGS_H

/* Patch libevent's logging if that is wanted and was not done yet.  Not under a base's lock. */
void d9__libevent_logs_look(void);

#endif /* D9_LIBEVENT_LOGS_H */
