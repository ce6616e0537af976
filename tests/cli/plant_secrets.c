/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plant_secrets FILE: a libevent program whose stacks and registers are full of two words that must not leave it: a random
 * one, and the stack protector's.  They are written to FILE, one a line.
 *
 * Both stand where the walk of a stack looks for a return address or a frame pointer: in coroutines by makecontext() and
 * by a switch of its own, in code without unwind tables, and in code made at run time.  In each, and in what each calls,
 * the program computes, allocates, blocks in a call, holds a lock for which another thread waits, and arms a watcher.
 *
 * Half way it waits, inside a coroutine, for FILE.go: whoever looks at it from outside has the time to do so.
 */
#include <event2/event.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#define ROUNDS	    50
#define STACK_WORDS 8192
#define PLACES	    7 /* from which a round calls work() */
#define NOINLINE    __attribute__((noinline))

typedef void (*work_fn)(void);

/* In a module, but no table knows them: no directive of the compiler's is between them. */
__asm__(".text\n"
	/* bare(count, secret, work): a frame with the secret in each slot and register, then |work|. */
	".globl bare\n"
	"bare:\n"
	"	push %rbp\n	push %rbx\n	push %r12\n	push %r13\n	push %r14\n	push %r15\n"
	"	push %rsi\n	push %rsi\n"
	"	mov %rsp, %rbp\n"
	"	sub $8, %rsp\n	mov %rsi, (%rsp)\n"
	"	mov %rsi, %rbx\n	mov %rsi, %r12\n	mov %rsi, %r13\n	mov %rsi, %r14\n	mov %rsi, %r15\n"
	"1:	dec %rdi\n	jnz 1b\n"
	"	test %rdx, %rdx\n	jz 2f\n"
	"	call *%rdx\n"
	"2:	add $24, %rsp\n"
	"	pop %r15\n	pop %r14\n	pop %r13\n	pop %r12\n	pop %rbx\n	pop %rbp\n"
	"	ret\n"
	".globl bare_end\n"
	"bare_end:\n"
	/* enter(top, work, secret): |work| on another stack, called by the secret; until leave(). */
	".globl enter\n"
	"enter:\n"
	"	push %rbp\n	push %rbx\n	push %r12\n	push %r13\n	push %r14\n	push %r15\n"
	"	mov %rsp, left_at(%rip)\n"
	"	mov %rdi, %rsp\n"
	"	mov %rdx, %rbp\n	mov %rdx, %rbx\n	mov %rdx, %r12\n	mov %rdx, %r13\n	mov %rdx, %r14\n"
	"	mov %rdx, %r15\n	push %rdx\n"
	"	jmp *%rsi\n"
	".globl leave\n"
	"leave:\n"
	"	mov left_at(%rip), %rsp\n"
	"	pop %r15\n	pop %r14\n	pop %r13\n	pop %r12\n	pop %rbx\n	pop %rbp\n"
	"	ret\n"
	".local left_at\n"
	".comm left_at, 8, 8\n");

void bare(uint64_t count, uint64_t secret, work_fn work);
void enter(void *top, work_fn work, uint64_t secret);
void leave(void) __attribute__((noreturn));
extern const char bare_end[];

typedef void (*bare_fn)(uint64_t count, uint64_t secret, work_fn work);

static struct event_base *base;
static struct event *timer;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static uint64_t secrets[2], *stack;
static bare_fn made; /* a copy of bare() in memory of its own */
static char go[4096];
static int left = 2 * ROUNDS;
static void *volatile kept;

/* ---- work: what is sampled ---- */

static NOINLINE void compute(void)
{
	for (volatile unsigned i = 0; i < 1500000; i++)
		;
}

static NOINLINE void allocate(void)
{
	for (int i = 0; i < 8; i++) {
		uint64_t *block = malloc(65536);

		memset(block, 0, 64);
		block[0] = secrets[0];
		kept = block;
		free(block);
	}
}

static NOINLINE void block(void)
{
	const struct timespec length = { 0, 1200000 };

	nanosleep(&length, NULL);
}

