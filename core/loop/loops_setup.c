/* SPDX-License-Identifier: Apache-2.0 */
/* Setup of all of loop/, once per process, and held over forks. */
#include "config.h"

#include <errno.h>
#include <pthread.h>

#include "loop/accept_queues.h"
#include "loop/callsites.h"
#include "loop/generated.h"
#include "loop/loops.h"
#include "loop/polls.h"
#include "loop/samples.h"
#include "loop/tasks.h"
#include "loop/thread_state.h"
#include "loop/workers.h"
#include "record/recorder.h"
#include "record/sandbox.h"
#include "ring/slot.h"
#include "sample/alloc.h"
#include "sample/cpu_sampler.h"
#include "sample/place_stacks.h"
#include "sample/stacks.h"
#include "sample/unwind_table.h"

/* Outer locks first; locks that are taken under a shard's lock come with it. */
static void fork_prepare(void)
{
	d9__callsites_fork_prepare();
	d9__generated_fork_prepare();
	d9__loops_fork_prepare();
	d9__workers_fork_prepare();
	d9__threads_fork_prepare();
	d9__tasks_fork_prepare();
	d9__unwind_tables_fork_prepare();
	d9__stacks_fork_prepare();
}

static void fork_parent(void)
{
	d9__stacks_fork_parent();
	d9__unwind_tables_fork_parent();
	d9__tasks_fork_parent();
	d9__threads_fork_parent();
	d9__workers_fork_parent();
	d9__loops_fork_parent();
	d9__generated_fork_parent();
	d9__callsites_fork_parent();
}

static void fork_child(void)
{
	d9__stacks_fork_parent();
	d9__unwind_tables_fork_child();
	d9__place_stacks_fork_child();
	d9__accept_queues_fork_child();
	d9__tasks_fork_child();
	d9__workers_fork_child();
	d9__threads_fork_child();
	d9__loops_fork_child();
	d9__generated_fork_parent();
	d9__callsites_fork_parent();
}

static int start_err;

/* At load: adapters take these locks under their own, so that their handlers have to come later. */
static __attribute__((constructor)) void hold_over_forks(void)
{
	d9__alloc_hold_over_forks();
	d9__recorder_hold_over_forks();
	start_err = pthread_atfork(fork_prepare, fork_parent, fork_child) ? -ENOMEM : 0;
}

/* A thread that is about to lose its system calls may enter its first loop behind that. */
static void prepare_for_filter(void)
{
	d9__thread_make(NULL);
	d9__cpu_sampler_end();
}

static void start(void)
{
	if (!start_err)
		start_err = d9__slot_on_exit(d9__polls_thread_exit);
	if (!start_err)
		d9__samples_start();
	d9__sandbox_on_enter(prepare_for_filter);
}

int d9__loops_init(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, start);
	return start_err;
}
