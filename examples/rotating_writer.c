/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Choose where the trace goes, how it rotates and how much disk it may have, and be told about each
 * sealed segment.
 *
 *	rotating_writer DIR [MILLISECONDS]
 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include <event2/event.h>

#include <dial9/dial9.h>
#include <dial9/libevent.h>

static struct event_base *base;
static atomic_int sealed;

/* Called on dial9's own thread: do little, and nothing of the loop's. */
static void on_sealed(void *arg, const struct d9_sealed_segment *segment)
{
	(void)arg, (void)segment;
	atomic_fetch_add(&sealed, 1);
}

static void on_problem(void *arg, enum d9_log_level level, const char *message)
{
	(void)arg, (void)level;
	fprintf(stderr, "dial9: %s\n", message);
}

static void tick(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what, (void)arg;
}

static void stop(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what, (void)arg;
	event_base_loopbreak(base);
}

int main(int argc, char **argv)
{
	const struct timeval every_millisecond = { .tv_usec = 1000 };
	long ms = argc > 2 ? atol(argv[2]) : 1000;
	const struct timeval end = { .tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000 };
	struct d9_recorder *recorder = NULL;
	struct d9_options *options;
	struct event *ticker;
	int err;

	if (argc < 2) {
		fprintf(stderr, "usage: %s DIR [MILLISECONDS]\n", argv[0]);
		return 2;
	}
	err = d9_options_new(&options);
	if (!err) {
		d9_options_set_trace_dir(options, argv[1]);
		d9_options_set_service(options, "rotating-writer");
		d9_options_set_rotation_ms(options, 250);
		d9_options_set_max_total_bytes(options, 8 << 20);
		d9_options_set_segment_sealed(options, on_sealed, NULL);
		d9_options_set_log(options, on_problem, NULL);
		err = d9_recorder_start(options, &recorder);
		d9_options_free(options);
	}
	if (err)
		fprintf(stderr, "not recorded: %s\n", d9_strerror(err));

	base = event_base_new();
	d9_event_base_attach(base);
	ticker = event_new(base, -1, EV_PERSIST, tick, NULL);
	event_add(ticker, &every_millisecond);
	event_base_once(base, -1, EV_TIMEOUT, stop, NULL, &end);
	event_base_dispatch(base);

	event_free(ticker);
	event_base_free(base);
	d9_recorder_stop(recorder, 1000);
	printf("%d segments sealed\n", atomic_load(&sealed));
	return 0;
}
