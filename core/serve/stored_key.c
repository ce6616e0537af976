/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "serve/stored_key.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define DATE_LEN     10
#define FIGURES	     4 /* behind the boot id of an hour */
#define YEAR_MAX     2199
#define AFTER_KEY_S  D9__STORED_HOUR_S /* so far may a segment's own time be from that of its key */

static bool is_plain(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
}

static int hex_of(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Return one byte at |*at|, with "%2F" decoded, and move behind it. */
static char next_byte(const char **at, const char *end)
{
	const char *c = *at;

	*at = c + 1;
	if (*c != '%' || end - c < 3 || hex_of(c[1]) < 0 || hex_of(c[2]) < 0)
		return *c;
	*at = c + 3;
	return (char)(hex_of(c[1]) * 16 + hex_of(c[2]));
}

/* Reduce the bytes from |at| to |end|; false: there are none, or more than a part may have. */
static bool take_text(const char *at, const char *end, char out[D9__STORED_PART])
{
	size_t len = 0;

	while (at < end && len < D9__STORED_PART - 1) {
		char c = next_byte(&at, end);

		out[len++] = is_plain(c) ? c : '_';
	}
	out[len] = '\0';
	if (!strcmp(out, ".") || !strcmp(out, ".."))
		out[0] = '_';
	return len && at == end;
}

/* "|head|TEXT/" at |*at|, which goes behind it. */
static bool take_part(const char **at, const char *head, char out[D9__STORED_PART])
{
	size_t skip = strlen(head);
	const char *slash;

	if (strncmp(*at, head, skip) || !(slash = strchr(*at + skip, '/')) || !take_text(*at + skip, slash, out))
		return false;
	*at = slash + 1;
	return true;
}

static bool take_digits(const char **at, size_t n, unsigned *out)
{
	*out = 0;
	for (size_t i = 0; i < n; i++, (*at)++) {
		if (**at < '0' || **at > '9')
			return false;
		*out = *out * 10 + (unsigned)(**at - '0');
	}
	return true;
}

/* A number of at most 18 digits, which nothing can overflow. */
static bool take_number(const char **at, uint64_t *out)
{
	size_t n = strspn(*at, "0123456789");

	*out = 0;
	if (!n || n > 18)
		return false;
	for (; n; n--, (*at)++)
		*out = *out * 10 + (uint64_t)(**at - '0');
	return true;
}

bool d9__stored_part(const char *text, size_t len, char out[D9__STORED_PART])
{
	return take_text(text, text + len, out);
}

bool d9__stored_date(const char *text, int64_t *out)
{
	unsigned year, month, day;
	struct tm tm = { 0 };

	if (!take_digits(&text, 4, &year) || *text++ != '-' || !take_digits(&text, 2, &month) || *text++ != '-' ||
	    !take_digits(&text, 2, &day) || year < 1970 || year > YEAR_MAX || !month || month > 12 || !day || day > 31)
		return false;
	tm.tm_year = (int)year - 1900;
	tm.tm_mon = (int)month - 1;
	tm.tm_mday = (int)day;
	*out = timegm(&tm);
	/* There is no 31 February. */
	return tm.tm_mday == (int)day;
}

/* "DATE/" at |*at|. */
static bool take_date(const char **at, int64_t *out)
{
	if (!d9__stored_date(*at, out) || (*at)[DATE_LEN] != '/')
		return false;
	*at += DATE_LEN + 1;
	return true;
}

/* "0312/" at |*at|, as seconds of the day. */
static bool take_minute(const char **at, int64_t *out)
{
	unsigned hour, minute;

	if (!take_digits(at, 2, &hour) || !take_digits(at, 2, &minute) || hour > 23 || minute > 59 || *(*at)++ != '/')
		return false;
	*out = (int64_t)hour * D9__STORED_HOUR_S + minute * 60;
	return true;
}

/* "1796000000-7.bin.zst"; |minute_s|: of the key. */
static bool take_segment(const char *at, int64_t minute_s, struct d9__stored_key *out)
{
	static const char *const endings[] = { ".bin", ".bin.gz", ".bin.zst" };
	uint64_t epoch_s;

	if (!take_number(&at, &epoch_s) || *at++ != '-' || !take_number(&at, &out->index))
		return false;
	for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++)
		if (!strcmp(at, endings[i]))
			out->ending = endings[i];
	out->kind = D9__STORED_SEGMENT;
	/* Its place is where a list of that time has it, whatever it says of itself. */
	out->begins_s = (int64_t)epoch_s >= minute_s - AFTER_KEY_S && (int64_t)epoch_s <= minute_s + AFTER_KEY_S ? (int64_t)epoch_s
														: minute_s;
	return out->ending;
}

