/* SPDX-License-Identifier: Apache-2.0 */
/* A trigger fires, and somebody else fills the device: before, or in the middle of the window.  Nothing is claimed that is not. */
#include "config.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>

#include <dial9/event.h>
#include <dial9/trigger.h>

#include "core/record/again.h"
#include "core/record/full_device.h"
#include "core/record/scratch.h"

static const struct d9_field fields[] = {
	{ "number", D9_FIELD_VARINT, NULL, NULL },
	{ "noise", D9_FIELD_BYTES, NULL, NULL },
};
static struct d9_event_type numbered = D9_EVENT_TYPE("Numbered", fields);
static _Atomic(bool) ends;
static pthread_t thread;

/* About 2,000 events a second, which do not compress. */
static void *run(void *unused)
{
	uint32_t noise[64], random = 1;

	for (uint64_t n = 0; !ends; n++) {
		for (int i = 0; i < 64; i++)
			noise[i] = random = random * 1664525 + 1013904223;
		D9_EMIT(&numbered, n, d9_bytes(noise, sizeof(noise)));
		again_pause_ms(n % 2);
	}
	return unused;
}

/* NULL: there are no mounts of our own. */
static const char *start(enum d9_mode mode, const char *triggers)
{
	struct d9_options *options;
	const char *dir;

	scratch_new();
	if (!own_mounts() || !(dir = tmpfs_at("small", "size=4m")))
		return NULL;
	MUST(!d9_options_new(&options));
	d9_options_set_environment(options, false);
	d9_options_set_trace_dir(options, dir);
	d9_options_set_ring_mb(options, 1);
	d9_options_set_mode(options, mode);
	MUST(!d9_options_set_triggers(options, triggers));
	MUST(!d9_recorder_start(options, NULL));
	d9_options_free(options);
	MUST(!pthread_create(&thread, NULL, run, NULL));
	return dir;
}

static int stop(void)
{
	ends = true;
	pthread_join(thread, NULL);
	MUST(!d9_recorder_stop(d9_recorder_running(), 20000));
	return 0;
}

/* ---- manifests ---- */

static char manifest[64 << 10], manifest_dir[PATH_MAX], newest[PATH_MAX];

static int look(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	/* Their names sort by time. */
	if (type == FTW_F && !strncmp(path + ftw->base, "dump.", 5) && strcmp(path, newest) > 0)
		snprintf(newest, sizeof(newest), "%s", path);
	return 0;
}

/* The manifest of the newest dump says |text|. */
static bool says(const char *text)
{
	FILE *file;

	newest[0] = manifest[0] = '\0';
	nftw(scratch_dir, look, 16, FTW_PHYS);
	file = fopen(newest, "r");
	if (!file)
		return false;
	manifest[fread(manifest, 1, sizeof(manifest) - 1, file)] = '\0';
	fclose(file);
	snprintf(manifest_dir, sizeof(manifest_dir), "%.*s", (int)(strrchr(newest, '/') - newest), newest);
	return strstr(manifest, text) != NULL;
}

static void count(void *arg, const struct d9_event *event)
{
	*(unsigned *)arg += !strcmp(d9_event_name(event), "Numbered");
}

/* Events in all segments that the manifest names, each of which is there. */
static unsigned listed(void)
{
	char *at = strstr(manifest, "\"segments\": ["), *end = at ? strchr(at, ']') : NULL, path[2 * PATH_MAX];
	unsigned n = 0;

	MUST(end);
	while ((at = strstr(at, "\"trace.")) && at < end) {
		snprintf(path, sizeof(path), "%s/%.*s", manifest_dir, (int)strcspn(at + 1, "\""), at + 1);
		MUST(!access(path, F_OK));
		MUST(scratch_read(path, true, count, &n) > 0);
		at++;
	}
	return n;
}

static uint64_t lost(void)
{
	struct d9_counters c = { 0 };

	d9_recorder_counters(d9_recorder_running(), &c, sizeof(c));
	return c.lost[D9_LOSS_DISK];
}

/* There is room again: the next dump is whole. */
static int dump_whole(void)
{
	MUST(!d9_trigger_fire("after"));
	MUST(AGAIN_WAIT(says("\"trigger\": \"after\"") && says("\"state\": \"closed\"")));
	MUST(strstr(manifest, "\"complete\": true"));
	MUST(listed() > 0);
	return stop();
}

/* ---- roles ---- */

