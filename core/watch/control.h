/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Control: asks the recorder of a living process for something, through the control words of its
 * ring.  Who may write to the ring may ask: the user it runs as, and root.
 */

#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "ring/ring_view.h"

struct d9__control {
	const char *command; /* for messages */
	pid_t pid;
	struct d9__ring_view view;
	struct d9__ring_control *words; /* mapped */
	struct d9__ring_trigger *trigger; /* likewise */
};

/*
 * Of the process |text|.  0, or an exit status, with one line on stderr; then nothing is to be closed.
 */
int d9__control_open(struct d9__control *control, const char *command, const char *text);
void d9__control_close(struct d9__control *control);

/* Make the recorder look at its control words now. */
void d9__control_wake(struct d9__control *control);

/*
 * Wait for a turn at the requests that |*owner| guards, at most |timeout_ns|: only one process may
 * have a request open.  A turn of a dead process is taken over.  Returns 0, or an exit status and
 * one line on stderr.
 */
int d9__control_take_turn(struct d9__control *control, _Atomic(uint32_t) *owner, uint64_t timeout_ns);
void d9__control_end_turn(_Atomic(uint32_t) *owner);

/* Until |*done| is |number| or has passed it.  0, or an exit status, with one line on stderr. */
int d9__control_await(struct d9__control *control, const _Atomic(uint32_t) *done, uint32_t number,
		      uint64_t timeout_ns);

/* The exit status, after one line on stderr: not what was asked for is at fault, but |trace_dir|, by |err|. */
int d9__control_cannot_write(const struct d9__control *control, const char *trace_dir, int err);

/* Ask for |wanted| (1 enable, 2 disable) or, if that is 0, for a rotation, and await it. */
int d9__control_ask(struct d9__control *control, uint32_t wanted);

/*
 * All of a command whose operand is a process and which takes no options: |argv| parsed by |usage|,
 * then d9__control_ask().
 */
struct d9__usage;
int d9__control_command(int argc, char **argv, const struct d9__usage *usage, uint32_t wanted);
