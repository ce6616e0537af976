/* SPDX-License-Identifier: Apache-2.0 */
/* The processes that wrote a trace: ids of workers, tasks and spans are each one's own. */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <dial9/reader.h>

struct d9__trace_process {
	char *boot_id; /* from its metadata, with the dump's id; NULL: the trace does not tell */
	/*
	 * Where it is: the folder of its first segment, or if another process is there too, that
	 * segment; "." for a bare name; of a pipe its path, "-" for standard input.
	 */
	char *folder;
	size_t first; /* of its segments */
};

#define D9__NO_SEGMENT SIZE_MAX

/* In order of their first segments.  All zero is empty. */
struct d9__processes {
	struct d9__trace_process *items;
	size_t n;
	size_t *of_segment; /* by number of the reader's segment */
	size_t *next;       /* likewise: of the same process, or D9__NO_SEGMENT */
	size_t n_segments;
};

/*
 * Find out who wrote |reader|'s segments: those of one boot id are one process's, but for dumps, each
 * of which is taken for one; where none is told, those of one folder, and a pipe's.  Looks into the
 * beginning of each file.  0 or -ENOMEM; release in both cases.
 */
int d9__processes_find(struct d9__processes *processes, const struct d9_reader *reader);
void d9__processes_release(struct d9__processes *processes);

/* Whether |path| can be read only once: standard input, or no file and no directory. */
bool d9__path_is_pipe(const char *path);

/* Its boot id, else its folder. */
const char *d9__process_label(const struct d9__trace_process *process);
