/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Few questions: hours whose summaries are there cost one list for a thousand of them, whatever they are about.  Of the hour that
 * runs, and of those without summaries, segments are listed, service by service; where they are too many, one minute in ten.  What
 * is over stays known; what may still change is asked for again after half a minute, and only from where the last list ended.
 */
#include "config.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/array.h"
#include "serve/bucket_dump.h"
#include "serve/bucket_item.h"
#include "serve/bucket_list.h"
#include "serve/bucket_parts.h"
#include "serve/bucket_request.h"
#include "serve/bucket_services.h"

#define HOUR_S	       D9__STORED_HOUR_S
#define DAY_S	       D9__STORED_DAY_S
#define FRESH_S	       30
#define LATE_S	       180	  /* so much later a segment may be stored than one that began after it */
#define AHEAD_S	       60	  /* a host's clock may be ahead of ours by this */
#define SETTLED_S      HOUR_S	  /* after its end an hour's summaries are there, but for those of hosts that could not store */
#define WINDOW_S       (31 * DAY_S)
#define USUAL_S	       DAY_S	  /* the stretch that is shown by default */
#define BEFORE_S       600	  /* so long before a range a segment may begin that reaches into it */
#define LISTS_MAX      32	  /* at a time */
#define PAGES_SOME     3	  /* more segments than that are told by one minute in ten */
#define PAGES_WHOLE    30
#define PAGES_HOURS    100
#define SAMPLE	       10
#define SERVICES_MAX   200
#define DAYS_MAX       4000
#define NAMES_MAX      1000
#define ULID_TIME      10

enum step { STEP_ROOT, STEP_HOURS, STEP_SEGMENTS, STEP_WHOLE, STEP_DUMP, STEP_END };

/* ---- chains ---- */

static void free_chain(struct d9__chain *chain)
{
	free(chain->prefix);
	free(chain->after);
	free(chain->more);
	free(chain);
}

static bool is_delimited(const struct d9__chain *chain)
{
	return chain->kind == D9__CHAIN_ROOT || chain->kind == D9__CHAIN_SERVICES || chain->kind == D9__CHAIN_MINUTES;
}

/* List |prefix| from |after| on, both as parts behind that of the bucket; out of memory counts as left out. */
static struct d9__chain *add_chain(struct d9__bucket_source *source, enum d9__chain_kind kind, unsigned pages_max,
				   const char *prefix, const char *after)
{
	struct d9__chain *chain = calloc(1, sizeof(*chain)), **end = &source->chains;

	if (!chain || asprintf(&chain->prefix, "%s%s", source->prefix, prefix) < 0 ||
	    (after && asprintf(&chain->after, "%s%s%s", source->prefix, prefix, after) < 0)) {
		free(chain);
		source->truncated = true;
		return NULL;
	}
	chain->kind = kind;
	chain->pages_max = pages_max;
	while (*end)
		end = &(*end)->next;
	*end = chain;
	return chain;
}

static void remove_chain(struct d9__bucket_source *source, struct d9__chain *chain)
{
	struct d9__chain **place = &source->chains;

	while (*place != chain)
		place = &(*place)->next;
	*place = chain->next;
	free_chain(chain);
}

/* After an error, drop the lists that were not asked for yet. */
static void drop_waiting(struct d9__bucket_source *source)
{
	struct d9__chain *next;

	for (struct d9__chain *chain = source->chains; chain; chain = next) {
		next = chain->next;
		if (!chain->asked)
			remove_chain(source, chain);
	}
}

/* "2026-11-29", "2026-11-29/03", "0312" of |at_s|. */
static void put_date(char out[16], int64_t at_s)
{
	time_t at = (time_t)at_s;
	struct tm tm;

	*out = '\0';
	if (gmtime_r(&at, &tm))
		strftime(out, 16, "%Y-%m-%d", &tm);
}

