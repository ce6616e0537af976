/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests and their answers.  A request begins in on_store or on_latest, asks the database, and is
 * answered in on_stored or on_latest_rows, each a callback of the loop.  In a trace it is one span
 * from its arrival to its answer, entered in these functions alone.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/keyvalq_struct.h>

#include <dial9/span.h>

#include "http.h"

#define BODY_MOST    65536
#define HEADERS_MOST 8192
#define IDLE_SECONDS 30
#define COUNT_MOST   1000
#define NAME_MOST    64

struct http {
	struct event_base *base;
	struct evhttp *server;
	struct evhttp_bound_socket *listener; /* NULL: it is being stopped */
	struct database *database;
	struct planted *planted;
	size_t unanswered;
	void (*drained)(void *arg);
	void *drained_arg;
	struct http_counts counts;
};

struct request {
	struct http *http;
	struct evhttp_request *evhttp;
	struct answer answer; /* of the database */
	struct d9_span span;
};

static const struct d9_field request_fields[] = {
	{ "path", D9_FIELD_POOLED_STRING, NULL, NULL },
	{ "status", D9_FIELD_U16, NULL, NULL },
};
static struct d9_span_site store_span =
	D9_SPAN_SITE_WITH(D9_SPAN_INFO, "http", "request: store", request_fields);
static struct d9_span_site latest_span =
	D9_SPAN_SITE_WITH(D9_SPAN_INFO, "http", "request: latest", request_fields);

/* ---- answers ---- */

static void add_header(struct evhttp_request *evhttp, const char *name, const char *value)
{
	evhttp_add_header(evhttp_request_get_output_headers(evhttp), name, value);
}

static void request_end(struct request *request, int status)
{
	struct http *http = request->http;

	if (status >= 500)
		http->counts.failures++;
	D9_SPAN_SET(&request->span, 1, status);
	/* Frees it where the client has gone. */
	evhttp_send_reply(request->evhttp, status, NULL, NULL);
	d9_span_end(&request->span);
	event_free(request->answer.ready);
	PQclear(request->answer.rows);
	free(request);
	if (!--http->unanswered && http->drained)
		http->drained(http->drained_arg);
}

/* Too much at once: who comes again later may have more luck. */
static void send_busy(struct request *request)
{
	add_header(request->evhttp, "Retry-After", "1");
	request_end(request, HTTP_SERVUNAVAIL);
}

static void send_failure(struct request *request)
{
	if (request->answer.outcome == TIMED_OUT)
		request_end(request, 504);
	else
		send_busy(request);
}

/* ---- one request ---- */

static struct request *request_new(struct http *http, event_callback_fn on_answer)
{
	struct request *request = calloc(1, sizeof(*request));

	if (!request)
		return NULL;
	request->answer.ready = event_new(http->base, -1, 0, on_answer, request);
	if (!request->answer.ready) {
		free(request);
		return NULL;
	}
	return request;
}

/* NULL: it is answered already. */
static struct request *request_begin(struct http *http, struct evhttp_request *evhttp,
				     struct d9_span_site *site, event_callback_fn on_answer)
{
	struct request *request = http->listener ? request_new(http, on_answer) : NULL;

	if (!request) {
		http->counts.failures++;
		add_header(evhttp, "Connection", "close");
		evhttp_send_reply(evhttp, HTTP_SERVUNAVAIL, NULL, NULL);
		return NULL;
	}
	request->http = http;
	request->evhttp = evhttp;
	http->unanswered++;
	D9_SPAN_CREATE(&request->span, site, D9_SPAN_ROOT,
		       evhttp_uri_get_path(evhttp_request_get_evhttp_uri(evhttp)));
	d9_span_enter(&request->span);
	return request;
}

/* Until the database answers, nobody is inside the request's span. */
static void request_ask(struct request *request, enum statement statement,
			const char *const *parameters)
{
	if (database_ask(request->http->database, statement, parameters, d9_span_id(&request->span),
			 &request->answer))
		send_busy(request);
	else
		d9_span_exit(&request->span);
}

/* ---- POST /store ---- */

static bool is_name(const char *name, size_t len)
{
	return len && len <= NAME_MOST &&
	       strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_.") == len;
}

/* "NAME VALUE" to the ends of both arrays, which are as PostgreSQL writes them. */
static bool add_sample(char *line, struct evbuffer *names, struct evbuffer *values)
{
	char *space = strchr(line, ' '), *end;
	const char *comma = evbuffer_get_length(names) ? "," : "{";
	double value;

	if (!space || space == line)
		return false;
	*space = '\0';
	value = strtod(space + 1, &end);
	if (!is_name(line, (size_t)(space - line)) || end == space + 1 || *end || !isfinite(value))
		return false;
	return evbuffer_add_printf(names, "%s%s", comma, line) > 0 &&
	       evbuffer_add_printf(values, "%s%.17g", comma, value) > 0;
}

/* How many samples |body| has; 0: none, or there is a mistake in it. */
static size_t parse_samples(struct evbuffer *body, struct evbuffer *names, struct evbuffer *values)
{
	size_t n = 0;
	char *line;

	while ((line = evbuffer_readln(body, NULL, EVBUFFER_EOL_LF))) {
		bool good = add_sample(line, names, values);

		free(line);
		if (!good)
			return 0;
		n++;
	}
	/* With the end of the texts. */
	evbuffer_add(names, "}", 2);
	evbuffer_add(values, "}", 2);
	return evbuffer_get_length(body) ? 0 : n;
}

static void on_stored(evutil_socket_t fd, short what, void *arg)
{
	struct request *request = arg;

	(void)fd, (void)what;
	d9_span_enter(&request->span);
	if (request->answer.outcome == ANSWERED)
		request_end(request, HTTP_NOCONTENT);
	else
		send_failure(request);
}

