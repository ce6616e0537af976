/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The dump of a recorder that writes what it records: its segments, in another directory, and one more that
 * announces the tasks that are in them and began before.  Those that have ended meanwhile are looked for in
 * the segments that are older.  In the recorder's own directory all began, unless the budget took that.
 */
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

#include "base/descriptors.h"
#include "base/heap.h"
#include "drain/dump.h"
#include "drain/dump_writer.h"
#include "ring/clock.h"
#include "segment/dump_tasks.h"
#include "segment/segment_scan.h"

#define STEP         (1u << 20)
#define SEARCH_BYTES (UINT64_C(256) << 20) /* of older segments; three seconds of work */

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

struct job {
	struct d9__dump *dump;
	const struct d9__dump_maker *maker;
	struct d9__dump_tasks *tasks;
	struct d9__walker *walker;
	struct d9__namespace to; /* |dir_fd| -1: the recorder's own directory */
	uint64_t *index;         /* numbers of our segments */
	size_t n, first;         /* first: of the window */
};

/* All of ours; in the window are those from the first one that was sealed in it or holds its end. */
static int list_segments(struct job *job)
{
	const struct d9__retention *ret = &job->maker->own->ret;
	uint64_t back_ns = d9__clock_mono_ns() - job->dump->from_ns, now_ns = d9__clock_real_ns();
	uint64_t from_ns = job->dump->from_ns && back_ns < now_ns ? now_ns - back_ns : 0;

	job->index = d9__calloc(ret->n + 1, sizeof(*job->index));
	if (!job->index)
		return -ENOMEM;
	for (size_t i = 0; i < ret->n; i++) {
		if (ret->families[i].peer)
			continue;
		job->first += job->first == job->n && ret->families[i].sealed_ns < from_ns;
		job->index[job->n++] = ret->families[i].index;
	}
	return 0;
}

static void put_name(const struct job *job, uint64_t index, char *name)
{
	snprintf(name, D9__SEGMENT_NAME_MAX, "trace.%" PRIu64 "%s", index,
		 d9__packer_suffix(job->maker->own->compress));
}

static int bring_all(struct job *job)
{
	const struct d9__writer *own = job->maker->own;
	char name[D9__SEGMENT_NAME_MAX];
	struct stat st;
	int err = 0;

	for (size_t i = job->first; i < job->n && !err; i++) {
		struct copy copy = { own->ns.dir_fd, job->to.dir_fd, name, job->maker->keep_up };

		put_name(job, job->index[i], name);
		if (job->to.dir_fd >= 0)
			err = bring(&copy);
		if (err == -ENOENT || fstatat(own->ns.dir_fd, name, &st, AT_SYMLINK_NOFOLLOW)) {
			err = err == -ENOENT ? 0 : err;
			continue;
		}
		job->dump->segments++;
		job->dump->bytes += (uint64_t)st.st_size;
	}
	return err;
}

/* ---- tasks from before ---- */

static uint32_t look_at(void *arg, const uint8_t *bytes, size_t len)
{
	const struct job *job = arg;

	return d9__dump_tasks_look(job->tasks, job->walker, bytes, 0, len);
}

static uint32_t search_in(void *arg, const uint8_t *bytes, size_t len)
{
	const struct job *job = arg;

	return d9__dump_tasks_search(job->tasks, job->walker, bytes, len);
}

