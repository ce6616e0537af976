/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Once: polls of tasks that end with them (D9_TASK_RUNS_ONCE), for our adapters: the short way of
 * d9_poll_begin() and d9_poll_end().
 *
 * Such a task is in no table: nobody but its thread has to do with it, and its wake was an early one.
 * While it runs it is the thread's |solo|, where dumps find it.  All that the trace gets at one end of
 * the poll is written in one go.  What is in any way unusual goes the ordinary way.
 */

#pragma once

#include <dial9/export.h>
#include <dial9/loop.h>

D9_API void d9__poll_begin_once(struct d9_poll *poll);
D9_API void d9__poll_end_once(struct d9_poll *poll);
