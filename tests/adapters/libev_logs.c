/* SPDX-License-Identifier: Apache-2.0 */
/* Takes the descriptor of epoll away from libev, which then complains to the program's callback. */

#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <ev.h>

static int complaints;

static void on_error(const char *text)
{
	printf("! error -: %s: %s\n", text, strerror(errno));
	if (++complaints == 2)
		exit(0);
}

static void on_timer(struct ev_loop *own, ev_timer *timer, int events)
{
	(void)own, (void)timer, (void)events;
}

int main(void)
{
	struct ev_loop *loop;
	ev_timer timer;
	int fd = dup(0);

	setvbuf(stdout, NULL, _IONBF, 0);
	close(fd);
	loop = ev_loop_new(EVBACKEND_EPOLL);
	if (!loop)
		return 99;
	ev_set_syserr_cb(on_error);
	ev_timer_init(&timer, on_timer, 0., 0.001);
	ev_timer_start(loop, &timer);
	close(fd); /* was the first that was free */
	ev_run(loop, 0);
	return 0;
}
