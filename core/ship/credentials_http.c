/* SPDX-License-Identifier: Apache-2.0 */
/* Credentials that a host hands out over HTTP: to containers, and to instances (IMDSv2). */
#include "config.h"

#include <curl/curl.h>
#include <errno.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ship/address.h"
#include "ship/credentials.h"

#define INSTANCE          "http://169.254.169.254"
#define CONTAINER         "http://169.254.170.2"
#define ATTEMPTS          2
#define INSTANCE_SECONDS  1 /* where there is no instance, nobody refuses */
#define CONTAINER_SECONDS 5

struct fetch {
	const char *method, *url;
	const char *headers[2]; /* whole lines; NULL: none */
	char *out;
	size_t size, len;
	long seconds; /* that one attempt may take */
};

static size_t keep(char *bytes, size_t one, size_t n, void *context)
{
	struct fetch *fetch = context;

	(void)one;
	if (n >= fetch->size - fetch->len)
		return 0;
	memcpy(fetch->out + fetch->len, bytes, n);
	fetch->len += n;
	fetch->out[fetch->len] = '\0';
	return n;
}

static struct curl_slist *headers_of(const struct fetch *fetch)
{
	struct curl_slist *list = NULL;

	for (size_t i = 0; i < 2; i++) {
		struct curl_slist *longer = fetch->headers[i] ? curl_slist_append(list, fetch->headers[i]) : NULL;

		list = longer ? longer : list;
	}
	return list;
}

/* The HTTP status; 0: no answer, or one that is too long. */
static long attempt(struct fetch *fetch)
{
	CURL *easy = curl_easy_init();
	struct curl_slist *headers = headers_of(fetch);
	long status = 0;

	fetch->len = 0;
	fetch->out[0] = '\0';
	if (easy) {
		curl_easy_setopt(easy, CURLOPT_URL, fetch->url);
		curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, fetch->method);
		curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers);
		curl_easy_setopt(easy, CURLOPT_PROXY, "");
		curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
		curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
		curl_easy_setopt(easy, CURLOPT_TIMEOUT, fetch->seconds);
		curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, keep);
		curl_easy_setopt(easy, CURLOPT_WRITEDATA, fetch);
		if (curl_easy_perform(easy) == CURLE_OK)
			curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
		curl_easy_cleanup(easy);
	}
	for (struct curl_slist *line = headers; line; line = line->next)
		OPENSSL_cleanse(line->data, strlen(line->data));
	curl_slist_free_all(headers);
	return status;
}

static long fetch_twice(struct fetch *fetch)
{
	long status = 0;

	for (unsigned i = 0; i < ATTEMPTS && (status == 0 || status >= 500); i++)
		status = attempt(fetch);
	return status;
}

/* Whether credentials may be asked for there: TLS, this machine, or the documented addresses. */
static bool may_ask(const char *url)
{
	static const char *const known[] = { "169.254.170.2", "169.254.170.23", "[fd00:ec2::23]" };
	char host[256];

	if (!strncmp(url, "https://", 8))
		return true;
	if (strncmp(url, "http://", 7))
		return false;
	snprintf(host, sizeof(host), "%.*s", (int)strcspn(url + 7, "/?#"), url + 7);
	if (strchr(host, '@'))
		return false;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		size_t len = strlen(known[i]);

		if (!strncmp(host, known[i], len) && (!host[len] || host[len] == ':'))
			return true;
	}
	return d9__address_is_loopback(host);
}

/* "Authorization: TOKEN" of the file, which is read anew each time, or of the variable. */
static int authorization(char *line, size_t size, char *why, size_t why_size)
{
	const char *path = getenv("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE");
	const char *value = getenv("AWS_CONTAINER_AUTHORIZATION_TOKEN");
	size_t len = strlen(strcpy(line, "Authorization: ")), n;
	FILE *file;

	if (!path || !*path) {
		if (value && *value)
			snprintf(line + len, size - len, "%s", value);
		else
			line[0] = '\0';
		return 0;
	}
	file = fopen(path, "re");
	n = file ? fread(line + len, 1, size - len - 1, file) : 0;
	if (file)
		fclose(file);
	line[len + n] = '\0';
	line[strcspn(line, "\r\n")] = '\0';
	if (n)
		return 0;
	snprintf(why, why_size, "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE cannot be read");
	return -EINVAL;
}

