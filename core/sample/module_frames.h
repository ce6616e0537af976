/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Module frames: where the modules that are loaded have code, and their unwind information, copied while they cannot be
 * unmapped.
 */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "segment/modules.h"

/* Two modules with equal keys have equal unwind rows.  Without padding, to be compared byte by byte. */
struct d9__frames_key {
	uint64_t size;        /* of the module's addresses */
	uint64_t header_size; /* of its .eh_frame_hdr; 0: it has none */
	uint32_t is_hash;     /* |id| is a hash of .eh_frame, because there is no build-id */
	uint32_t id_len;
	uint8_t id[D9__BUILD_ID_MAX];
};

/* One loaded module. */
struct d9__module_frames {
	uintptr_t low, high;
	struct d9__frames_key key;
	uint64_t address;  /* of .eh_frame; 0: the module has none */
	uint8_t *copy;     /* of .eh_frame, if it was wanted */
	size_t len;
};

/* Executable memory of |module[module]|. */
struct d9__module_code {
	uintptr_t low, high;
	size_t module;
};

struct d9__frames_list {
	struct d9__module_frames *module;
	size_t n, capacity;
	struct d9__module_code *code; /* of all modules */
	size_t n_code, code_capacity;
	unsigned long long adds, subs; /* the loader's counters at the walk */
};

/*
 * Is a copy wanted of the module, whose |key| is known?  Runs under the loader's lock, so it may neither load
 * nor wait.  The section is about |estimate| bytes long.
 */
typedef bool (*d9__frames_wanted_fn)(void *arg, const struct d9__frames_key *key, size_t estimate);

/* True if modules came or went since |list| was made.  Takes the loader's lock for a moment. */
bool d9__module_frames_changed(const struct d9__frames_list *list);

/*
 * Replace |list|, which may be all zero, by the modules that are loaded now, and copy what |wanted| says.
 * 0, or -ENOMEM, and then the list is empty.  Takes the loader's lock for the time of the copies.
 */
int d9__module_frames_list(struct d9__frames_list *list, d9__frames_wanted_fn wanted, void *arg);

/* Free the copy of |module|. */
void d9__module_frames_drop_copy(struct d9__module_frames *module);

void d9__module_frames_list_release(struct d9__frames_list *list);
