/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who may read: a request must name this very server as its host, so that no name that resolves to
 * 127.0.0.1 opens it to a web page, and its path must begin with the token that was printed at the
 * start. What it gets is from three tables: the viewer's files, the listing, the report; no path is
 * made of it.
 */
#include "config.h"

#include "serve/server.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/keyvalq_struct.h>
#include <event2/listener.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "analyze/json.h"
#include "serve/assets.h"
#include "serve/listing.h"
#include "serve/report_job.h"

#define TOKEN_BYTES 16
#define HEADERS_MAX (16 << 10)
#define IDLE_S	    60
#define LOOPBACK    "127.0.0.1"

/* What the page may do: run our scripts and read from us.  What a trace says cannot become a
 * script. */
#define POLICY                                                                                     \
	"default-src 'none'; script-src 'self'; worker-src 'self'; style-src 'self'; "             \
	"img-src 'self' blob:; connect-src 'self'; base-uri 'none'; form-action 'none'; "          \
	"frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types dial9"

struct d9__server {
	struct event_base *base;
	struct evhttp *http;
	struct event *signals[2];
	struct d9__assets assets;
	struct d9__listing listing;
	struct d9__report_job *report;
	uint16_t port;
	char token[2 * TOKEN_BYTES + 1];
	char url[64 + 2 * TOKEN_BYTES];
};

static void reply(struct evhttp_request *request, int code, const char *type, struct evbuffer *body)
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
	evhttp_send_reply(request, code, NULL, body);
}

static void reply_bytes(struct evhttp_request *request, int code, const char *type,
			const char *data, size_t len)
{
	struct evbuffer *body = evbuffer_new();

	if (body && !evbuffer_add(body, data, len))
		reply(request, code, type, body);
	else
		reply(request, HTTP_INTERNAL, "text/plain", NULL);
	if (body)
		evbuffer_free(body);
}

static void reply_text(struct evhttp_request *request, int code, const char *text)
{
	reply_bytes(request, code, "text/plain; charset=utf-8", text, strlen(text));
}

/* ---- what there is ---- */

static void put_segment(struct d9__json *json, const struct d9__listed *item)
{
	/* What is no letter is escaped, so that any name of a file is a valid path of a URL;
	 * slashes too. */
	char *escaped = evhttp_encode_uri(item->name), *url;

	if (escaped && asprintf(&url, "segment/%s", escaped) >= 0) {
		d9__json_open(json, NULL, '{');
		d9__json_string(json, "name", item->name);
		d9__json_string(json, "url", url);
		d9__json_u64(json, "bytes", item->bytes);
		d9__json_u64(json, "modified_ms", (uint64_t)(item->modified_ns / 1000000));
		d9__json_bool(json, "active", item->active);
		d9__json_close(json, '}');
		free(url);
	}
	free(escaped);
}

static void put_listing(struct d9__json *json, const struct d9__listing *listing)
{
	const char *slash = strrchr(listing->root, '/');

	d9__json_open(json, NULL, '{');
	d9__json_string(json, "name", listing->one ? listing->one : slash + 1);
	d9__json_bool(json, "left_out", listing->left_out);
	d9__json_open(json, "segments", '[');
	for (size_t i = 0; i < listing->n; i++)
		put_segment(json, &listing->items[i]);
	d9__json_close(json, ']');
	d9__json_close(json, '}');
}

static void send_listing(struct d9__server *server, struct evhttp_request *request)
{
	char *text = NULL;
	size_t len = 0;
	struct d9__json json = { 0 };
	int err = d9__listing_refresh(&server->listing);

	if (err) {
		reply_text(request, HTTP_INTERNAL, strerror(-err));
		return;
	}
	json.out = open_memstream(&text, &len);
	if (json.out) {
		put_listing(&json, &server->listing);
		if (fclose(json.out)) {
			free(text);
			text = NULL;
		}
	}
	if (text)
		reply_bytes(request, HTTP_OK, "application/json", text, len);
	else
		reply_text(request, HTTP_INTERNAL, "out of memory");
	free(text);
}

