/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clients of the metrics service, all on one loop of libevent: each stores samples, then reads the
 * latest, and so on, with a pause after each answer.  When the time is over nothing more is asked,
 * and what was asked is waited for: what this program counts is what the service was asked.
 *
 *	load --help
 */
#include <getopt.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>

static const char usage[] =
	"usage: load [OPTIONS] PORT\n"
	"\n"
	"Loads the metrics service on 127.0.0.1, and prints what was answered and how late.\n"
	"\n"
	"  -s, --seconds N   how long (5)\n"
	"  -c, --clients N   connections (8)\n"
	"  -p, --pause MS    between an answer and the next request of a client (10)\n"
	"  -h, --help\n"
	"\n"
	"Exit status: 0 every request was answered, 1 some were not, 2 bad usage.\n";

#define METRICS	       2
#define SAMPLES	       100
#define LATENCIES_MOST (1u << 20)
#define PATIENCE_S     10

struct options {
	unsigned port, seconds, clients, pause_ms;
};

struct load {
	struct event_base *base;
	struct options options;
	struct client *clients;
	size_t working; /* clients that will ask again, or wait for an answer */
	bool is_over;
	unsigned long stores, reads, ok, refused, others, lost;
	uint32_t *latencies; /* in us */
	size_t n_latencies;
};

struct client {
	struct load *load;
	struct evhttp_connection *connection;
	struct event *next; /* request */
	unsigned n_asked;
	uint64_t asked_us;
};

static uint64_t now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

/* ---- answers ---- */

static void count(struct load *load, int status)
{
	if (!status)
		load->lost++;
	else if (status < 300)
		load->ok++;
	else if (status >= 500)
		load->refused++;
	else
		load->others++;
}

/* Ask again, unless the time is over. */
static void client_goes_on(struct client *client)
{
	struct load *load = client->load;
	const struct timeval pause = { (time_t)(load->options.pause_ms / 1000),
				       (suseconds_t)(load->options.pause_ms % 1000 * 1000) };

	if (!load->is_over)
		event_add(client->next, &pause);
	else if (!--load->working)
		event_base_loopexit(load->base, NULL);
}

static void on_answer(struct evhttp_request *request, void *arg)
{
	struct client *client = arg;
	struct load *load = client->load;

	count(load, request ? evhttp_request_get_response_code(request) : 0);
	if (request && load->n_latencies < LATENCIES_MOST)
		load->latencies[load->n_latencies++] = (uint32_t)(now_us() - client->asked_us);
	client_goes_on(client);
}

/* ---- requests ---- */

/* Samples of all metrics, in turn. */
static void write_samples(struct client *client, struct evbuffer *body)
{
	for (unsigned i = 0; i < SAMPLES; i++)
		evbuffer_add_printf(body, "metric.%u %u\n", (client->n_asked + i) % METRICS, i);
}

static int ask(struct client *client, struct evhttp_request *request)
{
	struct load *load = client->load;
	bool stores = client->n_asked++ % 2 == 0;
	char path[64];

	evhttp_add_header(evhttp_request_get_output_headers(request), "Host", "127.0.0.1");
	client->asked_us = now_us();
	if (stores) {
		write_samples(client, evhttp_request_get_output_buffer(request));
		load->stores++;
		return evhttp_make_request(client->connection, request, EVHTTP_REQ_POST, "/store");
	}
	snprintf(path, sizeof(path), "/latest?name=metric.%u&count=20",
		 client->n_asked / 2 % METRICS);
	load->reads++;
	return evhttp_make_request(client->connection, request, EVHTTP_REQ_GET, path);
}

static void on_next(evutil_socket_t fd, short what, void *arg)
{
	struct client *client = arg;
	struct evhttp_request *request;

	(void)fd, (void)what;
	request = client->load->is_over ? NULL : evhttp_request_new(on_answer, client);
	if (!request) {
		client_goes_on(client);
	} else if (ask(client, request)) {
		client->load->lost++;
		client_goes_on(client);
	}
}

/* Whoever is between two requests ends now; the others with their answers. */
static void on_time_over(evutil_socket_t fd, short what, void *arg)
{
	struct load *load = arg;

	(void)fd, (void)what;
	load->is_over = true;
	for (unsigned i = 0; i < load->options.clients; i++)
		if (event_pending(load->clients[i].next, EV_TIMEOUT, NULL)) {
			event_del(load->clients[i].next);
			client_goes_on(&load->clients[i]);
		}
}

