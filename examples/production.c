/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A service as one would run it.  The recorder keeps the newest events in memory, and writes the
 * seconds around what went wrong; what operators set in the environment goes before what is set
 * here; and where it cannot start, the service runs without.
 *
 *	production PORT [DEADLINE_MS]
 *
 * PORT 0 lets the kernel choose.  By SIGTERM it finishes what it has begun, within 5000 ms.
 *
 *	GET /		is answered at once
 *	GET /order?MS	is answered MS milliseconds later, as if by a database
 *	GET /fail	goes wrong, and fires a trigger
 *
 * In its unit of systemd:
 *
 *	[Service]
 *	ExecStart=/usr/bin/production 8080
 *	Environment=DIAL9_SERVICE_NAME=%N
 *	# Dumps go to /var/lib/production/dial9-UID, also under ProtectSystem=strict.
 *	StateDirectory=production
 *	# Above both deadlines of the end below.
 *	TimeoutStopSec=15
 *	# Holds every call of the recorder.
 *	SystemCallFilter=@system-service
 *	# Off, without a new build:
 *	#Environment=DIAL9_ENABLED=false
 *	# Everything, not only dumps:
 *	#Environment=DIAL9_MODE=continuous DIAL9_MAX_DISK_USAGE_MB=4096
 *	# With DynamicUser= or RemoveIPC=, which empty /dev/shm, for `dial9 recover` after a crash:
 *	#Environment=DIAL9_RING=disk
 */
#include <arpa/inet.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/queue.h>
#include <sys/socket.h>

#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>

#include <dial9/dial9.h>
#include <dial9/libevent.h>
#include <dial9/trigger.h>

static struct event_base *base;

/* ---- the recorder ---- */

#define RECORDER_DEADLINE_MS 5000

/* To the journal; on a thread of dial9's. */
static void on_problem(void *arg, enum d9_log_level level, const char *message)
{
	(void)arg, (void)level;
	fprintf(stderr, "dial9: %s\n", message);
}

/* A setter goes before the environment: what operators have set is left alone. */
static bool is_ours(const char *variable)
{
	return !getenv(variable);
}

static void set_options(struct d9_options *options)
{
	d9_options_set_log(options, on_problem, NULL);
	if (is_ours("DIAL9_SERVICE_NAME"))
		d9_options_set_service(options, "production");
	if (is_ours("DIAL9_MODE"))
		d9_options_set_mode(options, D9_MODE_FLIGHT);
	if (is_ours("DIAL9_TRIGGERS"))
		d9_options_set_triggers(
			options,
			"slow: poll > 50ms; hung: blocked > 1s; failed: call last 30s then 5s");
	if (is_ours("DIAL9_MAX_DISK_USAGE_MB"))
		d9_options_set_max_total_bytes(options, 256 << 20);
}

/*
 * Record, or be told why not and go on.  Attaching would start a recorder from the environment if
 * there is none: not after one that could not be started as we want it.
 */
static struct d9_recorder *record(void)
{
	struct d9_recorder *recorder = NULL;
	struct d9_options *options;
	int err = d9_options_new(&options);

	if (!err) {
		set_options(options);
		err = d9_recorder_start(options, &recorder);
		d9_options_free(options);
	}
	if (!err || err == -EALREADY) /* under `dial9 record` it runs already, as that was told */
		err = d9_event_base_attach_named(base, "http");
	if (err)
		fprintf(stderr, "not recorded: %s\n", d9_strerror(err));
	return recorder;
}

/* ---- the service ---- */

struct order {
	LIST_ENTRY(order) others;
	struct evhttp_request *request;
	struct event *answer;
};

static struct evhttp *http;
static struct evhttp_bound_socket *listener;
static LIST_HEAD(order_list, order) orders; /* that are not answered yet */
static struct event *closing, *deadline;    /* of the shutdown */
static struct timeval patience = { 5, 0 };
static unsigned long hellos, answered, failures, cut_off;

static void hello(struct evhttp_request *request, void *arg)
{
	(void)arg;
	hellos++;
	evbuffer_add_printf(evhttp_request_get_output_buffer(request), "hello\n");
	evhttp_send_reply(request, HTTP_OK, "OK", NULL);
}

