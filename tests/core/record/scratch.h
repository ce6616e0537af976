/* SPDX-License-Identifier: Apache-2.0 */
/* Scratch: a directory for the traces of one test, a recorder in it, and what can be read back. */

#ifndef D9_TESTS_RECORD_SCRATCH_H
#define D9_TESTS_RECORD_SCRATCH_H

#include <dirent.h>
#include <ftw.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <dial9/reader.h>
#include <dial9/recorder.h>

#include "support/d9_test.h"

static char scratch_dir[PATH_MAX];

static inline int scratch_remove_entry(const char *path, const struct stat *st, int type,
				       struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

static inline void scratch_remove(void)
{
	if (scratch_dir[0])
		nftw(scratch_dir, scratch_remove_entry, 16, FTW_DEPTH | FTW_PHYS);
	scratch_dir[0] = '\0';
}

/* A fresh directory; the one before is removed. */
static inline const char *scratch_new(void)
{
	const char *tmp = getenv("TMPDIR");

	scratch_remove();
	snprintf(scratch_dir, sizeof(scratch_dir), "%s/d9-test-XXXXXX", tmp ? tmp : "/tmp");
	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(scratch_dir));
	return scratch_dir;
}

/* Options that look at nothing but the test, with traces in a fresh directory. */
static inline struct d9_options *scratch_options(void)
{
	struct d9_options *options = NULL;

	CU_ASSERT_EQUAL_FATAL(d9_options_new(&options), 0);
	d9_options_set_environment(options, false);
	d9_options_set_trace_dir(options, scratch_new());
	d9_options_set_ring_mb(options, 8);
	return options;
}

/* Start with |options|, which are freed. */
static inline struct d9_recorder *scratch_start(struct d9_options *options)
{
	struct d9_recorder *recorder = NULL;

	CU_ASSERT_EQUAL_FATAL(d9_recorder_start(options, &recorder), 0);
	d9_options_free(options);
	return recorder;
}

/* Call |fn| for every event of the trace; file order or time order.  The number of events. */
static inline uint64_t scratch_read(const char *path, bool file_order,
				    void (*fn)(void *arg, const struct d9_event *event), void *arg)
{
	struct d9_reader *reader = NULL;
	const struct d9_event *event;
	uint64_t n = 0;
	int got;

	CU_ASSERT_EQUAL_FATAL(d9_reader_new(&reader), 0);
	d9_reader_set_file_order(reader, file_order);
	got = d9_reader_add(reader, path);
	if (got) {
		d9_reader_free(reader);
		return 0;
	}
	while ((got = d9_reader_next(reader, &event)) == 1) {
		n++;
		if (fn)
			fn(arg, event);
	}
	CU_ASSERT_EQUAL(got, 0);
	for (size_t i = 0; i < d9_reader_segments(reader); i++) {
		struct d9_segment_info info;

		CU_ASSERT_EQUAL(d9_reader_segment(reader, i, &info), 0);
		if (info.err)
			printf("%s: %s\n", info.path, info.message ? info.message : "?");
		CU_ASSERT_EQUAL(info.err, 0);
	}
	d9_reader_free(reader);
	return n;
}

struct scratch_count {
	const char *name;
	uint64_t n;
};

static inline void scratch_count_event(void *arg, const struct d9_event *event)
{
	struct scratch_count *count = arg;

	count->n += !strcmp(d9_event_name(event), count->name);
}

/* How many events called |name| the trace holds. */
static inline uint64_t scratch_count(const char *name)
{
	struct scratch_count count = { name, 0 };

	scratch_read(scratch_dir, true, scratch_count_event, &count);
	return count.n;
}

/*
 * The number of files below |dir| whose names end with |ending|.  "" is all but .peers, which is there if
 * the look at what others left in /dev/shm was a long one.
 */
static inline unsigned scratch_files(const char *dir, const char *ending)
{
	DIR *d = opendir(dir);
	unsigned n = 0;
	struct dirent *e;

	while (d && (e = readdir(d))) {
		size_t len = strlen(e->d_name), end = strlen(ending);
		char path[PATH_MAX];

		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..") ||
		    (!end && !strcmp(e->d_name, ".peers")))
			continue;
		snprintf(path, sizeof(path), "%.2000s/%s", dir, e->d_name);
		if (e->d_type == DT_DIR)
			n += scratch_files(path, ending);
		else
			n += len >= end && !strcmp(e->d_name + len - end, ending);
	}
	if (d)
		closedir(d);
	return n;
}

#endif /* D9_TESTS_RECORD_SCRATCH_H */
