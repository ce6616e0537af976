/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads and unloads modules at random, calls them, and checks the stacks of samples that are taken in what they
 * call back: the frames around the module's function are known, and each module has frames of another size.
 *
 *	churn_modules ROUNDS MODULE...
 *
 * While samples are taken, another thread stands in a callback of dl_iterate_phdr(), with the loader's lock, and
 * is let go only afterwards: a handler that waited for the lock would wait for ever.  A third thread is sampled all
 * the time, by a timer.
 */
#include "config.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/sanitized.h"
#include "core/sample/own_stack.h"
#include "sample/unwind.h"
#include "sample/unwind_table.h"

#define OPEN      6 /* modules at a time */
#define PERIOD_NS 211000
#define CALL_SIZE 128 /* bytes of code of call_module(), at the most */

typedef int (*call_fn)(int (*fn)(void *), void *arg);

/* ---- samples ---- */

struct sampled {
	struct d9__unwind_thread unwinder;
	_Atomic(uint64_t) n, n_right, n_marked;
};

static struct sampled callers, sorter;
static uintptr_t in_module; /* what the function that is sampled returns to */
static uintptr_t in_caller; /* what call_module() returns to */

static int call_module(call_fn fn);

static bool is_call(const uint64_t *pcs)
{
	return pcs[0] == in_module && pcs[1] > (uintptr_t)call_module &&
	       pcs[1] < (uintptr_t)call_module + CALL_SIZE && pcs[2] == in_caller;
}

static bool is_right(const uint64_t *pcs, uint32_t n)
{
	for (uint32_t i = 0; i + 2 < n; i++)
		if (is_call(&pcs[i]))
			return true;
	return false;
}

static void on_sample(int signal_number, siginfo_t *info, void *ucontext)
{
	struct sampled *sampled = signal_number == SIGUSR1 ? &sorter : &callers;
	struct d9__registers registers;
	uint64_t pcs[D9__UNWIND_MAX];
	struct d9__unwound unwound;
	int saved_errno = errno;

	(void)info;
	d9__registers_of(&registers, ucontext);
	unwound = d9__unwind(&sampled->unwinder, &registers, pcs, D9__UNWIND_MAX);
	sampled->n++;
	sampled->n_right += sampled == &callers && is_right(pcs, unwound.n);
	sampled->n_marked += unwound.truncated || unwound.guessed;
	errno = saved_errno;
}

/* Called by modules. */
__attribute__((noinline)) static int sampled_function(void *arg)
{
	(void)arg;
	in_module = (uintptr_t)__builtin_return_address(0);
	return raise(SIGPROF);
}

__attribute__((noinline)) static int call_module(call_fn fn)
{
	in_caller = (uintptr_t)__builtin_return_address(0);
	return fn(sampled_function, NULL) + 1;
}

/* ---- a thread that has the loader's lock ---- */

static sem_t wanted, given, back, returned;
static atomic_bool ended;

static int hold(struct dl_phdr_info *info, size_t size, void *arg)
{
	(void)info;
	(void)size;
	(void)arg;
	sem_post(&given);
	while (sem_wait(&back))
		;
	return 1;
}

static void *hold_lock(void *arg)
{
	while (sem_wait(&wanted) == 0 && !atomic_load(&ended)) {
		dl_iterate_phdr(hold, NULL);
		sem_post(&returned);
	}
	return arg;
}

/* ---- a thread that is sampled by a timer ---- */

static int by_value(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

static void *sort(void *arg)
{
	struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGUSR1 };
	struct itimerspec spec = { { 0, PERIOD_NS }, { 0, PERIOD_NS } };
	unsigned seed = 1;
	timer_t timer;
	int values[64];

	own_stack(&sorter.unwinder);
	event._sigev_un._tid = (pid_t)syscall(SYS_gettid);
	if (timer_create(CLOCK_MONOTONIC, &event, &timer))
		return arg;
	timer_settime(timer, 0, &spec, NULL);
	while (!atomic_load(&ended)) {
		for (int i = 0; i < 64; i++)
			values[i] = (int)((seed = seed * 1103515245 + 12345) >> 8);
		qsort(values, 64, sizeof(values[0]), by_value);
	}
	timer_delete(timer);
	return arg;
}

