/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/heap.h"
#include "segment/retention.h"

void d9__retention_init(struct d9__retention *ret, uint64_t budget, uint64_t file_limit,
			uint64_t rotation_ns)
{
	*ret = (struct d9__retention){ .budget = budget, .file_limit = file_limit,
				       .rotation_ns = rotation_ns, .dump_budget = UINT64_MAX };
}

void d9__retention_release(struct d9__retention *ret)
{
	for (size_t i = 0; i < ret->n_dumps; i++)
		d9__free(ret->dumps[i].segments);
	d9__free(ret->dumps);
	d9__free(ret->families);
	ret->dumps = NULL;
	ret->families = NULL;
	ret->n = ret->n_dumps = 0;
	ret->bytes = ret->dump_bytes = ret->raw = 0;
}

/* Whether |a| is to be deleted before |b|. */
static bool goes_before(const struct d9__family *a, const struct d9__family *b)
{
	if (!a->peer != !b->peer)
		return a->peer != 0;
	if (!a->peer)
		return a->index < b->index;
	if (a->sealed_ns != b->sealed_ns)
		return a->sealed_ns < b->sealed_ns;
	return a->peer != b->peer ? a->peer < b->peer : a->index < b->index;
}

static struct d9__family *find(const struct d9__retention *ret, uint32_t peer, uint64_t index)
{
	for (size_t i = ret->n; i-- > 0;)
		if (ret->families[i].peer == peer && ret->families[i].index == index)
			return &ret->families[i];
	return NULL;
}

static uint64_t *sum_of(struct d9__retention *ret, const struct d9__family *family)
{
	return family->dumped ? &ret->dump_bytes : &ret->bytes;
}

int d9__retention_add(struct d9__retention *ret, uint32_t peer, uint64_t index, uint64_t bytes,
		      uint64_t sealed_ns)
{
	struct d9__family family = { .index = index, .bytes = bytes, .sealed_ns = sealed_ns, .peer = peer }, *known;
	size_t i;

	if (!peer && index >= ret->next_index)
		ret->next_index = index + 1;
	known = find(ret, peer, index);
	if (known) {
		known->bytes += bytes;
		*sum_of(ret, known) += bytes;
		return 0;
	}
	if (!d9__array_grow(ret->families, ret->n))
		return -ENOMEM;
	for (i = ret->n; i > 0 && goes_before(&family, &ret->families[i - 1]); i--)
		ret->families[i] = ret->families[i - 1];
	ret->families[i] = family;
	ret->n++;
	ret->bytes += bytes;
	return 0;
}

void d9__retention_set_raw(struct d9__retention *ret, uint64_t index, uint64_t raw)
{
	struct d9__family *family = find(ret, 0, index);

	if (!family)
		return;
	ret->raw += raw - family->raw;
	family->raw = raw;
}

void d9__retention_repacked(struct d9__retention *ret, uint64_t index, uint64_t bytes)
{
	struct d9__family *family = find(ret, 0, index);

	if (!family)
		return;
	*sum_of(ret, family) += bytes - family->bytes;
	family->bytes = bytes;
	d9__retention_set_raw(ret, index, 0);
}

static bool is_spared(const struct d9__retention *ret, uint32_t peer)
{
	return peer && ret->spares_peers;
}

/* Of the families that are dumped, or are not, what is spared. */
static uint64_t spared_bytes(const struct d9__retention *ret, bool dumped)
{
	uint64_t bytes = 0;

	for (size_t i = 0; ret->spares_peers && i < ret->n; i++)
		if (ret->families[i].peer && ret->families[i].dumped == dumped)
			bytes += ret->families[i].bytes;
	return bytes;
}

bool d9__retention_victim(const struct d9__retention *ret, struct d9__family *victim)
{
	uint64_t room = ret->file_limit < ret->budget ? ret->budget - ret->file_limit : 0;

	if (ret->bytes - spared_bytes(ret, false) <= room)
		return false;
	for (size_t i = 0; i < ret->n; i++)
		if (!ret->families[i].dumped && !is_spared(ret, ret->families[i].peer)) {
			*victim = ret->families[i];
			return true;
		}
	return false;
}

