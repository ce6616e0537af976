#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A thread stands in dl_iterate_phdr(), in the constructor of a module that dlopen() loads, or in an allocator's lock, and
# allocates there; another one is sampled meanwhile, and is not kept waiting: the first goes on only when it is done.
# shellcheck source=tests/cli/harness.sh
. "$top_srcdir/tests/cli/harness.sh"

need_preload

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
#include <semaphore.h>
#include <stdlib.h>

static sem_t sampled, standing, done;
static int in_malloc; /* who stands: others cannot allocate meanwhile */

static void *compute_meanwhile(void *unused)
{
	await_sampling();
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
finish ''
