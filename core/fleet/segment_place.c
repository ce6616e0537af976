/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "fleet/segment_place.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "ship/object_key.h"

/* A file's name has at most 255 bytes: "HHMM-", three parts, two hyphens and ".parquet". */
#define HOST_MAX  100
#define BOOT_MAX  64
#define INDEX_MAX 64

/*
 * Write the part of |key| that differs between segments of a process: "17" of "trace.17.bin.zst"
 * and "1764380000-17.bin.zst", else the whole name.
 */
static void index_of(const char *key, char out[D9__OBJECT_PART + 1])
{
	const char *slash = strrchr(key, '/'), *name = slash ? slash + 1 : key;
	const char *end = strstr(name, ".bin");
	const char *start = end;

	while (start && start > name && start[-1] >= '0' && start[-1] <= '9')
		start--;
	if (!start || start == end) {
		d9__object_part(name, out);
		return;
	}
	d9__object_part(start, out);
	if ((size_t)(end - start) < D9__OBJECT_PART)
		out[end - start] = '\0';
}

static void part_of(const char *text, size_t max, char out[D9__OBJECT_PART + 1])
{
	d9__object_part(text ? text : "", out);
	out[max] = '\0';
}

int d9__segment_place_path(const struct d9__fleet_place *place, const char *table, char *out, size_t size)
{
	char service[D9__OBJECT_PART + 1], host[D9__OBJECT_PART + 1], boot[D9__OBJECT_PART + 1], index[D9__OBJECT_PART + 1];
	char date[16], minute[8];
	time_t at = (time_t)place->epoch_s;
	struct tm tm;
	int len;

	if (!gmtime_r(&at, &tm) || !strftime(date, sizeof(date), "%Y-%m-%d", &tm))
		return -EINVAL;
	strftime(minute, sizeof(minute), "%H%M", &tm);
	part_of(place->service, D9__OBJECT_PART, service);
	part_of(place->host, HOST_MAX, host);
	part_of(place->boot_id, BOOT_MAX, boot);
	index_of(place->key, index);
	index[INDEX_MAX] = '\0';
	len = snprintf(out, size, "%s/date=%s/service=%s/%s-%s-%s-%s.parquet", table, date, service, minute, host, boot, index);
	return len < 0 || (size_t)len >= size ? -ENAMETOOLONG : len;
}
