/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "base/array.h"
#include "base/artefact.h"
#include "ship/ring_target.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* "." and ".." are no parts of a place that a recorder writes to: it made the path. */
static bool is_plain_path(const char *path)
{
	size_t len = strlen(path);

	return path[0] == '/' && !strstr(path, "/../") && !strstr(path, "/./") && (len < 3 || strcmp(path + len - 3, "/..") != 0);
}

static bool ends(const char *text, size_t size)
{
	return memchr(text, '\0', size) != NULL;
}

int d9__ring_target_take(struct d9__ring_target *out, const struct d9__ring_header *header, uid_t owner)
{
	if (owner != geteuid())
		return -EPERM;
	if (!header->s3_bucket[0] || !header->trace_dir[0])
		return -ENOENT;
	if (!ends(header->s3_bucket, sizeof(header->s3_bucket)) || !d9__is_bucket_name(header->s3_bucket) ||
	    !ends(header->s3_prefix, sizeof(header->s3_prefix)) || !d9__is_key_prefix(header->s3_prefix) ||
	    !ends(header->trace_dir, sizeof(header->trace_dir)) || !is_plain_path(header->trace_dir) ||
	    !ends(header->boot_id, sizeof(header->boot_id)) || !d9__boot_id_valid(header->boot_id))
		return -EINVAL;
	*out = (struct d9__ring_target){ .seen = true };
	snprintf(out->to, sizeof(out->to), "s3://%s%s%s", header->s3_bucket, header->s3_prefix[0] ? "/" : "", header->s3_prefix);
	strcpy(out->trace_dir, header->trace_dir);
	strcpy(out->boot_id, header->boot_id);
	return 0;
}

struct d9__ring_target *d9__ring_targets_put(struct d9__ring_targets *targets, const struct d9__ring_target *target)
{
	for (size_t i = 0; i < targets->n; i++) {
		struct d9__ring_target *known = &targets->list[i];

		if (strcmp(known->trace_dir, target->trace_dir) != 0 || strcmp(known->boot_id, target->boot_id) != 0)
			continue;
		memcpy(known->to, target->to, sizeof(known->to));
		known->seen = true;
		return known;
	}
	if (!d9__array_grow(targets->list, targets->n))
		return NULL;
	targets->list[targets->n] = *target;
	return &targets->list[targets->n++];
}

void d9__ring_targets_drop(struct d9__ring_targets *targets, size_t i)
{
	targets->list[i] = targets->list[--targets->n];
}

void d9__ring_targets_release(struct d9__ring_targets *targets)
{
	free(targets->list);
	*targets = (struct d9__ring_targets){ 0 };
}