static void put_hour(char out[16], int64_t at_s)
{
	time_t at = (time_t)at_s;
	struct tm tm;

	*out = '\0';
	if (gmtime_r(&at, &tm))
		strftime(out, 16, "%Y-%m-%d/%H", &tm);
}

static void put_minute(char out[8], int64_t at_s)
{
	time_t at = (time_t)at_s;
	struct tm tm;

	*out = '\0';
	if (gmtime_r(&at, &tm))
		strftime(out, 8, "%H%M", &tm);
}

/* ---- what is known already ---- */

static struct d9__bucket_hour *hour_at(struct d9__bucket_source *source, int64_t begins_s)
{
	for (size_t i = source->n_hours; i-- > 0;)
		if (source->hours[i].begins_s == begins_s)
			return &source->hours[i];
	if (!d9__array_grow(source->hours, source->n_hours))
		return NULL;
	source->hours[source->n_hours] = (struct d9__bucket_hour) { .begins_s = begins_s };
	return &source->hours[source->n_hours++];
}

static bool is_fresh(int64_t listed_s, int64_t now_s)
{
	return listed_s && now_s - listed_s < FRESH_S && listed_s <= now_s;
}

/* A host that could not store for long has its summaries come late: the older an hour, the less likely and the less often asked. */
static bool is_hour_known(const struct d9__bucket_hour *hour, int64_t now_s)
{
	int64_t settled_s = hour ? hour->listed_s - hour->begins_s - HOUR_S : 0;

	return hour && (is_fresh(hour->listed_s, now_s) || (settled_s >= SETTLED_S && now_s - hour->listed_s < settled_s));
}

/* Where a list of |prefix| in [*from_s, to_s) has to begin; false: nowhere. */
static bool is_needed(const struct d9__bucket_source *source, const char *prefix, int64_t *from_s, int64_t to_s)
{
	for (size_t i = 0; i < source->n_reaches; i++) {
		const struct d9__bucket_reach *reach = &source->reaches[i];

		if (strcmp(reach->prefix, prefix) || reach->from_s > *from_s || reach->asked_s < *from_s)
			continue;
		if (reach->to_s >= to_s || (is_fresh(reach->listed_s, d9__bucket_now_s()) && reach->asked_s >= to_s - FRESH_S))
			return false;
		if (reach->to_s > *from_s)
			*from_s = reach->to_s;
	}
	return *from_s < to_s;
}

/*
 * True if [from_s, to_s) of |prefix| was listed just now.  An older list does not do, because a
 * segment may have been stored late.
 */
static bool is_just_listed(const struct d9__bucket_source *source, const char *prefix, int64_t from_s, int64_t to_s)
{
	for (size_t i = 0; i < source->n_reaches; i++) {
		const struct d9__bucket_reach *reach = &source->reaches[i];

		if (!strcmp(reach->prefix, prefix) && reach->from_s <= from_s && reach->asked_s >= to_s - FRESH_S &&
		    is_fresh(reach->listed_s, d9__bucket_now_s()))
			return true;
	}
	return false;
}

/*
 * Extend the known stretch to |asked_s| less a while, because segments stored late may still come.
 */
static void extend(struct d9__bucket_reach *reach, int64_t asked_s)
{
	int64_t now_s = d9__bucket_now_s(), to_s = asked_s < now_s - LATE_S ? asked_s : now_s - LATE_S;

	reach->listed_s = now_s;
	if (reach->asked_s < asked_s)
		reach->asked_s = asked_s;
	if (reach->to_s < to_s)
		reach->to_s = to_s;
}

/* [from_s, to_s) of |prefix| has been listed. */
static void add_reach(struct d9__bucket_source *source, const char *prefix, int64_t from_s, int64_t to_s)
{
	struct d9__bucket_reach *added;

	for (size_t i = 0; i < source->n_reaches; i++) {
		struct d9__bucket_reach *reach = &source->reaches[i];

		if (!strcmp(reach->prefix, prefix) && reach->from_s <= from_s && reach->asked_s >= from_s) {
			extend(reach, to_s);
			return;
		}
	}
	if (!d9__array_grow(source->reaches, source->n_reaches))
		return;
	added = &source->reaches[source->n_reaches];
	*added = (struct d9__bucket_reach) { .prefix = strdup(prefix), .from_s = from_s };
	if (!added->prefix)
		return;
	extend(added, to_s);
	source->n_reaches++;
}

