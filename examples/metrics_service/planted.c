/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <event2/event.h>

#include <dial9/span.h>

#include "planted.h"

static const char *const names[N_REGRESSIONS] = { "none", "blocking", "growing", "lock" };
static const struct timeval between_rebalances = { 0, 100000 };
static const struct timeval locked_for = { 0, 400000 };

struct planted {
	enum regression regression;
	PGconn *auditing;	      /* of the blocking call */
	struct database *rebalancing; /* of the held lock: one connection, hence in order */
	struct event *begin, *commit;
	struct answer locked, committed;
	struct d9_span span;
};

static struct d9_span_site rebalance_span =
	D9_SPAN_SITE(D9_SPAN_INFO, "service", "rebalance totals");

int regression_named(const char *name)
{
	for (int i = 0; i < N_REGRESSIONS; i++)
		if (!strcmp(names[i], name))
			return i;
	return -1;
}

/* ---- a blocking call: "one small query, we can wait for that" ---- */

static void audit_store(PGconn *auditing)
{
	PQclear(PQexec(auditing, "SELECT pg_sleep(0.02)")); /* as long as a disk may take */
}

void planted_before_store(struct planted *planted)
{
	if (planted->regression == BLOCKING_CALL)
		audit_store(planted->auditing);
}

static int connect_auditing(struct planted *planted, const char *address)
{
	planted->auditing = PQconnectdb(address);
	if (PQstatus(planted->auditing) == CONNECTION_OK)
		return 0;
	fprintf(stderr, "audit: %s", PQerrorMessage(planted->auditing));
	return -1;
}

/* ---- a growing query: somebody has dropped the LIMIT ---- */

enum statement planted_latest(const struct planted *planted)
{
	return planted->regression == GROWING_QUERY ? ALL_SAMPLES : LATEST_SAMPLES;
}

/* ---- a held lock: a transaction that waits for something else before it commits ---- */

static void rebalance_ends(struct planted *planted)
{
	d9_span_enter(&planted->span);
	d9_span_end(&planted->span);
	event_add(planted->begin, &between_rebalances);
}

static void on_committed(evutil_socket_t fd, short what, void *arg)
{
	struct planted *planted = arg;

	(void)fd, (void)what;
	PQclear(planted->committed.rows);
	planted->committed.rows = NULL;
	rebalance_ends(planted);
}

/* As if another service had answered, and only then the rows are let go. */
static void on_commit_due(evutil_socket_t fd, short what, void *arg)
{
	struct planted *planted = arg;

	(void)fd, (void)what;
	if (database_ask(planted->rebalancing, COMMIT_REBALANCE, NULL, d9_span_id(&planted->span),
			 &planted->committed))
		rebalance_ends(planted);
}

static void on_locked(evutil_socket_t fd, short what, void *arg)
{
	struct planted *planted = arg;

	(void)fd, (void)what;
	PQclear(planted->locked.rows);
	planted->locked.rows = NULL;
	event_add(planted->commit, &locked_for);
}

static void on_rebalance(evutil_socket_t fd, short what, void *arg)
{
	struct planted *planted = arg;
	uint64_t parent;

	(void)fd, (void)what;
	d9_span_create(&planted->span, &rebalance_span, D9_SPAN_ROOT, NULL, 0);
	d9_span_enter(&planted->span);
	d9_span_exit(&planted->span);
	parent = d9_span_id(&planted->span);
	if (database_ask(planted->rebalancing, BEGIN_REBALANCE, NULL, parent, NULL) ||
	    database_ask(planted->rebalancing, LOCK_TOTALS, NULL, parent, &planted->locked))
		rebalance_ends(planted);
}

static int start_rebalancing(struct planted *planted, struct event_base *base, const char *address)
{
	const struct database_options options = {
		.address = address, .connections = 1, .queue_most = 4, .patience_ms = 2000
	};

	planted->rebalancing = database_new(base, &options);
	planted->begin = evtimer_new(base, on_rebalance, planted);
	planted->commit = evtimer_new(base, on_commit_due, planted);
	planted->locked.ready = event_new(base, -1, 0, on_locked, planted);
	planted->committed.ready = event_new(base, -1, 0, on_committed, planted);
	if (!planted->rebalancing || !planted->begin || !planted->commit ||
	    !planted->locked.ready || !planted->committed.ready) {
		fputs("rebalance: no memory\n", stderr);
		return -1;
	}
	event_add(planted->begin, &between_rebalances);
	return 0;
}

/* ---- all of them ---- */

struct planted *planted_new(struct event_base *base, enum regression regression,
			    const char *address)
{
	struct planted *planted = calloc(1, sizeof(*planted));
	int err = 0;

	if (!planted)
		return NULL;
	planted->regression = regression;
	if (regression == BLOCKING_CALL)
		err = connect_auditing(planted, address);
	else if (regression == HELD_LOCK)
		err = start_rebalancing(planted, base, address);
	if (err) {
		planted_free(planted);
		return NULL;
	}
	return planted;
}

void planted_free(struct planted *planted)
{
	struct event *events[] = { planted->begin, planted->commit, planted->locked.ready,
				   planted->committed.ready };

	PQfinish(planted->auditing);
	database_free(planted->rebalancing);
	for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++)
		if (events[i])
			event_free(events[i]);
	PQclear(planted->locked.rows);
	PQclear(planted->committed.rows);
	free(planted);
}
