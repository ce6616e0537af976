/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Last thread: a program whose main() leaves by pthread_exit() ends with its last thread, on which libc then runs what
 * is to be run at exit.  libc counts our threads, too, and would wait for them for ever.  So when the main
 * thread leaves, this one is begun, with the program's descriptors, which the flush thread does not have: when
 * none but ours are left, it stops the recorder and is the last.  The same for a main thread that ends by the bare
 * system call, as under strict seccomp; the flush thread looks for that.
 */

#pragma once

#include <stdint.h>

/* Call |end| when none but our threads are left.  One function, before a recorder runs. */
void d9__last_thread_on_end(void (*end)(uint32_t deadline_ms));

/* A recorder runs, and its lock is not held: begin if the main thread has left. */
void d9__last_thread_start(void);

/* On the flush thread, now and then: begin if the main thread has ended without a word. */
void d9__last_thread_look(void);

/* In a forked child: its main thread is the caller. */
void d9__last_thread_fork_child(void);
