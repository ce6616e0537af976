/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "ship/transfer.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/array.h"

#define TEXT_MAX      (4U << 20) /* 1,000 keys of 1,024 bytes, escaped */
#define RETRY_MAX     300
#define RATE_MIN      65536 /* bytes per second that a body has to make */
#define UNKNOWN_SIZE  (UINT64_C(1) << 30)
#define FIXED_SECONDS 30

static size_t read_body(char *out, size_t one, size_t n, void *context)
{
	struct d9__transfer *transfer = context;
	uint64_t left = transfer->body_size - transfer->body_done;
	ssize_t got;

	n *= one;
	if (n > left)
		n = (size_t)left;
	if (transfer->body_fd < 0) {
		memcpy(out, transfer->data + transfer->body_done, n);
		got = (ssize_t)n;
	} else {
		got = pread(transfer->body_fd, out, n, (off_t)(transfer->body_first + transfer->body_done));
	}
	if (got < 0 || (got == 0 && n)) {
		transfer->local_error = got < 0 ? errno : ENODATA;
		return CURL_READFUNC_ABORT;
	}
	transfer->body_done += (uint64_t)got;
	return (size_t)got;
}

/* Called when libcurl begins the body again, because a reused connection was closed. */
static int seek_body(void *context, curl_off_t offset, int origin)
{
	struct d9__transfer *transfer = context;

	if (origin != SEEK_SET || offset < 0 || (uint64_t)offset > transfer->body_size)
		return CURL_SEEKFUNC_FAIL;
	transfer->body_done = (uint64_t)offset;
	return CURL_SEEKFUNC_OK;
}

static bool keep_text(struct d9__transfer *transfer, const char *bytes, size_t n)
{
	if (n > TEXT_MAX - transfer->text_len) {
		transfer->flood = true;
		return false;
	}
	if (!d9__array_reserve(transfer->text, &transfer->text_max, transfer->text_len, n + 1))
		return false;
	memcpy(transfer->text + transfer->text_len, bytes, n);
	transfer->text_len += n;
	transfer->text[transfer->text_len] = '\0';
	return true;
}

static bool write_out(struct d9__transfer *transfer, const char *bytes, size_t n)
{
	if (n > transfer->sink_max - transfer->sink_done) {
		transfer->flood = true;
		return false;
	}
	while (n) {
		ssize_t done = pwrite(transfer->sink_fd, bytes, n, (off_t)transfer->sink_done);

		if (done <= 0) {
			transfer->local_error = done < 0 ? errno : EIO;
			return false;
		}
		transfer->sink_done += (uint64_t)done;
		bytes += done;
		n -= (size_t)done;
	}
	return true;
}

static size_t take_answer(char *bytes, size_t one, size_t n, void *context)
{
	struct d9__transfer *transfer = context;
	long status = 0;
	bool taken;

	n *= one;
	curl_easy_getinfo(transfer->easy, CURLINFO_RESPONSE_CODE, &status);
	if (transfer->sink_fd >= 0 && status >= 200 && status < 300)
		taken = write_out(transfer, bytes, n);
	else
		taken = keep_text(transfer, bytes, n);
	return taken ? n : 0;
}

/* Copy |value| without quotes and unprintable bytes. */
static void put_text(char *out, size_t size, const char *value)
{
	size_t n = 0;

	for (; *value && n < size - 1; value++)
		if ((unsigned char)*value > 0x20 && (unsigned char)*value < 0x7f && *value != '"')
			out[n++] = *value;
	out[n] = '\0';
}

/* "5"; a date is not used by stores. */
static unsigned seconds_of(const char *value)
{
	unsigned long n = strtoul(value, NULL, 10);

	return n > RETRY_MAX ? RETRY_MAX : (unsigned)n;
}

static void take_header(struct d9__transfer *transfer, const char *name, const char *value)
{
	if (!strcasecmp(name, "etag"))
		put_text(transfer->etag, sizeof(transfer->etag), value);
	else if (!strcasecmp(name, "x-amz-request-id"))
		put_text(transfer->request, sizeof(transfer->request), value);
	else if (!strcasecmp(name, "x-amz-checksum-sha256"))
		put_text(transfer->checksum, sizeof(transfer->checksum), value);
	else if (!strcasecmp(name, "x-amz-bucket-region"))
		put_text(transfer->region, sizeof(transfer->region), value);
	else if (!strcasecmp(name, "x-amz-server-side-encryption"))
		transfer->kms = !strncmp(value, "aws:kms", 7);
	else if (!strcasecmp(name, "retry-after"))
		transfer->retry_after = seconds_of(value);
	else if (!strcasecmp(name, "date"))
		transfer->date = curl_getdate(value, NULL);
	else if (!strcasecmp(name, "last-modified"))
		transfer->modified = curl_getdate(value, NULL);
	else if (!strcasecmp(name, "content-length"))
		transfer->length = strtoull(value, NULL, 10);
}

