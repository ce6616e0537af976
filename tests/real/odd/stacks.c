/* SPDX-License-Identifier: Apache-2.0 */
/* Small, deep, changed and generated stacks; code that comes and goes. */
#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "odd.h"

/* ---- threads ---- */

static void *burn_a_while(void *unused)
{
	for (int i = 0; i < 20; i++)
		burn(1);
	return unused;
}

/* On a stack of its own of |size| bytes, behind a page without access. */
static void *guarded(size_t size)
{
	char *place = mmap(NULL, size + 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	mprotect(place + 4096, size, PROT_READ | PROT_WRITE);
	return place + 4096;
}

static void smallest_thread_stacks(void)
{
	size_t size = (size_t)sysconf(_SC_THREAD_STACK_MIN);
	pthread_t threads[8];
	pthread_attr_t attr;

	run_loop(5, NULL);
	for (int i = 0; i < 8; i++) {
		pthread_attr_init(&attr);
		pthread_attr_setstack(&attr, guarded(size), size);
		if (pthread_create(&threads[i], &attr, burn_a_while, NULL))
			abort();
		pthread_attr_destroy(&attr);
	}
	run_loop(20, NULL);
	for (int i = 0; i < 8; i++)
		pthread_join(threads[i], NULL);
}

static void *loop_thread(void *unused)
{
	run_loop(10, NULL);
	return unused;
}

static void loops_in_small_threads(void)
{
	pthread_t threads[4];
	pthread_attr_t attr;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 32 << 10);
	for (int i = 0; i < 4; i++)
		if (pthread_create(&threads[i], &attr, loop_thread, NULL))
			abort();
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	pthread_attr_destroy(&attr);
}

static void main_leaves_first(void)
{
	pthread_t thread;

	run_loop(5, NULL);
	pthread_create(&thread, NULL, loop_thread, NULL);
	pthread_detach(thread);
	printf("the main thread leaves\n");
	fflush(stdout);
	pthread_exit(NULL);
}

static void *cancelled(void *unused)
{
	for (;;)
		pause();
	return unused;
}

static void cancelled_threads(void)
{
	void *result;

	run_loop(5, NULL);
	for (int i = 0; i < 20; i++) {
		pthread_t thread;

		pthread_create(&thread, NULL, cancelled, NULL);
		burn(1);
		pthread_cancel(thread);
		pthread_join(thread, &result);
		if (result != PTHREAD_CANCELED)
			tell("cancelled", false);
	}
}

static void *allocate_text(void *unused)
{
	(void)unused;
	return strdup("text");
}

static void thousand_threads(void)
{
	run_loop(5, NULL);
	for (int i = 0; i < 1000; i++) {
		pthread_t thread;
		void *text;

		if (pthread_create(&thread, NULL, allocate_text, NULL))
			abort();
		pthread_join(thread, &text);
		free(text);
	}
}

/* ---- coroutines ---- */

static ucontext_t mains, coroutine;

static void in_coroutine(void)
{
	for (;;) {
		burn(2);
		swapcontext(&coroutine, &mains);
	}
}

static void switch_there_and_back(void)
{
	swapcontext(&mains, &coroutine);
}

static void coroutines_of(size_t size)
{
	getcontext(&coroutine);
	coroutine.uc_stack.ss_sp = guarded(size);
	coroutine.uc_stack.ss_size = size;
	makecontext(&coroutine, in_coroutine, 0);
	run_loop(40, switch_there_and_back);
}

static void coroutines_4k(void)
{
	coroutines_of(4 << 10);
}

static void coroutines_8k(void)
{
	coroutines_of(8 << 10);
}

static void in_short_coroutine(void)
{
	burn(1);
}

static void one_short_coroutine(void)
{
	ucontext_t context;
	void *stack = guarded(64 << 10);

	getcontext(&context);
	context.uc_stack.ss_sp = stack;
	context.uc_stack.ss_size = 64 << 10;
	context.uc_link = &mains;
	makecontext(&context, in_short_coroutine, 0);
	swapcontext(&mains, &context);
	munmap((char *)stack - 4096, (64 << 10) + 4096);
}

static void coroutines_that_go(void)
{
	run_loop(40, one_short_coroutine);
}

/* ---- depth ---- */

