/* SPDX-License-Identifier: Apache-2.0 */
/* The services in a bucket. */

#pragma once

#include "serve/bucket_parts.h"

/* Note that the bucket has the summary |hour|. */
void d9__bucket_service_told(struct d9__bucket_source *source, const struct d9__stored_key *hour);

/* True if there is a summary of an hour of |service|, of any of its processes. */
bool d9__bucket_service_is_told(const struct d9__bucket_source *source, const char *service,
				int64_t begins_s);

/* Note that keys spell |service| as the |len| bytes at |raw|. */
void d9__bucket_spelling_add(struct d9__bucket_source *source, const char *service, const char *raw,
			     size_t len);

/* Return the next spelling of |service| in keys; start with 0 at |*at|.  NULL: no more. */
const char *d9__bucket_spelling_next(const struct d9__bucket_source *source, const char *service,
				     size_t *at);
void d9__bucket_free_services(struct d9__bucket_source *source);
