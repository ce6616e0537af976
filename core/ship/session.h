/* SPDX-License-Identifier: Apache-2.0 */
/* Session: dial9-store's knowledge of its bucket: address, region, credentials, clock, limits. */

#pragma once

#include <curl/curl.h>
#include <json-c/json.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "ship/address.h"
#include "ship/credentials.h"

struct d9__session {
	struct json_object *options; /* owned; the texts below are its */
	const char *ca, *sse, *sse_key;
	uint64_t max_rate, single_max;
	unsigned parallel, stall;
	bool md5;
	struct d9__store_address address;
	char region[64]; /* "": not known yet */
	struct d9__credentials credentials;
	int64_t look_again;   /* epoch seconds: not earlier for new credentials, while the old ones serve */
	int64_t clock_offset; /* seconds that the store is ahead of us */
	unsigned stripped;    /* bits of d9__optional_header: left out since the store named them */
	CURLM *multi;
};

/* From the message "start", which is taken.  0, or -EINVAL or -ENOMEM with one line in |why|. */
int d9__session_start(struct d9__session *session, struct json_object *options, char *why, size_t why_size);

/* Before a request is signed: region and credentials.  0, or -ENOENT with one line in |why|. */
int d9__session_prepare(struct d9__session *session, char *why, size_t why_size);

/* Requests from now on go to |region|; false: that is none. */
bool d9__session_set_region(struct d9__session *session, const char *region);

/* Options that every transfer has. */
void d9__session_set_up(const struct d9__session *session, CURL *easy);

/* The time as the store has it. */
time_t d9__session_now(const struct d9__session *session);

void d9__session_end(struct d9__session *session);
