/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "ship/sigv4.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/sha.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ALGORITHM  "AWS4-HMAC-SHA256"
#define HASH_BYTES SHA256_DIGEST_LENGTH
#define SECRET_MAX 1024

struct hex {
	char text[2 * HASH_BYTES + 1];
};

void d9__sigv4_date(time_t at, char date[17])
{
	struct tm tm;

	if (!gmtime_r(&at, &tm) || strftime(date, 17, "%Y%m%dT%H%M%SZ", &tm) != 16)
		strcpy(date, "19700101T000000Z");
}

static struct hex to_hex(const unsigned char bytes[HASH_BYTES])
{
	struct hex hex = { "" };

	for (size_t i = 0; i < HASH_BYTES; i++)
		snprintf(hex.text + 2 * i, 3, "%02x", bytes[i]);
	return hex;
}

static struct hex hash_of(const char *text, size_t len)
{
	unsigned char bytes[HASH_BYTES];

	SHA256((const unsigned char *)text, len, bytes);
	return to_hex(bytes);
}

static void write_escaped(FILE *out, const char *text, bool keep_slash)
{
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;
		bool plain = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
			     strchr("-_.~", c) || (c == '/' && keep_slash);

		if (plain)
			fputc(c, out);
		else
			fprintf(out, "%%%02X", c);
	}
}

/* Without white space at its ends, and with one blank for several. */
static void write_value(FILE *out, const char *value)
{
	bool blank = false, any = false;

	for (; *value; value++) {
		if (*value == ' ' || *value == '\t') {
			blank = any;
			continue;
		}
		if (blank)
			fputc(' ', out);
		fputc(*value, out);
		blank = false;
		any = true;
	}
}

static int by_text(const void *a, const void *b)
{
	const struct d9__sigv4_pair *left = a, *right = b;
	int order = strcmp(left->name, right->name);

	return order ? order : strcmp(left->value, right->value);
}

/* |pairs| in order, owned; NULL: out of memory. */
static struct d9__sigv4_pair *sorted(const struct d9__sigv4_pair *pairs, size_t n)
{
	struct d9__sigv4_pair *order = calloc(n + 1, sizeof(*order));

	if (!order)
		return NULL;
	if (!n)
		return order;
	memcpy(order, pairs, n * sizeof(*order));
	qsort(order, n, sizeof(*order), by_text);
	return order;
}

/* Escaping keeps the order of all names that are used here: letters, digits, "-", "_". */
static bool write_query(FILE *out, const struct d9__sigv4_pair *query, size_t n)
{
	struct d9__sigv4_pair *order = sorted(query, n);

	if (!order)
		return false;
	for (size_t i = 0; i < n; i++) {
		if (i)
			fputc('&', out);
		write_escaped(out, order[i].name, false);
		fputc('=', out);
		write_escaped(out, order[i].value, false);
	}
	free(order);
	return true;
}

static void write_names(FILE *out, const struct d9__sigv4_pair *order, size_t n)
{
	for (size_t i = 0; i < n; i++)
		fprintf(out, "%s%s", i ? ";" : "", order[i].name);
}

/* Return the text that is hashed and signed; NULL: out of memory. */
static char *canonical(const struct d9__sigv4 *request, const struct d9__sigv4_pair *headers, size_t *len)
{
	size_t n = request->n_headers;
	char *text = NULL;
	FILE *out = open_memstream(&text, len);
	bool whole;

	if (!out)
		return NULL;
	fprintf(out, "%s\n", request->method);
	write_escaped(out, request->path, true);
	fputc('\n', out);
	whole = write_query(out, request->query, request->n_query);
	fputc('\n', out);
	for (size_t i = 0; i < n; i++) {
		fprintf(out, "%s:", headers[i].name);
		write_value(out, headers[i].value);
		fputc('\n', out);
	}
	fputc('\n', out);
	write_names(out, headers, n);
	fprintf(out, "\n%s", request->payload);
	if (fclose(out) || !whole) {
		free(text);
		return NULL;
	}
	return text;
}

static void chain(unsigned char key[HASH_BYTES], const char *text)
{
	unsigned char next[HASH_BYTES];

	HMAC(EVP_sha256(), key, HASH_BYTES, (const unsigned char *)text, strlen(text), next, NULL);
	memcpy(key, next, HASH_BYTES);
	OPENSSL_cleanse(next, sizeof(next));
}

