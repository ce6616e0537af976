/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "ship/parts.h"

#include <errno.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ship/markup.h"
#include "ship/upload_headers.h"

static void hex_of(const unsigned char md5[16], char out[33])
{
	for (size_t i = 0; i < 16; i++)
		snprintf(out + 2 * i, 3, "%02x", md5[i]);
}

/* The body of the last request. */
static char *list_of(const struct d9__job *job)
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	if (!out)
		return NULL;
	fputs("<CompleteMultipartUpload>", out);
	for (unsigned i = 0; i < job->parts; i++) {
		char etag[33];

		hex_of(job->part_sums + 16 * (size_t)i, etag);
		fprintf(out, "<Part><PartNumber>%u</PartNumber><ETag>\"%s\"</ETag></Part>", i + 1, etag);
	}
	fputs("</CompleteMultipartUpload>", out);
	if (fclose(out)) {
		free(text);
		return NULL;
	}
	return text;
}

static int ask_initiate(struct d9__session *session, struct d9__job *job)
{
	struct d9__sigv4_pair query = { "uploads", "" }, headers[D9__TRANSFER_HEADERS];
	struct d9__ask ask = {
		.method = "POST", .key = job->key, .query = &query, .n_query = 1, .headers = headers,
		.payload = job->sum.sha256, .body_fd = -1, .data = "", .sink_fd = -1,
	};
	int err = d9__sum_of_text("", &job->sum);

	job->sent = 0;
	ask.n_headers = d9__upload_headers(session, job, headers);
	return err ? err : d9__transfer_begin(session, &ask, &job->transfer, job);
}

static int ask_part(struct d9__session *session, struct d9__job *job)
{
	char number[12];
	struct d9__sigv4_pair query[] = { { "partNumber", number }, { "uploadId", job->upload } };
	struct d9__ask ask = {
		.method = "PUT", .key = job->key, .query = query, .n_query = 2, .payload = job->sum.sha256,
		.body_fd = job->fd, .body_first = D9__PART_SIZE * job->part, .sink_fd = -1,
	};
	uint64_t left = job->size - ask.body_first;
	int err;

	job->sent = 0;
	ask.body_size = left < D9__PART_SIZE ? left : D9__PART_SIZE;
	snprintf(number, sizeof(number), "%u", job->part + 1);
	err = d9__sum_of(job->fd, ask.body_first, ask.body_size, &job->sum);
	if (err)
		return err;
	memcpy(job->part_sums + 16 * (size_t)job->part, job->sum.md5, 16);
	return d9__transfer_begin(session, &ask, &job->transfer, job);
}

static int ask_last(struct d9__session *session, struct d9__job *job)
{
	struct d9__sigv4_pair query = { "uploadId", job->upload }, type = { "content-type", "application/xml" };
	struct d9__ask ask = {
		.method = "POST", .key = job->key, .query = &query, .n_query = 1, .headers = &type, .n_headers = 1,
		.payload = job->sum.sha256, .body_fd = -1, .sink_fd = -1,
	};
	int err;

	free(job->list);
	job->list = job->step == D9__STEP_ABORT ? strdup("") : list_of(job);
	err = job->list ? d9__sum_of_text(job->list, &job->sum) : -ENOMEM;
	if (err)
		return err;
	job->sent = 0;
	ask.data = job->list;
	ask.body_size = strlen(job->list);
	if (job->step == D9__STEP_ABORT)
		ask.method = "DELETE";
	return d9__transfer_begin(session, &ask, &job->transfer, job);
}

int d9__parts_ask(struct d9__session *session, struct d9__job *job)
{
	switch (job->step) {
	case D9__STEP_INITIATE:
		job->parts = (unsigned)((job->size + D9__PART_SIZE - 1) / D9__PART_SIZE);
		if (!job->part_sums)
			job->part_sums = calloc(job->parts, 16);
		return job->part_sums ? ask_initiate(session, job) : -ENOMEM;
	case D9__STEP_PART:
		return ask_part(session, job);
	default:
		return ask_last(session, job);
	}
}

/*
 * True if |etag|, of the whole, agrees with what the parts were confirmed to be.  It may be empty, because radosgw leaves it so
 * and each part was confirmed alone.
 */
static bool is_confirmed(struct d9__job *job, const char *etag)
{
	char wanted[64];
	unsigned char md5[EVP_MAX_MD_SIZE];

	if (!EVP_Digest(job->part_sums, 16 * (size_t)job->parts, md5, NULL, EVP_md5(), NULL))
		return false;
	hex_of(md5, wanted);
	snprintf(wanted + 32, sizeof(wanted) - 32, "-%u", job->parts);
	/* Another form is another store's, or an encrypted one's. */
	return strlen(etag) != strlen(wanted) || strcmp(etag + 32, wanted + 32) || !strcmp(etag, wanted) ||
	       job->transfer.kms;
}

bool d9__parts_advance(struct d9__job *job, const char **code)
{
	struct d9__markup answer = { job->transfer.text, job->transfer.text_len }, inner;
	char etag[96] = "";

	*code = NULL;
	switch (job->step) {
	case D9__STEP_INITIATE:
		if (!d9__markup_find(answer, "UploadId", &inner) ||
		    !d9__markup_text(inner, job->upload, sizeof(job->upload)) || !*job->upload) {
			*code = "BadAnswer";
			return false;
		}
		job->step = D9__STEP_PART;
		return true;
	case D9__STEP_PART:
		if (++job->part == job->parts)
			job->step = D9__STEP_COMPLETE;
		return true;
	case D9__STEP_COMPLETE:
		if (!d9__markup_find(answer, "CompleteMultipartUploadResult", &answer) ||
		    !d9__markup_find(answer, "ETag", &inner) || !d9__markup_text(inner, etag, sizeof(etag)))
			*code = "BadAnswer";
		/* Between quotes. */
		snprintf(job->transfer.etag, sizeof(job->transfer.etag), "%.*s", (int)strcspn(etag + (*etag == '"'), "\""),
			 etag + (*etag == '"'));
		if (!*code && !is_confirmed(job, job->transfer.etag))
			*code = "WrongETag";
		return false;
	default:
		return false;
	}
}
