/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "ship/job.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ship/class_name.h"
#include "ship/markup.h"
#include "ship/message.h"
#include "ship/page.h"
#include "ship/parts.h"
#include "ship/upload_headers.h"
#include "ship/verdict.h"

#define CLOCK_SECONDS 300
#define SERVER_SHOWN  200 /* of a store's message */
#define MESSAGE_SHOWN 800

static const char *const operations[] = { "put", "get", "head", "list", "presign" };

struct d9__job *d9__job_new(struct json_object *message, int fd)
{
	const char *name = d9__message_text(message, "op", "");
	struct d9__job *job = calloc(1, sizeof(*job));

	if (!job) {
		json_object_put(message);
		if (fd >= 0)
			close(fd);
		return NULL;
	}
	job->message = message;
	job->fd = fd;
	job->transfer.body_fd = job->transfer.sink_fd = -1;
	job->token = d9__message_number(message, "token");
	job->key = d9__message_text(message, "key", "");
	job->size = d9__message_number(message, "size");
	job->first = d9__message_number(message, "first");
	job->only_new = d9__message_number(message, "new");
	job->note = "";
	for (size_t i = 0; i < sizeof(operations) / sizeof(operations[0]); i++)
		if (!strcmp(name, operations[i]))
			job->operation = (enum d9__operation)i;
	return job;
}

void d9__job_free(struct d9__session *session, struct d9__job *job)
{
	d9__transfer_end(session, &job->transfer);
	if (job->fd >= 0)
		close(job->fd);
	json_object_put(job->message);
	json_object_put(job->answer);
	free(job->part_sums);
	free(job->list);
	free(job);
}

/* Copy |text| into one printable line without secrets. */
static void put_shown(const struct d9__session *session, const char *text, char *out, size_t size)
{
	char *copy = strdup(text);
	size_t n = 0;

	out[0] = '\0';
	if (!copy)
		return;
	if (session->credentials.secrets)
		d9__secrets_hide(session->credentials.secrets, copy);
	for (; n < size - 1 && copy[n]; n++)
		out[n] = (unsigned char)copy[n] < 0x20 || (unsigned char)copy[n] > 0x7e ? '?' : copy[n];
	out[n] = '\0';
	free(copy);
}

struct json_object *d9__job_answer(const struct d9__session *session, const struct d9__job *job,
				   enum d9__bucket_class class, const char *code, const char *message)
{
	struct json_object *answer = json_object_new_object();
	const struct d9__transfer *transfer = &job->transfer;
	char shown[MESSAGE_SHOWN + 1], name[65];

	if (!answer)
		return NULL;
	put_shown(session, message, shown, sizeof(shown));
	snprintf(name, sizeof(name), "%s", code);
	for (char *c = name; *c; c++)
		if ((unsigned char)*c < 0x21 || (unsigned char)*c > 0x7e)
			*c = '?';
	json_object_object_add(answer, "token", json_object_new_uint64(job->token));
	d9__message_add_text(answer, "class", d9__bucket_class_name(class));
	d9__message_add_text(answer, "code", name);
	d9__message_add_text(answer, "message", shown);
	d9__message_add_text(answer, "note", job->note);
	d9__message_add_text(answer, "request", transfer->request);
	d9__message_add_text(answer, "etag", transfer->etag);
	d9__message_add_number(answer, "retry_after", transfer->retry_after);
	return answer;
}

/* The headers of an upload in one request. */
static size_t put_headers(struct d9__session *session, struct d9__job *job, struct d9__sigv4_pair *headers)
{
	size_t n;

	job->sent = 0;
	n = d9__upload_headers(session, job, headers);
	if (!(session->stripped & D9__HEADER_CHECKSUM)) {
		headers[n++] = (struct d9__sigv4_pair) { "x-amz-checksum-sha256", job->sum.checksum };
		job->sent |= D9__HEADER_CHECKSUM;
	}
	if (session->md5 && !(session->stripped & D9__HEADER_MD5)) {
		headers[n++] = (struct d9__sigv4_pair) { "content-md5", job->sum.md5_base64 };
		job->sent |= D9__HEADER_MD5;
	}
	if (job->only_new && !(session->stripped & D9__HEADER_NEW)) {
		headers[n++] = (struct d9__sigv4_pair) { "if-none-match", "*" };
		job->sent |= D9__HEADER_NEW;
	}
	return n;
}

