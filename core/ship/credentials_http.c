/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Credentials over HTTP: those that a host hands out to containers and to instances (IMDSv2), and those
 * that STS gives for a token of the cluster (web identity).
 */
#include "config.h"

#include <curl/curl.h>
#include <ctype.h>
#include <errno.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ship/address.h"
#include "ship/credentials_http.h"
#include "ship/credentials_json.h"
#include "ship/markup.h"

#define INSTANCE          "http://169.254.169.254"
#define CONTAINER         "http://169.254.170.2"
#define ATTEMPTS          2
#define INSTANCE_SECONDS  1 /* without an instance no host answers, not even with a refusal */
#define CONTAINER_SECONDS 5
#define STS_SECONDS       5

struct fetch {
	const char *method, *url;
	const char *headers[2]; /* whole lines; NULL: none */
	char *out;
	size_t size, len;
	long seconds;	  /* that one attempt may take */
	const char *body; /* of a form; NULL: none */
	const char *ca;	  /* NULL: the system's */
	bool far;	  /* not handed out by the host: a proxy may stand before it */
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
		if (!fetch->far)
			curl_easy_setopt(easy, CURLOPT_PROXY, "");
		if (fetch->body)
			curl_easy_setopt(easy, CURLOPT_POSTFIELDS, fetch->body);
		if (fetch->ca)
			curl_easy_setopt(easy, CURLOPT_CAINFO, fetch->ca);
		curl_easy_setopt(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
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

/* True if credentials may be asked for there: TLS, this machine, or the documented addresses. */
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

/*
 * Read the first line of |path|, anew each time, because another process replaces the file.  False:
 * there is none.
 */
static bool read_token(const char *path, char *out, size_t size)
{
	FILE *file = fopen(path, "re");
	size_t n = file ? fread(out, 1, size - 1, file) : 0;

	if (file)
		fclose(file);
	out[n] = '\0';
	out[strcspn(out, "\r\n")] = '\0';
	return *out && n < size - 1;
}

/* "Authorization: TOKEN" of the file or of the variable. */
static int authorization(char *line, size_t size, char *why, size_t why_size)
{
	const char *path = getenv("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE");
	const char *value = getenv("AWS_CONTAINER_AUTHORIZATION_TOKEN");
	size_t len = strlen(strcpy(line, "Authorization: "));

	if (path && *path) {
		if (read_token(path, line + len, size - len))
			return 0;
		snprintf(why, why_size, "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE cannot be read");
		return -EINVAL;
	}
	if (value && *value)
		snprintf(line + len, size - len, "%s", value);
	else
		line[0] = '\0';
	return 0;
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

/* ---- web identity ---- */

/* Where STS is asked: the answer lies in the first part of the scratch, the token and the form behind it. */
#define FORM_AT   (D9__SCRATCH_SIZE / 2)
#define TOKEN_AT  (FORM_AT - D9__TOKEN_MAX)
#define FORM_SIZE (D9__SCRATCH_SIZE - FORM_AT)

static const char *given(const char *name, const char *otherwise)
{
	const char *value = getenv(name);

	return value && *value ? value : otherwise;
}

/* "&NAME=VALUE", escaped, at the end of |form|; false: it does not fit. */
static bool add_field(char *form, const char *name, const char *value)
{
	size_t n = strlen(form);

	n += (size_t)snprintf(form + n, FORM_SIZE - n, "&%s=", name);
	for (; *value && n + 4 < FORM_SIZE; value++) {
		bool plain = isalnum((unsigned char)*value) || strchr("-._~", *value);

		n += (size_t)snprintf(form + n, FORM_SIZE - n, plain ? "%c" : "%%%02X", (unsigned char)*value);
	}
	return !*value;
}

/* Of the region that the program runs in: one far away would be asked in vain where that is cut off. */
static int sts_url(const struct d9__credentials *credentials, char *url, size_t size, char *why, size_t why_size)
{
	const char *endpoint = given("AWS_ENDPOINT_URL_STS", given("AWS_ENDPOINT_URL", NULL));
	const char *region = given("AWS_REGION", given("AWS_DEFAULT_REGION", credentials->region));

	if (!endpoint && !d9__address_is_region(region)) {
		snprintf(why, why_size, "AWS_REGION: that is no region; it has letters, digits and '-'");
		return -EINVAL;
	}
	if (endpoint)
		snprintf(url, size, "%s", endpoint);
	else
		snprintf(url, size, "https://sts.%s.amazonaws.com%s/", region, strncmp(region, "cn-", 3) ? "" : ".cn");
	if (may_ask(url))
		return 0;
	snprintf(why, why_size, "AWS_ENDPOINT_URL_STS, or AWS_ENDPOINT_URL: neither https nor this machine");
	return -EINVAL;
}

static bool text_of(struct d9__markup in, const char *tag, char *out, size_t size)
{
	struct d9__markup inner;

	return d9__markup_find(in, tag, &inner) && d9__markup_text(inner, out, size);
}

/* Take the credentials from the XML of STS, |len| bytes at the beginning of the scratch. */
static int take_markup(struct d9__credentials *credentials, size_t len, char *why, size_t size)
{
	struct d9__markup said = { credentials->secrets->scratch, len }, inner;
	char *id = credentials->secrets->scratch + FORM_AT, *secret = id + D9__SECRET_MAX, *token = secret + D9__SECRET_MAX;
	char expires[64] = "";
	int64_t until;

	if (d9__markup_find(said, "Credentials", &inner) && text_of(inner, "AccessKeyId", id, D9__SECRET_MAX) &&
	    text_of(inner, "SecretAccessKey", secret, D9__SECRET_MAX) &&
	    text_of(inner, "SessionToken", token, D9__TOKEN_MAX) &&
	    text_of(inner, "Expiration", expires, sizeof(expires)) && (until = d9__credentials_epoch(expires)) > 0 &&
	    d9__secrets_set(credentials->secrets, id, secret, token, until))
		return 0;
	snprintf(why, size, "STS answers without AccessKeyId, SecretAccessKey, SessionToken and Expiration");
	return -EINVAL;
}

/* Tell the status or the error's code, and no other text of the answer. */
static void tell_refusal(const struct fetch *fetch, long status, char *why, size_t size)
{
	char code[64] = "";

	if (!status)
		snprintf(why, size, "STS does not answer");
	else if (text_of((struct d9__markup) { fetch->out, fetch->len }, "Code", code, sizeof(code)) &&
		 code[strspn(code, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz.")] == '\0')
		snprintf(why, size, "STS refuses AWS_ROLE_ARN for the token: %s; see the role's trust policy", code);
	else
		snprintf(why, size, "STS answers with status %ld", status);
}

static int ask_sts(struct d9__credentials *credentials, const char *role, const char *url, char *why, size_t size)
{
	char *scratch = credentials->secrets->scratch, *form = scratch + FORM_AT;
	struct fetch fetch = { .method = "POST", .url = url, .out = scratch, .size = TOKEN_AT, .seconds = STS_SECONDS,
			       .body = form, .ca = credentials->ca, .far = !strncmp(url, "https://", 8) };
	long status;

	strcpy(form, "Action=AssumeRoleWithWebIdentity&Version=2011-06-15");
	if (!add_field(form, "RoleArn", role) ||
	    !add_field(form, "RoleSessionName", given("AWS_ROLE_SESSION_NAME", "dial9")) ||
	    !add_field(form, "WebIdentityToken", scratch + TOKEN_AT)) {
		snprintf(why, size, "AWS_ROLE_ARN or AWS_ROLE_SESSION_NAME is too long");
		return -EINVAL;
	}
	status = fetch_twice(&fetch);
	if (status == 200)
		return take_markup(credentials, fetch.len, why, size);
	tell_refusal(&fetch, status, why, size);
	return -EINVAL;
}

int d9__credentials_of_web_identity(struct d9__credentials *credentials, char *why, size_t why_size)
{
	const char *file = given("AWS_WEB_IDENTITY_TOKEN_FILE", NULL), *role = given("AWS_ROLE_ARN", NULL);
	char *scratch = credentials->secrets->scratch, url[1024];
	int err;

	if (!file)
		return -ENOENT;
	if (!role) {
		snprintf(why, why_size, "AWS_WEB_IDENTITY_TOKEN_FILE is there, AWS_ROLE_ARN is not");
		return -EINVAL;
	}
	err = sts_url(credentials, url, sizeof(url), why, why_size);
	if (err)
		return err;
	if (!read_token(file, scratch + TOKEN_AT, D9__TOKEN_MAX)) {
		snprintf(why, why_size, "AWS_WEB_IDENTITY_TOKEN_FILE cannot be read, or is no token");
		err = -EINVAL;
	} else {
		err = ask_sts(credentials, role, url, why, why_size);
	}
	OPENSSL_cleanse(scratch, D9__SCRATCH_SIZE);
	return err;
}