/* What the budget took meanwhile, or what is damaged, tells nothing.  Its bytes. */
static uint64_t scan(struct job *job, int dir_fd, uint64_t index, d9__batch_fn fn)
{
	const struct d9__segment_scan how = { fn, job, job->maker->keep_up };
	char name[D9__SEGMENT_NAME_MAX];
	struct stat st = { .st_size = 0 };
	int fd;

	put_name(job, index, name);
	fd = d9__descriptor_place(openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
	if (fd < 0)
		return 0;
	if (fstat(fd, &st) || d9__segment_scan(&how, fd, job->maker->own->compress) == -ENOMEM)
		job->tasks->failed = true;
	close(fd);
	return (uint64_t)st.st_size;
}

/* From the newest on: most tasks did not begin long ago. */
static void search_older(struct job *job)
{
	uint64_t done = 0;

	for (size_t i = job->first; i-- > 0 && done < SEARCH_BYTES && job->tasks->missing.n;)
		done += scan(job, job->maker->own->ns.dir_fd, job->index[i], search_in);
}

static int announce_there(struct job *job, uint64_t ns)
{
	struct d9__writer *own = job->maker->own;
	struct d9__dump_writer *w = d9__calloc(1, sizeof(*w));
	uint64_t now_ns = d9__clock_mono_ns();
	int err;

	if (!w)
		return -ENOMEM;
	err = d9__dump_writer_open(w, job->maker, &job->to);
	/* A number that none of our segments will have: all may still be brought there. */
	w->writer.ret.next_index = own->ret.next_index++;
	w->writer.all_or_nothing = true;
	if (!err)
		err = d9__dump_tasks_announce(job->tasks, &w->writer, ns, now_ns);
	if (err && w->writer.seg.open)
		d9__writer_abandon(&w->writer, err, now_ns);
	if (!err)
		err = d9__writer_rotate(&w->writer, now_ns);
	if (!err)
		job->dump->bytes += w->writer.seg.bytes;
	d9__dump_writer_close(w, job->maker);
	d9__free(w);
	return err;
}

/* Whether the directory tells no longer where all tasks began. */
static bool is_cut(const struct job *job)
{
	return job->to.dir_fd >= 0 || (job->n && job->index[0] > 0);
}

static int announce_tasks(struct job *job)
{
	bool elsewhere = job->to.dir_fd >= 0;
	int err;

	job->walker = d9__malloc(sizeof(*job->walker));
	if (!job->walker)
		return -ENOMEM;
	for (size_t i = job->first; i < job->n; i++)
		scan(job, elsewhere ? job->to.dir_fd : job->maker->own->ns.dir_fd, job->index[i], look_at);
	if (d9__dump_tasks_settle(job->tasks) && elsewhere)
		search_older(job);
	d9__free(job->walker);
	job->dump->complete &= !job->tasks->failed;
	if (!job->tasks->n || !job->tasks->first_ns || job->tasks->failed)
		return 0;
	/* Before all that happens at that time. */
	err = elsewhere ? announce_there(job, job->tasks->first_ns - 1)
			: job->maker->announce(job->tasks, job->tasks->first_ns - 1);
	job->dump->segments += !err;
	return err;
}

static int run(struct job *job)
{
	const struct d9__writer *own = job->maker->own;
	struct d9__dump *dump = job->dump;
	int err = 0;

	if (!own->has_dir)
		return -ENOTSUP;
	if (!d9__dump_is_own(dump, job->maker))
		err = d9__namespace_visit(&job->to, dump->dir, own->ns.boot_id);
	if (!err)
		err = list_segments(job);
	if (!err)
		err = bring_all(job);
	if (dump->segments)
		snprintf(dump->path, sizeof(dump->path), "%s/%s",
			 job->to.dir_fd >= 0 ? job->to.trace_dir : own->ns.trace_dir, own->ns.boot_id);
	if (!err && dump->segments && is_cut(job))
		err = announce_tasks(job);
	d9__free(job->index);
	return err;
}

void d9__dump_segments(struct d9__dump *dump, const struct d9__dump_maker *maker,
		       struct d9__dump_tasks *tasks)
{
	struct job job = { .dump = dump, .maker = maker, .tasks = tasks,
			   .to = { .parent_fd = -1, .dir_fd = -1, .lock_fd = -1 } };

	dump->to_ns = d9__clock_mono_ns();
	dump->from_ns = d9__dump_from(dump);
	dump->complete = maker->loss_ns < dump->from_ns || !maker->loss_ns;
	dump->err = run(&job);
	d9__namespace_close(&job.to);
}