static size_t take_line(char *line, size_t one, size_t n, void *context)
{
	char text[512], *colon;
	struct d9__transfer *transfer = context;

	n *= one;
	/*
	 * An empty line ends the head; after an interim answer (100) another status line follows.
	 */
	transfer->head_whole = n <= 2;
	snprintf(text, sizeof(text), "%.*s", (int)(n < sizeof(text) ? n : sizeof(text) - 1), line);
	text[strcspn(text, "\r\n")] = '\0';
	colon = strchr(text, ':');
	if (!colon)
		return n;
	*colon = '\0';
	take_header(transfer, text, colon + 1 + strspn(colon + 1, " \t"));
	return n;
}

/* Collect the headers of |ask| and those of every request in |pairs|. */
static size_t all_headers(struct d9__session *session, const struct d9__ask *ask, const char *date,
			  struct d9__sigv4_pair pairs[D9__TRANSFER_HEADERS])
{
	const struct d9__secrets *secrets = session->credentials.secrets;
	size_t n = 0;

	pairs[n++] = (struct d9__sigv4_pair) { "host", session->address.host };
	pairs[n++] = (struct d9__sigv4_pair) { "x-amz-date", date };
	pairs[n++] = (struct d9__sigv4_pair) { "x-amz-content-sha256", ask->payload };
	if (*secrets->token)
		pairs[n++] = (struct d9__sigv4_pair) { "x-amz-security-token", secrets->token };
	for (size_t i = 0; i < ask->n_headers && n < D9__TRANSFER_HEADERS; i++)
		pairs[n++] = ask->headers[i];
	return n;
}

static char *path_of(const struct d9__session *session, const char *key)
{
	const struct d9__store_address *address = &session->address;
	char *path;
	int n;

	if (address->path_style)
		n = asprintf(&path, "%s/%s%s%s", address->base, address->bucket, key ? "/" : "", key ? key : "");
	else
		n = asprintf(&path, "%s/%s", address->base, key ? key : "");
	return n < 0 ? NULL : path;
}

static struct d9__sigv4 signed_by(const struct d9__session *session)
{
	return (struct d9__sigv4) {
		.region = session->region,
		.service = "s3",
		.id = session->credentials.secrets->id,
		.secret = session->credentials.secrets->secret,
		.at = d9__session_now(session),
	};
}

static bool add_line(struct curl_slist **lines, const char *name, const char *value)
{
	struct curl_slist *longer = NULL;
	char *line;

	if (asprintf(&line, "%s: %s", name, value) < 0)
		return false;
	longer = curl_slist_append(*lines, line);
	OPENSSL_cleanse(line, strlen(line));
	free(line);
	if (longer)
		*lines = longer;
	return longer;
}

/* Set the lines of the head; libcurl writes Host itself. */
static bool set_lines(struct d9__transfer *transfer, const struct d9__sigv4 *request)
{
	char *authorization = d9__sigv4_authorization(request);
	bool whole = authorization && add_line(&transfer->lines, "Authorization", authorization);

	for (size_t i = 1; whole && i < request->n_headers; i++)
		whole = add_line(&transfer->lines, request->headers[i].name, request->headers[i].value);
	free(authorization);
	return whole && curl_easy_setopt(transfer->easy, CURLOPT_HTTPHEADER, transfer->lines) == CURLE_OK;
}

static bool set_url(const struct d9__session *session, struct d9__transfer *transfer, const struct d9__sigv4 *request)
{
	char *target = d9__sigv4_target(request), *url = NULL;
	bool set = target && asprintf(&url, "%s://%s%s", session->address.scheme, session->address.host, target) >= 0 &&
		   curl_easy_setopt(transfer->easy, CURLOPT_URL, url) == CURLE_OK;

	free(target);
	free(url);
	return set;
}

/* Return the time limit of a whole attempt: a slower body is better broken off. */
static long seconds_for(const struct d9__session *session, uint64_t size)
{
	uint64_t rate = session->max_rate / session->parallel;

	if (!rate || rate > RATE_MIN)
		rate = RATE_MIN;
	return (long)(FIXED_SECONDS + session->stall + size / rate);
}

