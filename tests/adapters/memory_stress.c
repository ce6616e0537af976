/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory_stress [PLUGIN]: what may go wrong between a program and its allocator: threads that come and go while others
 * fork, children that end, exec and allocate, copies without atfork handlers, blocks that change hands, stacks that are no
 * thread's own; and PLUGIN, in C++, which the program is not.  Exits with 0 if it gets to its end.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#define SHELF 64
#define FORKS 24

static _Atomic(void *) shelf[SHELF];
static atomic_bool over;

/* Give one block away and free another's. */
static void swap(uint64_t *random)
{
	size_t size;
	void *block;

	*random = *random * UINT64_C(6364136223846793005) + 1442695040888963407;
	size = 1 + (*random >> 33) % 3000;
	block = *random >> 62 ? malloc(size) : calloc(1, size);
	if (block)
		memset(block, 7, size < 16 ? size : 16);
	free(atomic_exchange(&shelf[(*random >> 40) % SHELF], block));
}

static void *live_shortly(void *number)
{
	uint64_t random = (uintptr_t)number;

	for (int i = 0; i < 200; i++)
		swap(&random);
	return NULL;
}

static void *make_threads(void *number)
{
	uintptr_t i = (uintptr_t)number << 20;

	while (!over) {
		pthread_t thread;

		if (!pthread_create(&thread, NULL, live_shortly, (void *)i++))
			pthread_join(thread, NULL);
	}
	return NULL;
}

static void child(int i)
{
	uint64_t random = (uint64_t)i;

	alarm(20);
	for (int k = 0; k < 50; k++)
		swap(&random);
	if (i % 3 == 0)
		execl("/bin/true", "true", (char *)NULL);
	if (i % 3 == 1)
		exit(0);
	_exit(0);
}

static int forks(void)
{
	for (int i = 0; i < FORKS; i++) {
		/* Every fourth one runs no atfork handler. */
		pid_t pid = i % 4 ? fork() : (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
		int status;

		if (!pid && i % 4)
			child(i);
		if (!pid) {
			/* What such a copy may do with an allocator is little: any lock of it may be held. */
			_exit(0);
		}
		if (pid < 0 || waitpid(pid, &status, 0) != pid || status) {
			printf("child %d: %x\n", i, (unsigned)status);
			return 1;
		}
	}
	return 0;
}

/* ---- a stack of its own ---- */

static ucontext_t back, there;

static void on_own_stack(void)
{
	uint64_t random = 99;

	for (int i = 0; i < 200; i++)
		swap(&random);
	swapcontext(&there, &back);
}

static void coroutine(void)
{
	char *stack = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (stack == MAP_FAILED)
		return;
	getcontext(&there);
	there.uc_stack.ss_sp = stack;
	there.uc_stack.ss_size = 65536;
	makecontext(&there, on_own_stack, 0);
	swapcontext(&back, &there);
	munmap(stack, 65536);
}

int main(int argc, char **argv)
{
	pthread_t makers[3];
	uint64_t random = 5;
	int status;

	for (uintptr_t i = 0; i < 3; i++)
		pthread_create(&makers[i], NULL, make_threads, (void *)(i + 1));
	for (int i = 0; i < 2000; i++)
		swap(&random);
	coroutine();
	status = forks();
	over = true;
	for (int i = 0; i < 3; i++)
		pthread_join(makers[i], NULL);
	if (argc > 1) {
		void *plugin = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
		int (*run)(void) = NULL;

		if (plugin)
			*(void **)&run = dlsym(plugin, "run");
		if (!run || run() != 3) {
			printf("the plugin: %s\n", plugin ? "wrong" : dlerror());
			status = 1;
		}
		if (plugin)
			dlclose(plugin);
	}
	return status;
}
