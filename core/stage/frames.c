/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "read/catalogue.h"
#include "read/trace_segment.h"
#include "stage/frames.h"

/*
 * The limits of cli/raw_segment.c: memory for a frame and a batch's pools; the most that the file
 * may unpack to.
 */
#define MEMORY_BYTES	(UINT64_C(64) << 20)
#define MEMORY_FACTOR	2
#define UNPACKED_BYTES	(UINT64_C(256) << 20)
#define UNPACKED_FACTOR 32

int d9__frames_open(struct d9__frames_in *in, int fd)
{
	struct stat st;
	int err;

	*in = (struct d9__frames_in) { .input = { .fd = -1 } };
	in->schemas.classify = d9__catalogue_classify;
	if (fstat(fd, &st))
		return -errno;
	in->input.fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	if (in->input.fd < 0)
		return -errno;
	in->input.size_bytes = (uint64_t)st.st_size;
	if (!in->input.size_bytes)
		return -ENODATA;
	err = d9__container_open(&in->container, &in->input);
	if (err)
		return err;
	in->container.limit_bytes = UNPACKED_BYTES + UNPACKED_FACTOR * in->input.size_bytes;
	d9__segment_reader_init(&in->reader, &in->schemas,
				MEMORY_BYTES + MEMORY_FACTOR * in->input.size_bytes);
	d9__segment_reader_start(&in->reader, d9__container_source(&in->container));
	return 0;
}

static int refuse(struct d9__frames_in *in, uint64_t offset, const char *why)
{
	snprintf(in->message, sizeof(in->message), "offset %" PRIu64 ": %s", offset, why);
	return -EBADMSG;
}

/* The reason why the stream ended. */
static int judge_end(struct d9__frames_in *in)
{
	const struct d9__container *container = &in->container;
	const struct d9__segment_reader *reader = &in->reader;

	if (container->err)
		return refuse(in, container->unpacked_at,
			      container->message ? container->message : "damaged");
	if (reader->err)
		return refuse(in, reader->err_offset, reader->message);
	if (reader->truncated || container->truncated)
		return refuse(in, reader->truncated ? reader->err_offset : container->unpacked_at,
			      "it ends in the middle of a frame");
	return 0;
}

int d9__frames_next(struct d9__frames_in *in, struct d9__frame *frame)
{
	int err = d9__segment_reader_next(&in->reader, frame);

	return err ? err : judge_end(in);
}

void d9__frames_release(struct d9__frames_in *in)
{
	d9__segment_reader_release(&in->reader);
	d9__container_release(&in->container);
	d9__definitions_release(&in->schemas);
	d9__input_release(&in->input);
}
