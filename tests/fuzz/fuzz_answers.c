/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as what a store answers, and as what a source of credentials says: nothing is read outside of them, a key
 * of a list is one that a store could have, and what has been taken for a key of ours goes into a header.
 */
#include "config.h"

#include <string.h>

#include "fuzz/fuzz.h"
#include "ship/bucket.h"
#include "ship/credentials_json.h"
#include "ship/markup.h"
#include "ship/page.h"

static void check_key(struct json_object *key)
{
	size_t len = (size_t)json_object_get_string_len(key);

	fuzz_require(len <= D9__BUCKET_KEY_MAX, "a key has at most 1,024 bytes");
	fuzz_require(strlen(json_object_get_string(key)) == len, "a key has no zero byte");
}

static void try_page(const char *text, size_t size)
{
	struct json_object *page = d9__page_parse(text, size), *keys, *prefixes;

	if (!page)
		return;
	keys = json_object_object_get(page, "keys");
	prefixes = json_object_object_get(page, "prefixes");
	for (size_t i = 0; i < json_object_array_length(keys); i++)
		check_key(json_object_array_get_idx(json_object_array_get_idx(keys, i), 0));
	for (size_t i = 0; i < json_object_array_length(prefixes); i++)
		check_key(json_object_array_get_idx(prefixes, i));
	json_object_put(page);
}

static void try_tags(const char *text, size_t size)
{
	static const char *const tags[] = { "Error", "Code", "Message", "a" };
	struct d9__markup in = { text, size }, inner;
	char out[64];

	for (size_t i = 0; i < sizeof(tags) / sizeof(tags[0]); i++)
		for (size_t from = 0, last = 0; d9__markup_next(in, tags[i], &from, &inner); last = from) {
			fuzz_require(from > last && from <= size, "a search goes on");
			fuzz_require(inner.text >= text && inner.text + inner.len <= text + size, "an element is inside");
			memset(out, 'x', sizeof(out));
			d9__markup_text(inner, out, sizeof(out));
			fuzz_require(memchr(out, '\0', sizeof(out)) != NULL, "a text has an end");
		}
}

static void try_credentials(struct d9__secrets *secrets, const char *text, size_t size)
{
	struct d9__credentials credentials = { .secrets = secrets };
	char why[192] = "";

	if (size >= sizeof(secrets->scratch))
		return;
	memcpy(secrets->scratch, text, size);
	if (d9__credentials_take_json(&credentials, size, "Token", why, sizeof(why))) {
		fuzz_require(*why, "what is refused is told why");
		return;
	}
	fuzz_require(*secrets->id && *secrets->secret, "both are there");
	for (const char *c = secrets->token; *c; c++)
		fuzz_require(*c > 0x20 && *c < 0x7f, "a token goes into a header");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct d9__secrets *secrets;
	char *text = malloc(size + 1);

	if (!secrets)
		secrets = d9__secrets_new();
	if (!text || !secrets)
		exit(99);
	try_page((const char *)data, size);
	try_tags((const char *)data, size);
	try_credentials(secrets, (const char *)data, size);
	memcpy(text, data, size);
	text[size] = '\0';
	if (d9__markup_url_decode(text))
		fuzz_require(strlen(text) <= size, "what is decoded is no longer");
	free(text);
	return 0;
}
