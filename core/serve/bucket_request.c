/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "serve/bucket_parts.h"
#include "serve/bucket_request.h"

#define REST_S	   2 /* after a failure; then twice as long each time */
#define REST_MAX_S 60

int64_t d9__bucket_now_s(void)
{
	return (int64_t)time(NULL);
}

/* ---- waiters ---- */

void d9__bucket_wake(struct d9__bucket_waiter **waiters, const char *why)
{
	while (*waiters) {
		struct d9__bucket_waiter *waiter = *waiters;

		*waiters = waiter->next;
		waiter->ready(waiter->context, why);
		free(waiter);
	}
}

void d9__bucket_forget(struct d9__bucket_waiter **waiters, const void *context)
{
	while (*waiters) {
		struct d9__bucket_waiter *waiter = *waiters;

		if (waiter->context != context) {
			waiters = &waiter->next;
			continue;
		}
		*waiters = waiter->next;
		free(waiter);
	}
}

/* ---- requests ---- */

void d9__bucket_watch(struct d9__bucket_source *source)
{
	int fd = d9__bucket_fd(source->bucket);

	if (!source->base)
		return;
	event_del(source->readable);
	if (fd < 0)
		return;
	event_assign(source->readable, source->base, fd, EV_READ | EV_PERSIST,
		     event_get_callback(source->readable), source);
	event_add(source->readable, NULL);
}

struct d9__bucket_request *d9__bucket_request(struct d9__bucket_source *source,
					      void (*take)(struct d9__bucket_source *, void *,
							   const struct d9__bucket_answer *),
					      void *of)
{
	for (size_t i = 0; i < D9__BUCKET_OUTSTANDING_MAX; i++) {
		struct d9__bucket_request *request = &source->requests[i];

		if (request->token)
			continue;
		*request = (struct d9__bucket_request) {
			.token = ++source->serial * D9__BUCKET_OUTSTANDING_MAX + i,
			.take = take,
			.of = of
		};
		return request;
	}
	return NULL;
}

void d9__bucket_requested(struct d9__bucket_source *source, struct d9__bucket_request *request,
			  int err)
{
	static const struct timeval now = { 0 };

	request->err = err;
	d9__bucket_watch(source);
	/* A child that ended wakes no descriptor, so a timer delivers its requests. */
	if (source->base)
		evtimer_add(source->soon, &now);
}

void d9__bucket_deliver(struct d9__bucket_source *source, const struct d9__bucket_answer *answer)
{
	struct d9__bucket_request
		*request = &source->requests[answer->token % D9__BUCKET_OUTSTANDING_MAX],
		taken = *request;

	if (request->token != answer->token)
		return;
	request->token = 0;
	taken.take(source, taken.of, answer);
}

void d9__bucket_deliver_unsent(struct d9__bucket_source *source)
{
	for (size_t i = 0; i < D9__BUCKET_OUTSTANDING_MAX; i++) {
		struct d9__bucket_answer answer = { .token = source->requests[i].token,
						    .class = D9__BUCKET_REFUSED,
						    .code = "",
						    .message = strerror(-source->requests[i].err) };

		if (answer.token && source->requests[i].err)
			d9__bucket_deliver(source, &answer);
	}
}

/* ---- errors ---- */

static const char *advice(const struct d9__bucket_answer *answer)
{
	static const struct {
		const char *code, *advice;
	} known[] = {
		{ "NoSuchBucket", "there is no such bucket: see --bucket, and --endpoint for a "
				  "store that is not AWS" },
		{ "SignatureDoesNotMatch", "the secret key is not the one of this key id" },
		{ "InvalidAccessKeyId", "the store does not know this key id" },
		{ "AccessDenied", "these credentials may not read here: s3:ListBucket and "
				  "s3:GetObject are needed" },
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (!strcmp(answer->code, known[i].code))
			return known[i].advice;
	return NULL;
}

/* Write the line that the page shows for |answer|. */
static void tell_error(struct d9__bucket_source *source, const struct d9__bucket_answer *answer)
{
	const char *told = advice(answer), *url = d9__bucket_url(source->bucket);

	if (told)
		snprintf(source->error, sizeof(source->error), "%s: %s; it answers: %s", url, told,
			 answer->code);
	else
		snprintf(source->error, sizeof(source->error), "%s: %s", url, answer->message);
}

bool d9__bucket_is_good(struct d9__bucket_source *source, const struct d9__bucket_answer *answer)
{
	int64_t rest_s = REST_S;

	if (answer->class == D9__BUCKET_DONE) {
		source->failures = 0;
		source->refused = false;
		source->error[0] = '\0';
		return true;
	}
	for (unsigned i = 0; i < source->failures && rest_s < REST_MAX_S; i++)
		rest_s *= 2;
	source->failures++;
	source->refused = answer->class != D9__BUCKET_RETRY;
	source->rest_until_s = d9__bucket_now_s() + (rest_s < REST_MAX_S ? rest_s : REST_MAX_S);
	tell_error(source, answer);
	return false;
}
