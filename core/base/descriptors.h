/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Descriptors: those of the flush thread, where the recorded program does not meet them.
 *
 * They are in a table of the thread's own.  Where that is refused they are in the program's, at numbers
 * that programs do not expect to get.
 */

#pragma once

#include <stdbool.h>

/*
 * On the flush thread, before it opens anything: take the descriptor |ring| along, -1 if there is none, and leave the others.
 * Returns its new number; then the program is to close |ring|.  -1: it stays as it is, or there is none.
 */
int d9__descriptors_take(int ring);

/*
 * Whether the process may have so few descriptors that those which are kept open only to know more would be
 * missing where segments are written.
 */
bool d9__descriptors_are_few(void);

/* Whether they are in the program's table: what is opened there, for however short, the program may meet. */
bool d9__descriptors_are_shared(void);

/* |fd|, just opened, where it belongs: another number, or |fd| itself.  Negative ones are passed on. */
int d9__descriptor_place(int fd);

/*
 * On the flush thread, as it ends: close the ring's descriptor.  False: it stays open, because the program has it and the ring
 * cannot be opened by a name, as |is_named| tells.
 */
bool d9__descriptors_give_up_ring(bool is_named);

/*
 * The flush thread ends for a while, and its table with it: what it has open goes by a socket, which waits in the program's
 * table.  In this order: on the program's thread, before the flush thread is asked to go; on that, at last; on the next one, at
 * first; on the program's thread that started it, or when the one before stays.  Where the table is the program's there is
 * nothing to do.
 */
int d9__descriptors_expect(void);     /* 0 or -errno */
bool d9__descriptors_send(void);      /* false: not all can go.  Nothing has changed */
int d9__descriptors_receive(void);    /* 0; -ENOENT: the program has closed them, and none is open, nor the ring's; -errno: no table */

void d9__descriptors_expect_none(void);

/*
 * In a forked child: the ring's, if it came along, is closed.  Whether what else the parent's thread
 * had open came along too.
 */
bool d9__descriptors_fork_child(void);