/* Name the listed stretch of |prefix|: whole, or thinned out. */
static void reach_name(char *out, size_t size, const char *prefix, bool whole)
{
	snprintf(out, size, "%s%s", whole ? "whole " : "", prefix);
}

/* Return |to_s|, but no later than clocks of hosts that are ahead may tell. */
static int64_t not_later(int64_t to_s)
{
	int64_t last_s = d9__bucket_now_s() + AHEAD_S;

	return to_s < last_s ? to_s : last_s;
}

/* List segments whose keys begin with |prefix| and have |time| and the minute behind it. */
static void list_segments(struct d9__bucket_source *source, const char *prefix, const char *time, int64_t from_s, int64_t to_s,
			  bool whole)
{
	char reach[D9__BUCKET_KEY_MAX + 8], after[32], minute[8];
	struct d9__chain *chain;

	to_s = not_later(to_s);
	reach_name(reach, sizeof(reach), prefix, whole);
	if (whole ? is_just_listed(source, reach, from_s, to_s) : !is_needed(source, reach, &from_s, to_s))
		return;
	put_minute(minute, from_s);
	snprintf(after, sizeof(after), "%s%s", time, minute);
	chain = add_chain(source, D9__CHAIN_SEGMENTS, whole ? PAGES_WHOLE : PAGES_SOME, prefix, after);
	if (chain) {
		chain->whole = whole;
		chain->from_s = chain->seen_s = from_s;
		chain->to_s = to_s;
	}
}

/* ---- pages ---- */

/* Return |text| behind the prefix of the bucket; NULL: the store answered with another one. */
static const char *behind_prefix(const struct d9__bucket_source *source, const char *text)
{
	size_t len = strlen(source->prefix);

	return strncmp(text, source->prefix, len) ? NULL : text + len;
}

static void take_root(struct d9__bucket_source *source, const char *prefix)
{
	int64_t day_s;

	source->has_hours |= !strcmp(prefix, "hours/");
	source->has_segments |= !strcmp(prefix, "version=1/");
	source->has_dumps |= !strcmp(prefix, "dumps/");
	if (!d9__stored_date(prefix, &day_s) || strcmp(prefix + 10, "/"))
		return;
	for (size_t i = 0; i < source->n_days; i++)
		if (source->days[i] == day_s)
			return;
	if (source->n_days == DAYS_MAX || !d9__array_grow(source->days, source->n_days)) {
		source->truncated = true;
		return;
	}
	source->days[source->n_days++] = day_s;
}

/* True if segments tell of this hour of |service|, NULL: of all of them: it runs, or has no
 * summary. */
static bool is_bare(struct d9__bucket_source *source, const char *service, int64_t begins_s)
{
	const struct d9__bucket_hour *hour = service ? NULL : hour_at(source, begins_s);
	bool told = service ? d9__bucket_service_is_told(source, service, begins_s) : hour && hour->n;

	return !told || begins_s + HOUR_S > d9__bucket_now_s();
}

/* The next hours in [*from_s, end_s) of which segments tell, to |*to_s|; false: there are none. */
static bool next_bare(struct d9__bucket_source *source, const char *service, int64_t *from_s, int64_t *to_s, int64_t end_s)
{
	while (*from_s < end_s && !is_bare(source, service, *from_s))
		*from_s += HOUR_S;
	for (*to_s = *from_s; *to_s < end_s && is_bare(source, service, *to_s);)
		*to_s += HOUR_S;
	return *from_s < *to_s;
}

/*
 * Take |part|, such as "service=web/", as a service of the day that |chain| listed below |prefix|.
 */
