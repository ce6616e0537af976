/* SPDX-License-Identifier: Apache-2.0 */
/* Declarations that the files of the bucket's source share. */

#pragma once

#include "base/table.h"
#include "serve/fetched.h"
#include "serve/source.h"
#include "serve/stored_key.h"
#include "ship/bucket.h"

#define D9__BUCKET_PREFIX 300 /* bytes of the part that is looked at, with its slash and end */

struct event;

/* An object that the bucket holds. */
struct d9__bucket_item {
	char *name, *key; /* owned */
	char *process;	  /* owned: "SERVICE/INSTANCE" */
	struct d9__stored_key parsed;
	struct d9__source_facts facts; /* borrows from here */
	uint64_t object_bytes;
	int64_t modified_s;
};

/* A caller that waits for an answer. */
struct d9__bucket_waiter {
	d9__source_ready *ready;
	void *context;
	struct d9__bucket_waiter *next;
};

/* An object that is being fetched. */
struct d9__bucket_fetch {
	struct d9__bucket_item *item;
	int fd; /* below 0: it waits for its turn */
	char unfinished[D9__FETCHED_NAME];
	struct d9__bucket_waiter *waiters;
	struct d9__bucket_fetch *next;
};

struct d9__bucket_source;

/* One question to the store. */
struct d9__bucket_request {
	uint64_t token; /* 0: free */
	int err;	/* it could not be sent */
	void (*take)(struct d9__bucket_source *source, void *of, const struct d9__bucket_answer *answer);
	void *of;
};

/* A list, page by page. */
enum d9__chain_kind {
	D9__CHAIN_ROOT,	    /* which layouts there are */
	D9__CHAIN_HOURS,    /* their summaries */
	D9__CHAIN_DUMPS,
	D9__CHAIN_SERVICES, /* of a day */
	D9__CHAIN_SEGMENTS,
	D9__CHAIN_MINUTES, /* in which there are segments */
};

struct d9__chain {
	enum d9__chain_kind kind;
	char *prefix; /* with that of the bucket; owned */
	char *after;  /* owned; NULL: from the beginning */
	char *more;   /* continuation; owned; NULL: the first page */
	unsigned pages, pages_max;
	int64_t from_s, to_s; /* times of the wanted objects */
	int64_t seen_s;	      /* the last that came */
	bool asked;
	bool whole; /* too many are not to be told by some */
	bool sample; /* of one minute, for ten */
	struct d9__chain *next;
};

/* The objects that have been listed. */
struct d9__bucket_reach {
	char *prefix; /* owned */
	int64_t from_s, to_s, asked_s; /* from, up to which nothing can come any more, up to which it was asked */
	int64_t listed_s;	       /* at */
};

struct d9__bucket_hour {
	int64_t begins_s, listed_s; /* listed at; 0: never */
	uint64_t n;		    /* summaries */
};

/* A service as keys spell it. */
struct d9__bucket_spelling;

struct d9__bucket_wish {
	int64_t from_s, to_s; /* whole hours */
	int64_t whole_s;      /* from when on segments are wanted */
	bool segments;
	char **services; /* of which segments are wanted; owned, and each */
	size_t n_services;
	char *dump; /* owned; NULL: none */
	unsigned step;
	struct d9__bucket_waiter *waiters;
	struct d9__bucket_wish *next;
};

struct d9__bucket_dump {
	char *id; /* owned */
	char **names; /* of its segments; owned, and each */
	size_t n, asked; /* asked for, without an answer */
	bool looked, read; /* for its manifest, which was read */
};

struct d9__bucket_source {
	struct d9__bucket *bucket;
	struct d9__fetched *fetched;
	struct event_base *base;
	struct event *readable, *soon; /* owned; NULL before attach() */
	char prefix[D9__BUCKET_PREFIX];
	char *name; /* owned */

	struct d9__bucket_item **items; /* owned; never freed before the source */
	size_t n;
	struct d9__table by_name; /* of items, by the sum of it */
	bool sorted;
	uint64_t version;

	struct d9__bucket_request requests[D9__BUCKET_OUTSTANDING_MAX];
	uint64_t serial;
	unsigned listing, fetching; /* requests under way */
	struct d9__chain *chains;   /* owned; asked and waiting */
	struct d9__bucket_fetch *fetches;
	struct d9__bucket_wish *wishes; /* the first is worked on */

	int64_t root_s, dumps_s; /* listed then; 0: never */
	bool has_hours, has_segments, has_dumps;
	int64_t *days; /* of the original's layout */
	size_t n_days;
	struct d9__bucket_hour *hours;
	size_t n_hours;
	struct d9__table told; /* services with summaries, by day; owned */
	struct d9__bucket_spelling *spellings;
	size_t n_spellings;
	struct d9__bucket_reach *reaches;
	size_t n_reaches;
	struct d9__bucket_dump *dumps;
	size_t n_dumps;

	char error[400];   /* of the store; "" : none */
	int64_t rest_until_s; /* after an error nothing is asked before */
	unsigned failures; /* in a row */
	bool refused;	   /* the last of them will not pass by itself */
	bool failed;	   /* an answer of this wish */
	char why[200];	   /* the wish cannot be, for another reason than |error|; "": none */
	bool manifest_asked;
	uint64_t n_lists, n_gets, n_strange;
	bool truncated, sampled;
};