static void signing_key(const struct d9__sigv4 *request, const char *day, unsigned char key[HASH_BYTES])
{
	char first[SECRET_MAX + sizeof("AWS4")];

	snprintf(first, sizeof(first), "AWS4%s", request->secret);
	HMAC(EVP_sha256(), first, (int)strlen(first), (const unsigned char *)day, strlen(day), key, NULL);
	OPENSSL_cleanse(first, sizeof(first));
	chain(key, request->region);
	chain(key, request->service);
	chain(key, "aws4_request");
}

/* Compute the signature of |request|, whose headers are sorted; false: out of memory. */
static bool sign(const struct d9__sigv4 *request, const struct d9__sigv4_pair *headers, struct hex *signature)
{
	unsigned char key[HASH_BYTES];
	char date[17], day[9], text[512];
	size_t len = 0;
	char *whole = canonical(request, headers, &len);

	if (!whole)
		return false;
	d9__sigv4_date(request->at, date);
	snprintf(day, sizeof(day), "%.8s", date);
	snprintf(text, sizeof(text), ALGORITHM "\n%s\n%s/%s/%s/aws4_request\n%s", date, day, request->region,
		 request->service, hash_of(whole, len).text);
	free(whole);
	signing_key(request, day, key);
	chain(key, text);
	*signature = to_hex(key);
	OPENSSL_cleanse(key, sizeof(key));
	return true;
}

char *d9__sigv4_target(const struct d9__sigv4 *request)
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);
	bool whole;

	if (!out)
		return NULL;
	write_escaped(out, request->path, true);
	if (request->n_query)
		fputc('?', out);
	whole = write_query(out, request->query, request->n_query);
	if (fclose(out) || !whole) {
		free(text);
		return NULL;
	}
	return text;
}

char *d9__sigv4_authorization(const struct d9__sigv4 *request)
{
	struct d9__sigv4_pair *headers = sorted(request->headers, request->n_headers);
	struct hex signature;
	char date[17], *text = NULL;
	size_t len;
	FILE *out = headers && sign(request, headers, &signature) ? open_memstream(&text, &len) : NULL;

	if (out) {
		d9__sigv4_date(request->at, date);
		fprintf(out, ALGORITHM " Credential=%s/%.8s/%s/%s/aws4_request, SignedHeaders=", request->id, date,
			request->region, request->service);
		write_names(out, headers, request->n_headers);
		fprintf(out, ", Signature=%s", signature.text);
		if (fclose(out)) {
			free(text);
			text = NULL;
		}
	}
	free(headers);
	return text;
}

#define PRESIGNED_MAX 16

char *d9__sigv4_presign(const struct d9__sigv4 *request, unsigned seconds, const char *token)
{
	char date[17], scope[512], names[256] = "", limit[12];
	struct d9__sigv4_pair query[PRESIGNED_MAX + 6];
	struct d9__sigv4 with = *request;
	struct d9__sigv4_pair *headers;
	struct hex signature;
	char *target = NULL, *url = NULL;

	if (with.n_query > PRESIGNED_MAX || with.n_headers == 0)
		return NULL;
	headers = sorted(with.headers, with.n_headers);
	d9__sigv4_date(request->at, date);
	snprintf(scope, sizeof(scope), "%s/%.8s/%s/%s/aws4_request", request->id, date, request->region,
		 request->service);
	snprintf(limit, sizeof(limit), "%u", seconds);
	for (size_t i = 0; headers && i < with.n_headers; i++)
		snprintf(names + strlen(names), sizeof(names) - strlen(names), "%s%s", i ? ";" : "", headers[i].name);
	for (size_t i = 0; i < request->n_query; i++)
		query[i] = request->query[i];
	with.query = query;
	query[with.n_query++] = (struct d9__sigv4_pair) { "X-Amz-Algorithm", ALGORITHM };
	query[with.n_query++] = (struct d9__sigv4_pair) { "X-Amz-Credential", scope };
	query[with.n_query++] = (struct d9__sigv4_pair) { "X-Amz-Date", date };
	query[with.n_query++] = (struct d9__sigv4_pair) { "X-Amz-Expires", limit };
	query[with.n_query++] = (struct d9__sigv4_pair) { "X-Amz-SignedHeaders", names };
	if (token)
		query[with.n_query++] = (struct d9__sigv4_pair) { "X-Amz-Security-Token", token };
	with.payload = D9__SIGV4_UNSIGNED;
	if (headers && sign(&with, headers, &signature))
		target = d9__sigv4_target(&with);
	if (target && asprintf(&url, "%s&X-Amz-Signature=%s", target, signature.text) < 0)
		url = NULL;
	free(target);
	free(headers);
	return url;
}