static void take_service(struct d9__bucket_source *source, const struct d9__chain *chain, const char *prefix, const char *part)
{
	size_t skip = strlen("service="), len = strlen(part);
	char service[D9__STORED_PART];

	if (strncmp(part, "service=", skip) || part[len - 1] != '/' || !d9__stored_part(part + skip, len - skip - 1, service)) {
		source->n_strange++;
		return;
	}
	d9__bucket_spelling_add(source, service, part + skip, len - skip - 1);
	for (int64_t from_s = chain->from_s, to_s; next_bare(source, service, &from_s, &to_s, chain->to_s); from_s = to_s)
		list_segments(source, prefix, "time=", from_s, to_s, false);
}

/* One of the common prefixes of |chain|, the |i|-th of its page. */
static void take_prefix(struct d9__bucket_source *source, struct d9__chain *chain, const char *whole, size_t i)
{
	const char *prefix = behind_prefix(source, whole);
	size_t len = strlen(chain->prefix);
	struct d9__chain *sample;

	if (!prefix || strncmp(whole, chain->prefix, len)) {
		source->n_strange++;
	} else if (chain->kind == D9__CHAIN_ROOT) {
		take_root(source, prefix);
	} else if (chain->kind == D9__CHAIN_SERVICES && i < SERVICES_MAX) {
		take_service(source, chain, prefix, whole + len);
	} else if (chain->kind == D9__CHAIN_MINUTES && i % SAMPLE == 0) {
		sample = add_chain(source, D9__CHAIN_SEGMENTS, 1, prefix, NULL);
		if (sample) {
			sample->sample = true;
			sample->to_s = INT64_MAX;
		}
	}
	source->truncated |= chain->kind == D9__CHAIN_SERVICES && i >= SERVICES_MAX;
}

/* One of the keys of |chain|; false: it and all behind it are not wanted. */
static bool take_key(struct d9__bucket_source *source, struct d9__chain *chain, const struct d9__bucket_key *key)
{
	struct d9__stored_key parsed;
	const char *own = behind_prefix(source, key->key);

	if (!own || strncmp(key->key, chain->prefix, strlen(chain->prefix)) || !d9__stored_key_parse(own, &parsed)) {
		source->n_strange++;
		return true;
	}
	if (parsed.kind != D9__STORED_DUMP) {
		if (parsed.begins_s >= chain->to_s)
			return false;
		if (parsed.begins_s > chain->seen_s)
			chain->seen_s = parsed.begins_s;
	}
	d9__bucket_item_add(source, key->key, key->size, key->modified);
	return true;
}

static void count_hours(struct d9__bucket_source *source, const struct d9__chain *chain)
{
	for (int64_t at_s = chain->from_s; at_s < chain->to_s; at_s += HOUR_S) {
		struct d9__bucket_hour *hour = hour_at(source, at_s);

		if (!hour)
			continue;
		hour->n = 0;
		hour->listed_s = d9__bucket_now_s();
	}
	for (size_t i = 0; i < source->n; i++) {
		const struct d9__stored_key *parsed = &source->items[i]->parsed;

		if (parsed->kind == D9__STORED_HOUR && parsed->begins_s >= chain->from_s && parsed->begins_s < chain->to_s) {
			struct d9__bucket_hour *hour = hour_at(source, parsed->begins_s);

			if (hour)
				hour->n++;
		}
	}
}

/* Too many segments to list them: in which minutes there are some. */
static void list_minutes(struct d9__bucket_source *source, const struct d9__chain *chain)
{
	const char *prefix = behind_prefix(source, chain->prefix);
	bool ours = !strncmp(prefix, "version=1/", strlen("version=1/"));
	struct d9__chain *minutes;
	char after[32], minute[8];

	put_minute(minute, chain->seen_s);
	snprintf(after, sizeof(after), "%s%s/~", ours ? "time=" : "", minute);
	minutes = add_chain(source, D9__CHAIN_MINUTES, PAGES_SOME, prefix, after);
	if (minutes)
		minutes->to_s = chain->to_s;
	source->sampled = true;
}

