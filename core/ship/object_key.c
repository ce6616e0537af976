/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "ship/object_key.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static bool is_plain(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
}

void d9__object_part(const char *text, char out[D9__OBJECT_PART + 1])
{
	size_t len = 0;

	for (; len < D9__OBJECT_PART && text[len]; len++)
		out[len] = is_plain(text[len]) ? text[len] : '_';
	out[len] = '\0';
	if (!len)
		strcpy(out, "_");
	else if (!strcmp(out, ".") || !strcmp(out, ".."))
		out[0] = '_';
}

static int finish(int len, size_t size)
{
	return len < 0 || (size_t)len >= size ? -ENAMETOOLONG : len;
}

int d9__object_key_write(const struct d9__object_key *key, char *out, size_t size)
{
	char service[D9__OBJECT_PART + 1], instance[D9__OBJECT_PART + 1], boot_id[D9__OBJECT_PART + 1], date[16], minute[8];
	bool has_prefix = key->prefix && *key->prefix;
	const char *slash = has_prefix ? "/" : "";
	time_t at = (time_t)key->epoch_s;
	struct tm tm;

	if (!gmtime_r(&at, &tm))
		return -EINVAL;
	strftime(date, sizeof(date), "%Y-%m-%d", &tm);
	strftime(minute, sizeof(minute), "%H%M", &tm);
	d9__object_part(key->service, service);
	d9__object_part(key->instance, instance);
	d9__object_part(key->boot_id, boot_id);
	if (key->original)
		return finish(snprintf(out, size, "%s%s%s/%s/%s/%s/%s/%" PRIu64 "-%" PRIu64 "%s",
				       has_prefix ? key->prefix : "", slash, date, minute, service, instance, boot_id,
				       key->epoch_s, key->index, key->ending),
			      size);
	return finish(snprintf(out, size,
			       "%s%sversion=1/date=%s/service=%s/time=%s/instance=%s/boot=%s/%" PRIu64 "-%" PRIu64 "%s",
			       has_prefix ? key->prefix : "", slash, date, service, minute, instance, boot_id,
			       key->epoch_s, key->index, key->ending),
		      size);
}

int d9__object_key_dump(const char *prefix, const char *id, char *out, size_t size)
{
	bool has_prefix = prefix && *prefix;

	return finish(snprintf(out, size, "%s%sdumps/%s.json", has_prefix ? prefix : "", has_prefix ? "/" : "", id), size);
}
