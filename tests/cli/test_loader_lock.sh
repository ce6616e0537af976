#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A thread stands in dl_iterate_phdr(), in the constructor of a module that dlopen() loads, or in an allocator's lock, and
# allocates there; another one is sampled meanwhile, and is not kept waiting: the first goes on only when it is done.
# A child that is forked meanwhile finds the loader's lock held for ever; it runs its loop as alone.
# shellcheck source=tests/cli/harness.sh
. "$top_srcdir/tests/cli/harness.sh"

cat >module.c <<'END'
void stand(void);
__attribute__((constructor)) static void on_load(void)
{
	stand();
}
END
cat >hold.c <<'END'
#include "cpu_work.h"
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdlib.h>

static sem_t sampled, standing, done;
static int in_malloc; /* who stands: others cannot allocate meanwhile */

static void *compute_meanwhile(void *unused)
{
	await_sampling();
	/* The recorder allocates, too, before it has a directory: not while the lock is held, or there is no trace. */
	while (in_malloc && access("tr", F_OK))
		sched_yield();
	sem_post(&sampled);
	while (sem_wait(&standing))
		;
	/* Allocations of its own are sampled, too, with stacks. */
	for (int i = 0; i < 10; i++) {
		if (!in_malloc)
			free(malloc(1000));
		compute(0.03);
	}
	sem_post(&done);
	return unused;
}

/* Called with a lock held. */
void stand(void)
{
	sem_post(&standing);
	for (int i = 0; i < 100; i++)
		free(malloc(100));
	while (sem_wait(&done))
		;
	free(malloc(100));
}

static int on_module(struct dl_phdr_info *info, size_t size, void *unused)
{
	(void)info, (void)size, (void)unused;
	stand();
	return 1;
}

int main(int argc, char **argv)
{
	const char *where = argc > 1 ? argv[1] : "";
	pthread_t thread;

	alarm(120);
	in_malloc = !strcmp(where, "malloc");
	sem_init(&sampled, 0, 0);
	sem_init(&standing, 0, 0);
	sem_init(&done, 0, 0);
	pthread_create(&thread, NULL, compute_meanwhile, NULL);
	while (sem_wait(&sampled))
		;
	if (in_malloc)
		free(malloc(12345));
	else if (!strcmp(where, "dlopen"))
		printf("%s\n", dlopen("./module.so", RTLD_NOW) ? "loaded" : dlerror());
	else
		dl_iterate_phdr(on_module, NULL);
	pthread_join(thread, NULL);
	puts("done");
	return 0;
}
END
# An allocator with one lock, in whose hands the thread stands: a handler that allocates would wait for ever.
cat >locked.c <<'END'
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local int inside;
void *__libc_malloc(size_t size);
void __libc_free(void *block);
void stand(void);

void *malloc(size_t size)
{
	void *block;

	if (!inside)
		pthread_mutex_lock(&lock);
	block = __libc_malloc(size);
	if (size == 12345) {
		inside = 1;
		stand();
		inside = 0;
	}
	if (!inside)
		pthread_mutex_unlock(&lock);
	return block;
}

void free(void *block)
{
	__libc_free(block);
}
END
cc -shared -fPIC -o module.so module.c || exit 99
cc -g -O1 -fno-builtin -pthread -rdynamic -I"$top_srcdir/tests/cli" -o hold hold.c || exit 99
cc -g -O1 -fno-builtin -pthread -I"$top_srcdir/tests/cli" -o locked hold.c locked.c || exit 99

# sampled COMMAND...: what it says, and that its second thread was sampled.
sampled() {
	say "$*"
	rm -rf tr
	"$dial9" record --quiet --profile-only --cpu 500 --memory=1 -o tr -- "$@"
	status=$?
	[ $status = 0 ] || echo "status $status"
	"$dial9" export --format folded -o - tr | grep -o 'compute_meanwhile;compute' | sort -u
}
sampled ./hold phdr
"$dial9" export --kind heap --format folded -o - tr | grep -o '\(stand\|compute_meanwhile\) [0-9]*' | sed 's/ 1[0-9]*$/ bytes/' | sort -u
sampled ./hold dlopen
sampled ./locked malloc

cat >forked.c <<'END'
#include <event2/event.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static int calls;

static int stand(struct dl_phdr_info *info, size_t size, void *held)
{
	(void)info, (void)size;
	pthread_barrier_wait(held);
	pthread_barrier_wait(held);
	return 1;
}

static void *hold_loader(void *held)
{
	dl_iterate_phdr(stand, held);
	return NULL;
}

static void on_timer(evutil_socket_t fd, short what, void *base)
{
	(void)fd, (void)what;
	if (++calls % 10 == 0)
		event_base_loopbreak(base);
}

static void run_a_loop(void)
{
	struct event_base *base = event_base_new();
	struct event *timer = event_new(base, -1, EV_PERSIST, on_timer, base);

	event_add(timer, &(struct timeval){ 0, 2000 });
	event_base_dispatch(base);
	event_free(timer);
	event_base_free(base);
}

int main(int argc, char **argv)
{
	pthread_barrier_t held;
	pthread_t thread;
	int status;

	(void)argv;
	if (argc > 1)
		run_a_loop();
	pthread_barrier_init(&held, NULL, 2);
	pthread_create(&thread, NULL, hold_loader, &held);
	pthread_barrier_wait(&held);
	if (!fork()) {
		alarm(60);
		run_a_loop();
		exit(mlockall(MCL_CURRENT | MCL_ONFAULT) ? 100 : calls);
	}
	wait(&status);
	pthread_barrier_wait(&held);
	pthread_join(thread, NULL);
	printf("its child: %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : -1);
	return 0;
}
END
cc -g -O1 -pthread -o forked forked.c -levent || exit 99
for flags in "" "--cpu 999 --off-cpu --memory"; do
	for arguments in "" "behind a loop"; do
		rm -rf tr
		# shellcheck disable=SC2086 # words
		run record --quiet $flags -o tr -- ./forked ${arguments:+"$arguments"}
	done
done
finish ''