/* The last page of |chain| has come; |more|: that there could be. */
static void finish_chain(struct d9__bucket_source *source, struct d9__chain *chain, bool more)
{
	char reach[D9__BUCKET_KEY_MAX + 8];

	if (chain->kind == D9__CHAIN_ROOT) {
		source->root_s = d9__bucket_now_s();
		/*
		 * The first page does not show all kinds of objects, so assume that each kind is
		 * there.
		 */
		if (more)
			source->has_hours = source->has_segments = source->has_dumps = true;
	} else if (chain->kind == D9__CHAIN_DUMPS)
		source->dumps_s = d9__bucket_now_s();
	else if (chain->kind == D9__CHAIN_HOURS)
		count_hours(source, chain);
	if (chain->kind == D9__CHAIN_SEGMENTS && more && !chain->whole && !chain->sample)
		list_minutes(source, chain);
	else
		source->truncated |= more && chain->kind != D9__CHAIN_ROOT;
	if ((chain->kind == D9__CHAIN_SEGMENTS && !chain->sample) || chain->kind == D9__CHAIN_SERVICES) {
		reach_name(reach, sizeof(reach), behind_prefix(source, chain->prefix), chain->whole);
		add_reach(source, reach, chain->from_s, chain->to_s);
	}
	remove_chain(source, chain);
}

static void take_page(struct d9__bucket_source *source, void *of, const struct d9__bucket_answer *answer)
{
	struct d9__chain *chain = of;
	bool wanted = true, again;

	source->listing--;
	chain->asked = false;
	if (!d9__bucket_is_good(source, answer)) {
		source->failed = true;
		drop_waiting(source);
		return;
	}
	for (size_t i = 0; i < answer->n_prefixes; i++)
		take_prefix(source, chain, answer->prefixes[i], i);
	for (size_t i = 0; i < answer->n_keys && wanted; i++)
		wanted = is_delimited(chain) || take_key(source, chain, &answer->keys[i]);
	/* A store that names the page that it has just given would do so for ever. */
	again = answer->more && chain->more && !strcmp(answer->more, chain->more);
	free(chain->more);
	chain->more = answer->more && wanted ? strdup(answer->more) : NULL;
	chain->pages++;
	if (!chain->more || again || chain->pages >= chain->pages_max)
		finish_chain(source, chain, chain->more != NULL);
}

static void ask(struct d9__bucket_source *source, struct d9__chain *chain)
{
	const struct d9__bucket_list list = { .prefix = chain->prefix,
					      .delimiter = is_delimited(chain) ? "/" : NULL,
					      .start_after = chain->more ? NULL : chain->after,
					      .continuation = chain->more };
	struct d9__bucket_request *request = d9__bucket_request(source, take_page, chain);

	if (!request)
		return;
	chain->asked = true;
	source->listing++;
	source->n_lists++;
	d9__bucket_requested(source, request, d9__bucket_list(source->bucket, request->token, &list));
}

/* ---- wishes ---- */

static void list_root(struct d9__bucket_source *source)
{
	if (!is_fresh(source->root_s, d9__bucket_now_s()))
		add_chain(source, D9__CHAIN_ROOT, PAGES_SOME + 1, "", NULL);
}

/* The time of a dump's id, which is a ULID. */
static void ulid_time(int64_t at_s, char out[ULID_TIME + 1])
{
	uint64_t ms = (uint64_t)at_s * 1000;

	for (int i = ULID_TIME; i-- > 0; ms >>= 5)
		out[i] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"[ms & 31];
	out[ULID_TIME] = '\0';
}

static void list_dumps(struct d9__bucket_source *source, const struct d9__bucket_wish *wish)
{
	char after[ULID_TIME + 1];
	struct d9__chain *chain;

	if (!source->has_dumps || is_fresh(source->dumps_s, d9__bucket_now_s()))
		return;
	ulid_time(wish->from_s, after);
	chain = add_chain(source, D9__CHAIN_DUMPS, PAGES_SOME, "dumps/", after);
	if (chain)
		chain->to_s = INT64_MAX;
}

