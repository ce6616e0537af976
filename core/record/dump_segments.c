/* SPDX-License-Identifier: Apache-2.0 */
/* The dump of a recorder that writes what it records: its segments, in another directory. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "record/clock.h"
#include "record/descriptors.h"
#include "record/dump.h"

#define STEP (1u << 20)

struct copy {
	int from_dir, to_dir;
	const char *name;
	void (*keep_up)(void);
};

static int copy_bytes(int from, int to, void (*keep_up)(void))
{
	ssize_t n;

	while ((n = sendfile(to, from, NULL, STEP)) != 0) {
		if (n < 0 && errno != EINTR)
			return -errno;
		keep_up();
	}
	return 0;
}

/* A copy has its name when it is whole. */
static int copy_file(const struct copy *copy)
{
	char part[D9__SEGMENT_NAME_MAX + 8];
	int from, to, err = 0;

	snprintf(part, sizeof(part), "%s.part", copy->name);
	from = d9__descriptor_place(openat(copy->from_dir, copy->name,
					   O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
	if (from < 0)
		return -errno;
	unlinkat(copy->to_dir, part, 0);
	to = d9__descriptor_place(openat(copy->to_dir, part,
					 O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
					 0600));
	if (to < 0)
		err = -errno;
	if (!err)
		err = copy_bytes(from, to, copy->keep_up);
	if (!err && renameat(copy->to_dir, part, copy->to_dir, copy->name))
		err = -errno;
	if (err && to >= 0)
		unlinkat(copy->to_dir, part, 0);
	if (to >= 0)
		close(to);
	close(from);
	return err;
}

/* 0, also if an earlier dump brought it there; -ENOENT if the budget took it meanwhile. */
static int bring(const struct copy *copy)
{
	if (!linkat(copy->from_dir, copy->name, copy->to_dir, copy->name, 0) || errno == EEXIST)
		return 0;
	return errno == ENOENT ? -ENOENT : copy_file(copy);
}

/* Numbers of our own segments that were sealed in the window or hold its end; how many. */
static size_t choose(const struct d9__dump *dump, const struct d9__retention *ret, uint64_t *index)
{
	uint64_t back_ns = d9__clock_mono_ns() - dump->from_ns, now_ns = d9__clock_real_ns();
	uint64_t from_ns = dump->from_ns && back_ns < now_ns ? now_ns - back_ns : 0;
	size_t n = 0;

	for (size_t i = 0; i < ret->n; i++)
		if (!ret->families[i].peer && ret->families[i].sealed_ns >= from_ns)
			index[n++] = ret->families[i].index;
	return n;
}

static int bring_all(struct d9__dump *dump, const struct d9__dump_maker *maker, int to_dir,
		     const uint64_t *index, size_t n)
{
	const struct d9__writer *own = maker->own;
	char name[D9__SEGMENT_NAME_MAX];
	struct stat st;
	int err = 0;

	for (size_t i = 0; i < n && !err; i++) {
		struct copy copy = { own->ns.dir_fd, to_dir, name, maker->keep_up };

		snprintf(name, sizeof(name), "trace.%" PRIu64 "%s", index[i],
			 d9__packer_suffix(own->compress));
		if (to_dir >= 0)
			err = bring(&copy);
		if (err == -ENOENT || fstatat(own->ns.dir_fd, name, &st, AT_SYMLINK_NOFOLLOW)) {
			err = err == -ENOENT ? 0 : err;
			continue;
		}
		dump->segments++;
		dump->bytes += (uint64_t)st.st_size;
	}
	return err;
}

static int run(struct d9__dump *dump, const struct d9__dump_maker *maker, struct d9__namespace *to)
{
	const struct d9__writer *own = maker->own;
	uint64_t *index;
	struct stat a, b;
	int err = 0;

	if (!own->has_dir)
		return -ENOTSUP;
	if (dump->dir[0] && (fstat(own->ns.parent_fd, &a) || stat(dump->dir, &b) ||
			     a.st_dev != b.st_dev || a.st_ino != b.st_ino))
		err = d9__namespace_visit(to, dump->dir, own->ns.boot_id);
	index = err ? NULL : calloc(own->ret.n + 1, sizeof(*index));
	if (!index)
		return err ? err : -ENOMEM;
	err = bring_all(dump, maker, to->dir_fd, index, choose(dump, &own->ret, index));
	free(index);
	if (dump->segments)
		snprintf(dump->path, sizeof(dump->path), "%s/%s",
			 to->dir_fd >= 0 ? to->trace_dir : own->ns.trace_dir, own->ns.boot_id);
	return err;
}

void d9__dump_segments(struct d9__dump *dump, const struct d9__dump_maker *maker)
{
	struct d9__namespace to = { .parent_fd = -1, .dir_fd = -1, .lock_fd = -1 };

	dump->to_ns = d9__clock_mono_ns();
	if (dump->last_ns && dump->last_ns < dump->asked_ns)
		dump->from_ns = dump->asked_ns - dump->last_ns;
	dump->complete = maker->loss_ns < dump->from_ns || !maker->loss_ns;
	dump->err = run(dump, maker, &to);
	d9__namespace_close(&to);
}
