/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the service answers over HTTP:
 *
 *	POST /store			lines "NAME VALUE"; 204 when PostgreSQL has them
 *	GET /latest?name=NAME[&count=N]	the latest samples, as JSON
 *	GET /health			200 while a connection to PostgreSQL works, else 503
 *
 * 503 with Retry-After where the queue of the database is full, and 504 where it took too long.
 */
#ifndef METRICS_HTTP_H
#define METRICS_HTTP_H

#include <stdint.h>

#include "planted.h"

struct event_base;
struct http;

struct http_counts {
	unsigned long stores, reads; /* requests */
	unsigned long failures;	     /* of these, answered with 5xx */
};

struct http *http_new(struct event_base *base, struct database *database, struct planted *planted);
void http_free(struct http *http); /* not while requests are unanswered */

/* Listen on 127.0.0.1.  Returns the port, or 0 and errno. */
uint16_t http_listen(struct http *http, uint16_t port);

/* Take no more requests.  |drained| is called when all are answered: from here, if they are. */
void http_stop(struct http *http, void (*drained)(void *arg), void *arg);

struct http_counts http_counts(const struct http *http);

#endif
