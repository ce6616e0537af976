/* SPDX-License-Identifier: Apache-2.0 */
/*
 * 1000 callbacks that feed themselves, by a libev that this file compiles into itself, in counted_feeds():
 * for check_embed_instructions.sh to count.
 *
 *	embed_counted alone|fed|off
 *
 * alone: not attached.  off: attached, and switched off.
 */

#define EV_STANDALONE 1
#define D9_EV_SOURCE  "ev.c"
#include <dial9/ev-embed.h>

#include <time.h>

#include <dial9/recorder.h>

#define CALLS 1000

static int left;

static void on_fed(struct ev_loop *loop, ev_prepare *w, int events)
{
	(void)events;
	if (--left > 0)
		ev_feed_event(loop, w, EV_CUSTOM);
}

void counted_feeds(struct ev_loop *loop, ev_prepare *w, int n);

__attribute__((noinline)) void counted_feeds(struct ev_loop *loop, ev_prepare *w, int n)
{
	left = n;
	ev_feed_event(loop, w, EV_CUSTOM);
	ev_invoke_pending(loop);
}

int main(int argc, char **argv)
{
	const struct timespec settle = { 0, 500000000 };
	struct ev_loop *loop = ev_loop_new(EVFLAG_NOENV);
	const char *what = argc > 1 ? argv[1] : "";
	ev_prepare fed;

	if (!loop || (strcmp(what, "alone") != 0 && d9_ev_embed_attach(loop)))
		return 1;
	ev_prepare_init(&fed, on_fed);
	ev_run(loop, EVRUN_NOWAIT);
	/* The clock changes over to ticks when it is calibrated. */
	nanosleep(&settle, NULL);
	left = 20;
	ev_feed_event(loop, &fed, EV_CUSTOM);
	ev_invoke_pending(loop);
	if (!strcmp(what, "off"))
		d9_disable();
	counted_feeds(loop, &fed, CALLS);
	ev_loop_destroy(loop);
	return left != 0;
}