int d9__credentials_of_container(struct d9__credentials *credentials, char *why, size_t why_size)
{
	const char *relative = getenv("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
	const char *full = getenv("AWS_CONTAINER_CREDENTIALS_FULL_URI");
	char url[2048], line[D9__TOKEN_MAX];
	struct fetch fetch = { "GET", url, { line, NULL }, credentials->secrets->scratch, D9__SCRATCH_SIZE, 0,
			       CONTAINER_SECONDS };
	long status;

	if (relative && *relative)
		snprintf(url, sizeof(url), CONTAINER "%s", relative);
	else if (full && *full)
		snprintf(url, sizeof(url), "%s", full);
	else
		return -ENOENT;
	if (!may_ask(url)) {
		snprintf(why, why_size, "AWS_CONTAINER_CREDENTIALS_FULL_URI: neither https nor this machine nor 169.254.170.2");
		return -EINVAL;
	}
	if (authorization(line, sizeof(line), why, why_size))
		return -EINVAL;
	if (!line[0])
		fetch.headers[0] = NULL;
	status = fetch_twice(&fetch);
	OPENSSL_cleanse(line, sizeof(line));
	if (status == 200)
		return d9__credentials_take_json(credentials, fetch.len, "Token", why, why_size);
	snprintf(why, why_size, status ? "its endpoint answers with status %ld" : "its endpoint does not answer", status);
	return -EINVAL;
}

/* As other tools have it. */
static long instance_seconds(void)
{
	const char *given = getenv("AWS_METADATA_SERVICE_TIMEOUT");
	long seconds = given ? strtol(given, NULL, 10) : 0;

	return seconds > 0 && seconds <= 60 ? seconds : INSTANCE_SECONDS;
}

/* Role and credentials, once |token| is there. */
static int ask_instance(struct d9__credentials *credentials, const char *base, const char *token, char *why,
			size_t size)
{
	char url[1024], role[256];
	struct fetch fetch = { "GET", url, { token, NULL }, role, sizeof(role), 0, instance_seconds() };

	snprintf(url, sizeof(url), "%.500s/latest/meta-data/iam/security-credentials/", base);
	if (fetch_twice(&fetch) != 200) {
		snprintf(why, size, "this instance has no role");
		return -EINVAL;
	}
	role[strcspn(role, "\r\n")] = '\0';
	for (const char *c = role; *c; c++)
		if (strchr("/?#% ", *c) || (unsigned char)*c < 0x21 || (unsigned char)*c > 0x7e) {
			snprintf(why, size, "its role has a name that cannot be");
			return -EINVAL;
		}
	snprintf(url + strlen(url), sizeof(url) - strlen(url), "%s", role);
	fetch.out = credentials->secrets->scratch;
	fetch.size = D9__SCRATCH_SIZE;
	if (fetch_twice(&fetch) == 200)
		return d9__credentials_take_json(credentials, fetch.len, "Token", why, size);
	snprintf(why, size, "its role yields no credentials");
	return -EINVAL;
}

int d9__credentials_of_instance(struct d9__credentials *credentials, char *why, size_t why_size)
{
	static const char name[] = "X-aws-ec2-metadata-token: ";
	const char *off = getenv("AWS_EC2_METADATA_DISABLED");
	const char *base = getenv("AWS_EC2_METADATA_SERVICE_ENDPOINT");
	char url[1024], line[1024] = "X-aws-ec2-metadata-token: ";
	struct fetch fetch = { "PUT", url, { "X-aws-ec2-metadata-token-ttl-seconds: 21600", NULL },
			       line + sizeof(name) - 1, sizeof(line) - sizeof(name), 0, instance_seconds() };
	int err;

	if (off && !strcasecmp(off, "true")) {
		snprintf(why, why_size, "off by AWS_EC2_METADATA_DISABLED");
		return -ENOENT;
	}
	if (!base || !*base)
		base = INSTANCE;
	snprintf(url, sizeof(url), "%.500s/latest/api/token", base);
	if (fetch_twice(&fetch) != 200) {
		snprintf(why, why_size,
			 "no answer from instance metadata (none here, or a container behind one more hop)");
		return -EINVAL;
	}
	line[strcspn(line, "\r\n")] = '\0';
	err = ask_instance(credentials, base, line, why, why_size);
	OPENSSL_cleanse(line, sizeof(line));
	return err;
}
