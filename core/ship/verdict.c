/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "ship/verdict.h"

#include <string.h>

static struct d9__verdict says(enum d9__bucket_class class)
{
	return (struct d9__verdict) { .class = class };
}

/* |next| the first time, then |class|. */
static struct d9__verdict once(const struct d9__outcome *outcome, enum d9__next next, enum d9__bucket_class class)
{
	return (struct d9__verdict) {
		.class = class, .next = outcome->tried & (unsigned)next ? D9__NEXT_ANSWER : next
	};
}

static bool is_one_of(const char *code, const char *const *list)
{
	for (; *list; list++)
		if (!strcmp(code, *list))
			return true;
	return false;
}

/* Return the optional headers that were sent and that the answer names. */
static unsigned named(const struct d9__outcome *outcome)
{
	static const struct {
		const char *part;
		unsigned header;
	} known[] = {
		{ "checksum", D9__HEADER_CHECKSUM },
		{ "server-side-encryption", D9__HEADER_SSE },
		{ "server-side encryption", D9__HEADER_SSE }, /* as Swift calls it */
		{ "content-md5", D9__HEADER_MD5 },
		{ "if-none-match", D9__HEADER_NEW },
	};
	unsigned found = 0;

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (strcasestr(outcome->header, known[i].part) || strcasestr(outcome->message, known[i].part))
			found |= known[i].header;
	return found & outcome->sent;
}

static struct d9__verdict of_400(const struct d9__outcome *outcome)
{
	/* Codes for bytes that did not arrive as they were sent. */
	static const char *const again[] = { "RequestTimeout", "BadDigest", "XAmzContentSHA256Mismatch",
					     "IncompleteBody", NULL };

	if (is_one_of(outcome->code, again))
		return says(D9__BUCKET_RETRY);
	return says(D9__BUCKET_REFUSED);
}

static struct d9__verdict of_404(const struct d9__outcome *outcome)
{
	if (!strcmp(outcome->code, "NoSuchKey") || (outcome->reads && !*outcome->code))
		return says(D9__BUCKET_ABSENT);
	if (!strcmp(outcome->code, "NoSuchUpload") && outcome->in_parts)
		return says(D9__BUCKET_RETRY);
	return says(D9__BUCKET_UNUSABLE);
}

/* Decide about an answer that is neither a success nor can be corrected. */
static struct d9__verdict of_status(const struct d9__outcome *outcome)
{
	switch (outcome->status) {
	case 400:
		return of_400(outcome);
	case 401:
	case 403:
		return says(D9__BUCKET_UNUSABLE);
	case 404:
		return of_404(outcome);
	case 408:
	case 409:
	case 425:
	case 429:
	case 307:
		return says(D9__BUCKET_RETRY);
	case 412:
		return says(outcome->sent & D9__HEADER_NEW ? D9__BUCKET_THERE : D9__BUCKET_REFUSED);
	default:
		if (outcome->status >= 500)
			return says(D9__BUCKET_RETRY);
		return says(outcome->status >= 400 ? D9__BUCKET_REFUSED : D9__BUCKET_UNUSABLE);
	}
}

/* True if something can be corrected, once each, and the request sent again. */
static bool put_right(const struct d9__outcome *outcome, struct d9__verdict *verdict)
{
	static const char *const expired[] = { "ExpiredToken", "TokenRefreshRequired", "ExpiredTokenException", NULL };
	bool mute = !*outcome->code; /* of a HEAD */
	unsigned headers;

	if (is_one_of(outcome->code, expired))
		*verdict = once(outcome, D9__NEXT_REFRESH, D9__BUCKET_UNUSABLE);
	else if (!strcmp(outcome->code, "RequestTimeTooSkewed") || (mute && outcome->status == 403 && outcome->clock_differs))
		*verdict = once(outcome, D9__NEXT_CLOCK, D9__BUCKET_UNUSABLE);
	else if (outcome->status == 301 || (outcome->status == 307 && outcome->knows_region) ||
		 (mute && outcome->status == 400 && outcome->knows_region) ||
		 !strcmp(outcome->code, "AuthorizationHeaderMalformed"))
		*verdict = outcome->knows_region ? once(outcome, D9__NEXT_REGION, D9__BUCKET_UNUSABLE) :
						   says(D9__BUCKET_UNUSABLE);
	else if (outcome->status == 501 && outcome->sent & D9__HEADER_NEW)
		*verdict = (struct d9__verdict) { D9__BUCKET_REFUSED, D9__NEXT_STRIP, D9__HEADER_NEW };
	else if ((outcome->status == 400 || outcome->status == 501) && strcmp(outcome->code, "BadDigest") &&
		 (headers = named(outcome)))
		*verdict = (struct d9__verdict) { D9__BUCKET_REFUSED, D9__NEXT_STRIP, headers };
	else
		return false;
	return true;
}

struct d9__verdict d9__verdict_of(const struct d9__outcome *outcome)
{
	struct d9__verdict verdict;

	switch (outcome->end) {
	case D9__TRANSFER_CERTIFICATE:
		return says(D9__BUCKET_UNUSABLE);
	case D9__TRANSFER_LOCAL:
		return says(D9__BUCKET_REFUSED);
	case D9__TRANSFER_CUT:
	case D9__TRANSFER_FLOOD:
		return says(D9__BUCKET_RETRY);
	case D9__TRANSFER_WHOLE:
		break;
	}
	if (outcome->status >= 200 && outcome->status < 300)
		return says(outcome->error_document || !outcome->confirmed ? D9__BUCKET_RETRY : D9__BUCKET_DONE);
	if (put_right(outcome, &verdict))
		return verdict;
	return of_status(outcome);
}

const char *d9__verdict_advice(const char *code)
{
	static const struct {
		const char *code, *advice;
	} known[] = {
		{ "ExpiredToken", "their source gives no newer ones: renew the credentials" },
		{ "ExpiredTokenException", "their source gives no newer ones: renew the credentials" },
		{ "TokenRefreshRequired", "their source gives no newer ones: renew the credentials" },
		{ "InvalidAccessKeyId", "check the access key, and that it is of this store" },
		{ "SignatureDoesNotMatch", "check the secret key" },
		{ "AccessDenied", "check the policy, of the role and of the bucket: PKGDATADIR/ship has one" },
		{ "Status301", "check the endpoint: it sends elsewhere" },
		{ "Status307", "check the endpoint: it sends elsewhere" },
		{ "Status403", "check the keys, the policy, and the endpoint" },
		{ "Status404", "check the bucket's name, and the endpoint" },
		{ "NoSuchBucket", "check the bucket's name, and the endpoint" },
		{ "PermanentRedirect", "set the region to the bucket's" },
		{ "AuthorizationHeaderMalformed", "set the region to the bucket's" },
		{ "RequestTimeTooSkewed", "set the clock of this machine" },
		{ "NoETag", "check the endpoint, and whether something else answers in its place" },
		{ "NoConnection", "check the endpoint, and that it can be reached from here" },
		{ "NoSuchHost", "check the endpoint, and that it can be reached from here" },
		{ "Certificate", "name the certificate to trust by --ca or AWS_CA_BUNDLE" },
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (!strcmp(code, known[i].code))
			return known[i].advice;
	return NULL;
}
