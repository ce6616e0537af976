/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "ship/tables.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <dial9/error.h>

#include "stage/program.h"

#define INCOMING "parquet/v1/incoming"
#define FOLDERS	 8 /* descriptors that a walk has open */

/* ---- the files, out of the folder where they were made ---- */

/* nftw(3) has no place for it. */
static struct {
	struct d9__table_objects *out;
	const char *prefix;
	size_t root_len;
	int err;
} walk;

static int take_file(const char *path, off_t size)
{
	struct d9__table_object *table = &walk.out->items[walk.out->n];
	const char *prefix = walk.prefix ? walk.prefix : "";

	if (walk.out->n == D9__TABLES_MAX)
		return -EOVERFLOW;
	if (asprintf(&table->key, "%s%s" INCOMING "%s", prefix, *prefix ? "/" : "", path + walk.root_len) < 0)
		return -ENOMEM;
	table->bytes = (uint64_t)size;
	table->fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (table->fd < 0) {
		free(table->key);
		return -errno;
	}
	walk.out->n++;
	return 0;
}

/* Remove each file as soon as it is open, and each folder behind its contents. */
static int take_entry(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	(void)at;
	if (kind == FTW_F && S_ISREG(st->st_mode) && !walk.err)
		walk.err = take_file(path, st->st_size);
	if (kind == FTW_DP)
		rmdir(path);
	else
		unlink(path);
	return 0;
}

static int take_all(const char *root, const char *prefix, struct d9__table_objects *out)
{
	walk.out = out;
	walk.prefix = prefix;
	walk.root_len = strlen(root);
	walk.err = 0;
	nftw(root, take_entry, FOLDERS, FTW_PHYS | FTW_DEPTH);
	return walk.err;
}

/* ---- making them ---- */

static int run(int fd, const char *key, const char *root, const struct d9__stages *stages, char *why, size_t why_size)
{
	char path[32];
	const char *argv[] = { "/proc/self/exe", "export", "--format", "parquet", "--partitions", "--segment-key", key, "-o", root,
			       path, NULL };
	struct d9__program program = { .argv = (char *const *)argv,
				       .timeout_ns = stages->timeout_ns,
				       .pulse = stages->pulse,
				       .context = stages->context };
	struct d9__program_end end = { 0 };
	int own = fcntl(fd, F_DUPFD, 3), out = open("/dev/null", O_WRONLY | O_CLOEXEC), err;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", own);
	err = own < 0 || out < 0 ? -errno : d9__program_run(&program, -1, out, &end);
	if (own >= 0)
		close(own);
	if (out >= 0)
		close(out);
	if (!err && end.timed_out)
		err = -ETIMEDOUT;
	if (err)
		snprintf(why, why_size, "%s", d9_strerror(err));
	else if (end.status || *end.said)
		snprintf(why, why_size, "%s", *end.said ? end.said : "it was ended by a signal");
	return err ? err : end.status ? -EBADMSG : 0;
}

int d9__table_objects_make(struct d9__table_objects *out, int fd, const char *prefix, const char *key,
			   const struct d9__stages *stages, char *why, size_t why_size)
{
	const char *temporary = getenv("TMPDIR");
	char root[256];
	int err, taken;

	*out = (struct d9__table_objects) { 0 };
	*why = '\0';
	snprintf(root, sizeof(root), "%.200s/dial9-tables-XXXXXX", temporary && *temporary ? temporary : "/tmp");
	if (!mkdtemp(root)) {
		err = -errno;
		snprintf(why, why_size, "%.200s: %s", root, d9_strerror(err));
		return err;
	}
	err = run(fd, key, root, stages, why, why_size);
	taken = take_all(root, prefix, out);
	/* Keep the tables of a damaged segment if all were written: they have the events before the damage. */
	if (err == -EBADMSG && !taken && out->n == D9__TABLES_ALL)
		err = 0;
	if (!err && taken) {
		err = taken;
		snprintf(why, why_size, "%s", d9_strerror(err));
	}
	if (err)
		d9__table_objects_release(out);
	return err;
}

void d9__table_objects_release(struct d9__table_objects *tables)
{
	while (tables->n) {
		struct d9__table_object *table = &tables->items[--tables->n];

		close(table->fd);
		free(table->key);
	}
}
