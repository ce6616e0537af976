/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program on libev's emulation of libevent: the same names, other types.  It runs as without us.
 * libev's event.h cannot be installed beside libevent's, so what it says of the functions stands
 * here.
 */
#include "config.h"

#include <stdio.h>
#include <sys/time.h>

struct event;
struct event_base;

void *event_init(void);
void event_set(struct event *event, int fd, short events, void (*callback)(int, short, void *),
	       void *arg);
int event_add(struct event *event, struct timeval *timeout);
int event_dispatch(void);
int event_once(int fd, short events, void (*callback)(int, short, void *), void *arg,
	       struct timeval *timeout);

static _Alignas(16) char memory[512]; /* libev's struct event is smaller */
static struct event *const event = (struct event *)(void *)memory;
static struct timeval soon = { 0, 1000 };
static int runs, once_runs;

static void on_once(int fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	(void)arg;
	once_runs++;
}

static void on_timer(int fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	if (arg == &runs && ++runs < 5)
		event_add(event, &soon);
}

int main(void)
{
	event_init();
	event_set(event, -1, 0, on_timer, &runs);
	event_add(event, &soon);
	event_once(-1, 1, on_once, NULL, &soon);
	event_dispatch();
	printf("%d %d\n", runs, once_runs);
	return 0;
}
