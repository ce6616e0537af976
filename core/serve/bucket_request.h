/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to a bucket, their answers, and the callers that wait. */

#pragma once

#include "serve/bucket_parts.h"

int64_t d9__bucket_now_s(void);

/* Ask: |take| gets the answer.  NULL: not now, there are too many under way. */
struct d9__bucket_request *d9__bucket_request(struct d9__bucket_source *source,
					      void (*take)(struct d9__bucket_source *, void *,
							   const struct d9__bucket_answer *),
					      void *of);

/* It was sent, or |err|. */
void d9__bucket_requested(struct d9__bucket_source *source, struct d9__bucket_request *request,
			  int err);

/* Give the answer to the caller of its request. */
void d9__bucket_deliver(struct d9__bucket_source *source, const struct d9__bucket_answer *answer);

/* Deliver an error for each request that could not be sent. */
void d9__bucket_deliver_unsent(struct d9__bucket_source *source);

/*
 * Wait for answers on the descriptor of the present child, because a new child may have another
 * one, or another file under the same number.
 */
void d9__bucket_watch(struct d9__bucket_source *source);

/*
 * True if |answer| is a success; else keep its error for the page, and leave the store alone for a
 * while.
 */
bool d9__bucket_is_good(struct d9__bucket_source *source, const struct d9__bucket_answer *answer);

/* Call |waiters|, and free them. */
void d9__bucket_wake(struct d9__bucket_waiter **waiters, const char *why);
void d9__bucket_forget(struct d9__bucket_waiter **waiters, const void *context);
