/* SPDX-License-Identifier: Apache-2.0 */
/* Verdict: the meaning of an answer, or of none, for a request; shipping.md 2.3 as a function. */

#pragma once

#include <stdbool.h>

#include "ship/bucket.h"

/* Steps that are taken once without the caller; bits, for |tried|. */
enum d9__next {
	D9__NEXT_ANSWER = 0, /* nothing: tell the caller */
	D9__NEXT_REFRESH = 1, /* credentials */
	D9__NEXT_CLOCK = 2,
	D9__NEXT_REGION = 4,
	D9__NEXT_STRIP = 8, /* leave the named headers out */
};

/* Headers that can be left out; bits. */
enum d9__optional_header {
	D9__HEADER_CHECKSUM = 1,
	D9__HEADER_SSE = 2,
	D9__HEADER_MD5 = 4,
	D9__HEADER_NEW = 8, /* If-None-Match */
};

enum d9__transfer_end {
	D9__TRANSFER_WHOLE, /* an answer came, complete */
	D9__TRANSFER_CUT,   /* no answer, or not all of it: connection, name, time limit */
	D9__TRANSFER_CERTIFICATE,
	D9__TRANSFER_LOCAL, /* the descriptor could not be read or written */
	D9__TRANSFER_FLOOD, /* more was answered than can be right */
};

struct d9__outcome {
	enum d9__transfer_end end;
	unsigned status;
	const char *code, *message; /* of the error document, "" without one */
	const char *header;         /* that it names, "" */
	bool error_document;        /* in an answer of 200 */
	bool confirmed;             /* ETag and checksum are those computed here */
	bool reads;                 /* get, head */
	bool in_parts;              /* of an upload in parts, which may have been forgotten */
	bool knows_region;	    /* it names another region than the session's */
	bool clock_differs;         /* by more than 5 min */
	unsigned sent;              /* optional headers that went with it; bits */
	unsigned tried;             /* bits of d9__next */
};

struct d9__verdict {
	enum d9__bucket_class class;
	enum d9__next next;
	unsigned strip; /* headers */
};

struct d9__verdict d9__verdict_of(const struct d9__outcome *outcome);

/* Return the advice for that error, or NULL if there is none. */
const char *d9__verdict_advice(const char *code);