static bool parse_segment(const char *at, struct d9__stored_key *out)
{
	int64_t date_s, day_s;

	if (strncmp(at, "date=", 5))
		return false;
	at += 5;
	if (!take_date(&at, &date_s) || !take_part(&at, "service=", out->service) || strncmp(at, "time=", 5))
		return false;
	at += 5;
	return take_minute(&at, &day_s) && take_part(&at, "instance=", out->instance) && take_part(&at, "boot=", out->boot_id) &&
	       take_segment(at, date_s + day_s, out);
}

static bool parse_old_segment(const char *at, struct d9__stored_key *out)
{
	int64_t date_s, day_s;

	return take_date(&at, &date_s) && take_minute(&at, &day_s) && take_part(&at, "", out->service) &&
	       take_part(&at, "", out->instance) && take_part(&at, "", out->boot_id) && take_segment(at, date_s + day_s, out);
}

/* "60.9000000.182.0" behind the boot id, which may have dots itself. */
static bool take_figures(const char *at, struct d9__stored_key *out)
{
	uint64_t worst = 0;

	out->worst_ms = -1;
	if (!take_number(&at, &out->segments) || *at++ != '.' || !take_number(&at, &out->bytes) || *at++ != '.')
		return false;
	if (*at == '-')
		at++;
	else if (take_number(&at, &worst))
		out->worst_ms = (int64_t)worst;
	else
		return false;
	return *at++ == '.' && take_number(&at, &out->missing) && !*at;
}

static bool parse_hour(const char *at, struct d9__stored_key *out)
{
	const char *figures;
	int64_t date_s;
	unsigned hour;

	if (!take_date(&at, &date_s) || !take_digits(&at, 2, &hour) || hour > 23 || *at++ != '/' ||
	    !take_part(&at, "", out->service) || !take_part(&at, "", out->instance) || strchr(at, '/'))
		return false;
	figures = at + strlen(at);
	for (unsigned i = 0; i < FIGURES && figures > at; i += *figures == '.')
		figures--;
	out->kind = D9__STORED_HOUR;
	out->begins_s = date_s + (int64_t)hour * D9__STORED_HOUR_S;
	return take_text(at, figures, out->boot_id) && take_figures(figures + 1, out);
}

static bool parse_dump(const char *at, struct d9__stored_key *out)
{
	const char *end = at + strlen(at) - (strlen(at) > 5 ? 5 : 0);

	out->kind = D9__STORED_DUMP;
	/* As it is, for its key is made of it again. */
	return !strcmp(end, ".json") && take_text(at, end, out->id) && !strncmp(out->id, at, (size_t)(end - at));
}

bool d9__stored_key_parse(const char *key, struct d9__stored_key *out)
{
	*out = (struct d9__stored_key) { .worst_ms = -1 };
	if (!strncmp(key, "version=1/", 10))
		return parse_segment(key + 10, out);
	if (!strncmp(key, "hours/", 6))
		return parse_hour(key + 6, out);
	if (!strncmp(key, "dumps/", 6))
		return parse_dump(key + 6, out);
	return parse_old_segment(key, out);
}

void d9__stored_key_name(const struct d9__stored_key *key, char out[D9__STORED_NAME])
{
	time_t at = (time_t)key->begins_s;
	char hour[32] = "";
	struct tm tm;

	if (key->kind == D9__STORED_DUMP) {
		snprintf(out, D9__STORED_NAME, "dumps/%s.json", key->id);
	} else if (key->kind == D9__STORED_HOUR) {
		if (gmtime_r(&at, &tm))
			strftime(hour, sizeof(hour), "%Y-%m-%dT%H", &tm);
		snprintf(out, D9__STORED_NAME, "%s/%s/%s/%s.hour", key->service, key->instance, key->boot_id, hour);
	} else {
		snprintf(out, D9__STORED_NAME, "%s/%s/%s/%" PRId64 "-%" PRIu64 "%s", key->service, key->instance, key->boot_id,
			 key->begins_s, key->index, key->ending);
	}
}

bool d9__stored_name_parse(const char *name, struct d9__stored_key *out)
{
	uint64_t begins_s;
	const char *at = name;

	*out = (struct d9__stored_key) { .worst_ms = -1 };
	if (!take_part(&at, "", out->service) || !take_part(&at, "", out->instance) || !take_part(&at, "", out->boot_id))
		return false;
	name = at;
	return take_number(&name, &begins_s) && begins_s < UINT64_C(253402300800) && take_segment(at, (int64_t)begins_s, out);
}