/* The compiler must not make a loop of it. */
static __attribute__((noinline)) int depth_of(int n)
{
	volatile char room[64] = { 0 };

	if (n)
		return depth_of(n - 1) + 1 + room[n % 64];
	burn(3);
	return 0;
}

static int deepest;

static void recurse(void)
{
	deepest = depth_of(40000);
}

static void deep_recursion(void)
{
	run_loop(20, recurse);
	printf("depth %d\n", deepest);
}

/* ---- jumps ---- */

static jmp_buf back;
static sigjmp_buf back_with_mask;

static void jump_out(void)
{
	depth_of(100);
	longjmp(back, 1);
}

static void longjmp_out_of_dispatch(void)
{
	static volatile int times;

	if (setjmp(back))
		times++;
	if (times < 20)
		run_loop(3, jump_out);
	printf("jumped %d times\n", times);
}

static void jump_from_handler(int sig)
{
	siglongjmp(back_with_mask, sig);
}

static void fault_and_return(void)
{
	volatile int *nowhere = NULL;

	if (!sigsetjmp(back_with_mask, 1))
		*nowhere = 1;
}

static void faults_that_are_caught(void)
{
	signal(SIGSEGV, jump_from_handler);
	run_loop(50, fault_and_return);
}

/* ---- code that comes and goes ---- */

/* Counts down from its argument, in a page that no unwind table describes. */
static const unsigned char code[] = {
#ifdef __x86_64__
	0x55, 0x48, 0x89, 0xe5,	      /* push %rbp; mov %rsp,%rbp */
	0x48, 0xff, 0xcf, 0x75, 0xfb, /* dec %rdi; jnz to it */
	0x5d, 0xc3,		      /* pop %rbp; ret */
#elif defined(__aarch64__)
	0x00, 0x04, 0x00, 0xf1, 0xe1, 0xff, 0xff, 0x54, /* subs x0,x0,#1; b.ne to it */
	0xc0, 0x03, 0x5f, 0xd6,				/* ret */
#else
#error "write the machine code of this architecture here"
#endif
};

static void generate_and_call(void)
{
	union {
		void *place;
		void (*call)(long);
	} page = { mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) };

	memcpy(page.place, code, sizeof(code));
	mprotect(page.place, 4096, PROT_READ | PROT_EXEC);
	__builtin___clear_cache((char *)page.place, (char *)page.place + sizeof(code));
	page.call(5000000);
	munmap(page.place, 4096);
}

static void generated_code(void)
{
	run_loop(20, generate_and_call);
}

static void load_and_unload(void)
{
	for (int i = 0; i < 5; i++) {
		void *library = dlopen(argument, RTLD_NOW | RTLD_LOCAL);
		int (*work)(int) =
			library ? (int (*)(int))(uintptr_t)dlsym(library, "odd_work") : NULL;

		if (!work || work(200000) != 200000)
			tell("loaded", false);
		if (library)
			dlclose(library);
	}
}

static void dlclose_storm(void)
{
	run_loop(60, load_and_unload);
}

static void *load_for_ever(void *stop)
{
	while (!*(volatile bool *)stop)
		load_and_unload();
	return NULL;
}

static void dlclose_storm_beside_a_loop(void)
{
	static bool stop;
	pthread_t thread;

	pthread_create(&thread, NULL, load_for_ever, &stop);
	run_loop(60, NULL);
	*(volatile bool *)&stop = true;
	pthread_join(thread, NULL);
}

const struct shape stack_shapes[] = {
	{ "smallest_thread_stacks", smallest_thread_stacks },
	{ "loops_in_small_threads", loops_in_small_threads },
	{ "main_leaves_first", main_leaves_first },
	{ "cancelled_threads", cancelled_threads },
	{ "thousand_threads", thousand_threads },
	{ "coroutines_4k", coroutines_4k },
	{ "coroutines_8k", coroutines_8k },
	{ "coroutines_that_go", coroutines_that_go },
	{ "deep_recursion", deep_recursion },
	{ "longjmp_out_of_dispatch", longjmp_out_of_dispatch },
	{ "faults_that_are_caught", faults_that_are_caught },
	{ "generated_code", generated_code },
	{ "dlclose_storm", dlclose_storm },
	{ "dlclose_storm_beside_a_loop", dlclose_storm_beside_a_loop },
	{ NULL, NULL },
};