#define TRIGGERS(window)                                                                           \
	"before: call last 60s then " window " every 1s at most 360/h;"                            \
	"after: call last 1s then 50ms every 1s at most 360/h"

/* Nothing can be written in the whole window: the manifest says so as soon as there is room. */
static int flight_full_at_the_fire(void)
{
	const char *dir = start(D9_MODE_FLIGHT, TRIGGERS("200ms")), *others;

	if (!dir)
		return again_skip("no mount namespace");
	others = fill(dir);
	MUST(!d9_trigger_fire("before"));
	again_pause_ms(1500); /* longer than the window: what follows holds anyway */
	MUST(!says("\"complete\": true") && !says("\"state\": \"closed\""));
	MUST(!unlink(others));
	MUST(AGAIN_WAIT(says("\"trigger\": \"before\"") && !says("\"state\": \"open\"")));
	/* On a slow machine the window is open until there is room. */
	MUST(strstr(manifest, "\"state\": \"closed\"") ||
	     (strstr(manifest, "\"state\": \"failed\"") && strstr(manifest, "\"error\": \"no space left\"") &&
	      strstr(manifest, "\"complete\": false") && strstr(manifest, "\"segments\": []")));
	return dump_whole();
}

/* For longer than a window is open, whatever the recorder gives back meanwhile. */
static void keep_full(const char *dir, int ms)
{
	for (int i = 0; i < ms / 10; i++) {
		fill(dir);
		again_pause_ms(10);
	}
}

/* Segments that were written before the device was full stay, and the manifest names them. */
static int flight_full_in_the_window(void)
{
	const char *dir = start(D9_MODE_FLIGHT, TRIGGERS("3s")), *others;

	if (!dir)
		return again_skip("no mount namespace");
	MUST(!d9_trigger_fire("before"));
	MUST(AGAIN_WAIT(scratch_files(dir, ".active") == 1 && says("\"state\": \"open\"")));
	others = fill(dir);
	keep_full(dir, 3500);
	MUST(!says("\"complete\": true") && !says("\"state\": \"closed\""));
	MUST(!unlink(others));
	MUST(AGAIN_WAIT(says("\"state\": \"failed\"")));
	MUST(strstr(manifest, "\"error\": \"no space left\"") && strstr(manifest, "\"complete\": false"));
	MUST(strstr(manifest, "\"segment_count\": 1") && listed() > 0);
	return dump_whole();
}

/* Where all is written, for longer than the ring lasts: the manifest tells that something is missing; nothing before is gone. */
static int continuous_full_in_the_window(void)
{
	const char *dir = start(D9_MODE_CONTINUOUS, TRIGGERS("1s")), *others;

	if (!dir)
		return again_skip("no mount namespace");
	MUST(AGAIN_WAIT(scratch_files(dir, ".active") == 1));
	again_pause_ms(300);
	others = fill(dir);
	MUST(AGAIN_WAIT(({ fill(dir); lost() > 0; })));
	MUST(!d9_trigger_fire("before"));
	keep_full(dir, 1500);
	MUST(!says("\"state\": \"closed\""));
	MUST(!unlink(others));
	MUST(AGAIN_WAIT(says("\"trigger\": \"before\"") && says("\"state\": \"closed\"")));
	MUST(strstr(manifest, "\"complete\": false"));
	MUST(listed() > 0);
	return stop();
}

#define ROLES(X) X(flight_full_at_the_fire) X(flight_full_in_the_window) X(continuous_full_in_the_window)

#define TEST(role)                                                                                 \
	static void test_##role(void)                                                              \
	{                                                                                          \
		again_check(#role, NULL);                                                          \
	}
ROLES(TEST)

int main(int argc, char **argv)
{
	static const struct again_role roles[] = {
#define ROLE(role) { #role, role },
		ROLES(ROLE){ NULL, NULL },
	};
	static const CU_TestInfo tests[] = {
		{ "device that is full when a dump begins: none is claimed, and the next is whole", test_flight_full_at_the_fire },
		{ "device that gets full in the window: what was written stays, and is named", test_flight_full_in_the_window },
		{ "likewise where all is written: what is missing is told", test_continuous_full_in_the_window },
		CU_TEST_INFO_NULL,
	};
	int role = again_main(argc, argv, roles);

	if (role >= 0) {
		scratch_remove();
		return role;
	}
	return d9_test_main("full_dump", tests);
}
