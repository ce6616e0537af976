/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>

#include "hook/first_call.h"

static bool known_target(struct d9__first_call *trigger, uintptr_t caller, uint64_t unloads,
			 void **target)
{
	if (trigger->unloads != unloads) {
		trigger->n = 0; /* a range may hold another module by now */
		trigger->unloads = unloads;
	}
	for (unsigned i = 0; i < trigger->n; i++) {
		const struct d9__trigger_range *range = &trigger->ranges[i];

		if (caller >= range->module.low && caller < range->module.high) {
			*target = range->target;
			return true;
		}
	}
	return false;
}

static void remember(struct d9__first_call *trigger, struct d9__module_range module, void *target)
{
	if (trigger->n < D9__TRIGGER_RANGES)
		trigger->ranges[trigger->n++] = (struct d9__trigger_range){ module, target };
}

static bool is_in_module_of(const void *address, const void *other)
{
	struct d9__module_range range;

	return d9__module_range_of(other, &range) && (uintptr_t)address >= range.low &&
	       (uintptr_t)address < range.high;
}

static void *judge(struct d9__first_call *trigger, const void *caller, bool *undefined, bool *keep)
{
	void *own = d9__module_definition(caller, trigger->name), *next;
	bool mapped = trigger->refresh();

	*keep = true;
	/* The library calls itself, or we were called in its place. */
	if (mapped && trigger->owns(caller))
		return NULL;
	if (own && !is_in_module_of(own, trigger))
		return own;
	next = d9__module_next_definition(trigger, trigger->name);
	/* A library that emulates this one (libev's event_*) may stand before it in scope. */
	if (mapped)
		return next && !trigger->owns(next) ? next : NULL;
	*keep = false; /* the library may come yet */
	*undefined = next == NULL;
	return next;
}

void *d9__first_call_target(struct d9__first_call *trigger, const void *caller, bool *undefined)
{
	int saved_errno = errno;
	uint64_t unloads = d9__module_unloads();
	struct d9__module_range module;
	void *target = NULL;
	bool keep, locked = pthread_mutex_trylock(&trigger->lock) == 0;
	bool known = locked && known_target(trigger, (uintptr_t)caller, unloads, &target);

	/* Not held while judging, which waits for the loader; nor waited for, as fork() may leave it. */
	if (locked)
		pthread_mutex_unlock(&trigger->lock);
	*undefined = false;
	if (!known) {
		target = judge(trigger, caller, undefined, &keep);
		if (keep && d9__module_range_of(caller, &module) &&
		    pthread_mutex_trylock(&trigger->lock) == 0) {
			remember(trigger, module, target);
			pthread_mutex_unlock(&trigger->lock);
		}
	}
	errno = saved_errno;
	return target;
}
