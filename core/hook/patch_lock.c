/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "hook/patch_lock.h"

#include <pthread.h>
#include <time.h>

#define FORK_WAIT_S 5 /* as long as a busy machine may stop a thread that walks */

static pthread_mutex_t patch_mutex = PTHREAD_MUTEX_INITIALIZER;

/* The fork that is under way has the lock. */
static bool fork_has_it;

void d9__patch_lock(void)
{
	pthread_mutex_lock(&patch_mutex);
}

bool d9__patch_trylock(void)
{
	return pthread_mutex_trylock(&patch_mutex) == 0;
}

void d9__patch_unlock(void)
{
	pthread_mutex_unlock(&patch_mutex);
}

void d9__patch_fork_prepare(void)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += FORK_WAIT_S;
	fork_has_it = !pthread_mutex_timedlock(&patch_mutex, &until);
}

void d9__patch_fork_parent(void)
{
	if (fork_has_it)
		d9__patch_unlock();
}

void d9__patch_fork_child(void)
{
	d9__patch_fork_parent();
	if (!fork_has_it)
		pthread_mutex_init(&patch_mutex, NULL);
}
