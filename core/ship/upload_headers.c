/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "ship/upload_headers.h"

#include <string.h>

#include "ship/message.h"
#include "ship/verdict.h"

static bool is_meta(const char *name)
{
	return !strncmp(name, D9__BUCKET_META, strlen(D9__BUCKET_META)) &&
	       strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_-") == strlen(name);
}

static size_t meta_headers(struct d9__job *job, struct d9__sigv4_pair *headers, size_t max)
{
	struct json_object *meta = json_object_object_get(job->message, "meta");
	size_t n = 0;

	if (!json_object_is_type(meta, json_type_object))
		return 0;
	json_object_object_foreach(meta, name, value)
	{
		if (n == max || !json_object_is_type(value, json_type_string) || !is_meta(name) ||
		    !json_object_get_string_len(value))
			continue;
		headers[n++] = (struct d9__sigv4_pair) { name, json_object_get_string(value) };
	}
	return n;
}

static size_t sse_headers(const struct d9__session *session, struct d9__sigv4_pair *headers)
{
	size_t n = 0;

	if (!session->sse || session->stripped & D9__HEADER_SSE)
		return 0;
	headers[n++] = (struct d9__sigv4_pair) { "x-amz-server-side-encryption", session->sse };
	if (session->sse_key)
		headers[n++] =
			(struct d9__sigv4_pair) { "x-amz-server-side-encryption-aws-kms-key-id",
						  session->sse_key };
	return n;
}

size_t d9__upload_headers(struct d9__session *session, struct d9__job *job,
			  struct d9__sigv4_pair *headers)
{
	size_t n = 0, sse;

	headers[n++] = (struct d9__sigv4_pair) {
		"content-type", d9__message_text(job->message, "type", "application/octet-stream")
	};
	n += meta_headers(job, headers + n, 24);
	sse = sse_headers(session, headers + n);
	if (sse)
		job->sent |= D9__HEADER_SSE;
	return n + sse;
}