static void send_segment(struct d9__server *server, struct evhttp_request *request,
			 const char *escaped)
{
	size_t len = 0;
	char *name = evhttp_uridecode(escaped, 0, &len);
	struct evbuffer *body = evbuffer_new();
	uint64_t bytes = 0;
	int fd = -ENOMEM;

	if (name && body)
		fd = strlen(name) == len ? d9__listing_open(&server->listing, name, &bytes)
					 : -ENOENT;
	/* From the file to the socket as the client reads. */
	if (fd >= 0 && (!bytes || !evbuffer_add_file(body, fd, 0, (ev_off_t)bytes))) {
		if (!bytes)
			close(fd);
		reply(request, HTTP_OK, "application/octet-stream", body);
	} else {
		if (fd >= 0)
			close(fd);
		reply_text(request, HTTP_NOTFOUND, "no such segment");
	}
	if (body)
		evbuffer_free(body);
	free(name);
}

static void send_report(void *context, const struct d9__report_answer *answer)
{
	struct evhttp_request *request = context;

	/* To a client that has gone meanwhile, libevent sends nothing. */
	if (answer->json)
		reply_bytes(request, HTTP_OK, "application/json", answer->json, answer->len);
	else
		reply_text(request, 422, answer->why);
}

static void ask_report(struct d9__server *server, struct evhttp_request *request)
{
	int err = d9__listing_refresh(&server->listing);

	if (!err)
		err = d9__report_job_ask(server->report, &server->listing, send_report, request);
	if (err)
		reply_text(request, HTTP_INTERNAL, strerror(-err));
}

/* ---- who may have it ---- */

static bool is_own_host(const struct d9__server *server, struct evhttp_request *request)
{
	const char *host = evhttp_find_header(evhttp_request_get_input_headers(request), "Host");
	static const char *const names[] = { LOOPBACK, "localhost" };
	char own[64];

	for (size_t i = 0; host && i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(own, sizeof(own), "%s:%u", names[i], server->port);
		if (!strcmp(host, own))
			return true;
	}
	return false;
}

/* A browser says so when it asks for a page of another site. */
static bool is_foreign(struct evhttp_request *request)
{
	const char *site =
		evhttp_find_header(evhttp_request_get_input_headers(request), "Sec-Fetch-Site");

	return site && strcmp(site, "same-origin") && strcmp(site, "none");
}

/* What follows "/TOKEN/" in |uri|, up to the query, in new memory; NULL: another token, or out of
 * memory. */
static char *path_behind_token(const struct d9__server *server, const char *uri)
{
	const size_t len = sizeof(server->token) - 1;
	unsigned differs = 0;

	if (strlen(uri) < len + 2 || uri[0] != '/' || uri[len + 1] != '/')
		return NULL;
	/* In the same time for every wrong one. */
	for (size_t i = 0; i < len; i++)
		differs |= (unsigned)(uri[i + 1] ^ server->token[i]);
	uri += len + 2;
	return differs ? NULL : strndup(uri, strcspn(uri, "?#"));
}

static void dispatch(struct d9__server *server, struct evhttp_request *request, const char *path)
{
	const struct d9__asset *asset =
		d9__assets_find(&server->assets, *path ? path : "viewer/index.html");

	if (asset)
		reply_bytes(request, HTTP_OK, asset->type, asset->data, asset->len);
	else if (!strcmp(path, "api/segments"))
		send_listing(server, request);
	else if (!strcmp(path, "api/report"))
		ask_report(server, request);
	else if (!strncmp(path, "segment/", strlen("segment/")))
		send_segment(server, request, path + strlen("segment/"));
	else
		reply_text(request, HTTP_NOTFOUND, "nothing here");
}

static void on_request(struct evhttp_request *request, void *context)
{
	struct d9__server *server = context;
	const char *uri = evhttp_request_get_uri(request);
	char *path;

	if (!is_own_host(server, request)) {
		reply_text(request, 403, "this server answers to its own address only");
		return;
	}
	path = uri ? path_behind_token(server, uri) : NULL;
	if (!path)
		reply_text(request, 403, "open the URL that dial9 serve printed: it holds a token");
	else if (is_foreign(request))
		reply_text(request, 403, "other sites may not read this");
	else
		dispatch(server, request, path);
	free(path);
}