/* ---- dumps ---- */

void d9__retention_leave(struct d9__retention *ret, uint32_t peer, uint64_t index)
{
	struct d9__family *family = find(ret, peer, index);

	if (!family || family->dumped)
		return;
	ret->bytes -= family->bytes;
	family->dumped = true;
	ret->dump_bytes += family->bytes;
}

int d9__retention_add_dump(struct d9__retention *ret, uint32_t peer, const char *id, const uint64_t *segments, size_t n)
{
	struct d9__retained_dump dump = { .peer = peer, .n = n };
	size_t i;

	if (!d9__array_grow(ret->dumps, ret->n_dumps))
		return -ENOMEM;
	dump.segments = d9__calloc(n + 1, sizeof(*dump.segments));
	if (!dump.segments)
		return -ENOMEM;
	snprintf(dump.id, sizeof(dump.id), "%s", id);
	for (i = 0; i < n; i++) {
		struct d9__family *family = find(ret, peer, segments[i]);

		dump.segments[i] = segments[i];
		if (family)
			family->dumps++;
	}
	for (i = ret->n_dumps++; i > 0 && strcmp(dump.id, ret->dumps[i - 1].id) < 0; i--)
		ret->dumps[i] = ret->dumps[i - 1];
	ret->dumps[i] = dump;
	return 0;
}

/* The oldest dump that is not spared, if there is another such; otherwise the number of all. */
static size_t oldest_dump(const struct d9__retention *ret)
{
	size_t oldest = ret->n_dumps, n = 0;

	for (size_t i = ret->n_dumps; i-- > 0;)
		if (!is_spared(ret, ret->dumps[i].peer)) {
			oldest = i;
			n++;
		}
	return n < 2 ? ret->n_dumps : oldest;
}

bool d9__retention_take_dump(struct d9__retention *ret, struct d9__retained_dump *out)
{
	size_t oldest = oldest_dump(ret);

	if (oldest == ret->n_dumps || ret->dump_bytes - spared_bytes(ret, true) <= ret->dump_budget)
		return false;
	*out = ret->dumps[oldest];
	memmove(ret->dumps + oldest, ret->dumps + oldest + 1, (--ret->n_dumps - oldest) * sizeof(*ret->dumps));
	for (size_t i = 0; i < out->n; i++) {
		struct d9__family *family = find(ret, out->peer, out->segments[i]);

		if (family && family->dumps)
			family->dumps--;
	}
	return true;
}

bool d9__retention_is_left(const struct d9__retention *ret, uint32_t peer, uint64_t index, struct d9__family *family)
{
	const struct d9__family *it = find(ret, peer, index);

	if (!it || !it->dumped || it->dumps)
		return false;
	*family = *it;
	return true;
}

void d9__retention_remove(struct d9__retention *ret, const struct d9__family *victim, bool evicted)
{
	struct d9__family *family = find(ret, victim->peer, victim->index);
	size_t i;

	if (!family)
		return;
	i = (size_t)(family - ret->families);
	*sum_of(ret, family) -= family->bytes;
	ret->raw -= family->raw;
	if (evicted) {
		ret->evicted++;
		ret->evicted_bytes += family->bytes;
	}
	memmove(family, family + 1, (ret->n - i - 1) * sizeof(*family));
	ret->n--;
}

bool d9__retention_full(const struct d9__retention *ret, uint64_t bytes)
{
	return bytes >= ret->file_limit;
}

bool d9__retention_aged(const struct d9__retention *ret, uint64_t opened_ns, uint64_t now_ns,
			bool has_events)
{
	return has_events && now_ns - opened_ns >= ret->rotation_ns && now_ns > opened_ns;
}