/* ---- rounds ---- */

static struct {
	void *handle;
	call_fn call;
} opened[OPEN];

static void reload(unsigned slot, const char *path)
{
	if (opened[slot].handle)
		dlclose(opened[slot].handle);
	opened[slot].handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!opened[slot].handle) {
		printf("%s\n", dlerror());
		exit(99);
	}
	opened[slot].call = (call_fn)dlsym(opened[slot].handle, "module_call");
}

/* Call all modules while the other thread has the loader's lock. */
static void call_all(void)
{
	sem_post(&wanted);
	while (sem_wait(&given))
		;
	for (int i = 0; i < OPEN; i++)
		if (opened[i].handle)
			call_module(opened[i].call);
	sem_post(&back);
	while (sem_wait(&returned))
		;
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

struct outcome {
	uint64_t n_early_wrong, n_wrong;
};

static void run_round(unsigned *seed, char **paths, unsigned n, struct outcome *outcome)
{
	uint64_t wrong;

	for (int i = 0; i < 2; i++) {
		*seed = *seed * 1103515245 + 12345;
		reload((*seed >> 8) % OPEN, paths[(*seed >> 16) % n]);
	}
	wrong = callers.n - callers.n_right;
	call_all();
	outcome->n_early_wrong += callers.n - callers.n_right - wrong;

	d9__unwind_tables_refresh(now_ns());
	wrong = callers.n - callers.n_right + callers.n_marked;
	call_all();
	outcome->n_wrong += callers.n - callers.n_right + callers.n_marked - wrong;
}

int main(int argc, char **argv)
{
	struct sigaction action = { .sa_sigaction = on_sample, .sa_flags = SA_SIGINFO | SA_RESTART };
	struct outcome outcome = { 0 };
	struct d9__unwind_figures figures;
	pthread_t holder, sorting;
	unsigned seed = 1;

	if (argc < 3)
		return 99;
	sem_init(&wanted, 0, 0);
	sem_init(&given, 0, 0);
	sem_init(&back, 0, 0);
	sem_init(&returned, 0, 0);
	sigfillset(&action.sa_mask);
	sigaction(SIGPROF, &action, NULL);
	sigaction(SIGUSR1, &action, NULL);
	own_stack(&callers.unwinder);
	d9__unwind_tables_want_rows();
	d9__unwind_tables_refresh(now_ns());
	pthread_create(&holder, NULL, hold_lock, NULL);
	pthread_create(&sorting, NULL, sort, NULL);
	for (long i = 0; i < strtol(argv[1], NULL, 10); i++)
		run_round(&seed, argv + 2, (unsigned)argc - 2, &outcome);
	atomic_store(&ended, true);
	sem_post(&wanted);
	pthread_join(holder, NULL);
	pthread_join(sorting, NULL);
	d9__unwind_tables_figures(&figures);
	printf("%lu samples in modules, %lu wrong; %lu wrong before the tables knew; "
	       "%lu samples by a timer, %lu marked; %lu versions, %zu kept, %zu rows\n",
	       (unsigned long)callers.n, (unsigned long)outcome.n_wrong,
	       (unsigned long)outcome.n_early_wrong, (unsigned long)sorter.n,
	       (unsigned long)sorter.n_marked, (unsigned long)figures.version, figures.n_retired,
	       figures.n_rows);
	d9__unwind_tables_release();
	/* ThreadSanitizer runs handlers of timers later, with a context that is out of date by then. */
	return outcome.n_wrong || (sorter.n_marked && D9__SANITIZED != 2) || !callers.n;
}
