/* SPDX-License-Identifier: Apache-2.0 */
/* Part of <dial9/ev-embed.h>, and of the adapter: what a watcher is, by what it is called with. */

#ifndef DIAL9_EV_EMBED_KINDS_H
#define DIAL9_EV_EMBED_KINDS_H

/* Behind ev.h and <dial9/loop.h>. */
static uint16_t d9__ev_kind(int events)
{
	static const struct {
		int events;
		uint16_t kind;
	} kinds[] = {
		{ EV_READ | EV_WRITE, D9_TASK_IO }, { EV_TIMER, D9_TASK_TIMER },
		{ EV_PERIODIC, D9_TASK_PERIODIC },  { EV_SIGNAL, D9_TASK_SIGNAL },
		{ EV_CHILD, D9_TASK_CHILD },	    { EV_STAT, D9_TASK_STAT },
		{ EV_IDLE, D9_TASK_IDLE },	    { EV_PREPARE, D9_TASK_PREPARE },
		{ EV_CHECK, D9_TASK_CHECK },	    { EV_EMBED, D9_TASK_EMBED },
		{ EV_FORK, D9_TASK_FORK },	    { EV_CLEANUP, D9_TASK_CLEANUP },
		{ EV_ASYNC, D9_TASK_ASYNC },
	};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (events & kinds[i].events)
			return kinds[i].kind;
	}
	return D9_TASK_CUSTOM;
}

#endif /* DIAL9_EV_EMBED_KINDS_H */
