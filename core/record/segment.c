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

#include "record/files.h"
#include "record/segment.h"
#include "record/test_point.h"

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

	*seg = (struct d9__segment){ .fd = -1, .dir_fd = place->dir_fd, .index = index,
				     .opened_ns = now_ns, .complete = true, .packer = packer };
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
	seg->events += events;
	if (!real)
		return 0;
	seg->real = true;
	if (first_ns && (!seg->first_ns || first_ns < seg->first_ns))
		seg->first_ns = first_ns;
	if (last_ns > seg->last_ns)
		seg->last_ns = last_ns;
	return 0;
}

/* The descriptor is still our file, and the file still has a name. */
static int check_file(struct d9__segment *seg)
{
	struct stat st;

	if (fstat(seg->fd, &st) || st.st_dev != seg->device || st.st_ino != seg->inode) {
		seg->fd = -1; /* somebody else's by now: not ours to close */
		return fail(seg, "write", -EBADF);
	}
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
	size_t want = (size_t)seg->bytes + seg->packer.len;
	size_t capacity = seg->capacity ? seg->capacity : 65536;
	uint8_t *data;

	while (capacity < want)
		capacity *= 2;
	if (capacity != seg->capacity) {
		data = realloc(seg->data, capacity);
		if (!data)
			return fail(seg, "write", -ENOMEM);
		seg->data = data;
		seg->capacity = capacity;
	}
	memcpy(seg->data + seg->bytes, seg->packer.out, seg->packer.len);
	return 0;
}

static int write_out(struct d9__segment *seg)
{
	int err;

	if (!seg->packer.len)
		return 0;
	D9__TEST_POINT(WRITE_BEGIN);
	err = seg->fd >= 0 ? write_file(seg) : write_memory(seg);
	if (err)
		return err;
	D9__TEST_POINT(WRITE_END);
	seg->bytes += seg->packer.len;
	d9__packer_keep(&seg->packer);
	return 0;
}

int d9__segment_write(struct d9__segment *seg, uint64_t now_ns)
{
	int err = d9__packer_flush(&seg->packer, now_ns);

	return err ? fail(seg, "compress", err) : write_out(seg);
}

static void close_file(struct d9__segment *seg)
{
	if (seg->fd >= 0)
		close(seg->fd);
	seg->fd = -1;
	seg->open = false;
}

static int rename_or_remove(struct d9__segment *seg, bool *kept)
{
	char active[D9__SEGMENT_NAME_MAX + 8];
	int err;

	*kept = seg->real;
	if (seg->fd < 0)
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
	err = rename_or_remove(seg, kept);
	D9__TEST_POINT(SEGMENT_RENAMED);
	close_file(seg);
	return err;
}

uint64_t d9__segment_cut(struct d9__segment *seg, bool *kept)
{
	uint64_t lost, whole = d9__packer_cut(&seg->packer, &lost);
	const char *op = seg->failed_op;

	*kept = false;
	seg->complete = false;
	seg->events = seg->events > lost ? seg->events - lost : 0;
	seg->real = seg->real && seg->events;
	seg->bytes = whole;
	if (seg->fd < 0)
		close_file(seg);
	else if (d9__segment_cut_again(seg, seg->dir_fd, kept))
		seg->failed_op = op; /* what failed first is told */
	return lost;
}

/* Where even this takes room (btrfs), or nothing may be changed now. */
static bool may_go_later(int err)
{
	return err == EDQUOT || err == ENOSPC || err == EROFS;
}

int d9__segment_cut_again(struct d9__segment *seg, int dir_fd, bool *kept)
{
	uint64_t whole = seg->bytes;
	int err = seg->real && ftruncate(seg->fd, (off_t)whole) ? errno : 0;

	*kept = seg->open = false;
	seg->dir_fd = dir_fd;
	seg->uncut = err && may_go_later(err);
	if (seg->uncut)
		return fail(seg, "truncate", -err);
	/* The few bytes of the end may not fit either: the file can be read without them. */
	if (!err && seg->real && !d9__packer_end(&seg->packer) && write_out(seg))
		ftruncate(seg->fd, (off_t)whole) ? (void)0 : (void)(seg->bytes = whole);
	if (!err)
		rename_or_remove(seg, kept);
	close_file(seg);
	return 0;
}

void d9__segment_release(struct d9__segment *seg)
{
	if (seg->fd >= 0 && (seg->open || seg->uncut))
		close(seg->fd);
	d9__packer_release(&seg->packer);
	free(seg->data);
	*seg = (struct d9__segment){ .fd = -1 };
}
