/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "ship/credentials.h"

#include <errno.h>
#include <json-c/json.h>
#include <openssl/crypto.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ship/message.h"

/* Move a variable out of the environment, so that neither /proc/PID/environ nor a child has it. */
static void take_variable(const char *name, char *out, size_t size)
{
	char *value = getenv(name);

	out[0] = '\0';
	if (!value)
		return;
	snprintf(out, size, "%s", value);
	OPENSSL_cleanse(value, strlen(value));
	unsetenv(name);
}

static int of_environment(struct d9__credentials *credentials, char *why, size_t size)
{
	struct d9__secrets *secrets = credentials->secrets;
	char *id = secrets->scratch, *secret = id + 1024, *token = secret + 1024;
	bool set;

	if (credentials->from_environment)
		return 0;
	if (!getenv("AWS_ACCESS_KEY_ID") && !getenv("AWS_SECRET_ACCESS_KEY"))
		return -ENOENT;
	snprintf(why, size, "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY: one is missing or is no key");
	if (!getenv("AWS_ACCESS_KEY_ID") || !getenv("AWS_SECRET_ACCESS_KEY"))
		return -EINVAL;
	take_variable("AWS_ACCESS_KEY_ID", id, 1024);
	take_variable("AWS_SECRET_ACCESS_KEY", secret, 1024);
	take_variable("AWS_SESSION_TOKEN", token, D9__SCRATCH_SIZE - 2048);
	set = d9__secrets_set(secrets, id, secret, token, 0);
	OPENSSL_cleanse(secrets->scratch, sizeof(secrets->scratch));
	credentials->from_environment = set;
	return set ? 0 : -EINVAL;
}

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

int d9__credentials_take_json(struct d9__credentials *credentials, size_t len, const char *token, char *why,
			      size_t why_size)
{
	struct json_tokener *tokener = json_tokener_new_ex(8);
	struct json_object *object = tokener ? json_tokener_parse_ex(tokener, credentials->secrets->scratch, (int)len) :
					       NULL;
	bool set = false;

	if (json_object_is_type(object, json_type_object)) {
		set = d9__secrets_set(credentials->secrets, d9__message_text(object, "AccessKeyId", ""),
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

typedef int source(struct d9__credentials *credentials, char *why, size_t size);

static const struct {
	const char *name;
	source *take;
} sources[] = {
	{ "environment", of_environment },
	{ "web identity", d9__credentials_of_web_identity },
	{ "profile", d9__credentials_of_profile },
	{ "container", d9__credentials_of_container },
	{ "instance", d9__credentials_of_instance },
};

int d9__credentials_find(struct d9__credentials *credentials, char *why, size_t why_size)
{
	size_t used = (size_t)snprintf(why, why_size, "no credentials");

	for (size_t i = 0; i < sizeof(sources) / sizeof(sources[0]); i++) {
		char reason[192] = "none there";

		if (!sources[i].take(credentials, reason, sizeof(reason))) {
			credentials->have = true;
			return 0;
		}
		if (used < why_size)
			used += (size_t)snprintf(why + used, why_size - used, "%s %s: %s", i ? ";" : ":",
						 sources[i].name, reason);
	}
	return -ENOENT;
}

bool d9__credentials_are_old(const struct d9__credentials *credentials)
{
	int64_t expires = credentials->secrets->expires;

	return !credentials->have || (expires && time(NULL) > expires - D9__CREDENTIALS_EARLY);
}
