// SPDX-License-Identifier: Apache-2.0
// C++ callbacks: a static member, a function template in a namespace, a lambda.  The report calls
// them by the names that they have here.
//
//	cpp_service
#include <cstdio>
#include <ctime>

#include <event2/event.h>

#include <dial9/libevent.h>

namespace net {

class Server {
public:
	explicit Server(event_base *base) : timer(event_new(base, -1, EV_PERSIST, on_tick, this))
	{
		const timeval period = { 0, 10000 };

		event_add(timer, &period);
	}
	~Server() { event_free(timer); }
	Server(const Server &) = delete;
	Server &operator=(const Server &) = delete;
	unsigned ticks = 0;

private:
	static void on_tick(evutil_socket_t, short, void *self)
	{
		static_cast<Server *>(self)->ticks++;
	}
	event *timer;
};

// Takes 20 ms of CPU time each: too long.
template <typename Number> void compute(evutil_socket_t, short, void *arg)
{
	timespec begin = {}, now = {};

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
	do
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	while ((now.tv_sec - begin.tv_sec) * 1000000000 + now.tv_nsec - begin.tv_nsec < 20000000);
	++*static_cast<Number *>(arg);
}

} // namespace net

int main()
{
	const timeval now_and_then = { 0, 100000 }, end = { 0, 500000 };
	event_base *base = event_base_new();
	bool done = false;
	long computed = 0;

	d9_event_base_attach(base);
	{
		net::Server server(base);
		event *work = event_new(base, -1, EV_PERSIST, net::compute<long>, &computed);
		event *last = event_new(
			base, -1, 0,
			[](evutil_socket_t, short, void *arg) { *static_cast<bool *>(arg) = true; },
			&done);

		event_add(work, &now_and_then);
		event_add(last, &end);
		while (!done)
			event_base_loop(base, EVLOOP_ONCE);
		event_free(work);
		event_free(last);
		std::printf("%u ticks, %ld results\n", server.ticks, computed);
	}
	event_base_free(base);
}
