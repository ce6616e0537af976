/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Signature version 4 of requests to an object store.  It takes plain text and escapes it itself,
 * so that the sent and the signed text cannot differ: send d9__sigv4_target().
 */

#pragma once

#include <stddef.h>
#include <time.h>

#define D9__SIGV4_UNSIGNED "UNSIGNED-PAYLOAD"

struct d9__sigv4_pair {
	const char *name, *value;
};

/* All plain, not escaped, borrowed. */
struct d9__sigv4 {
	const char *method;
	const char *path; /* begins with "/" */
	const struct d9__sigv4_pair *query;
	size_t n_query;
	/* The headers that are signed, at least host: lower case, no name twice. */
	const struct d9__sigv4_pair *headers;
	size_t n_headers;
	const char *payload; /* SHA-256 of the body in hex, or D9__SIGV4_UNSIGNED */
	const char *region, *service, *id, *secret;
	time_t at;
};

/* 20261129T004455Z */
void d9__sigv4_date(time_t at, char date[17]);

/* Path and query as they are sent, owned; NULL: out of memory. */
char *d9__sigv4_target(const struct d9__sigv4 *request);

/* The value of Authorization, owned; NULL: out of memory. */
char *d9__sigv4_authorization(const struct d9__sigv4 *request);

/* Like d9__sigv4_target(), but with X-Amz-... and the signature in the query, good for |seconds|;
 * |token| may be NULL. */
char *d9__sigv4_presign(const struct d9__sigv4 *request, unsigned seconds, const char *token);
