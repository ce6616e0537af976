/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "ship/page.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ship/bucket.h"
#include "ship/markup.h"

#define ESCAPED_MAX (3 * D9__BUCKET_KEY_MAX + 1)
#define MORE_MAX    4096

/* The text of |tag| in |in|, unescaped; NULL: none, or too long. */
static char *text_of(struct d9__markup in, const char *tag, char *out, size_t size)
{
	struct d9__markup inner;

	return d9__markup_find(in, tag, &inner) && d9__markup_text(inner, out, size) ? out : NULL;
}

/* A key or a prefix, as text of JSON; NULL: it cannot be one. */
static struct json_object *key_of(struct d9__markup in, const char *tag, bool escaped)
{
	char text[ESCAPED_MAX];

	if (!text_of(in, tag, text, sizeof(text)) || (escaped && !d9__markup_url_decode(text)) ||
	    strlen(text) > D9__BUCKET_KEY_MAX)
		return NULL;
	return json_object_new_string(text);
}

static int64_t modified_of(struct d9__markup in)
{
	char text[64];
	struct tm tm = { 0 };

	if (!text_of(in, "LastModified", text, sizeof(text)) || !strptime(text, "%Y-%m-%dT%H:%M:%S", &tm))
		return 0;
	return timegm(&tm);
}

static uint64_t size_of(struct d9__markup in)
{
	char text[32];

	return text_of(in, "Size", text, sizeof(text)) ? strtoull(text, NULL, 10) : 0;
}

static bool add_object(struct json_object *keys, struct d9__markup in, bool escaped)
{
	struct json_object *row = json_object_new_array(), *key = key_of(in, "Key", escaped);

	if (!row || !key) {
		json_object_put(row);
		json_object_put(key);
		return false;
	}
	json_object_array_add(row, key);
	json_object_array_add(row, json_object_new_uint64(size_of(in)));
	json_object_array_add(row, json_object_new_int64(modified_of(in)));
	return !json_object_array_add(keys, row);
}

static bool add_prefix(struct json_object *prefixes, struct d9__markup in, bool escaped)
{
	struct json_object *prefix = key_of(in, "Prefix", escaped);

	return prefix && !json_object_array_add(prefixes, prefix);
}

static bool add_each(struct d9__markup in, const char *tag, bool escaped, struct json_object *list,
		     bool (*add)(struct json_object *, struct d9__markup, bool))
{
	struct d9__markup one;
	size_t from = 0;

	while (d9__markup_next(in, tag, &from, &one))
		if (!add(list, one, escaped))
			return false;
	return true;
}

/* The continuation, if there is more; false: there is, but not where. */
static bool add_more(struct json_object *page, struct d9__markup in)
{
	char text[MORE_MAX];

	if (!text_of(in, "IsTruncated", text, sizeof(text)) || strcmp(text, "true"))
		return true;
	if (!text_of(in, "NextContinuationToken", text, sizeof(text)))
		return false;
	json_object_object_add(page, "more", json_object_new_string(text));
	return true;
}

struct json_object *d9__page_parse(const char *text, size_t len)
{
	struct d9__markup in = { text, len }, result;
	struct json_object *page = json_object_new_object(), *keys = json_object_new_array(),
			   *prefixes = json_object_new_array();
	char encoding[8];
	bool escaped, whole;

	if (!page || !keys || !prefixes || !d9__markup_find(in, "ListBucketResult", &result)) {
		json_object_put(page);
		json_object_put(keys);
		json_object_put(prefixes);
		return NULL;
	}
	json_object_object_add(page, "keys", keys);
	json_object_object_add(page, "prefixes", prefixes);
	escaped = text_of(result, "EncodingType", encoding, sizeof(encoding)) && !strcmp(encoding, "url");
	whole = add_each(result, "Contents", escaped, keys, add_object) &&
		add_each(result, "CommonPrefixes", escaped, prefixes, add_prefix) && add_more(page, result);
	if (!whole) {
		json_object_put(page);
		return NULL;
	}
	return page;
}
