/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Services of a bucket: in which hours summaries tell of one, and how its keys spell it.  The original writes "a%2Fb" where the
 * page says "a_b", and who asks for its keys has to say what stands in them.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/hash.h"
#include "serve/bucket_parts.h"
#include "serve/bucket_services.h"

#define SPELLINGS_MAX 2000

/* A service on a day. */
struct told {
	char service[D9__STORED_PART];
	int64_t day_s;
	uint32_t hours; /* a bit for each of which there is a summary */
};

struct d9__bucket_spelling {
	char service[D9__STORED_PART];
	char *raw; /* owned */
};

static uint64_t hash_day(const char *service, int64_t day_s)
{
	return d9__hash_bytes(d9__hash_text(service), &day_s, sizeof(day_s));
}

static struct told *find_told(const struct d9__bucket_source *source, const char *service, int64_t day_s)
{
	struct told *told = d9__table_find(&source->told, hash_day(service, day_s));

	return told && told->day_s == day_s && !strcmp(told->service, service) ? told : NULL;
}

void d9__bucket_service_told(struct d9__bucket_source *source, const struct d9__stored_key *hour)
{
	int64_t day_s = hour->begins_s - hour->begins_s % D9__STORED_DAY_S;
	struct told *told = find_told(source, hour->service, day_s);

	if (!told) {
		told = calloc(1, sizeof(*told));
		if (!told)
			return;
		memcpy(told->service, hour->service, sizeof(told->service));
		told->day_s = day_s;
		if (d9__table_add(&source->told, hash_day(told->service, day_s), told)) {
			free(told);
			return;
		}
	}
	told->hours |= UINT32_C(1) << (hour->begins_s - day_s) / D9__STORED_HOUR_S;
}

bool d9__bucket_service_is_told(const struct d9__bucket_source *source, const char *service, int64_t begins_s)
{
	int64_t day_s = begins_s - begins_s % D9__STORED_DAY_S;
	const struct told *told = find_told(source, service, day_s);

	return told && told->hours >> (begins_s - day_s) / D9__STORED_HOUR_S & 1;
}

void d9__bucket_spelling_add(struct d9__bucket_source *source, const char *service, const char *raw, size_t len)
{
	struct d9__bucket_spelling *grown;

	for (size_t i = 0; i < source->n_spellings; i++)
		if (!strncmp(source->spellings[i].raw, raw, len) && !source->spellings[i].raw[len])
			return;
	if (source->n_spellings == SPELLINGS_MAX ||
	    !d9__array_grow(source->spellings, source->n_spellings))
		return;
	grown = &source->spellings[source->n_spellings];
	memset(grown, 0, sizeof(*grown));
	strncpy(grown->service, service, sizeof(grown->service) - 1);
	grown->raw = strndup(raw, len);
	source->n_spellings += grown->raw != NULL;
}

const char *d9__bucket_spelling_next(const struct d9__bucket_source *source, const char *service, size_t *at)
{
	while (*at < source->n_spellings) {
		const struct d9__bucket_spelling *spelling = &source->spellings[(*at)++];

		if (!strcmp(spelling->service, service))
			return spelling->raw;
	}
	return NULL;
}

void d9__bucket_free_services(struct d9__bucket_source *source)
{
	void *told;

	for (size_t place = 0; (place = d9__table_next(&source->told, place, &told));)
		free(told);
	d9__table_release(&source->told);
	for (size_t i = 0; i < source->n_spellings; i++)
		free(source->spellings[i].raw);
	free(source->spellings);
}