static void set_method(const struct d9__session *session, struct d9__transfer *transfer, const struct d9__ask *ask)
{
	CURL *easy = transfer->easy;
	uint64_t size = ask->body_size;

	if (!strcmp(ask->method, "HEAD")) {
		curl_easy_setopt(easy, CURLOPT_NOBODY, 1L);
	} else if (strcmp(ask->method, "GET")) {
		curl_easy_setopt(easy, CURLOPT_UPLOAD, 1L);
		curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, ask->method);
		curl_easy_setopt(easy, CURLOPT_INFILESIZE_LARGE, (curl_off_t)ask->body_size);
		curl_easy_setopt(easy, CURLOPT_READFUNCTION, read_body);
		curl_easy_setopt(easy, CURLOPT_READDATA, transfer);
		curl_easy_setopt(easy, CURLOPT_SEEKFUNCTION, seek_body);
		curl_easy_setopt(easy, CURLOPT_SEEKDATA, transfer);
	} else if (ask->sink_fd >= 0) {
		size = ask->sink_max < UNKNOWN_SIZE ? ask->sink_max : UNKNOWN_SIZE;
	}
	curl_easy_setopt(easy, CURLOPT_TIMEOUT, seconds_for(session, size));
}

static void set_functions(struct d9__transfer *transfer, void *owner)
{
	CURL *easy = transfer->easy;

	curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, transfer->error);
	curl_easy_setopt(easy, CURLOPT_PRIVATE, owner);
	curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, take_answer);
	curl_easy_setopt(easy, CURLOPT_WRITEDATA, transfer);
	curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, take_line);
	curl_easy_setopt(easy, CURLOPT_HEADERDATA, transfer);
}

int d9__transfer_begin(struct d9__session *session, const struct d9__ask *ask, struct d9__transfer *transfer,
		       void *owner)
{
	struct d9__sigv4_pair pairs[D9__TRANSFER_HEADERS];
	struct d9__sigv4 request = signed_by(session);
	char *path = path_of(session, ask->key), date[17];
	bool whole;

	*transfer = (struct d9__transfer) {
		.easy = curl_easy_init(), .body_fd = ask->body_fd, .data = ask->data, .body_first = ask->body_first,
		.body_size = ask->body_size, .sink_fd = ask->sink_fd, .sink_max = ask->sink_max,
	};
	d9__sigv4_date(request.at, date);
	request.method = ask->method;
	request.path = path;
	request.query = ask->query;
	request.n_query = ask->n_query;
	request.headers = pairs;
	request.n_headers = all_headers(session, ask, date, pairs);
	request.payload = ask->payload;
	whole = path && transfer->easy && set_url(session, transfer, &request) && set_lines(transfer, &request);
	free(path);
	if (whole) {
		d9__session_set_up(session, transfer->easy);
		set_method(session, transfer, ask);
		set_functions(transfer, owner);
		whole = curl_multi_add_handle(session->multi, transfer->easy) == CURLM_OK;
	}
	if (!whole)
		d9__transfer_end(session, transfer);
	return whole ? 0 : -ENOMEM;
}

char *d9__transfer_presign(struct d9__session *session, const char *key, unsigned seconds)
{
	const struct d9__sigv4_pair host = { "host", session->address.host };
	const char *token = session->credentials.secrets->token;
	struct d9__sigv4 request = signed_by(session);
	char *path = path_of(session, key), *target = NULL, *url = NULL;

	request.method = "GET";
	request.path = path;
	request.headers = &host;
	request.n_headers = 1;
	if (path)
		target = d9__sigv4_presign(&request, seconds, *token ? token : NULL);
	if (target && asprintf(&url, "%s://%s%s", session->address.scheme, session->address.host, target) < 0)
		url = NULL;
	free(target);
	free(path);
	return url;
}

void d9__transfer_end(struct d9__session *session, struct d9__transfer *transfer)
{
	if (transfer->easy) {
		curl_multi_remove_handle(session->multi, transfer->easy);
		curl_easy_cleanup(transfer->easy);
	}
	for (struct curl_slist *line = transfer->lines; line; line = line->next)
		OPENSSL_cleanse(line->data, strlen(line->data));
	curl_slist_free_all(transfer->lines);
	free(transfer->text);
	*transfer = (struct d9__transfer) { .body_fd = -1, .sink_fd = -1 };
}
