/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>

#include "analyze/blocked.h"
#include "analyze/outside_calls.h"
#include "base/array.h"

/* More than that between two rounds are not told one by one. */
#define OPEN_MAX_CALLS 4096

int d9__outside_calls_add(struct d9__outside_calls *calls, struct d9__texts *functions,
			  const struct d9__blocked_event *event)
{
	uint32_t number;

	if (calls->n_open == OPEN_MAX_CALLS)
		return 0;
	if (d9__texts_number(functions, event->function, event->function_len, &number) ||
	    !d9__array_grow(calls->open, calls->n_open))
		return -ENOMEM;
	calls->open[calls->n_open] = *event;
	calls->open[calls->n_open].function = functions->items[number];
	calls->open[calls->n_open++].function_len = functions->lens[number];
	return 0;
}

/* Stands for time that no loop waited for. */
static const struct d9__callback behind = { .location = "" };

static int add_behind(struct d9__blocked *blocked, const struct d9__blocked_event *event)
{
	struct d9__blocked_event copy = *event;

	copy.callback = &behind;
	return d9__blocked_add(blocked, &copy);
}

int d9__outside_calls_settle(struct d9__outside_calls *calls, struct d9__blocked *blocked,
			     uint64_t from_ns, uint64_t *held_ns)
{
	int err = 0;

	*held_ns = 0;
	for (size_t i = 0; i < calls->n_open && !err; i++) {
		const struct d9__blocked_event *event = &calls->open[i];

		/* It had entered its loop since, untold. */
		if (event->at_ns < from_ns) {
			err = add_behind(blocked, event);
			continue;
		}
		err = d9__blocked_add(blocked, event);
		if (d9__blocked_is_own_wait(event->function))
			continue;
		*held_ns += event->ns;
		calls->n++;
		d9__time_told_add(&calls->told, event->function, event->ns);
	}
	calls->ns += *held_ns;
	calls->n_open = 0;
	return err;
}

int d9__outside_calls_end(struct d9__outside_calls *calls, struct d9__blocked *blocked)
{
	int err = 0;

	for (size_t i = 0; i < calls->n_open && !err; i++)
		err = add_behind(blocked, &calls->open[i]);
	calls->n_open = 0;
	return err;
}

void d9__outside_calls_release(struct d9__outside_calls *calls)
{
	free(calls->open);
}
