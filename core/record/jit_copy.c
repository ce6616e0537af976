/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/descriptors.h"
#include "record/jit_copy.h"

#define NAME_MAX_BYTES 32 /* "perf-4294967295.map" */

/* The descriptor of the runtime's file and how long it is; below 0: there is none to copy. */
static int open_map(const char *name, struct stat *st)
{
	char path[NAME_MAX_BYTES + 8];
	int fd;

	snprintf(path, sizeof(path), "/tmp/%s", name);
	/* Whoever put a pipe there must not stop us. */
	fd = d9__descriptor_place(open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
	if (fd < 0)
		return fd;
	if (!fstat(fd, st) && S_ISREG(st->st_mode) && st->st_uid == geteuid())
		return fd;
	close(fd);
	return -1;
}

static void append(struct d9__jit_copy *copy, int from, int to, uint64_t end)
{
	char buf[1 << 14];
	ssize_t n = 1;

	while (copy->bytes < end && n > 0) {
		size_t wanted = end - copy->bytes < sizeof(buf) ? (size_t)(end - copy->bytes) : sizeof(buf);

		n = pread(from, buf, wanted, (off_t)copy->bytes);
		if (n > 0)
			n = pwrite(to, buf, (size_t)n, (off_t)copy->bytes);
		copy->bytes += n > 0 ? (uint64_t)n : 0;
	}
}

void d9__jit_copy_refresh(struct d9__jit_copy *copy, int dir_fd)
{
	char name[NAME_MAX_BYTES];
	struct stat st = { 0 };
	uint64_t end;
	int from, to;

	snprintf(name, sizeof(name), "perf-%ld.map", (long)getpid());
	from = open_map(name, &st);
	if (from < 0)
		return;
	end = (uint64_t)st.st_size < D9__JIT_COPY_MAX ? (uint64_t)st.st_size : D9__JIT_COPY_MAX;
	/* Another file than before, or the runtime began again. */
	if (st.st_dev != copy->device || st.st_ino != copy->inode || end < copy->bytes)
		*copy = (struct d9__jit_copy){ st.st_dev, st.st_ino, 0 };
	if (end > copy->bytes) {
		to = d9__descriptor_place(openat(dir_fd, name,
						 O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC | (copy->bytes ? 0 : O_TRUNC), 0600));
		if (to >= 0) {
			append(copy, from, to, end);
			close(to);
		}
	}
	close(from);
}
