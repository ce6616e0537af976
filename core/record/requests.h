/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests: work that the flush thread is asked for, between its own: commands ask by the control
 * words of the ring, the program by d9_dump(), triggers by firing.  Flush thread only.
 */

#pragma once

#include <stdint.h>

/* Serve the control words, and d9_dump(). */
void d9__requests_follow(uint64_t now_ns);

/* Serve d9_dump() alone. */
void d9__requests_serve_dumps(void);

/* d9__triggers_look(), _settle() and _end(), of this recorder.  A process that records nothing has
 * nothing to keep. */
void d9__requests_look_at_triggers(uint64_t now_ns);
void d9__requests_settle_triggers(void);
void d9__requests_end_triggers(uint64_t now_ns);
