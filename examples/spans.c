/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Spans: requests whose work is done in steps, partly on another thread, each with a query inside.
 *
 *	spans DIR      records into DIR; read it with
 *	                 dial9 report DIR
 *	                 dial9 events --event SpanCloseEvent DIR, and with one of its span_id
 *	                 dial9 events --life --span ID DIR
 *	                 dial9 diagram --span ID -o request.svg DIR
 *	spans          records into memory
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

#include <dial9/options.h>
#include <dial9/recorder.h>
#include <dial9/span.h>

#define REQUESTS 20

static const struct d9_field request_fields[] = {
	{ "path", D9_FIELD_POOLED_STRING, NULL, NULL },
	{ "user", D9_FIELD_VARINT, NULL, NULL },
	{ "status", D9_FIELD_U16, NULL, NULL },
};
static struct d9_span_site request_site =
	D9_SPAN_SITE_WITH(D9_SPAN_INFO, "http", "request", request_fields);

static const struct d9_field query_fields[] = { { "table", D9_FIELD_POOLED_STRING, NULL, NULL } };
static struct d9_span_site query_site =
	D9_SPAN_SITE_WITH(D9_SPAN_INFO, "db", "query", query_fields);

struct request {
	struct d9_span span; /* lives as long as the request */
	uint64_t user;
	int status;
};

static void take(unsigned us)
{
	const struct timespec pause = { 0, (long)us * 1000 };

	nanosleep(&pause, NULL);
}

/* A span for a function: it ends with every return.  Its parent is the request that is entered. */
static int query(uint64_t user)
{
	D9_SPAN_SCOPE_WITH(&query_site, user % 2 ? "guests" : "users");

	if (user % 5 == 4)
		return 404;
	take(200);
	return 200;
}

/* A step on another thread, inside the same span. */
static void *look_up(void *arg)
{
	struct request *request = arg;

	d9_span_enter(&request->span);
	request->status = query(request->user);
	d9_span_exit(&request->span);
	return NULL;
}

static int serve(uint64_t user)
{
	struct request request = { .user = user };
	pthread_t thread;

	D9_SPAN_CREATE(&request.span, &request_site, D9_SPAN_ROOT, "/profile", user);
	d9_span_enter(&request.span);
	take(100);
	d9_span_exit(&request.span);

	/* Nobody is inside meanwhile: the request is idle until the thread takes it up. */
	if (pthread_create(&thread, NULL, look_up, &request))
		return -1;
	pthread_join(thread, NULL);

	d9_span_enter(&request.span);
	{
		D9_SPAN_HERE(D9_SPAN_DEBUG, "http", "render"); /* with DIAL9_SPAN_FILTER=debug */
		take(100);
	}
	D9_SPAN_SET(&request.span, 2, request.status);
	d9_span_exit(&request.span);
	d9_span_close(&request.span);
	return request.status;
}

int main(int argc, char **argv)
{
	struct d9_recorder *recorder;
	struct d9_options *options;
	int failed;

	if (d9_options_new(&options))
		return 1;
	if (argc > 1)
		failed = d9_options_set_trace_dir(options, argv[1]);
	else
		failed = d9_options_set_writer(options, D9_WRITER_MEMORY);
	failed |= d9_recorder_start(options, &recorder);
	d9_options_free(options);
	for (uint64_t user = 0; !failed && user < REQUESTS; user++)
		failed |= serve(user) < 0;
	return failed || d9_recorder_stop(recorder, 5000) ? 1 : 0;
}