/* What no trigger's condition can see the program tells itself; unrecorded, that does nothing. */
static void fail(struct evhttp_request *request, void *arg)
{
	(void)arg;
	failures++;
	d9_trigger_fire("failed");
	evhttp_send_error(request, HTTP_INTERNAL, NULL);
}

/* Its time has come, or the deadline's. */
static void on_answer(evutil_socket_t fd, short what, void *arg)
{
	struct order *order = arg;
	bool in_time = what & EV_TIMEOUT;

	(void)fd;
	answered += in_time;
	cut_off += !in_time;
	evhttp_send_reply(order->request, in_time ? HTTP_OK : HTTP_SERVUNAVAIL, NULL, NULL);
	LIST_REMOVE(order, others);
	event_free(order->answer);
	free(order);
}

static void take_order(struct evhttp_request *request, void *arg)
{
	const char *query = evhttp_uri_get_query(evhttp_request_get_evhttp_uri(request));
	long ms = query ? atol(query) : 50;
	const struct timeval later = { ms / 1000, ms % 1000 * 1000 };
	struct order *order = listener ? malloc(sizeof(*order)) : NULL; /* none on its way out */

	(void)arg;
	if (!order) {
		evhttp_send_error(request, HTTP_SERVUNAVAIL, NULL);
		return;
	}
	order->request = request;
	order->answer = evtimer_new(base, on_answer, order);
	event_add(order->answer, &later);
	LIST_INSERT_HEAD(&orders, order, others);
}

/* ---- its end ---- */

static const struct timeval moment = { 0, 50000 };

/* A moment passes before, for what clients sent unaware, and one to write the last answers. */
static void on_closing(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what, (void)arg;
	if (!LIST_EMPTY(&orders))
		return;
	event_del(closing);
	event_base_loopexit(base, &moment);
}

static void on_deadline(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what, (void)arg;
	for (struct order *order = LIST_FIRST(&orders); order; order = LIST_NEXT(order, others))
		event_active(order->answer, EV_WRITE, 1);
}

/* No more connections; what was begun is finished, or cut off at the deadline. */
static void on_terminate(evutil_socket_t sig, short what, void *arg)
{
	(void)sig, (void)what, (void)arg;
	if (!listener)
		return;
	evhttp_del_accept_socket(http, listener);
	listener = NULL;
	event_add(deadline, &patience);
	event_add(closing, &moment);
}

static int start_listening(const char *port)
{
	struct sockaddr_in address;
	socklen_t len = sizeof(address);

	http = evhttp_new(base);
	evhttp_set_cb(http, "/", hello, NULL);
	evhttp_set_cb(http, "/order", take_order, NULL);
	evhttp_set_cb(http, "/fail", fail, NULL);
	listener = evhttp_bind_socket_with_handle(http, "127.0.0.1", (uint16_t)atoi(port));
	if (!listener ||
	    getsockname(evhttp_bound_socket_get_fd(listener), (struct sockaddr *)&address, &len)) {
		perror("listen");
		return -1;
	}
	printf("listening on %d\n", ntohs(address.sin_port));
	return fflush(stdout);
}

int main(int argc, char **argv)
{
	struct d9_recorder *recorder;
	struct event *terminate;

	if (argc < 2) {
		fprintf(stderr, "usage: %s PORT [DEADLINE_MS]\n", argv[0]);
		return 2;
	}
	if (argc > 2)
		patience = (struct timeval) { atol(argv[2]) / 1000, atol(argv[2]) % 1000 * 1000 };
	base = event_base_new();
	recorder = record();
	closing = event_new(base, -1, EV_PERSIST, on_closing, NULL);
	deadline = evtimer_new(base, on_deadline, NULL);
	terminate = evsignal_new(base, SIGTERM, on_terminate, NULL);
	event_add(terminate, NULL);
	if (start_listening(argv[1]))
		return 1;
	event_base_dispatch(base);

	evhttp_free(http);
	event_free(terminate);
	event_free(closing);
	event_free(deadline);
	event_base_free(base);
	printf("%lu hellos, %lu orders, %lu failures, %lu cut off\n", hellos, answered, failures,
	       cut_off);
	/* Dumps whose time is not over are closed with what there is. */
	if (recorder && d9_recorder_stop(recorder, RECORDER_DEADLINE_MS))
		fputs("dial9: the last dump may be incomplete\n", stderr);
	return 0;
}
