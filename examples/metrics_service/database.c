/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libpq's asynchronous interface on libevent.
 *
 * A connection goes through three states, and each has its callbacks: it is being made
 * (on_connecting), it prepares the statements, then it answers queries (on_database_readable,
 * on_database_writable).  When it is lost its query fails, and on_reconnect tries again, after a
 * pause that doubles.
 *
 * In a trace each query is two spans below its request: the wait for a connection, and the query
 * from when it was sent to when PostgreSQL was done with it.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <event2/event.h>

#include "statements.h"

#define PAUSE_LEAST_MS 100
#define PAUSE_MOST_MS  5000

struct query {
	struct query *next; /* that waits */
	enum statement statement;
	char *parameters[PARAMETERS_MAX];
	uint64_t asked_ms;
	uint64_t parent;
	struct d9_span span;   /* the wait for a connection, then the query */
	struct answer *answer; /* NULL: nobody waits for it, or it was given */
};

struct connection {
	struct database *database;
	PGconn *pg;		  /* NULL: it waits for its next attempt */
	struct event *connecting; /* while it is being made */
	struct event *readable, *writable;
	struct event *reconnect;
	unsigned pause_ms;
	int n_prepared;	     /* statements; all of them: it can work */
	struct query *query; /* that it works on; NULL: none */
};

struct database {
	struct event_base *base;
	struct database_options options;
	char *address, *server_options;
	struct query *first, **end; /* of those that wait for a connection */
	size_t n_waiting;
	struct event *impatient; /* when the first of those that wait has waited too long */
	struct connection *connections;
};

static struct d9_span_site wait_span =
	D9_SPAN_SITE(D9_SPAN_INFO, "database", "wait for connection");

static uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static void start_timer(struct event *timer, uint64_t ms)
{
	const struct timeval later = { (time_t)(ms / 1000), (suseconds_t)(ms % 1000 * 1000) };

	event_add(timer, &later);
}

/* Entered for a moment, for a report counts its time from there. */
static void span_begin(struct d9_span *span, struct d9_span_site *site, uint64_t parent)
{
	d9_span_create(span, site, parent, NULL, 0);
	d9_span_enter(span);
	d9_span_exit(span);
}

/* ---- one query ---- */

static void query_free(struct query *query)
{
	for (size_t i = 0; i < PARAMETERS_MAX; i++)
		free(query->parameters[i]);
	free(query);
}

static struct query *query_new(enum statement statement, const char *const *parameters)
{
	struct query *query = calloc(1, sizeof(*query));

	for (int i = 0; query && i < statement_texts[statement].n_parameters; i++) {
		query->parameters[i] = strdup(parameters[i]);
		if (!query->parameters[i]) {
			query_free(query);
			return NULL;
		}
	}
	if (query)
		query->statement = statement;
	return query;
}

/* Takes |rows|. */
static void query_answer(struct query *query, enum outcome outcome, PGresult *rows)
{
	struct answer *answer = query->answer;

	if (!answer) {
		PQclear(rows);
		return;
	}
	query->answer = NULL;
	answer->outcome = outcome;
	answer->rows = rows;
	event_active(answer->ready, EV_READ, 1);
}

/* Everything that was asked ends here, answered or not. */
static void query_end(struct query *query)
{
	query_answer(query, FAILED, NULL); /* unless it was */
	d9_span_enter(&query->span);
	d9_span_end(&query->span);
	query_free(query);
}

/* ---- the queue ---- */

/* Only where there is one. */
static struct query *take_first(struct database *database)
{
	struct query *query = database->first;

	database->first = query->next;
	database->n_waiting--;
	if (!database->first) {
		database->end = &database->first;
		event_del(database->impatient);
	}
	return query;
}

static void await_impatience(struct database *database)
{
	uint64_t until, now = now_ms();

	if (!database->first || event_pending(database->impatient, EV_TIMEOUT, NULL))
		return;
	until = database->first->asked_ms + database->options.patience_ms;
	start_timer(database->impatient, until > now ? until - now : 0);
}

/* Nobody wants those answers any more. */
static void on_waited_too_long(evutil_socket_t fd, short what, void *arg)
{
	struct database *database = arg;

	(void)fd, (void)what;
	while (database->first &&
	       database->first->asked_ms + database->options.patience_ms <= now_ms()) {
		struct query *query = take_first(database);

		query_answer(query, TIMED_OUT, NULL);
		query_end(query);
	}
	await_impatience(database);
}

/* ---- a connection that is lost ---- */

static void event_drop(struct event **event)
{
	if (*event)
		event_free(*event);
	*event = NULL;
}

