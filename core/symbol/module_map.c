/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>

#include "analyze/budget.h"
#include "base/array.h"
#include "symbol/module_map.h"

#define STAYS_MAX     65536 /* far more than a process maps */
#define UNINDEXED_MAX 1024  /* stays that are looked through one by one */
#define FOUND_MAX     1024  /* at one address */

/* Make a new stay of the module |number|, which the map does not know or whose latest stay is over. */
static int add_stay(struct d9__module_map *map, const struct d9__stay *stay, uint32_t number)
{
	if (map->n == STAYS_MAX) {
		d9__budget_leave_out(D9__KEPT_MODULES, 1);
		return 0;
	}
	if (!d9__array_grow(map->stays, map->n) ||
	    !d9__array_reach(map->latest, &map->n_latest, number))
		return -ENOMEM;
	map->latest[number] = (uint32_t)map->n;
	map->stays[map->n++] = *stay;
	return 0;
}

int d9__module_map_learn(struct d9__module_map *map, const struct d9__stay *stay, bool unloaded)
{
	const uint64_t key[] = { stay->base, stay->start, stay->end, stay->binary };
	struct d9__stay new = *stay, *old;
	uint32_t number;
	int err;

	map->keys.each = 4 * sizeof(new);
	map->keys.kind = D9__KEPT_MODULES;
	err = d9__texts_number(&map->keys, (const char *)key, sizeof(key), &number);
	if (err || (map->keys.full && number == map->keys.others_number))
		return err;
	old = number < map->n_latest ? &map->stays[map->latest[number]] : NULL;
	if (unloaded) {
		new.to_ns = stay->from_ns;
		new.from_ns = 0;
		if (!old)
			return add_stay(map, &new, number);
		if (new.to_ns < old->to_ns)
			old->to_ns = new.to_ns;
		return 0;
	}
	new.to_ns = UINT64_MAX;
	if (!old || new.from_ns >= old->to_ns)
		return add_stay(map, &new, number);
	if (new.from_ns < old->from_ns)
		old->from_ns = new.from_ns;
	return 0;
}

/* Whether the module of |a| rather than that of |b| was there at |ns|. */
static bool is_better(const struct d9__stay *a, const struct d9__stay *b, uint64_t ns)
{
	bool a_begun = a->from_ns <= ns, b_begun = b->from_ns <= ns;
	bool a_open = a_begun && ns < a->to_ns, b_open = b_begun && ns < b->to_ns;

	if (a_open != b_open)
		return a_open;
	if (a_begun != b_begun)
		return b_begun;
	if (!a_begun)
		return a->from_ns < b->from_ns;
	return a_open ? a->from_ns >= b->from_ns : a->to_ns >= b->to_ns;
}

static void index_stays(struct d9__module_map *map)
{
	if (map->n - map->n_indexed > UNINDEXED_MAX &&
	    !d9__intervals_build(&map->index, &map->stays->start, &map->stays->end, sizeof(*map->stays), map->n))
		map->n_indexed = map->n;
}

const struct d9__stay *d9__module_map_find(struct d9__module_map *map, uint64_t address, uint64_t ns)
{
	const struct d9__stay *best = NULL;
	size_t found[FOUND_MAX], n;

	index_stays(map);
	n = d9__intervals_find(&map->index, address, found, FOUND_MAX);
	for (size_t i = 0; i < n; i++)
		if (!best || is_better(&map->stays[found[i]], best, ns))
			best = &map->stays[found[i]];
	for (size_t i = map->n_indexed; i < map->n; i++) {
		const struct d9__stay *stay = &map->stays[i];

		if (address >= stay->start && address < stay->end && (!best || is_better(stay, best, ns)))
			best = stay;
	}
	return best;
}

void d9__module_map_release(struct d9__module_map *map)
{
	free(map->stays);
	free(map->latest);
	d9__texts_release(&map->keys);
	d9__intervals_release(&map->index);
	*map = (struct d9__module_map){ 0 };
}