static NOINLINE void hold(void)
{
	pthread_mutex_lock(&mutex);
	usleep(1200);
	pthread_mutex_unlock(&mutex);
}

/* In each round from another place. */
static NOINLINE void arm(void)
{
	const struct timeval soon = { 0, 3000 };
	static int calls;

	if (left && calls++ % PLACES == left % PLACES)
		event_add(timer, &soon);
}

static NOINLINE void work(void)
{
	compute();
	allocate();
	block();
	hold();
	arm();
}

/* ---- places from which it is called ---- */

static void begin_by_hand(void)
{
	work();
	leave();
}

static void begin_bare(void)
{
	bare(100000, secrets[left & 1], work);
	leave();
}

static ucontext_t outside;

static void begin_context(void)
{
	work();
}

static void fill(uint64_t *words, uint64_t secret)
{
	for (int i = 0; i < STACK_WORDS; i++)
		words[i] = secret;
}

static void run_context(uint64_t secret)
{
	ucontext_t inside;

	fill(stack, secret);
	getcontext(&inside);
	inside.uc_stack.ss_sp = stack;
	inside.uc_stack.ss_size = STACK_WORDS * sizeof(stack[0]);
	inside.uc_link = &outside;
	makecontext(&inside, begin_context, 0);
	swapcontext(&outside, &inside);
}

/* The second stack lies in the thread's own. */
static NOINLINE void run_by_hand(work_fn begin, uint64_t secret)
{
	uint64_t own[STACK_WORDS] __attribute__((aligned(16)));

	fill(own, secret);
	enter(own + STACK_WORDS - 64, begin, secret);
	fill(stack, secret);
	enter(stack + STACK_WORDS - 64, begin, secret);
}

static void wait_for_go(void)
{
	while (access(go, F_OK))
		usleep(2000);
	leave();
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
	uint64_t secret = secrets[--left & 1];

	(void)fd, (void)what, (void)arg;
	run_context(secret);
	run_by_hand(begin_by_hand, secret);
	run_by_hand(begin_bare, secret);
	bare(100000, secret, work);
	made(100000, secret, work);
	if (left == ROUNDS) {
		fill(stack, secret);
		printf("half %d\n", (int)getpid());
		fflush(stdout);
		enter(stack + STACK_WORDS - 64, wait_for_go, secret);
	}
	if (!left)
		event_base_loopbreak(base);
}

/* Holds the lock that callbacks wait for, in the same places. */
static void *contend(void *words)
{
	(void)words;
	for (;;) {
		bare(1000, secrets[0], hold);
		made(1000, secrets[1], hold);
		usleep(100);
	}
	return NULL;
}

static void find_secrets(const char *path)
{
	FILE *file = fopen(path, "w");

	do
		if (getrandom(&secrets[0], sizeof(secrets[0]), 0) != sizeof(secrets[0]))
			exit(99);
	while (secrets[0] >> 56 == 0 || secrets[0] >> 56 == 0xff); /* no address has these bits */
	__asm__("mov %%fs:0x28, %0" : "=r"(secrets[1]));
	if (!file)
		exit(99);
	fprintf(file, "%llx\n%llx\n", (unsigned long long)secrets[0], (unsigned long long)secrets[1]);
	fclose(file);
}

int main(int argc, char **argv)
{
	const struct timeval soon = { 0, 100 };
	pthread_t thread;
	void *code;

	if (argc < 2)
		return 99;
	alarm(300);
	find_secrets(argv[1]);
	snprintf(go, sizeof(go), "%s.go", argv[1]);
	stack = mmap(NULL, STACK_WORDS * sizeof(stack[0]), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	code = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memcpy(code, (const void *)(uintptr_t)bare, (size_t)(bare_end - (const char *)(uintptr_t)bare));
	mprotect(code, 4096, PROT_READ | PROT_EXEC);
	made = (bare_fn)(uintptr_t)code;
	base = event_base_new();
	timer = evtimer_new(base, on_timer, NULL);
	event_add(timer, &soon);
	pthread_create(&thread, NULL, contend, NULL);
	event_base_dispatch(base);
	return 0;
}