static void disconnect(struct connection *connection)
{
	event_drop(&connection->connecting);
	event_drop(&connection->readable);
	event_drop(&connection->writable);
	PQfinish(connection->pg);
	connection->pg = NULL;
	connection->n_prepared = 0;
}

static void lose_connection(struct connection *connection)
{
	struct query *query = connection->query;

	if (connection->pg && *PQerrorMessage(connection->pg))
		fprintf(stderr, "database: %s", PQerrorMessage(connection->pg));
	disconnect(connection);
	start_timer(connection->reconnect, connection->pause_ms);
	if (connection->pause_ms < PAUSE_MOST_MS)
		connection->pause_ms *= 2;
	connection->query = NULL;
	if (query)
		query_end(query);
}

/* ---- a connection at work ---- */

static bool is_ready(const struct connection *connection)
{
	return connection->pg && connection->n_prepared == N_STATEMENTS;
}

/* Send what libpq holds, as far as the socket takes it; on_database_writable does the rest. */
static void flush(struct connection *connection)
{
	int left = PQflush(connection->pg);

	if (left < 0)
		lose_connection(connection);
	else if (left)
		event_add(connection->writable, NULL);
}

static void send_query(struct connection *connection, struct query *query)
{
	const struct statement_text *text = &statement_texts[query->statement];

	d9_span_enter(&query->span);
	d9_span_end(&query->span);
	span_begin(&query->span, &statement_spans[query->statement], query->parent);
	connection->query = query;
	if (PQsendQueryPrepared(connection->pg, text->name, text->n_parameters,
				(const char *const *)query->parameters, NULL, NULL, 0))
		flush(connection);
	else
		lose_connection(connection);
}

/* Who has waited longest goes to the first connection that has nothing to do. */
static void give_work(struct database *database)
{
	for (size_t i = 0; i < database->options.connections && database->n_waiting; i++) {
		struct connection *connection = &database->connections[i];

		if (is_ready(connection) && !connection->query)
			send_query(connection, take_first(database));
	}
}

static void prepare_next(struct connection *connection)
{
	const struct statement_text *text = &statement_texts[connection->n_prepared];

	if (PQsendPrepare(connection->pg, text->name, text->sql, 0, NULL))
		flush(connection);
	else
		lose_connection(connection);
}

/* Takes |result|.  Returns false where a statement cannot be prepared: no other try will help. */
static bool take_result(struct connection *connection, PGresult *result)
{
	const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
	ExecStatusType status = PQresultStatus(result);
	struct query *query = connection->query;

	if (status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK) {
		if (query) {
			D9_SPAN_SET(&query->span, 0, PQntuples(result));
			query_answer(query, ANSWERED, result);
		} else {
			PQclear(result);
		}
		return true;
	}
	fprintf(stderr, "database: %s", PQresultErrorMessage(result));
	if (query) /* 57014: it took longer than statement_timeout */
		query_answer(query, state && !strcmp(state, "57014") ? TIMED_OUT : FAILED, NULL);
	PQclear(result);
	return query != NULL;
}

/* A statement is prepared, or a query done with. */
static void command_done(struct connection *connection)
{
	struct query *query = connection->query;

	connection->query = NULL;
	if (query) {
		query_end(query);
	} else if (++connection->n_prepared < N_STATEMENTS) {
		prepare_next(connection);
		return;
	} else {
		connection->pause_ms = PAUSE_LEAST_MS;
	}
	give_work(connection->database);
}

/* What it was told to do is not done. */
static bool is_busy(const struct connection *connection)
{
	return connection->pg && (connection->query || connection->n_prepared < N_STATEMENTS);
}

static void on_database_readable(evutil_socket_t fd, short what, void *arg)
{
	struct connection *connection = arg;

	(void)fd, (void)what;
	if (!PQconsumeInput(connection->pg)) {
		lose_connection(connection);
		return;
	}
	while (is_busy(connection) && !PQisBusy(connection->pg)) {
		PGresult *result = PQgetResult(connection->pg);

		if (!result)
			command_done(connection);
		else if (!take_result(connection, result) ||
			 PQstatus(connection->pg) == CONNECTION_BAD)
			lose_connection(connection);
	}
}

static void on_database_writable(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what;
	flush(arg);
}

/* ---- a connection that is made ---- */

static void start_preparing(struct connection *connection)
{
	struct event_base *base = connection->database->base;
	int fd = PQsocket(connection->pg);

	event_drop(&connection->connecting);
	connection->readable =
		event_new(base, fd, EV_READ | EV_PERSIST, on_database_readable, connection);
	connection->writable = event_new(base, fd, EV_WRITE, on_database_writable, connection);
	if (!connection->readable || !connection->writable || PQsetnonblocking(connection->pg, 1) ||
	    event_add(connection->readable, NULL)) {
		lose_connection(connection);
		return;
	}
	prepare_next(connection);
}

