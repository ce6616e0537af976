/* SPDX-License-Identifier: Apache-2.0 */
/* C++ exceptions that leave a callback, and with it the loop. */

#include "config.h"

#include <stdexcept>
#include <string.h>

#include <event2/event.h>

#include "counters.h"

static void on_throw(evutil_socket_t, short, void *)
{
	COUNT(on_throw, KIND_POLL);
	throw std::runtime_error("out of the loop");
}

static void on_after_throw(evutil_socket_t, short, void *)
{
	COUNT(on_after_throw, KIND_POLL);
}

/* libevent cannot use a base again that was left in the middle. */
static void throw_once()
{
	struct event_base *base = event_base_new();
	struct event *event;

	attach_base(base, NULL);
	event = event_new(base, -1, 0, on_throw, NULL);
	event_active(event, EV_READ, 1);
	try {
		event_base_loop(base, EVLOOP_NONBLOCK);
		complain("the exception came through", 1, 0);
	} catch (const std::runtime_error &) {
	}
}

int main(int argc, char **argv)
{
	const char *out = argc > 1 && !strncmp(argv[1], "--out=", 6) ? argv[1] + 6 : NULL;

	for (int i = 0; i < 3; i++) {
		struct event_base *base;
		struct event *event;

		throw_once();
		base = event_base_new();
		attach_base(base, NULL);
		event = event_new(base, -1, 0, on_after_throw, NULL);
		for (int j = 0; j < 5; j++) {
			event_active(event, EV_READ, 1);
			event_base_loop(base, EVLOOP_NONBLOCK);
		}
		event_free(event);
		event_base_free(base);
	}
	return counters_write(out);
}
