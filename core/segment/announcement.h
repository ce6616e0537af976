/* SPDX-License-Identifier: Apache-2.0 */
/* Announcement: that tasks and spans exist, which began elsewhere. */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ring/emit_inl.h"
#include "segment/living_tasks.h"
#include "segment/writer.h"

/*
 * Write a TaskSpawnEvent at |ns| for each of |items|, which is sorted, and may hold a task twice.
 * |real| as for d9__writer_note().  0, -ENOMEM or an error of the writer.
 */
int d9__announcement_write(struct d9__task_spawn *items, size_t n, uint64_t ns, struct d9__writer *writer,
			   bool real, uint64_t now_ns);

/* Write a SpanOpenEvent at |ns| for each of the |n| |spans|. */
int d9__announcement_spans(const struct d9__living_span *spans, size_t n, uint64_t ns,
			   struct d9__writer *writer);