static void on_connecting(evutil_socket_t fd, short what, void *arg);

/* libpq may have gone on to another address, with another socket. */
static void await_connecting(struct connection *connection, short what)
{
	event_drop(&connection->connecting);
	connection->connecting = event_new(connection->database->base, PQsocket(connection->pg),
					   what, on_connecting, connection);
	if (!connection->connecting || event_add(connection->connecting, NULL))
		lose_connection(connection);
}

static void on_connecting(evutil_socket_t fd, short what, void *arg)
{
	struct connection *connection = arg;

	(void)fd, (void)what;
	switch (PQconnectPoll(connection->pg)) {
	case PGRES_POLLING_READING:
		await_connecting(connection, EV_READ);
		break;
	case PGRES_POLLING_WRITING:
		await_connecting(connection, EV_WRITE);
		break;
	case PGRES_POLLING_OK:
		start_preparing(connection);
		break;
	default:
		lose_connection(connection);
	}
}

static void on_reconnect(evutil_socket_t fd, short what, void *arg)
{
	struct connection *connection = arg;
	const struct database *database = connection->database;
	const char *const keys[] = { "dbname", "application_name", "options", NULL };
	const char *const values[] = { database->address, "metrics_service",
				       database->server_options, NULL };

	(void)fd, (void)what;
	/* The first key may hold a whole address. */
	connection->pg = PQconnectStartParams(keys, values, 1);
	if (!connection->pg || PQstatus(connection->pg) == CONNECTION_BAD)
		lose_connection(connection);
	else
		await_connecting(connection, EV_WRITE);
}

/* ---- the pool ---- */

static int start_connections(struct database *database)
{
	for (size_t i = 0; i < database->options.connections; i++) {
		struct connection *connection = &database->connections[i];

		connection->database = database;
		connection->pause_ms = PAUSE_LEAST_MS;
		connection->reconnect = evtimer_new(database->base, on_reconnect, connection);
		if (!connection->reconnect)
			return -ENOMEM;
		start_timer(connection->reconnect, 0);
	}
	return 0;
}

struct database *database_new(struct event_base *base, const struct database_options *options)
{
	struct database *database = calloc(1, sizeof(*database));
	char server_options[64];

	if (!database)
		return NULL;
	snprintf(server_options, sizeof(server_options), "-c statement_timeout=%u",
		 options->patience_ms);
	database->end = &database->first;
	database->base = base;
	database->options = *options;
	database->address = strdup(options->address);
	database->server_options = strdup(server_options);
	database->impatient = evtimer_new(base, on_waited_too_long, database);
	database->connections = calloc(options->connections, sizeof(*database->connections));
	if (!database->address || !database->server_options || !database->impatient ||
	    !database->connections || start_connections(database)) {
		database_free(database);
		return NULL;
	}
	return database;
}

void database_give_up(struct database *database)
{
	while (database->first)
		query_end(take_first(database));
	for (size_t i = 0; i < database->options.connections; i++)
		if (database->connections[i].query)
			query_answer(database->connections[i].query, FAILED, NULL);
}

void database_free(struct database *database)
{
	if (!database)
		return;
	if (database->connections)
		database_give_up(database);
	for (size_t i = 0; database->connections && i < database->options.connections; i++) {
		struct connection *connection = &database->connections[i];

		disconnect(connection);
		event_drop(&connection->reconnect);
		if (connection->query)
			query_end(connection->query);
	}
	event_drop(&database->impatient);
	free(database->connections);
	free(database->address);
	free(database->server_options);
	free(database);
}

size_t database_ready(const struct database *database)
{
	size_t n = 0;

	for (size_t i = 0; i < database->options.connections; i++)
		n += is_ready(&database->connections[i]);
	return n;
}

int database_ask(struct database *database, enum statement statement, const char *const *parameters,
		 uint64_t parent, struct answer *answer)
{
	struct query *query;

	if (database->n_waiting >= database->options.queue_most)
		return -EAGAIN;
	query = query_new(statement, parameters);
	if (!query)
		return -ENOMEM;
	query->asked_ms = now_ms();
	query->parent = parent;
	query->answer = answer;
	span_begin(&query->span, &wait_span, parent);
	*database->end = query;
	database->end = &query->next;
	database->n_waiting++;
	give_work(database);
	await_impatience(database);
	return 0;
}
