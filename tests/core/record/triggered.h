/* SPDX-License-Identifier: Apache-2.0 */
/* Triggered: a recorder with triggers, and the manifests of the dumps that they made. */

#ifndef D9_TESTS_RECORD_TRIGGERED_H
#define D9_TESTS_RECORD_TRIGGERED_H

#include <sys/stat.h>

#include <dial9/trigger.h>

#include "core/record/scratch.h"
#include "record/triggers.h"
#include "ring/clock.h"
#include "ring/names.h"

static inline struct d9_recorder *start(enum d9_mode mode, const char *triggers)
{
	struct d9_options *options = scratch_options();
	char often[512];
	size_t len = 0;

	/* This process makes many dumps. */
	for (const char *at = triggers; *at; at += strcspn(at, ";"), at += *at == ';')
		len += (size_t)snprintf(often + len, sizeof(often) - len, "%.*s%s;",
					(int)strcspn(at, ";"), at,
					strstr(triggers, "at most") ? "" : " at most 360/h");
	d9_options_set_mode(options, mode);
	d9_options_set_ring_mb(options, 1);
	CU_ASSERT_EQUAL_FATAL(d9_options_set_triggers(options, often), 0);
	return scratch_start(options);
}

static inline void stop(struct d9_recorder *recorder)
{
	CU_ASSERT_EQUAL(d9_recorder_stop(recorder, 60000), 0);
}

/* As the end of a poll does that took so long. */
static inline void poll_of(uint64_t took_ns)
{
	const struct d9__trigger_place place = {
		.task = 7, .loc = d9__name_intern("frobd+0x12 @ main", 17)
	};

	d9__triggers_poll(d9__clock_mono_ns(), took_ns, &place);
}

/* ---- manifests ---- */

static char manifest[64 << 10]; /* of the dump that was found last */
static int n_manifests;

static inline int find_manifest(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	FILE *file;

	(void)st;
	if (type != FTW_F || strncmp(path + ftw->base, "dump.", 5) != 0)
		return 0;
	n_manifests++;
	file = fopen(path, "r");
	CU_ASSERT_PTR_NOT_NULL_FATAL(file);
	manifest[fread(manifest, 1, sizeof(manifest) - 1, file)] = '\0';
	fclose(file);
	return 0;
}

static inline int manifests(void)
{
	n_manifests = 0;
	manifest[0] = '\0';
	nftw(scratch_dir, find_manifest, 16, FTW_PHYS);
	return n_manifests;
}

static inline bool says(const char *text)
{
	bool found = strstr(manifest, text) != NULL;

	if (!found)
		printf("not in the manifest: %s\n%s", text, manifest);
	return found;
}

#endif /* D9_TESTS_RECORD_TRIGGERED_H */
