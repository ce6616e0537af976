/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "serve/reply.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/http.h>
#include <event2/keyvalq_struct.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "serve/page_file.h"

/*
 * The policy of the page: it runs our scripts and reads from this server.  A text of a trace cannot
 * become a script.
 */
#define POLICY                                                                                     \
	"default-src 'none'; script-src 'self'; worker-src 'self'; style-src 'self'; "             \
	"img-src 'self' blob:; connect-src 'self'; base-uri 'none'; form-action 'none'; "          \
	"frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types dial9"

static void add_headers(struct evhttp_request *request, const char *type)
{
	struct evkeyvalq *headers = evhttp_request_get_output_headers(request);
	static const char *const always[][2] = {
		{ "Content-Security-Policy", POLICY },
		{ "X-Content-Type-Options", "nosniff" },
		{ "Referrer-Policy", "no-referrer" },
		{ "Cross-Origin-Resource-Policy", "same-origin" },
		{ "Cross-Origin-Opener-Policy", "same-origin" },
		{ "Cache-Control", "no-store" },
	};

	for (size_t i = 0; i < sizeof(always) / sizeof(always[0]); i++)
		evhttp_add_header(headers, always[i][0], always[i][1]);
	evhttp_add_header(headers, "Content-Type", type);
}

/* libevent would send the body that GET gets, and a client that keeps the connection took it for the next answer. */
static void send_head(struct evhttp_request *request, int code, size_t len)
{
	char text[24];

	snprintf(text, sizeof(text), "%zu", len);
	evhttp_add_header(evhttp_request_get_output_headers(request), "Content-Length", text);
	evhttp_send_reply(request, code, NULL, NULL);
}

void d9__reply(struct evhttp_request *request, int code, const char *type, struct evbuffer *body)
{
	add_headers(request, type);
	if (evhttp_request_get_command(request) == EVHTTP_REQ_HEAD)
		send_head(request, code, body ? evbuffer_get_length(body) : 0);
	else
		evhttp_send_reply(request, code, NULL, body);
}

void d9__reply_bytes(struct evhttp_request *request, int code, const char *type, const char *data,
		     size_t len)
{
	struct evbuffer *body = evbuffer_new();

	if (body && !evbuffer_add(body, data, len))
		d9__reply(request, code, type, body);
	else
		d9__reply(request, HTTP_INTERNAL, "text/plain", NULL);
	if (body)
		evbuffer_free(body);
}

static void send_reference(struct evhttp_request *request, const char *type, const char *data,
			   size_t len, evbuffer_ref_cleanup_cb release, void *owned)
{
	struct evbuffer *body = evbuffer_new();

	if (body && !evbuffer_add_reference(body, data, len, release, owned)) {
		d9__reply(request, HTTP_OK, type, body);
	} else {
		free(owned);
		d9__reply(request, HTTP_INTERNAL, "text/plain", NULL);
	}
	if (body)
		evbuffer_free(body);
}

void d9__reply_kept(struct evhttp_request *request, const char *type, const char *data, size_t len)
{
	send_reference(request, type, data, len, NULL, NULL);
}

static void release_json(const void *data, size_t len, void *json)
{
	(void)data;
	(void)len;
	free(json);
}

void d9__reply_json(struct evhttp_request *request, char *json, size_t len)
{
	if (json)
		send_reference(request, "application/json", json, len, release_json, json);
	else
		d9__reply_text(request, HTTP_INTERNAL, "out of memory");
}

void d9__reply_text(struct evhttp_request *request, int code, const char *text)
{
	d9__reply_bytes(request, code, "text/plain; charset=utf-8", text, strlen(text));
}

static int collect_page(void *body, const void *bytes, size_t len)
{
	return evbuffer_add(body, bytes, len) ? -ENOMEM : 0;
}

void d9__reply_page(struct evhttp_request *request, const struct d9__assets *assets)
{
	static const struct d9__page_data nothing = { .name = "",
						      .report = "null",
						      .report_len = 4 };
	struct evbuffer *body = evbuffer_new();
	int err = body ? d9__page_file(assets, &nothing, collect_page, body, NULL) : -ENOMEM;

	if (err)
		d9__reply_text(request, HTTP_INTERNAL, strerror(-err));
	else
		d9__reply(request, HTTP_OK, "text/plain; charset=utf-8", body);
	if (body)
		evbuffer_free(body);
}