static void list_some_hours(struct d9__bucket_source *source, int64_t from_s, int64_t to_s)
{
	struct d9__chain *chain;
	char after[16];

	put_hour(after, from_s);
	chain = add_chain(source, D9__CHAIN_HOURS, PAGES_HOURS, "hours/", after);
	if (chain) {
		chain->from_s = from_s;
		chain->to_s = to_s;
	}
}

/* Hours of the wish that are not known, those beside each other by one list. */
static void list_hours(struct d9__bucket_source *source, const struct d9__bucket_wish *wish)
{
	int64_t now_s = d9__bucket_now_s(), from_s = wish->from_s;

	if (!source->has_hours)
		return;
	for (int64_t at_s = wish->from_s; at_s <= wish->to_s; at_s += HOUR_S) {
		if (at_s < wish->to_s && !is_hour_known(hour_at(source, at_s), now_s))
			continue;
		if (from_s < at_s)
			list_some_hours(source, from_s, at_s);
		from_s = at_s + HOUR_S;
	}
}

static bool has_day(const struct d9__bucket_source *source, int64_t day_s)
{
	for (size_t i = 0; i < source->n_days; i++)
		if (source->days[i] == day_s)
			return true;
	return false;
}

/* Which services stored something in [from_s, to_s) of a day: of which hours segments have to tell is known of each then. */
static void list_services(struct d9__bucket_source *source, int64_t day_s, int64_t from_s, int64_t to_s)
{
	char prefix[64], date[16];
	struct d9__chain *chain;
	int64_t begin_s = from_s;

	put_date(date, day_s);
	to_s = not_later(to_s);
	snprintf(prefix, sizeof(prefix), "version=1/date=%s/", date);
	if (!source->has_segments || !is_needed(source, prefix, &begin_s, to_s))
		return;
	chain = add_chain(source, D9__CHAIN_SERVICES, 1, prefix, NULL);
	if (chain) {
		chain->from_s = from_s;
		chain->to_s = to_s;
	}
}

/* List segments of the older layout, whose keys have the time before the service. */
static void list_old(struct d9__bucket_source *source, int64_t day_s, int64_t from_s, int64_t end_s)
{
	char prefix[16 + 1], date[16];

	if (!has_day(source, day_s))
		return;
	put_date(date, day_s);
	snprintf(prefix, sizeof(prefix), "%s/", date);
	for (int64_t to_s; next_bare(source, NULL, &from_s, &to_s, end_s); from_s = to_s)
		list_segments(source, prefix, "", from_s, to_s, false);
}

static int64_t day_of(int64_t at_s)
{
	return at_s - at_s % DAY_S;
}

static void list_bare(struct d9__bucket_source *source, const struct d9__bucket_wish *wish)
{
	for (int64_t day_s = day_of(wish->from_s); day_s < wish->to_s; day_s += DAY_S) {
		int64_t from_s = day_s > wish->from_s ? day_s : wish->from_s;
		int64_t to_s = day_s + DAY_S < wish->to_s ? day_s + DAY_S : wish->to_s;

		list_services(source, day_s, from_s, to_s);
		list_old(source, day_s, from_s, to_s);
	}
}

/* List all segments of |service| in [from_s, to_s), under each of its spellings. */
static void list_service(struct d9__bucket_source *source, const char *service, const char *date, int64_t from_s, int64_t to_s)
{
	const char *spelled = service;

	for (size_t at = 0; spelled; spelled = d9__bucket_spelling_next(source, service, &at)) {
		char prefix[D9__BUCKET_KEY_MAX];

		if (at && !strcmp(spelled, service))
			continue;
		if (snprintf(prefix, sizeof(prefix), "version=1/date=%s/service=%s/", date, spelled) < (int)sizeof(prefix))
			list_segments(source, prefix, "time=", from_s, to_s, true);
	}
}

