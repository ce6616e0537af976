/* SPDX-License-Identifier: Apache-2.0 */
/* C++ exceptions that leave a callback, and with it the loop; libev's own C++ watchers. */

#include "config.h"

#include <stdexcept>
#include <string.h>

#include <ev++.h>

#include "counters.h"

namespace {

void on_throw(struct ev_loop *, ev_prepare *, int)
{
	COUNT(on_throw, KIND_POLL);
	throw std::runtime_error("out of the loop");
}

struct counted {
	unsigned called;

	void on_timer(ev::timer &timer, int)
	{
		if (++called == 3)
			timer.stop();
	}
};

void throw_once(struct ev_loop *loop)
{
	ev_prepare fed;

	ev_init(&fed, on_throw);
	ev_feed_event(loop, &fed, EV_CUSTOM);
	try {
		ev_run(loop, EVRUN_NOWAIT);
		complain("the exception came through", 1, 0);
	} catch (const std::runtime_error &) {
	}
}

}

int main(int argc, char **argv)
{
	const char *out = argc > 1 && !strncmp(argv[1], "--out=", 6) ? argv[1] + 6 : NULL;
	struct ev_loop *loop = ev_loop_new(EVFLAG_NOENV);

	for (unsigned i = 0; i < 20; i++) {
		counted object = { 0 };
		ev::timer timer(loop);

		throw_once(loop);
		timer.set<counted, &counted::on_timer>(&object);
		timer.start(0.001, 0.001);
		counter_of("thunk", (void *)timer.cb, KIND_POLL)->count += 3;
		ev_run(loop, 0);
		if (object.called != 3)
			complain("calls of a method", 3, object.called);
	}
	/* Each run that was left is one that libev still counts. */
	if (ev_depth(loop) != 20)
		complain("depth", 20, static_cast<long>(ev_depth(loop)));
	return counters_write(out);
}
