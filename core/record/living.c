/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "record/living.h"

#include <errno.h>
#include <stdlib.h>

#include "record/announcement.h"
#include "record/clock.h"
#include "record/dump_tasks.h"

#define RECENT_NS UINT64_C(10000000000)
#define PER_TASK  256 /* bytes of a segment for each task that it tells: these take some 40 of them */

void d9__living_list(struct d9__living *living, uint64_t file_bytes)
{
	struct d9__dump_tasks tasks = { .failed = false };
	uint64_t now_ns = d9__clock_mono_ns(), most = file_bytes / PER_TASK;

	d9__living_release(living);
	d9__dump_tasks_list(&tasks, now_ns > RECENT_NS ? now_ns - RECENT_NS : 0);
	living->ns = now_ns;
	living->n = tasks.n < most ? tasks.n : (size_t)most;
	living->items = tasks.items;
	tasks.items = NULL;
	d9__dump_tasks_release(&tasks);
}

int d9__living_tell(struct d9__living *living, struct d9__writer *w)
{
	int err = d9__announcement_write(living->items, living->n, living->ns, w, false, living->ns);

	d9__living_release(living);
	return err == -ENOMEM ? 0 : err;
}

void d9__living_release(struct d9__living *living)
{
	free(living->items);
	*living = (struct d9__living){ .ns = 0 };
}
