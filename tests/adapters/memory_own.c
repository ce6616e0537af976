/* SPDX-License-Identifier: Apache-2.0 */
/* A program with an allocator of its own, and a loop, so that it has a trace. */
#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static char *heap;
static size_t used;

/* Nothing is ever freed. */
static void *take(size_t size)
{
	size_t *block;

	if (!heap)
		heap = mmap(NULL, 64 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	block = (size_t *)(void *)(heap + __atomic_fetch_add(&used, (size + 31) & ~(size_t)15, __ATOMIC_RELAXED));
	block[0] = size;
	return block + 2;
}

void *malloc(size_t size)
{
	return take(size);
}

void *calloc(size_t n, size_t size)
{
	return take(n * size);
}

void *realloc(void *block, size_t size)
{
	void *moved = take(size);
	size_t old = block ? ((size_t *)block)[-2] : 0;

	if (old)
		memcpy(moved, block, old < size ? old : size);
	return moved;
}

void free(void *block)
{
	(void)block;
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	(void)arg;
}

int main(void)
{
	struct event_base *base = event_base_new();
	struct event *timer = evtimer_new(base, on_timer, NULL);
	char *volatile block = malloc(10);

	for (int i = 0; i < 20; i++) {
		event_add(timer, &(struct timeval){ 0, 20000 });
		event_base_loop(base, EVLOOP_ONCE);
	}
	printf("its own: %d\n", block >= heap && block < heap + (64 << 20));
	return 0;
}
