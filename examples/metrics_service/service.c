/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A service as people run it: it stores metrics in PostgreSQL and reads them back, over HTTP, on
 * one loop of libevent, and never waits for anything but the loop.  It knows dial9 only by its
 * spans: run it under `dial9 record`.  README.md tells what to do with it, run.sh does it.
 *
 *	service --help
 */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <event2/event.h>

#include "http.h"

static const char usage[] =
	"usage: service [OPTIONS]\n"
	"\n"
	"Stores metrics in PostgreSQL.  Listens on 127.0.0.1, and says on which port.\n"
	"Ends by SIGTERM or SIGINT: what was begun is answered first.\n"
	"\n"
	"  -p, --port N           0 (the default): the kernel chooses\n"
	"  -d, --database ADDRESS of PostgreSQL, as libpq takes it (from PGHOST and the like)\n"
	"  -c, --connections N    to PostgreSQL (4)\n"
	"  -q, --queue N          queries that may wait for a connection (256); over that, 503\n"
	"  -t, --timeout MS       for a query to wait, and to be answered (2000); over that, 504\n"
	"  -r, --regression NAME  a mistake to make: none, blocking, growing or lock\n"
	"  -h, --help\n";

struct options {
	unsigned port;
	unsigned regression;
	struct database_options database;
};

struct service {
	struct event_base *base;
	struct database *database;
	struct planted *planted;
	struct http *http;
	struct event *interrupt, *terminate;
	struct event *deadline; /* of its end */
};

/* ---- options ---- */

static int read_number(const char *text, unsigned least, unsigned most, unsigned *number)
{
	char *end;
	unsigned long value = strtoul(text, &end, 10);

	if (*text < '0' || *text > '9' || *end || value < least || value > most) {
		fprintf(stderr, "service: '%s' is not a number from %u to %u\n", text, least, most);
		return -1;
	}
	*number = (unsigned)value;
	return 0;
}

static int read_regression(const char *name, unsigned *regression)
{
	int found = regression_named(name);

	if (found < 0) {
		fprintf(stderr,
			"service: there is no regression '%s': none, blocking, growing, lock\n",
			name);
		return -1;
	}
	*regression = (unsigned)found;
	return 0;
}

static int read_size(const char *text, unsigned most, size_t *size)
{
	unsigned number;

	if (read_number(text, 1, most, &number))
		return -1;
	*size = number;
	return 0;
}

static int read_option(int option, struct options *options)
{
	switch (option) {
	case 'p':
		return read_number(optarg, 0, 65535, &options->port);
	case 'd':
		options->database.address = optarg;
		return 0;
	case 'c':
		return read_size(optarg, 64, &options->database.connections);
	case 'q':
		return read_size(optarg, 100000, &options->database.queue_most);
	case 't':
		return read_number(optarg, 1, 600000, &options->database.patience_ms);
	case 'r':
		return read_regression(optarg, &options->regression);
	default:
		return -1;
	}
}

static int read_options(int argc, char **argv, struct options *options)
{
	static const struct option known[] = {
		{ "port", required_argument, NULL, 'p' },
		{ "database", required_argument, NULL, 'd' },
		{ "connections", required_argument, NULL, 'c' },
		{ "queue", required_argument, NULL, 'q' },
		{ "timeout", required_argument, NULL, 't' },
		{ "regression", required_argument, NULL, 'r' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	int option;

	while ((option = getopt_long(argc, argv, "p:d:c:q:t:r:h", known, NULL)) >= 0) {
		if (option == 'h') {
			fputs(usage, stdout);
			exit(0);
		}
		if (read_option(option, options))
			return -1;
	}
	if (optind < argc)
		fprintf(stderr, "service: '%s' is too much; --help tells the options\n",
			argv[optind]);
	return optind < argc ? -1 : 0;
}

/* ---- its end ---- */

/* The last answers are still to be written. */
static void on_drained(void *arg)
{
	static const struct timeval moment = { 0, 50000 };
	struct service *service = arg;

	event_del(service->deadline);
	event_base_loopexit(service->base, &moment);
}

static void on_deadline(evutil_socket_t fd, short what, void *arg)
{
	struct service *service = arg;

	(void)fd, (void)what;
	database_give_up(service->database);
}

static void on_end(evutil_socket_t sig, short what, void *arg)
{
	static const struct timeval patience = { 5, 0 };
	struct service *service = arg;

	(void)sig, (void)what;
	event_add(service->deadline, &patience);
	http_stop(service->http, on_drained, service);
}

/* ---- its life ---- */

static void service_close(struct service *service)
{
	http_free(service->http);
	if (service->planted)
		planted_free(service->planted);
	database_free(service->database);
	if (service->interrupt)
		event_free(service->interrupt);
	if (service->terminate)
		event_free(service->terminate);
	if (service->deadline)
		event_free(service->deadline);
	if (service->base)
		event_base_free(service->base);
}

static int service_open(struct service *service, const struct options *options)
{
	struct event_base *base = service->base = event_base_new();

	if (!base)
		return -1;
	service->interrupt = evsignal_new(base, SIGINT, on_end, service);
	service->terminate = evsignal_new(base, SIGTERM, on_end, service);
	service->deadline = evtimer_new(base, on_deadline, service);
	service->database = database_new(base, &options->database);
	service->planted =
		planted_new(base, (enum regression)options->regression, options->database.address);
	if (!service->interrupt || !service->terminate || !service->deadline ||
	    !service->database || !service->planted)
		return -1;
	service->http = http_new(base, service->database, service->planted);
	if (!service->http || event_add(service->interrupt, NULL) ||
	    event_add(service->terminate, NULL))
		return -1;
	return 0;
}

static int service_run(struct service *service, uint16_t port)
{
	struct http_counts counts;

	port = http_listen(service->http, port);
	if (!port) {
		fprintf(stderr, "service: cannot listen: %s\n", strerror(errno));
		return -1;
	}
	printf("listening on %d\n", port);
	fflush(stdout);
	event_base_dispatch(service->base);
	counts = http_counts(service->http);
	printf("%lu stores, %lu reads, %lu failures\n", counts.stores, counts.reads,
	       counts.failures);
	return 0;
}

int main(int argc, char **argv)
{
	struct options options = { .database = { .address = "",
						 .connections = 4,
						 .queue_most = 256,
						 .patience_ms = 2000 } };
	struct service service = { 0 };
	int status;

	if (read_options(argc, argv, &options))
		return 2;
	signal(SIGPIPE, SIG_IGN); /* a client that has gone */
	status = service_open(&service, &options);
	if (status)
		fputs("service: cannot start\n", stderr);
	else
		status = service_run(&service, (uint16_t)options.port);
	service_close(&service);
	return status ? 1 : 0;
}
