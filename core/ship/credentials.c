/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "ship/credentials.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ship/credentials_http.h"
#include "ship/credentials_profile.h"

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
