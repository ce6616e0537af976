/* SPDX-License-Identifier: Apache-2.0 */
/* Input: the bytes of one segment as they are stored: a file, or a pipe that was spooled. */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct d9__input {
	char *path;          /* as given or found, sealed meanwhile; "-" for standard input */
	int fd;              /* -1: not open now */
	bool pipe;           /* can be read only once, in order */
	bool spooled;        /* was a pipe */
	uint64_t base;       /* offset in |fd| of the first byte */
	uint64_t size_bytes; /* when it was opened; 0 for a pipe */
	dev_t dev;
	ino_t ino;

	/* Pipes: what was read to look at the beginning, and how far reading is. */
	uint8_t *head;
	size_t head_len, head_capacity;
	uint64_t taken;
	bool keep_head; /* append to |head| what is read */
};

/*
 * 0, -ENOMEM, or an error of open(2) or fstat(2); -EISDIR for a directory.  A segment that was sealed
 * since the caller saw its name is opened under its new one.  After an error only |path| is set, or nothing
 * if there is no memory; to be released in any case.
 */
int d9__input_open(struct d9__input *input, const char *path);

/* Open again after d9__input_close(); the file may have been sealed meanwhile.  -ESTALE: another file. */
int d9__input_reopen(struct d9__input *input);

/* Close the descriptor, unless it could not be opened again. */
void d9__input_close(struct d9__input *input);

/*
 * Read at |offset|; of a pipe, only where the last read ended.  A closed input is opened for this once:
 * of thousands of segments that overlap in time not all can be open.  Bytes, 0 at the end, -errno.
 */
ssize_t d9__input_read_at(struct d9__input *input, uint64_t offset, void *buf, size_t len);

/* Put a pipe into an unlinked temporary file, so that it can be read again. */
int d9__input_spool(struct d9__input *input);

void d9__input_release(struct d9__input *input);

/* An unlinked temporary file.  A descriptor or -errno. */
int d9__temporary_open(void);

/* write(2) all of it.  0 or -errno. */
int d9__write_all(int fd, const void *buf, size_t len);
