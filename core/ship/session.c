/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "ship/session.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "ship/credentials_profile.h"
#include "ship/message.h"

#define MIB             (UINT64_C(1) << 20)
#define USUAL_REGION    "us-east-1"
#define USUAL_STALL     30
#define USUAL_PARALLEL  2
#define CONNECT_SECONDS 5L
#define LOOK_SECONDS    60
#define SLOW            1024 /* bytes per second that are no progress */

static const char *variable(const char *name)
{
	const char *value = getenv(name);

	return value && *value ? value : NULL;
}

static const char *endpoint_of(struct json_object *options)
{
	const char *endpoint = d9__message_text(options, "endpoint", NULL);

	if (!endpoint)
		endpoint = variable("AWS_ENDPOINT_URL_S3");
	return endpoint ? endpoint : variable("AWS_ENDPOINT_URL");
}

static void set_limits(struct d9__session *session, struct json_object *options)
{
	session->ca = d9__message_text(options, "ca", NULL);
	if (!session->ca)
		session->ca = variable("AWS_CA_BUNDLE");
	session->sse = d9__message_text(options, "sse", NULL);
	session->sse_key = d9__message_text(options, "sse_key", NULL);
	session->md5 = d9__message_number(options, "md5");
	session->max_rate = d9__message_number(options, "max_rate");
	session->single_max = d9__message_number(options, "single_max");
	session->stall = (unsigned)d9__message_number(options, "stall");
	session->parallel = (unsigned)d9__message_number(options, "parallel");
	if (!session->single_max)
		session->single_max = 256 * MIB;
	if (!session->stall)
		session->stall = USUAL_STALL;
	if (!session->parallel)
		session->parallel = USUAL_PARALLEL;
}

/* Goes into a header as it is. */
static int check_sse(const char *text, char *why, size_t size)
{
	for (const char *c = text ? text : ""; *c; c++)
		if ((unsigned char)*c < 0x21 || (unsigned char)*c > 0x7e) {
			snprintf(why, size, "sse: 'AES256', 'aws:kms' and a key's name have no blanks and no control characters");
			return -EINVAL;
		}
	return 0;
}

/* Set the configured region; the bucket is asked later. */
static int set_region(struct d9__session *session, const char *region, char *why, size_t size)
{
	if (!region)
		region = variable("AWS_REGION");
	if (!region)
		region = variable("AWS_DEFAULT_REGION");
	if (!region || d9__session_set_region(session, region))
		return 0;
	snprintf(why, size, "region '%.80s': that is no region; it has letters, digits and '-'", region);
	return -EINVAL;
}

int d9__session_start(struct d9__session *session, struct json_object *options, char *why, size_t why_size)
{
	struct d9__address_options address = {
		.bucket = d9__message_text(options, "bucket", ""),
		.endpoint = endpoint_of(options),
		.path_style = d9__message_number(options, "path_style"),
		.allow_http = d9__message_number(options, "allow_http"),
	};
	int err;

	*session = (struct d9__session) { .options = options };
	set_limits(session, options);
	session->credentials.profile = d9__message_text(options, "profile", NULL);
	session->credentials.region = session->region;
	session->credentials.ca = session->ca;
	err = d9__address_parse(&address, &session->address, why, why_size);
	if (!err)
		err = check_sse(session->sse, why, why_size);
	if (!err)
		err = check_sse(session->sse_key, why, why_size);
	if (!err)
		err = set_region(session, d9__message_text(options, "region", NULL), why, why_size);
	if (err)
		return err;
	session->credentials.secrets = d9__secrets_new();
	session->multi = curl_multi_init();
	if (session->multi && session->credentials.secrets)
		return 0;
	snprintf(why, why_size, "out of memory");
	return -ENOMEM;
}

bool d9__session_set_region(struct d9__session *session, const char *region)
{
	if (!d9__address_set_region(&session->address, region))
		return false;
	if (region != session->region)
		snprintf(session->region, sizeof(session->region), "%s", region);
	return true;
}

