/* SPDX-License-Identifier: Apache-2.0 */
/* A program that carries a libevent of its own; built by check_libevent_builds.sh. */

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <event2/event.h>

static int runs;

static void count(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	(void)arg;
	runs++;
}

int main(int argc, char **argv)
{
	struct event_base *base = event_base_new();
	struct event *event = event_new(base, -1, 0, count, NULL);
	FILE *out = argc > 1 && !strncmp(argv[1], "--out=", 6) ? fopen(argv[1] + 6, "w") : NULL;

	event_active(event, EV_READ, 1);
	event_base_loop(base, EVLOOP_NONBLOCK);
	event_free(event);
	event_base_free(base);
	if (out) {
		fprintf(out, "pid %d\n", (int)getpid());
		fclose(out);
	}
	return runs != 1;
}
