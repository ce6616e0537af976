/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pool of connections to PostgreSQL on a loop of libevent.  No function here waits, and none
 * answers: each answer is an event of its own, for one answer at a time to be worked on.  What is
 * asked while all connections are busy waits in a queue of limited length, for a limited time.
 */
#ifndef METRICS_DATABASE_H
#define METRICS_DATABASE_H

#include <stddef.h>
#include <stdint.h>

#include <libpq-fe.h>

struct event;
struct event_base;
struct database;

/* All statements of the service, each prepared once for every connection. */
enum statement {
	STORE_SAMPLES,	/* names, values: two arrays */
	LATEST_SAMPLES, /* name, at most so many */
	ALL_SAMPLES,	/* name; planted: there is no limit */
	BEGIN_REBALANCE,
	LOCK_TOTALS, /* planted: everybody who stores waits for it */
	COMMIT_REBALANCE,
	N_STATEMENTS
};

#define PARAMETERS_MAX 2

enum outcome {
	ANSWERED,
	TIMED_OUT, /* in the queue, or PostgreSQL gave up */
	FAILED
};

/* Belongs to who asks, until |ready| was called. */
struct answer {
	struct event *ready; /* who asks has made it; the database makes it active, once */
	enum outcome outcome;
	PGresult *rows; /* for who asks to PQclear(); NULL unless ANSWERED */
};

struct database_options {
	const char *address; /* as libpq has it: "host=/run/postgresql dbname=metrics" */
	size_t connections;
	size_t queue_most;    /* queries that wait for a connection */
	unsigned patience_ms; /* that one waits there, and that PostgreSQL may take for it */
};

/* Connects in the background, and again whenever a connection is lost.  NULL: no memory. */
struct database *database_new(struct event_base *base, const struct database_options *options);

/* Answers what is unanswered with FAILED. */
void database_free(struct database *database);

/*
 * Ask.  |parameters| has as many texts as the statement has parameters; they are copied.  |parent|
 * is the span that the query is a part of.  |answer| may be NULL: nobody wants to know.
 *
 * Returns 0; -EAGAIN: the queue is full; -ENOMEM.
 */
int database_ask(struct database *database, enum statement statement, const char *const *parameters,
		 uint64_t parent, struct answer *answer);

/* Answer everything with FAILED, now. */
void database_give_up(struct database *database);

/* How many connections can work. */
size_t database_ready(const struct database *database);

#endif
