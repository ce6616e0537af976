/* SPDX-License-Identifier: Apache-2.0 */
/* Store: the unpacked bytes of a segment, at any offset, for the second pass. */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "read/container.h"

#define D9__STORE_CACHED 4 /* unpacked zstd frames at a time */

struct d9__store {
	struct d9__input *input; /* borrowed, open */
	enum d9__store_form {
		D9__STORE_CLOSED,
		D9__STORE_DIRECT, /* a plain segment */
		D9__STORE_MEMORY, /* kept from the first pass */
		D9__STORE_FRAMES, /* small zstd frames, unpacked when needed */
		D9__STORE_FILE,   /* anything else: unpacked into a temporary file */
	} form;
	const uint8_t *bytes; /* MEMORY: borrowed */
	uint64_t len;
	int fd; /* FILE */

	/* FRAMES */
	const struct d9__packed_frame *frames; /* borrowed */
	size_t n_frames;
	struct d9__stored_frame {
		uint8_t *bytes;
		size_t frame, len;
		uint64_t used_at;
	} cache[D9__STORE_CACHED];
	uint64_t clock;
	void *engine;
};

/* Return how many bytes reading |frames| one by one takes, if they are small: the most that may be unpacked at a time. */
uint64_t d9__store_bytes_of_frames(const struct d9__packed_frame *frames, size_t n);

/* Whether every frame is small enough to be unpacked alone. */
bool d9__store_frames_are_small(const struct d9__packed_frame *frames, size_t n);

/*
 * Open for reading; |store| names what exists: |bytes| and |len|, or |frames| and |n_frames|.
 * 0, -ENOMEM, or an error of writing a temporary file.
 */
int d9__store_open(struct d9__store *store, struct d9__input *input, enum d9__container_kind kind);

/* The bytes in memory from |offset| on, at most |*len|, which is set; or NULL. */
const uint8_t *d9__store_bytes(const struct d9__store *store, uint64_t offset, uint64_t *len);

/* At most |len| bytes at |offset|; 0 at the end, -errno. */
ssize_t d9__store_read_at(struct d9__store *store, uint64_t offset, void *buf, size_t len);

void d9__store_close(struct d9__store *store);
