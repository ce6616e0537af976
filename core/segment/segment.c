/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/heap.h"
#include "base/test_point.h"
#include "segment/files.h"
#include "segment/segment.h"

static void active_name(const struct d9__segment *seg, char *buf, size_t size)
{
	snprintf(buf, size, "%s.active", seg->name);
}

static int fail(struct d9__segment *seg, const char *op, int err)
{
	seg->failed_op = op;
	return err;
}

static int open_file(struct d9__segment *seg)
{
	char active[D9__SEGMENT_NAME_MAX + 8];
	struct stat st;

	active_name(seg, active, sizeof(active));
	seg->fd = d9__file_open(seg->dir_fd, active, O_WRONLY | O_CREAT | O_EXCL);
	if (seg->fd < 0)
		return fail(seg, "open", seg->fd);
	if (fstat(seg->fd, &st)) {
		int err = -errno;

		close(seg->fd);
		return fail(seg, "stat", err);
	}
	D9__TEST_POINT(SEGMENT_CREATED);
	seg->device = st.st_dev;
	seg->inode = st.st_ino;
	return 0;
}

int d9__segment_open(struct d9__segment *seg, const struct d9__segment_place *place, uint64_t index,
		     uint64_t now_ns)
{
	struct d9__packer packer = seg->packer;
	int err;

	*seg = (struct d9__segment){ .fd = -1, .memory = place->memory, .dir_fd = place->dir_fd,
				     .index = index, .opened_ns = now_ns, .complete = true, .packer = packer };
	snprintf(seg->name, sizeof(seg->name), "trace.%" PRIu64 "%s", index,
		 d9__packer_suffix(place->compress));
	err = d9__packer_begin(&seg->packer, place->compress);
	if (err)
		return fail(seg, "compress", err);
	err = place->memory ? 0 : open_file(seg);
	seg->open = !err;
	return err;
}

int d9__segment_add(struct d9__segment *seg, const void *batch, size_t len, uint64_t first_ns,
		    uint64_t last_ns, uint32_t events, bool real, uint64_t now_ns)
{
	int err = d9__packer_add(&seg->packer, batch, len, first_ns, last_ns, events, now_ns);

	if (err)
		return fail(seg, "compress", err);
	seg->has.events += events;
	if (!real)
		return 0;
	seg->has.real = true;
	if (first_ns && (!seg->has.first_ns || first_ns < seg->has.first_ns))
		seg->has.first_ns = first_ns;
	if (last_ns > seg->has.last_ns)
		seg->has.last_ns = last_ns;
	return 0;
}

/* The program may have closed the descriptor, and have another file of that number: not ours to change or to close. */
static bool is_ours(struct d9__segment *seg, struct stat *st)
{
	if (!fstat(seg->fd, st) && st->st_dev == seg->device && st->st_ino == seg->inode)
		return true;
	seg->fd = -1;
	return false;
}

/* The descriptor is still our file, and the file still has a name. */
static int check_file(struct d9__segment *seg)
{
	struct stat st;

	if (!is_ours(seg, &st))
		return fail(seg, "write", -EBADF);
	return st.st_nlink ? 0 : fail(seg, "write", -ENOENT);
}

