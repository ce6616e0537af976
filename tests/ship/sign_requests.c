/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sign what the lines of stdin say, one JSON object each: {"method", "path", "query": [[N,V]...], "headers": [[N,V]...],
 * "payload", "region", "service", "id", "secret", "at", "expires", "token"}; print {"target", "authorization"}, or with
 * "expires" {"target"} alone.
 */
#include "config.h"

#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ship/message.h"
#include "ship/sigv4.h"

#define PAIRS_MAX 32

static size_t pairs_of(struct json_object *request, const char *name, struct d9__sigv4_pair pairs[PAIRS_MAX])
{
	struct json_object *list = json_object_object_get(request, name);
	size_t n = list ? json_object_array_length(list) : 0;

	for (size_t i = 0; i < n && i < PAIRS_MAX; i++) {
		struct json_object *row = json_object_array_get_idx(list, i);

		pairs[i].name = json_object_get_string(json_object_array_get_idx(row, 0));
		pairs[i].value = json_object_get_string(json_object_array_get_idx(row, 1));
	}
	return n;
}

static void sign(struct json_object *request)
{
	struct d9__sigv4_pair query[PAIRS_MAX], headers[PAIRS_MAX];
	struct d9__sigv4 what = {
		.method = d9__message_text(request, "method", "GET"),
		.path = d9__message_text(request, "path", "/"),
		.query = query,
		.n_query = pairs_of(request, "query", query),
		.headers = headers,
		.n_headers = pairs_of(request, "headers", headers),
		.payload = d9__message_text(request, "payload", D9__SIGV4_UNSIGNED),
		.region = d9__message_text(request, "region", ""),
		.service = d9__message_text(request, "service", "s3"),
		.id = d9__message_text(request, "id", ""),
		.secret = d9__message_text(request, "secret", ""),
		.at = (time_t)d9__message_number(request, "at"),
	};
	unsigned expires = (unsigned)d9__message_number(request, "expires");
	char *target = expires ? d9__sigv4_presign(&what, expires, d9__message_text(request, "token", NULL)) :
				 d9__sigv4_target(&what);
	char *authorization = expires ? NULL : d9__sigv4_authorization(&what);
	struct json_object *answer = json_object_new_object();

	d9__message_add_text(answer, "target", target);
	d9__message_add_text(answer, "authorization", authorization);
	puts(json_object_to_json_string_ext(answer, JSON_C_TO_STRING_PLAIN));
	json_object_put(answer);
	free(authorization);
	free(target);
}

int main(void)
{
	char *line = NULL;
	size_t size = 0;

	while (getline(&line, &size, stdin) > 0) {
		struct json_object *request = json_tokener_parse(line);

		if (!request)
			return 1;
		sign(request);
		json_object_put(request);
	}
	free(line);
	return 0;
}
