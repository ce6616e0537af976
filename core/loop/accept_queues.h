/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Accept queues: how many connections wait at the listening TCP sockets that loops watch.
 *
 * A loop's own thread asks behind a wait, at most once per interval, so that it touches no descriptor that the program
 * may have closed meanwhile.  A loop that does not come to its next wait, as a callback holds it, cannot ask, and that is
 * when queues grow: then the flush thread asks the kernel by the socket's cookie.
 */

#pragma once

#include <stdint.h>

#include <dial9/loop.h>

#define D9__LISTENERS_MAX 64u

struct d9__slot;

/* From now on recorders ask as d9__sampling says.  Idempotent. */
void d9__accept_queues_start(void);

/*
 * |loop| begins to watch |fd|, which is open, for a task that is new: remember it if it is a listener.  Keeps errno.  Only
 * while the gate has D9__GATE_LISTEN.
 */
void d9__accept_queues_watch(struct d9_loop *loop, int fd);

/* On the thread that runs |loop|, which returned from a wait at |ns|: ask if it is time.  Keeps errno. */
void d9__accept_queues_ask(struct d9_loop *loop, uint32_t worker, struct d9__slot *slot, uint64_t ns);

/* |loop| is gone. */
void d9__accept_queues_forget(const struct d9_loop *loop);

/* Flush thread, at each tick: ask about the loops that do not come to their waits. */
void d9__accept_queues_tick(void);

/* In a forked child: the thread that held the table's lock may be gone. */
void d9__accept_queues_fork_child(void);