static void store(struct request *request, struct evbuffer *names, struct evbuffer *values)
{
	const char *parameters[PARAMETERS_MAX];

	if (!parse_samples(evhttp_request_get_input_buffer(request->evhttp), names, values)) {
		request_end(request, HTTP_BADREQUEST);
		return;
	}
	planted_before_store(request->http->planted);
	parameters[0] = (const char *)evbuffer_pullup(names, -1);
	parameters[1] = (const char *)evbuffer_pullup(values, -1);
	request_ask(request, STORE_SAMPLES, parameters);
}

static void on_store(struct evhttp_request *evhttp, void *arg)
{
	struct http *http = arg;
	struct request *request;
	struct evbuffer *names, *values;

	if (evhttp_request_get_command(evhttp) != EVHTTP_REQ_POST) {
		evhttp_send_reply(evhttp, HTTP_BADMETHOD, NULL, NULL);
		return;
	}
	http->counts.stores++;
	request = request_begin(http, evhttp, &store_span, on_stored);
	if (!request)
		return;
	names = evbuffer_new();
	values = evbuffer_new();
	if (names && values)
		store(request, names, values);
	else
		send_busy(request);
	if (names)
		evbuffer_free(names);
	if (values)
		evbuffer_free(values);
}

/* ---- GET /latest ---- */

static void write_rows(struct evbuffer *body, const PGresult *rows)
{
	int n = PQntuples(rows);

	evbuffer_add(body, "[", 1);
	for (int row = 0; row < n; row++)
		evbuffer_add_printf(body, "%s[%s,%s]", row ? "," : "", PQgetvalue(rows, row, 0),
				    PQgetvalue(rows, row, 1));
	evbuffer_add(body, "]\n", 2);
}

static void on_latest_rows(evutil_socket_t fd, short what, void *arg)
{
	struct request *request = arg;

	(void)fd, (void)what;
	d9_span_enter(&request->span);
	if (request->answer.outcome != ANSWERED) {
		send_failure(request);
		return;
	}
	add_header(request->evhttp, "Content-Type", "application/json");
	write_rows(evhttp_request_get_output_buffer(request->evhttp), request->answer.rows);
	request_end(request, HTTP_OK);
}

static bool is_count(const char *text)
{
	char *end;
	long count = strtol(text, &end, 10);

	return *text && !*end && count > 0 && count <= COUNT_MOST;
}

static void on_latest(struct evhttp_request *evhttp, void *arg)
{
	struct http *http = arg;
	struct evkeyvalq query = { 0 };
	const char *text = evhttp_uri_get_query(evhttp_request_get_evhttp_uri(evhttp));
	const char *parameters[PARAMETERS_MAX] = { NULL };
	struct request *request;

	http->counts.reads++;
	request = request_begin(http, evhttp, &latest_span, on_latest_rows);
	if (!request)
		return;
	if (text && !evhttp_parse_query_str(text, &query)) {
		parameters[0] = evhttp_find_header(&query, "name");
		parameters[1] = evhttp_find_header(&query, "count");
	}
	if (!parameters[1])
		parameters[1] = "20";
	if (parameters[0] && is_name(parameters[0], strlen(parameters[0])) &&
	    is_count(parameters[1]))
		request_ask(request, planted_latest(http->planted), parameters);
	else
		request_end(request, HTTP_BADREQUEST);
	evhttp_clear_headers(&query);
}

/* ---- GET /health ---- */

static void on_health(struct evhttp_request *evhttp, void *arg)
{
	const struct http *http = arg;
	size_t ready = http->listener ? database_ready(http->database) : 0;

	evbuffer_add_printf(evhttp_request_get_output_buffer(evhttp), "%zu connections\n", ready);
	evhttp_send_reply(evhttp, ready ? HTTP_OK : HTTP_SERVUNAVAIL, NULL, NULL);
}

/* ---- the server ---- */

struct http *http_new(struct event_base *base, struct database *database, struct planted *planted)
{
	struct http *http = calloc(1, sizeof(*http));

	if (!http)
		return NULL;
	http->base = base;
	http->database = database;
	http->planted = planted;
	http->server = evhttp_new(base);
	if (!http->server) {
		free(http);
		return NULL;
	}
	evhttp_set_allowed_methods(http->server, EVHTTP_REQ_GET | EVHTTP_REQ_POST);
	evhttp_set_max_body_size(http->server, BODY_MOST);
	evhttp_set_max_headers_size(http->server, HEADERS_MOST);
	evhttp_set_timeout(http->server, IDLE_SECONDS);
	evhttp_set_cb(http->server, "/store", on_store, http);
	evhttp_set_cb(http->server, "/latest", on_latest, http);
	evhttp_set_cb(http->server, "/health", on_health, http);
	return http;
}

uint16_t http_listen(struct http *http, uint16_t port)
{
	struct sockaddr_in address;
	socklen_t len = sizeof(address);

	http->listener = evhttp_bind_socket_with_handle(http->server, "127.0.0.1", port);
	if (!http->listener || getsockname(evhttp_bound_socket_get_fd(http->listener),
					   (struct sockaddr *)&address, &len))
		return 0;
	return ntohs(address.sin_port);
}

void http_stop(struct http *http, void (*drained)(void *arg), void *arg)
{
	if (!http->listener)
		return;
	evhttp_del_accept_socket(http->server, http->listener);
	http->listener = NULL;
	http->drained = drained;
	http->drained_arg = arg;
	if (!http->unanswered)
		drained(arg);
}

void http_free(struct http *http)
{
	if (!http)
		return;
	evhttp_free(http->server);
	free(http);
}

struct http_counts http_counts(const struct http *http)
{
	return http->counts;
}
