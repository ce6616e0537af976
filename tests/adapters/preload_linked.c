/* SPDX-License-Identifier: Apache-2.0 */
/* A program linked with libevent that knows nothing of us: five callbacks. */
#include <event2/event.h>
#include <stdio.h>

static void count(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	++*(int *)arg;
}

int main(void)
{
	static const struct timeval at_once = { 0, 0 };
	struct event_base *base = event_base_new();
	int n = 0;

	for (int i = 0; i < 5; i++)
		event_base_once(base, -1, EV_TIMEOUT, count, &n, &at_once);
	event_base_dispatch(base);
	event_base_free(base);
	printf("callbacks %d\n", n);
	return 3;
}