/* List all segments of the services that the page shows. */
static void list_whole(struct d9__bucket_source *source, const struct d9__bucket_wish *wish)
{
	char prefix[32], date[16];

	for (int64_t day_s = day_of(wish->whole_s); wish->segments && day_s < wish->to_s; day_s += DAY_S) {
		int64_t from_s = wish->whole_s > day_s ? wish->whole_s : day_s;
		int64_t to_s = wish->to_s < day_s + DAY_S ? wish->to_s : day_s + DAY_S;

		put_date(date, day_s);
		for (size_t i = 0; source->has_segments && i < wish->n_services; i++)
			list_service(source, wish->services[i], date, from_s, to_s);
		snprintf(prefix, sizeof(prefix), "%s/", date);
		if (has_day(source, day_s) && wish->n_services)
			list_segments(source, prefix, "", from_s, to_s, true);
	}
}

static void free_wish(struct d9__bucket_wish *wish, const char *why)
{
	d9__bucket_wake(&wish->waiters, why);
	for (size_t i = 0; i < wish->n_services; i++)
		free(wish->services[i]);
	free(wish->services);
	free(wish->dump);
	free(wish);
}

/* The first wish is done, or cannot be. */
static void finish_wish(struct d9__bucket_source *source)
{
	struct d9__bucket_wish *wish = source->wishes;
	char why[sizeof(source->error)];

	snprintf(why, sizeof(why), "%s", !source->failed ? "" : *source->why ? source->why : source->error);
	source->wishes = wish->next;
	source->failed = false;
	source->why[0] = '\0';
	free_wish(wish, *why ? why : NULL);
}

/* Start the next step of |wish|; false: it has to wait for an answer first. */
static bool advance(struct d9__bucket_source *source, struct d9__bucket_wish *wish)
{
	switch (wish->step++) {
	case STEP_ROOT:
		list_root(source);
		return true;
	case STEP_HOURS:
		list_hours(source, wish);
		list_dumps(source, wish);
		return true;
	case STEP_SEGMENTS:
		list_bare(source, wish);
		return true;
	case STEP_WHOLE:
		list_whole(source, wish);
		return true;
	default:
		if (!wish->dump || d9__bucket_dump_step(source, wish->dump))
			return true;
		wish->step--;
		return false;
	}
}

void d9__bucket_pump_lists(struct d9__bucket_source *source)
{
	for (;;) {
		for (struct d9__chain *chain = source->chains; chain && source->listing < LISTS_MAX; chain = chain->next)
			if (!chain->asked)
				ask(source, chain);
		if (source->chains || !source->wishes)
			return;
		if (source->failed || source->wishes->step == STEP_END)
			finish_wish(source);
		else if (!advance(source, source->wishes))
			return;
	}
}

/* ---- what somebody wants ---- */

static bool add_service(struct d9__bucket_wish *wish, const char *service, size_t len)
{
	for (size_t i = 0; i < wish->n_services; i++)
		if (!strncmp(wish->services[i], service, len) && !wish->services[i][len])
			return true;
	if (wish->n_services == SERVICES_MAX || !d9__array_grow(wish->services, wish->n_services))
		return false;
	wish->services[wish->n_services] = strndup(service, len);
	wish->n_services += wish->services[wish->n_services] != NULL;
	return true;
}

/* Segments are asked for by name: when and where they are. */
static void take_names(struct d9__bucket_wish *wish, const struct d9__source_scope *scope)
{
	struct d9__stored_key parsed;

	for (size_t i = 0; i < scope->n_names && i < NAMES_MAX; i++) {
		if (!d9__stored_name_parse(scope->names[i], &parsed))
			continue;
		if (!wish->n_services || parsed.begins_s < wish->from_s)
			wish->from_s = parsed.begins_s;
		if (!wish->n_services || parsed.begins_s >= wish->to_s)
			wish->to_s = parsed.begins_s + 1;
		add_service(wish, parsed.service, strlen(parsed.service));
	}
}

