/* SPDX-License-Identifier: Apache-2.0 */
/* A program that uses every kind of libevent callback and counts for itself. */

#ifndef D9_LIBEVENT_KINDS_H
#define D9_LIBEVENT_KINDS_H

#include <stdbool.h>

#include <event2/event.h>
#include <event2/event_struct.h>

#include "counters.h"

struct run {
	struct event_base *base;
	bool threads, debug;
};

/* Stages, each runs |run->base| until its own work is done. */
void stage_descriptors(struct run *run);
void stage_timers(struct run *run);
void stage_signals(struct run *run);
void stage_active(struct run *run);
void stage_once(struct run *run);
void stage_priorities(struct run *run);
void stage_finalizers(struct run *run);
void stage_getters(struct run *run);
void stage_bufferevents(struct run *run);
void stage_listener(struct run *run);
void stage_http(struct run *run);
void stage_dns(struct run *run);
void stage_cross_thread(struct run *run);

#endif /* D9_LIBEVENT_KINDS_H */