/* ---- its life ---- */

static int by_size(const void *a, const void *b)
{
	uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;

	return left < right ? -1 : left > right;
}

static double quantile_ms(const struct load *load, double share)
{
	size_t at = (size_t)(share * (double)load->n_latencies);

	if (!load->n_latencies)
		return 0;
	return load->latencies[at < load->n_latencies ? at : load->n_latencies - 1] / 1000.0;
}

static void print_result(struct load *load)
{
	qsort(load->latencies, load->n_latencies, sizeof(*load->latencies), by_size);
	printf("requests: %lu stores, %lu reads\n", load->stores, load->reads);
	printf("answers: %lu ok, %lu refused, %lu others, %lu lost\n", load->ok, load->refused,
	       load->others, load->lost);
	printf("latency: p50 %.1f ms, p99 %.1f ms, longest %.1f ms\n", quantile_ms(load, 0.5),
	       quantile_ms(load, 0.99), quantile_ms(load, 1));
}

static int client_open(struct client *client, struct load *load)
{
	static const struct timeval at_once = { 0, 0 };

	client->load = load;
	client->connection = evhttp_connection_base_new(load->base, NULL, "127.0.0.1",
							(uint16_t)load->options.port);
	client->next = evtimer_new(load->base, on_next, client);
	if (!client->connection || !client->next)
		return -1;
	evhttp_connection_set_timeout(client->connection, PATIENCE_S);
	load->working++;
	return event_add(client->next, &at_once);
}

static void load_close(struct load *load)
{
	for (unsigned i = 0; load->clients && i < load->options.clients; i++) {
		if (load->clients[i].connection)
			evhttp_connection_free(load->clients[i].connection);
		if (load->clients[i].next)
			event_free(load->clients[i].next);
	}
	free(load->clients);
	free(load->latencies);
	if (load->base)
		event_base_free(load->base);
}

static int load_run(struct load *load)
{
	const struct timeval end = { load->options.seconds, 0 };

	load->base = event_base_new();
	load->clients = calloc(load->options.clients, sizeof(*load->clients));
	load->latencies = calloc(LATENCIES_MOST, sizeof(*load->latencies));
	if (!load->base || !load->clients || !load->latencies)
		return -1;
	for (unsigned i = 0; i < load->options.clients; i++)
		if (client_open(&load->clients[i], load))
			return -1;
	if (event_base_once(load->base, -1, EV_TIMEOUT, on_time_over, load, &end))
		return -1;
	return event_base_dispatch(load->base) < 0 ? -1 : 0;
}

static int read_number(const char *text, unsigned least, unsigned most, unsigned *number)
{
	char *end;
	unsigned long value = strtoul(text, &end, 10);

	if (*text < '0' || *text > '9' || *end || value < least || value > most) {
		fprintf(stderr, "load: '%s' is not a number from %u to %u\n", text, least, most);
		return -1;
	}
	*number = (unsigned)value;
	return 0;
}

static int read_option(int option, struct options *options)
{
	switch (option) {
	case 's':
		return read_number(optarg, 1, 3600, &options->seconds);
	case 'c':
		return read_number(optarg, 1, 1000, &options->clients);
	case 'p':
		return read_number(optarg, 0, 60000, &options->pause_ms);
	default:
		return -1;
	}
}

static int read_options(int argc, char **argv, struct options *options)
{
	static const struct option known[] = {
		{ "seconds", required_argument, NULL, 's' },
		{ "clients", required_argument, NULL, 'c' },
		{ "pause", required_argument, NULL, 'p' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	int option;

	while ((option = getopt_long(argc, argv, "s:c:p:h", known, NULL)) >= 0) {
		if (option == 'h') {
			fputs(usage, stdout);
			exit(0);
		}
		if (read_option(option, options))
			return -1;
	}
	if (optind + 1 != argc) {
		fputs("load: needs one port; --help tells the options\n", stderr);
		return -1;
	}
	return read_number(argv[optind], 1, 65535, &options->port);
}

int main(int argc, char **argv)
{
	struct load load = { .options = { .seconds = 5, .clients = 8, .pause_ms = 10 } };
	int status;

	if (read_options(argc, argv, &load.options))
		return 2;
	status = load_run(&load);
	if (status)
		fputs("load: no memory\n", stderr);
	else
		print_result(&load);
	if (load.lost)
		status = 1;
	load_close(&load);
	return status ? 1 : 0;
}