/* ---- life ---- */

static void on_signal(evutil_socket_t signal_number, short what, void *context)
{
	(void)signal_number;
	(void)what;
	event_base_loopbreak(((struct d9__server *)context)->base);
}

static void on_resume(evutil_socket_t fd, short what, void *listener)
{
	(void)fd;
	(void)what;
	evconnlistener_enable(listener);
}

/* No descriptor is free for another client: whoever comes now waits until one has left. */
static void on_accept_error(struct evconnlistener *listener, void *http)
{
	static const struct timeval pause = { .tv_usec = 100000 };

	(void)http;
	if (!event_base_once(evconnlistener_get_base(listener), -1, EV_TIMEOUT, on_resume, listener,
			     &pause))
		evconnlistener_disable(listener);
}

static int make_token(struct d9__server *server)
{
	uint8_t bytes[TOKEN_BYTES];

	if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
		return -EIO;
	for (size_t i = 0; i < sizeof(bytes); i++)
		snprintf(server->token + 2 * i, 3, "%02x", bytes[i]);
	return 0;
}

static int listen_on(struct d9__server *server, uint16_t port)
{
	struct evhttp_bound_socket *bound;
	struct sockaddr_in address;
	socklen_t len = sizeof(address);

	errno = 0;
	bound = evhttp_bind_socket_with_handle(server->http, LOOPBACK, port);
	if (!bound)
		return errno ? -errno : -EADDRINUSE;
	if (getsockname(evhttp_bound_socket_get_fd(bound), (struct sockaddr *)&address, &len))
		return -errno;
	evconnlistener_set_error_cb(evhttp_bound_socket_get_listener(bound), on_accept_error);
	server->port = ntohs(address.sin_port);
	snprintf(server->url, sizeof(server->url), "http://" LOOPBACK ":%u/%s/", server->port,
		 server->token);
	return 0;
}

static int start(struct d9__server *server, uint16_t port)
{
	static const int numbers[] = { SIGINT, SIGTERM };

	server->base = event_base_new();
	server->http = server->base ? evhttp_new(server->base) : NULL;
	server->report = server->http ? d9__report_job_new(server->base) : NULL;
	if (!server->report)
		return -ENOMEM;
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		server->signals[i] = evsignal_new(server->base, numbers[i], on_signal, server);
		if (!server->signals[i] || event_add(server->signals[i], NULL))
			return -ENOMEM;
	}
	evhttp_set_allowed_methods(server->http, EVHTTP_REQ_GET | EVHTTP_REQ_HEAD);
	evhttp_set_max_headers_size(server->http, HEADERS_MAX);
	evhttp_set_max_body_size(server->http, 0);
	evhttp_set_timeout(server->http, IDLE_S);
	evhttp_set_gencb(server->http, on_request, server);
	return listen_on(server, port);
}

int d9__server_new(const struct d9__server_options *options, struct d9__server **out)
{
	struct d9__server *server = calloc(1, sizeof(*server));
	int err;

	if (!server)
		return -ENOMEM;
	err = d9__assets_load(&server->assets, options->assets);
	if (!err)
		err = d9__listing_init(&server->listing, options->trace);
	if (!err && !server->listing.n)
		err = -ENODATA;
	if (!err)
		err = make_token(server);
	if (!err)
		err = start(server, options->port);
	if (err) {
		d9__server_free(server);
		return err;
	}
	*out = server;
	return 0;
}

const char *d9__server_url(const struct d9__server *server)
{
	return server->url;
}

int d9__server_run(struct d9__server *server)
{
	return event_base_dispatch(server->base) < 0 ? -EIO : 0;
}

void d9__server_free(struct d9__server *server)
{
	if (!server)
		return;
	d9__report_job_free(server->report);
	for (size_t i = 0; i < sizeof(server->signals) / sizeof(server->signals[0]); i++)
		if (server->signals[i])
			event_free(server->signals[i]);
	if (server->http)
		evhttp_free(server->http);
	if (server->base)
		event_base_free(server->base);
	d9__listing_release(&server->listing);
	d9__assets_release(&server->assets);
	free(server);
}
