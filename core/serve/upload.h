/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Upload: a trace of the reader's own, which the page sends for its report.  libevent's server
 * holds a body until it is whole, so the page sends pieces, and no client makes us hold more than
 * one. They go to files in memory: nothing of them reaches a disk.  One upload is under way at a
 * time.
 */

#pragma once

#include <stddef.h>

struct event_base;
struct evhttp_request;
struct evkeyvalq;
struct d9__upload;

/* The largest piece. */
#define D9__UPLOAD_PIECE ((size_t)256 << 10)

/* On |base|, which stays the caller's.  NULL: out of memory. */
struct d9__upload *d9__upload_new(struct event_base *base);

/*
 * Take the piece that |request| is, and answer it: at once, or the last one with the report when
 * that is made.  |query| tells "upload", a word of the page's that its pieces share; "bytes", of
 * all files together (without it: of this piece); "at", how many of them came before; "file", the
 * number of the file, and its "name".
 */
void d9__upload_take(struct d9__upload *upload, struct evhttp_request *request,
		     const struct evkeyvalq *query);

/* Free it; a request that waits for a report is answered without one. */
void d9__upload_free(struct d9__upload *upload);
