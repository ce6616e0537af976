/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "record/retention.h"

void d9__retention_init(struct d9__retention *ret, uint64_t budget, uint64_t file_limit,
			uint64_t rotation_ns)
{
	*ret = (struct d9__retention){ .budget = budget, .file_limit = file_limit,
				       .rotation_ns = rotation_ns };
}

void d9__retention_release(struct d9__retention *ret)
{
	free(ret->families);
	ret->families = NULL;
	ret->n = ret->capacity = 0;
	ret->bytes = 0;
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

static int grow(struct d9__retention *ret)
{
	size_t capacity = ret->capacity ? ret->capacity * 2 : 64;
	struct d9__family *families;

	if (ret->n < ret->capacity)
		return 0;
	families = reallocarray(ret->families, capacity, sizeof(*families));
	if (!families)
		return -ENOMEM;
	ret->families = families;
	ret->capacity = capacity;
	return 0;
}

int d9__retention_add(struct d9__retention *ret, uint32_t peer, uint64_t index, uint64_t bytes,
		      uint64_t sealed_ns)
{
	struct d9__family family = { index, bytes, sealed_ns, peer }, *known;
	size_t i;

	if (!peer && index >= ret->next_index)
		ret->next_index = index + 1;
	known = find(ret, peer, index);
	if (known) {
		known->bytes += bytes;
		ret->bytes += bytes;
		return 0;
	}
	if (grow(ret))
		return -ENOMEM;
	for (i = ret->n; i > 0 && goes_before(&family, &ret->families[i - 1]); i--)
		ret->families[i] = ret->families[i - 1];
	ret->families[i] = family;
	ret->n++;
	ret->bytes += bytes;
	return 0;
}

bool d9__retention_victim(const struct d9__retention *ret, struct d9__family *victim)
{
	uint64_t room = ret->file_limit < ret->budget ? ret->budget - ret->file_limit : 0;

	if (!ret->n || ret->bytes <= room)
		return false;
	*victim = ret->families[0];
	return true;
}

bool d9__retention_oldest_own(const struct d9__retention *ret, struct d9__family *victim)
{
	for (size_t i = 0; i < ret->n; i++)
		if (!ret->families[i].peer) {
			*victim = ret->families[i];
			return true;
		}
	return false;
}

void d9__retention_remove(struct d9__retention *ret, const struct d9__family *victim, bool evicted)
{
	struct d9__family *family = find(ret, victim->peer, victim->index);
	size_t i;

	if (!family)
		return;
	i = (size_t)(family - ret->families);
	ret->bytes -= family->bytes;
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

/* "perf-" NUMBER ".map" */
static bool is_jit_map(const char *name)
{
	const char *end = name + 5;

	if (strncmp(name, "perf-", 5) != 0)
		return false;
	while (*end >= '0' && *end <= '9')
		end++;
	return end > name + 5 && !strcmp(end, ".map");
}

/* "trace." NUMBER ".bin" [".zst" | ".gz"] [".active"] */
enum d9__artefact d9__artefact_of(const char *name, uint64_t *index)
{
	static const char *const endings[] = { "", ".zst", ".gz" };
	uint64_t value = 0;
	const char *p = name + 6;

	if (!strcmp(name, ".lock"))
		return D9__ARTEFACT_LOCK;
	if (!strcmp(name, "ring"))
		return D9__ARTEFACT_RING;
	if (is_jit_map(name))
		return D9__ARTEFACT_JIT_MAP;
	if (strncmp(name, "trace.", 6) || !isdigit((unsigned char)*p) || (*p == '0' && p[1] != '.'))
		return D9__ARTEFACT_UNKNOWN;
	for (; isdigit((unsigned char)*p); p++) {
		if (value > (UINT64_MAX - 9) / 10)
			return D9__ARTEFACT_UNKNOWN;
		value = value * 10 + (uint64_t)(*p - '0');
	}
	if (strncmp(p, ".bin", 4))
		return D9__ARTEFACT_UNKNOWN;
	for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++) {
		size_t len = strlen(endings[i]);

		bool active = !strncmp(p + 4, endings[i], len) && !strcmp(p + 4 + len, ".active");

		if (active || !strcmp(p + 4, endings[i])) {
			*index = value;
			return active ? D9__ARTEFACT_ACTIVE : D9__ARTEFACT_SEGMENT;
		}
	}
	return D9__ARTEFACT_UNKNOWN;
}