static int ask_put(struct d9__session *session, struct d9__job *job)
{
	struct d9__sigv4_pair headers[D9__TRANSFER_HEADERS];
	struct d9__ask ask = {
		.method = "PUT", .key = job->key, .headers = headers, .payload = job->sum.sha256,
		.body_fd = job->fd, .body_size = job->size, .sink_fd = -1,
	};
	int err = *job->sum.sha256 ? 0 : d9__sum_of(job->fd, 0, job->size, &job->sum);

	if (err)
		return err;
	ask.n_headers = put_headers(session, job, headers);
	return d9__transfer_begin(session, &ask, &job->transfer, job);
}

static int ask_read(struct d9__session *session, struct d9__job *job)
{
	char range[64];
	struct d9__sigv4_pair header = { "range", range };
	struct d9__ask ask = {
		.method = job->operation == D9__GET ? "GET" : "HEAD", .key = job->key, .headers = &header,
		.payload = job->sum.sha256, .body_fd = -1, .sink_fd = job->operation == D9__GET ? job->fd : -1,
		.sink_max = job->size ? job->size : UINT64_MAX,
	};
	int err = d9__sum_of_text("", &job->sum);

	if (err)
		return err;
	job->sent = 0;
	if (job->size)
		snprintf(range, sizeof(range), "bytes=%llu-%llu", (unsigned long long)job->first,
			 (unsigned long long)(job->first + job->size - 1));
	else
		snprintf(range, sizeof(range), "bytes=%llu-", (unsigned long long)job->first);
	ask.n_headers = job->operation == D9__GET && (job->size || job->first);
	return d9__transfer_begin(session, &ask, &job->transfer, job);
}

static int ask_list(struct d9__session *session, struct d9__job *job)
{
	static const struct {
		const char *field, *parameter;
	} texts[] = { { "prefix", "prefix" }, { "delimiter", "delimiter" }, { "after", "start-after" },
		      { "continuation", "continuation-token" } };
	struct d9__sigv4_pair query[8] = { { "list-type", "2" }, { "encoding-type", "url" } };
	struct d9__ask ask = {
		.method = "GET", .query = query, .n_query = 2, .payload = job->sum.sha256, .body_fd = -1, .sink_fd = -1,
	};
	uint64_t max = d9__message_number(job->message, "max");
	char number[24];
	int err = d9__sum_of_text("", &job->sum);

	if (err)
		return err;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		const char *text = d9__message_text(job->message, texts[i].field, NULL);

		if (text)
			query[ask.n_query++] = (struct d9__sigv4_pair) { texts[i].parameter, text };
	}
	snprintf(number, sizeof(number), "%llu", (unsigned long long)max);
	if (max)
		query[ask.n_query++] = (struct d9__sigv4_pair) { "max-keys", number };
	job->sent = 0;
	return d9__transfer_begin(session, &ask, &job->transfer, job);
}

static struct json_object *presign(struct d9__session *session, struct d9__job *job)
{
	unsigned seconds = (unsigned)d9__message_number(job->message, "seconds");
	char *url = d9__transfer_presign(session, job->key, seconds);
	struct json_object *answer = d9__job_answer(session, job, url ? D9__BUCKET_DONE : D9__BUCKET_RETRY,
						    url ? "" : "OutOfMemory", "");

	d9__message_add_text(answer, "url", url);
	free(url);
	return answer;
}

static struct json_object *local_fault(const struct d9__session *session, const struct d9__job *job, int err)
{
	if (err == ENOMEM)
		return d9__job_answer(session, job, D9__BUCKET_RETRY, "OutOfMemory", "out of memory");
	return d9__job_answer(session, job, D9__BUCKET_REFUSED, "LocalFile",
			      err == ENODATA ? "the file is shorter than it was" : strerror(err));
}

/* Send the job's next request; an answer: it could not be sent. */
static struct json_object *ask(struct d9__session *session, struct d9__job *job)
{
	char why[1024] = "";
	int err = d9__session_prepare(session, why, sizeof(why));

	if (err)
		return d9__job_answer(session, job, D9__BUCKET_UNUSABLE, "NoCredentials", why);
	strcpy(job->region, session->region);
	switch (job->operation) {
	case D9__PUT:
		err = job->step == D9__STEP_ONE ? ask_put(session, job) : d9__parts_ask(session, job);
		break;
	case D9__GET:
	case D9__HEAD:
		err = ask_read(session, job);
		break;
	case D9__LIST:
		err = ask_list(session, job);
		break;
	case D9__PRESIGN:
		return presign(session, job);
	}
	return err ? local_fault(session, job, -err) : NULL;
}

