/* SPDX-License-Identifier: Apache-2.0 */
/* Transfer: one signed HTTP request of dial9-store and its answer. */

#pragma once

#include <curl/curl.h>
#include <stdbool.h>
#include <stdint.h>

#include "ship/session.h"
#include "ship/sigv4.h"

#define D9__TRANSFER_HEADERS 48 /* that a request has at most */

/* A request; all borrowed until d9__transfer_begin() returns, |data| and the descriptors longer. */
struct d9__ask {
	const char *method;
	const char *key; /* NULL: of the bucket itself */
	const struct d9__sigv4_pair *query;
	size_t n_query;
	const struct d9__sigv4_pair *headers; /* lower case; host, date, hash and token come by themselves */
	size_t n_headers;
	const char *payload; /* SHA-256 of the body in hex */

	int body_fd;      /* -1: |data| */
	const char *data; /* NULL: none */
	uint64_t body_first, body_size;

	int sink_fd;	   /* for the body of a 2xx answer; -1: memory */
	uint64_t sink_max; /* more is a flood */
};

struct d9__transfer {
	CURL *easy; /* NULL: none under way */
	struct curl_slist *lines;
	char error[CURL_ERROR_SIZE];

	int body_fd;
	const char *data;
	uint64_t body_first, body_size, body_done;

	int sink_fd;
	uint64_t sink_max, sink_done;
	char *text; /* owned, terminated: answer, or error document */
	size_t text_len, text_max;
	bool head_whole; /* false: the answer ended within its head */
	bool flood;
	int local_error; /* errno of a descriptor */

	/* The answer's head. */
	char etag[96], request[96], checksum[64], region[64];
	int64_t date, modified;
	uint64_t length;
	unsigned retry_after;
	bool kms;
};

/* Sign it and hand it to session->multi, with |owner| as its private pointer.  0 or -ENOMEM. */
int d9__transfer_begin(struct d9__session *session, const struct d9__ask *ask, struct d9__transfer *transfer,
		       void *owner);

/*
 * Return the URL by which |key| can be fetched for |seconds| without credentials, owned; NULL: out
 * of memory.
 */
char *d9__transfer_presign(struct d9__session *session, const char *key, unsigned seconds);

/* Take it out of session->multi, also in the middle, and forget its answer. */
void d9__transfer_end(struct d9__session *session, struct d9__transfer *transfer);