void d9__session_set_up(const struct d9__session *session, CURL *easy)
{
	uint64_t rate = session->max_rate / session->parallel;

	curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L);
	curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	curl_easy_setopt(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT, CONNECT_SECONDS);
	curl_easy_setopt(easy, CURLOPT_LOW_SPEED_TIME, (long)session->stall);
	curl_easy_setopt(easy, CURLOPT_LOW_SPEED_LIMIT, rate && rate < 2 * SLOW ? (long)rate / 2 : (long)SLOW);
	if (session->ca)
		curl_easy_setopt(easy, CURLOPT_CAINFO, session->ca);
	if (rate) {
		curl_easy_setopt(easy, CURLOPT_MAX_SEND_SPEED_LARGE, (curl_off_t)rate);
		curl_easy_setopt(easy, CURLOPT_MAX_RECV_SPEED_LARGE, (curl_off_t)rate);
	}
	/* https_proxy alone: plain http is for this machine and the next. */
	if (!strcmp(session->address.scheme, "http") || session->address.loopback)
		curl_easy_setopt(easy, CURLOPT_PROXY, "");
}

time_t d9__session_now(const struct d9__session *session)
{
	return time(NULL) + (time_t)session->clock_offset;
}

static size_t take_region(char *line, size_t one, size_t n, void *region)
{
	static const char name[] = "x-amz-bucket-region:";
	size_t len = sizeof(name) - 1;

	if (n > len && n - len < 60 && !strncasecmp(line, name, len)) {
		char text[64];

		snprintf(text, sizeof(text), "%.*s", (int)(n - len), line + len);
		text[strcspn(text, "\r\n")] = '\0';
		snprintf(region, 64, "%s", text + strspn(text, " "));
	}
	return one * n;
}

/* One unsigned HEAD of the bucket, which needs no permission. */
static void ask_region(struct d9__session *session, char region[64])
{
	CURL *easy = curl_easy_init();
	char url[1024];

	region[0] = '\0';
	if (!easy)
		return;
	snprintf(url, sizeof(url), "%s://%s%s/%s", session->address.scheme, session->address.host, session->address.base,
		 session->address.path_style ? session->address.bucket : "");
	d9__session_set_up(session, easy);
	curl_easy_setopt(easy, CURLOPT_URL, url);
	curl_easy_setopt(easy, CURLOPT_NOBODY, 1L);
	curl_easy_setopt(easy, CURLOPT_TIMEOUT, 2 * CONNECT_SECONDS);
	curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, take_region);
	curl_easy_setopt(easy, CURLOPT_HEADERDATA, region);
	curl_easy_perform(easy);
	curl_easy_cleanup(easy);
}

static void find_region(struct d9__session *session)
{
	char region[64];

	if (d9__credentials_region(&session->credentials, region, sizeof(region)) &&
	    d9__session_set_region(session, region))
		return;
	if (session->address.aws)
		d9__address_set_region(&session->address, USUAL_REGION);
	ask_region(session, region);
	if (!d9__session_set_region(session, region))
		d9__session_set_region(session, USUAL_REGION);
}

int d9__session_prepare(struct d9__session *session, char *why, size_t why_size)
{
	struct d9__credentials *credentials = &session->credentials;

	if (!*session->region)
		find_region(session);
	if (!d9__credentials_are_old(credentials) || time(NULL) < session->look_again ||
	    !d9__credentials_find(credentials, why, why_size))
		return 0;
	/* The old ones serve until their end, and a source that hangs does not cost each request its time. */
	if (!credentials->have || credentials->secrets->expires <= time(NULL))
		return -ENOENT;
	session->look_again = time(NULL) + LOOK_SECONDS;
	if (session->look_again > credentials->secrets->expires)
		session->look_again = credentials->secrets->expires;
	return 0;
}

void d9__session_end(struct d9__session *session)
{
	if (session->multi)
		curl_multi_cleanup(session->multi);
	d9__secrets_free(session->credentials.secrets);
	json_object_put(session->options);
}