struct json_object *d9__job_start(struct d9__session *session, struct d9__job *job)
{
	job->started = true;
	if ((job->operation == D9__PUT || job->operation == D9__GET) && job->fd < 0)
		return d9__job_answer(session, job, D9__BUCKET_REFUSED, "LocalFile", "no descriptor came with it");
	if (job->operation == D9__PUT && job->size > session->single_max)
		job->step = D9__STEP_INITIATE;
	return ask(session, job);
}

/* The part of the answer that decides. */
struct document {
	char code[65], message[1024], header[128], region[64];
	bool is_error;
};

static void read_text(struct d9__markup in, const char *tag, char *out, size_t size)
{
	struct d9__markup inner;

	if (!d9__markup_find(in, tag, &inner))
		return;
	/* The beginning of a long one is enough. */
	if (inner.len >= size)
		inner.len = size - 1;
	d9__markup_text(inner, out, size);
}

static void read_document(const struct d9__transfer *transfer, struct document *document)
{
	struct d9__markup all = { transfer->text, transfer->text_len }, in;

	*document = (struct document) { .is_error = false };
	if (!all.len || !d9__markup_find(all, "Error", &in))
		return;
	document->is_error = true;
	read_text(in, "Code", document->code, sizeof(document->code));
	read_text(in, "Message", document->message, sizeof(document->message));
	read_text(in, "Header", document->header, sizeof(document->header));
	if (!*document->header)
		read_text(in, "ArgumentName", document->header, sizeof(document->header));
	read_text(in, "Region", document->region, sizeof(document->region));
}

static enum d9__transfer_end end_of(const struct d9__transfer *transfer, int code)
{
	if (transfer->flood)
		return D9__TRANSFER_FLOOD;
	if (transfer->local_error)
		return D9__TRANSFER_LOCAL;
	switch (code) {
	case CURLE_OK:
		return transfer->head_whole ? D9__TRANSFER_WHOLE : D9__TRANSFER_CUT;
	case CURLE_PEER_FAILED_VERIFICATION:
	case CURLE_SSL_CACERT_BADFILE:
	case CURLE_SSL_ISSUER_ERROR:
	case CURLE_SSL_INVALIDCERTSTATUS:
		return D9__TRANSFER_CERTIFICATE;
	default:
		return D9__TRANSFER_CUT;
	}
}

/* Our name for the end of a transfer without an answer. */
static const char *name_of(enum d9__transfer_end end, int code)
{
	if (end == D9__TRANSFER_CERTIFICATE)
		return "Certificate";
	if (end == D9__TRANSFER_LOCAL)
		return "LocalFile";
	if (end == D9__TRANSFER_FLOOD)
		return "TooLongAnswer";
	if (code == CURLE_OPERATION_TIMEDOUT)
		return "Timeout";
	if (code == CURLE_COULDNT_RESOLVE_HOST)
		return "NoSuchHost";
	return code == CURLE_COULDNT_CONNECT ? "NoConnection" : "Connection";
}

static bool is_hex(const char *text, size_t len)
{
	return strlen(text) == len && strspn(text, "0123456789abcdefABCDEF") == len;
}

/*
 * True if the answer to a PUT proves by a checksum that the sent bytes are stored.  A status of 200
 * alone does not, because any web server says so, such as a proxy or a login page.  An ETag of
 * another form counts if the answer is a store's in other respects.
 */
static bool is_proof(const struct d9__job *job)
{
	const struct d9__transfer *transfer = &job->transfer;
	bool has_sum = job->sent & D9__HEADER_CHECKSUM && *transfer->checksum;
	char md5[33];

	for (size_t i = 0; i < 16; i++)
		snprintf(md5 + 2 * i, 3, "%02x", job->sum.md5[i]);
	if (has_sum && strcmp(transfer->checksum, job->sum.checksum))
		return false;
	if (is_hex(transfer->etag, 32) && !transfer->kms)
		return !strcasecmp(transfer->etag, md5);
	return has_sum || (*transfer->etag && *transfer->request && !transfer->text_len);
}

/*
 * True if the store's sum agrees with the sent bytes, and a fetched part is the one that was asked
 * for.
 */
