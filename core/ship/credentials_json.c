/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "ship/credentials_json.h"

#include <errno.h>
#include <json-c/json.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <time.h>

#include "ship/message.h"

int64_t d9__credentials_epoch(const char *text)
{
	struct tm tm = { 0 };
	const char *end = strptime(text, "%Y-%m-%dT%H:%M:%S", &tm);

	return end && (*end == 'Z' || *end == '.' || *end == '+') ? timegm(&tm) : 0;
}

/* The texts of |object| are wiped with it. */
static void wipe_json(struct json_object *object)
{
	json_object_object_foreach(object, name, value)
	{
		(void)name;
		if (json_object_is_type(value, json_type_string))
			OPENSSL_cleanse((void *)(uintptr_t)json_object_get_string(value),
					(size_t)json_object_get_string_len(value));
	}
}

int d9__credentials_take_json(struct d9__credentials *credentials, size_t len, const char *token,
			      char *why, size_t why_size)
{
	struct json_tokener *tokener = json_tokener_new_ex(8);
	struct json_object *object =
		tokener ? json_tokener_parse_ex(tokener, credentials->secrets->scratch, (int)len)
			: NULL;
	bool set = false;

	if (json_object_is_type(object, json_type_object)) {
		set = d9__secrets_set(
			credentials->secrets, d9__message_text(object, "AccessKeyId", ""),
			d9__message_text(object, "SecretAccessKey", ""),
			d9__message_text(object, token, ""),
			d9__credentials_epoch(d9__message_text(object, "Expiration", "")));
		wipe_json(object);
	}
	json_object_put(object);
	if (tokener)
		json_tokener_free(tokener);
	OPENSSL_cleanse(credentials->secrets->scratch, sizeof(credentials->secrets->scratch));
	if (set)
		return 0;
	snprintf(why, why_size, "its answer is no JSON with AccessKeyId and SecretAccessKey");
	return -EINVAL;
}
