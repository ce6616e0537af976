/* SPDX-License-Identifier: Apache-2.0 */
/* Every function that allocates, on whatever allocator the program was linked with. */
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "odd.h"

static bool is_aligned(const void *block, size_t to)
{
	return block && (uintptr_t)block % to == 0;
}

static void allocate(void)
{
	char *volatile block = reallocarray(NULL, 10, 10000);
	void *other = NULL;

	block = realloc(block, 200000);
	block[199999] = 1;
	if (malloc_usable_size(block) < 200000)
		tell("usable", false);
	free(block);
	block = calloc(1000, 100);
	if (!block || block[99999])
		tell("cleared", false);
	free(block);
	block = aligned_alloc(256, 2560);
	if (!is_aligned(block, 256) || posix_memalign(&other, 512, 100) || !is_aligned(other, 512))
		tell("aligned", false);
	free(block);
	free(other);
	free(memalign(1024, 4096));
	free(strdup("text"));
}

static void *allocate_often(void *unused)
{
	for (int i = 0; i < 200; i++)
		allocate();
	return unused;
}

static void allocations(void)
{
	pthread_t threads[2];

	allocate();
	for (int i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, allocate_often, NULL);
	run_loop(20, allocate);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
}

/* Before main(), as constructors of C++ do; and what is freed by another function than made it. */
static char *early;

static __attribute__((constructor)) void allocate_early(void)
{
	early = malloc(1 << 20);
}

static void early_allocations(void)
{
	run_loop(20, allocate);
	free(early);
	early = NULL;
}

static void allocations_in_child(void)
{
	int pid;

	run_loop(5, allocate);
	fflush(stdout);
	pid = fork();
	if (!pid) {
		run_loop(5, allocate);
		leave(24);
	}
	tell_child("allocates", pid);
}

const struct shape memory_shapes[] = {
	{ "allocations", allocations },
	{ "early_allocations", early_allocations },
	{ "allocations_in_child", allocations_in_child },
	{ NULL, NULL },
};
