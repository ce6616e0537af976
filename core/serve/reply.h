/* SPDX-License-Identifier: Apache-2.0 */
/* Reply: the headers of every answer, with which a browser keeps other sites away from it. */

#pragma once

#include <stddef.h>

struct d9__assets;
struct evbuffer;
struct evhttp_request;

/* Send |body|, which is drained, as content of |type|; NULL: none. */
void d9__reply(struct evhttp_request *request, int code, const char *type, struct evbuffer *body);

/* Send |len| bytes, copied, in the same way. */
void d9__reply_bytes(struct evhttp_request *request, int code, const char *type, const char *data,
		     size_t len);

/* Send bytes in the same way that stay valid while the server runs: no copy. */
void d9__reply_kept(struct evhttp_request *request, const char *type, const char *data, size_t len);

/* JSON that was made for this; |json| is freed, and NULL says that there was no memory for it. */
void d9__reply_json(struct evhttp_request *request, char *json, size_t len);

/* A line for people. */
void d9__reply_text(struct evhttp_request *request, int code, const char *text);

/*
 * Send the viewer as one file without a trace, as text: the page puts a cut-out of its trace into
 * it.
 */
void d9__reply_page(struct evhttp_request *request, const struct d9__assets *assets);