static bool is_confirmed(const struct d9__job *job, long status)
{
	/* All of an object is no range of it. */
	if (job->operation == D9__GET && job->first)
		return status == 206;
	return job->operation != D9__PUT || (job->step != D9__STEP_ONE && job->step != D9__STEP_PART) || is_proof(job);
}

/* Another region than this request was signed for; by now another one may have learned it. */
static const char *region_of(const struct d9__job *job, const struct document *document)
{
	const char *region = *document->region ? document->region : job->transfer.region;

	return d9__address_is_region(region) && strcmp(region, job->region) ? region : NULL;
}

static struct d9__outcome outcome_of(const struct d9__session *session, const struct d9__job *job, int code,
				     const struct document *document)
{
	int64_t off = job->transfer.date > 0 ? job->transfer.date - d9__session_now(session) : 0;
	long status = 0;

	curl_easy_getinfo(job->transfer.easy, CURLINFO_RESPONSE_CODE, &status);
	return (struct d9__outcome) {
		.end = end_of(&job->transfer, code),
		.status = (unsigned)status,
		.code = document->code,
		.message = document->message,
		.header = document->header,
		.error_document = document->is_error,
		.confirmed = is_confirmed(job, status),
		.reads = job->operation == D9__GET || job->operation == D9__HEAD,
		.in_parts = job->step != D9__STEP_ONE,
		.knows_region = region_of(job, document),
		.clock_differs = off > CLOCK_SECONDS || off < -CLOCK_SECONDS,
		.sent = job->sent,
		.tried = job->tried,
	};
}

/* Correct what |verdict| names; the same request follows again. */
static void put_right(struct d9__session *session, struct d9__job *job, const struct d9__verdict *verdict,
		      const struct document *document)
{
	job->tried |= (unsigned)verdict->next;
	switch (verdict->next) {
	case D9__NEXT_REFRESH:
		session->credentials.have = false;
		break;
	case D9__NEXT_CLOCK:
		if (job->transfer.date > 0)
			session->clock_offset = job->transfer.date - time(NULL);
		break;
	case D9__NEXT_REGION:
		d9__session_set_region(session, region_of(job, document));
		break;
	case D9__NEXT_STRIP:
		session->stripped |= verdict->strip;
		if (verdict->strip & D9__HEADER_SSE)
			job->note = "the store takes no encryption headers: objects are stored without them";
		else if (verdict->strip & (D9__HEADER_CHECKSUM | D9__HEADER_MD5))
			job->note = "the store takes no checksum headers: objects are stored without them";
		break;
	case D9__NEXT_ANSWER:
		break;
	}
}

/* The page of a LIST, as a descriptor in |job|, which was free. */
static bool keep_page(struct d9__job *job)
{
	struct json_object *page = d9__page_parse(job->transfer.text, job->transfer.text_len);
	int fd = page ? memfd_create("dial9-page", MFD_CLOEXEC) : -1;
	bool kept = fd >= 0 && !json_object_to_fd(fd, page, JSON_C_TO_STRING_PLAIN);

	json_object_put(page);
	job->fd = fd;
	return kept;
}

/* The other values of a successful answer. */
static struct json_object *success(struct d9__session *session, struct d9__job *job)
{
	const struct d9__transfer *transfer = &job->transfer;
	uint64_t bytes = job->size;
	struct json_object *answer;

	if (job->operation == D9__LIST && !keep_page(job))
		return d9__job_answer(session, job, D9__BUCKET_RETRY, "BadAnswer", "its list of keys cannot be read");
	answer = d9__job_answer(session, job, D9__BUCKET_DONE, "", "");
	if (job->operation == D9__GET)
		bytes = transfer->sink_done;
	if (job->operation == D9__HEAD) {
		bytes = transfer->length;
		d9__message_add_number(answer, "modified", (uint64_t)(transfer->modified > 0 ? transfer->modified : 0));
	}
	d9__message_add_number(answer, "bytes", bytes);
	return answer;
}

/* curl's text on a connection, without the time it took, because the same fault has to be the same line. */
static const char *same_each_time(char *text)
{
	static const char after[] = " after ";
	char *at = strstr(text, after), *unit;

	if (!at)
		return text;
	unit = at + strlen(after);
	unit += strspn(unit, "0123456789");
	if (strncmp(unit, " ms", 3) && strncmp(unit, " milliseconds", 13))
		return text;
	unit += 1 + strcspn(unit + 1, " :");
	memmove(at, unit, strlen(unit) + 1);
	return text;
}

