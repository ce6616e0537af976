/* SPDX-License-Identifier: Apache-2.0 */
/* Ready: tasks that stay ready behind their poll, as idle sources do. */

#pragma once

#include <stdint.h>

#include <dial9/loop.h>

/*
 * The task |key|, whose poll ended last on this thread, stays ready: its next wake has the stamp of
 * that end.
 */
void d9__ready_again(struct d9_loop *loop, uint64_t key);
