/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "base/artefact.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

void d9__boot_id_make(char *out, uint64_t clock, long pid)
{
	for (int i = 0; i < 4; i++, clock /= 26)
		out[i] = (char)('a' + clock % 26);
	snprintf(out + 4, D9__BOOT_ID_MAX - 4, "-%ld", pid);
}

bool d9__boot_id_valid(const char *name)
{
	size_t len = strlen(name);

	if (len < 6 || len >= D9__BOOT_ID_MAX || name[4] != '-')
		return false;
	for (size_t i = 0; i < len; i++)
		if (i < 4 ? name[i] < 'a' || name[i] > 'z'
			  : i > 4 && !isdigit((unsigned char)name[i]))
			return false;
	return true;
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

/* "dump." ID |ending|, which is 5 bytes long */
static bool is_manifest(const char *name, const char *ending)
{
	size_t len = strlen(name);

	return len == 36 && !strncmp(name, "dump.", 5) && !strcmp(name + 31, ending) &&
	       strspn(name + 5, "0123456789ABCDEFGHJKMNPQRSTVWXYZ") == 26;
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
	if (is_manifest(name, ".json"))
		return D9__ARTEFACT_MANIFEST;
	if (is_manifest(name, ".done") || !strcmp(name, ".shipped") || !strncmp(name, ".hour", 5))
		return D9__ARTEFACT_SHIPPED;
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