static int write_file(struct d9__segment *seg)
{
	size_t done = 0;
	int err = check_file(seg);

	while (!err && done < seg->packer.len) {
		ssize_t n = pwrite(seg->fd, seg->packer.out + done, seg->packer.len - done,
				   (off_t)(seg->bytes + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			err = fail(seg, "write", -errno);
		else if (!n)
			err = fail(seg, "write", -ENOSPC);
		else
			done += (size_t)n;
	}
	return err;
}

static int write_memory(struct d9__segment *seg)
{
	if (!d9__array_reserve(seg->data, &seg->capacity, (size_t)seg->bytes, seg->packer.len))
		return fail(seg, "write", -ENOMEM);
	memcpy(seg->data + seg->bytes, seg->packer.out, seg->packer.len);
	return 0;
}

static int write_out(struct d9__segment *seg)
{
	int err;

	if (!seg->packer.len)
		return 0;
	D9__TEST_POINT(WRITE_BEGIN);
	err = seg->memory ? write_memory(seg) : write_file(seg);
	if (err)
		return err;
	D9__TEST_POINT(WRITE_END);
	seg->bytes += seg->packer.len;
	d9__packer_keep(&seg->packer);
	seg->committed = seg->has;
	return 0;
}

int d9__segment_write(struct d9__segment *seg, uint64_t now_ns)
{
	int err = d9__packer_flush(&seg->packer, now_ns);

	return err ? fail(seg, "compress", err) : write_out(seg);
}

static void close_file(struct d9__segment *seg)
{
	struct stat st;

	if (is_ours(seg, &st))
		close(seg->fd);
	seg->fd = -1;
	seg->open = false;
}

static int rename_or_remove(struct d9__segment *seg, bool *kept)
{
	char active[D9__SEGMENT_NAME_MAX + 8];
	int err;

	*kept = seg->has.real;
	if (seg->memory)
		return 0;
	active_name(seg, active, sizeof(active));
	if (!*kept) {
		err = d9__file_remove(seg->dir_fd, active);
		return err ? fail(seg, "remove", err) : 0;
	}
	err = d9__file_rename(seg->dir_fd, active, seg->name);
	*kept = !err;
	return err ? fail(seg, "rename", err) : 0;
}

int d9__segment_seal(struct d9__segment *seg, uint64_t now_ns, bool *kept)
{
	int err = d9__packer_flush(&seg->packer, now_ns);

	if (!err)
		err = d9__packer_end(&seg->packer);
	if (err)
		fail(seg, "compress", err);
	else
		err = write_out(seg);
	if (err)
		return err;
	D9__TEST_POINT(SEGMENT_ENDED);
	seg->ended = true;
	seg->open = false;
	err = rename_or_remove(seg, kept);
	D9__TEST_POINT(SEGMENT_RENAMED);
	seg->unfinished = err != 0;
	if (!err)
		close_file(seg);
	return err;
}

/* Behind the last commit there is nothing, or what a write left that failed halfway. */
static int cut_file(struct d9__segment *seg)
{
	struct stat st;

	if (!is_ours(seg, &st) || (uint64_t)st.st_size <= seg->bytes)
		return 0;
	return ftruncate(seg->fd, (off_t)seg->bytes) ? fail(seg, "truncate", -errno) : 0;
}

static int write_end(struct d9__segment *seg)
{
	int err = d9__packer_end_frame(&seg->packer);

	if (!err)
		err = write_out(seg);
	if (!err)
		err = d9__packer_end(&seg->packer);
	if (!err)
		err = write_out(seg);
	if (!err) {
		seg->ended = true;
		return 0;
	}
	d9__packer_cut(&seg->packer);
	cut_file(seg);
	return err;
}

void d9__segment_cut(struct d9__segment *seg, bool *kept)
{
	const char *op = seg->failed_op;

	d9__packer_cut(&seg->packer);
	seg->has = seg->committed;
	d9__segment_finish(seg, seg->dir_fd, kept);
	seg->failed_op = op; /* what failed first is told */
}

/* No other segment can be written either. */
static bool may_go_later(int err)
{
	return err == -EDQUOT || err == -ENOSPC || err == -EROFS;
}

int d9__segment_finish(struct d9__segment *seg, int dir_fd, bool *kept)
{
	bool first = seg->open;
	int err = seg->has.real ? cut_file(seg) : 0;

	*kept = seg->open = false;
	seg->dir_fd = dir_fd;
	if (!err && seg->has.real && !seg->ended)
		err = write_end(seg);
	if (!err || (!first && !may_go_later(err)))
		err = rename_or_remove(seg, kept);
	seg->unfinished = err && (first || may_go_later(err));
	if (seg->unfinished)
		return err;
	close_file(seg);
	return 0;
}

void d9__segment_release(struct d9__segment *seg)
{
	if (seg->open || seg->unfinished)
		close_file(seg);
	d9__packer_release(&seg->packer);
	d9__free(seg->data);
	*seg = (struct d9__segment){ .fd = -1 };
}