static void take_processes(struct d9__bucket_wish *wish, const struct d9__source_scope *scope)
{
	for (size_t i = 0; scope->segments && i < scope->n_processes; i++)
		add_service(wish, scope->processes[i], strcspn(scope->processes[i], "/"));
}

static int64_t seconds_of(double ms, int64_t otherwise)
{
	return ms > 0 && ms < 7e15 ? (int64_t)(ms / 1000) : otherwise;
}

/* Whole hours, and no more of them than anybody looks at. */
static void set_window(struct d9__bucket_source *source, struct d9__bucket_wish *wish, const struct d9__source_scope *scope)
{
	int64_t now_s = d9__bucket_now_s();

	wish->to_s = seconds_of(scope->to_ms, now_s - 1) + 1;
	wish->from_s = seconds_of(scope->from_ms, (wish->to_s < now_s ? wish->to_s : now_s) - USUAL_S);
	take_names(wish, scope);
	wish->whole_s = wish->from_s - BEFORE_S;
	if (wish->to_s > now_s + HOUR_S)
		wish->to_s = now_s + HOUR_S;
	wish->from_s -= wish->from_s % HOUR_S;
	wish->to_s += HOUR_S - 1 - (wish->to_s + HOUR_S - 1) % HOUR_S;
	if (wish->from_s < wish->to_s - WINDOW_S) {
		wish->from_s = wish->whole_s = wish->to_s - WINDOW_S;
		source->truncated = true;
	}
}

static struct d9__bucket_wish *new_wish(struct d9__bucket_source *source, const struct d9__source_scope *scope)
{
	struct d9__bucket_wish *wish = calloc(1, sizeof(*wish));

	if (!wish)
		return NULL;
	wish->segments = scope->segments;
	set_window(source, wish, scope);
	take_processes(wish, scope);
	wish->dump = scope->dump ? strdup(scope->dump) : NULL;
	return wish;
}

/* True if a wish with the same question waits: it serves a page that looks again, too. */
static bool is_wished(const struct d9__bucket_source *source, const struct d9__bucket_wish *wish)
{
	for (const struct d9__bucket_wish *other = source->wishes; other; other = other->next)
		if (!other->segments && !other->dump && other->from_s <= wish->from_s && other->to_s >= wish->to_s)
			return true;
	return false;
}

static bool add_waiter(struct d9__bucket_wish *wish, d9__source_ready *ready, void *context)
{
	if (!ready)
		return true;
	wish->waiters = calloc(1, sizeof(*wish->waiters));
	if (wish->waiters)
		*wish->waiters = (struct d9__bucket_waiter) { .ready = ready, .context = context };
	return wish->waiters;
}

void d9__bucket_look(void *context, const struct d9__source_scope *scope, d9__source_ready *ready, void *ready_context)
{
	struct d9__bucket_source *source = context;
	bool rests = d9__bucket_now_s() < source->rest_until_s;
	struct d9__bucket_wish *wish = rests ? NULL : new_wish(source, scope), **end = &source->wishes;

	if (wish && !ready && is_wished(source, wish)) {
		free_wish(wish, NULL);
		return;
	}
	if (!wish || !add_waiter(wish, ready, ready_context)) {
		if (wish)
			free_wish(wish, NULL);
		if (ready)
			ready(ready_context, rests ? source->error : "out of memory");
		return;
	}
	while (*end)
		end = &(*end)->next;
	*end = wish;
	d9__bucket_pump_lists(source);
}

void d9__bucket_end_lists(struct d9__bucket_source *source)
{
	while (source->wishes) {
		struct d9__bucket_wish *wish = source->wishes;

		source->wishes = wish->next;
		free_wish(wish, "the server has ended");
	}
}

void d9__bucket_free_lists(struct d9__bucket_source *source)
{
	while (source->chains)
		remove_chain(source, source->chains);
	for (size_t i = 0; i < source->n_reaches; i++)
		free(source->reaches[i].prefix);
	free(source->reaches);
	free(source->hours);
	free(source->days);
}
