/* SPDX-License-Identifier: Apache-2.0 */
/* Dump requests: from d9_dump() on any thread to the flush thread, and back. */

#pragma once

#include "drain/dump.h"

struct d9__dump_request;

/* A request with one reference, the caller's, and an empty dump.  NULL: no memory. */
struct d9__dump_request *d9__dump_request_new(void);

/* The dump that is asked for; once it is made, with its result. */
struct d9__dump *d9__dump_request_dump(struct d9__dump_request *request);

/* Hand |request| to the flush thread. */
void d9__dump_request_push(struct d9__dump_request *request);

/* Wait until it is made.  0, -ETIMEDOUT, or -ESHUTDOWN: the flush thread has ended. */
int d9__dump_request_await(struct d9__dump_request *request, uint64_t deadline_ns);

/* Give up the caller's reference. */
void d9__dump_request_drop(struct d9__dump_request *request);

/* Flush thread: the next one that waits, NULL if none does. */
struct d9__dump_request *d9__dump_request_next(void);

/* Flush thread: it was made.  Wakes the thread that waits for it; |request| is gone then. */
void d9__dump_request_done(struct d9__dump_request *request);

/* Before the flush thread starts: requests that came too late for the one before. */
void d9__dump_requests_clear(void);

/* In a forked child: what waits is the parent's. */
void d9__dump_requests_fork_child(void);