/*
 * True if the answer has a sum, which is then a wrong one; without one the server is not a store.
 */
static bool says_sum(const struct d9__transfer *transfer)
{
	return is_hex(transfer->etag, 32) || *transfer->checksum;
}

static struct json_object *failure(struct d9__session *session, struct d9__job *job, const struct d9__outcome *outcome,
				   enum d9__bucket_class class, int code)
{
	char status[32], said[SERVER_SHOWN + 1], told[MESSAGE_SHOWN + 1];
	const char *name = outcome->code, *message = said, *advice;

	put_shown(session, outcome->message, said, sizeof(said));
	snprintf(status, sizeof(status), "Status%u", outcome->status);
	if (outcome->end != D9__TRANSFER_WHOLE) {
		name = name_of(outcome->end, code);
		message = *job->transfer.error ? same_each_time(job->transfer.error) : curl_easy_strerror((CURLcode)code);
		if (code == CURLE_OK)
			message = "the answer ends within its head";
		if (outcome->end == D9__TRANSFER_LOCAL)
			message = strerror(job->transfer.local_error);
	} else if (!outcome->confirmed && !outcome->error_document && outcome->status < 300) {
		name = outcome->reads ? "BadAnswer" : says_sum(&job->transfer) ? "WrongETag" : "NoETag";
		message = outcome->reads	     ? "the store sends other bytes than were asked for" :
			  says_sum(&job->transfer) ? "what the store says that it stored is not what was sent" :
						     "the answer does not prove that anything was stored";
	} else if (!*name) {
		name = status;
	}
	if (!*message)
		snprintf(said, sizeof(said), "it answers %u%s%s", outcome->status, *outcome->code ? " " : "", outcome->code);
	advice = d9__verdict_advice(name);
	snprintf(told, sizeof(told), advice ? "%s; %s" : "%s", message, advice);
	return d9__job_answer(session, job, class, name, told);
}

/* |answer| now, or when the parts that went up have been removed. */
static struct json_object *finish(struct d9__session *session, struct d9__job *job, struct json_object *answer)
{
	bool begun = job->step == D9__STEP_PART || job->step == D9__STEP_COMPLETE;

	if (job->step == D9__STEP_ABORT) {
		json_object_put(answer);
		answer = job->answer;
		job->answer = NULL;
		return answer;
	}
	if (!begun || !strcmp(d9__message_text(answer, "class", ""), "done"))
		return answer;
	job->answer = answer;
	job->step = D9__STEP_ABORT;
	job->tried = D9__NEXT_REFRESH | D9__NEXT_CLOCK | D9__NEXT_REGION | D9__NEXT_STRIP;
	d9__transfer_end(session, &job->transfer);
	answer = ask(session, job);
	if (!answer)
		return NULL;
	json_object_put(answer);
	answer = job->answer;
	job->answer = NULL;
	return answer;
}

/* A step that went well. */
static struct json_object *go_on(struct d9__session *session, struct d9__job *job, unsigned status)
{
	const char *code = NULL;
	struct json_object *answer;

	if (job->step != D9__STEP_ONE && d9__parts_advance(job, &code)) {
		d9__transfer_end(session, &job->transfer);
		answer = ask(session, job);
		return answer ? finish(session, job, answer) : NULL;
	}
	if (code)
		answer = d9__job_answer(session, job, D9__BUCKET_RETRY, code,
					"the parts were not put together as they were sent");
	else
		answer = success(session, job);
	d9__message_add_number(answer, "status", status);
	return finish(session, job, answer);
}

struct json_object *d9__job_advance(struct d9__session *session, struct d9__job *job, int code)
{
	struct document document;
	struct d9__outcome outcome;
	struct d9__verdict verdict;
	struct json_object *answer;

	read_document(&job->transfer, &document);
	outcome = outcome_of(session, job, code, &document);
	verdict = d9__verdict_of(&outcome);
	if (verdict.next != D9__NEXT_ANSWER) {
		put_right(session, job, &verdict, &document);
		d9__transfer_end(session, &job->transfer);
		answer = ask(session, job);
		return answer ? finish(session, job, answer) : NULL;
	}
	if (verdict.class == D9__BUCKET_DONE)
		return go_on(session, job, outcome.status);
	answer = failure(session, job, &outcome, verdict.class, code);
	d9__message_add_number(answer, "status", outcome.status);
	return finish(session, job, answer);
}
