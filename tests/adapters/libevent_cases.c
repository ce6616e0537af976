/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs that treat libevent unkindly, one per name:
 *
 *	libevent_cases CASE [--out=FILE] [--adapter=LIBRARY]
 *
 * Each counts for itself; see compare_counts.c.
 */

#include "config.h"

#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <event2/event.h>
#include <event2/event_compat.h>
#include <event2/event_struct.h>
#include <event2/thread.h>

#include "counters.h"

#if LIBEVENT_VERSION_NUMBER < 0x02010000
#define evthread_enable_lock_debugging evthread_enable_lock_debuging
#endif

static const char *adapter; /* NULL: already in the process */
static const char *out_path;
static const struct timeval one_ms = { 0, 1000 };

static struct event_base *new_base(void)
{
	struct event_base *base = event_base_new();

	attach_base(base, adapter);
	return base;
}

static void set_count(const char *name, event_callback_fn callback, enum kind kind, unsigned long n)
{
	counter_of(name, (void *)callback, kind)->count = n;
}

static void run_once(struct event_base *base, struct event *event)
{
	event_active(event, EV_READ, 1);
	event_base_loop(base, EVLOOP_NONBLOCK);
}

/* ---- which assignments are one task ---- */

static void on_fresh(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what, (void)arg;
	COUNT(on_fresh, KIND_POLL);
}

static void on_same(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what, (void)arg;
	COUNT(on_same, KIND_POLL);
}

static void on_other(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what, (void)arg;
	COUNT(on_other, KIND_POLL);
}

static void on_unassigned(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what, (void)arg;
	COUNT(on_unassigned, KIND_POLL);
}

static void on_single(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what, (void)arg;
	COUNT(on_single, KIND_POLL);
}

static void case_tasks(void)
{
	struct event_base *base = new_base();
	struct event event;

	for (int i = 0; i < 5; i++) { /* most likely at one address */
		struct event *fresh = event_new(base, -1, 0, on_fresh, &event);

		run_once(base, fresh);
		run_once(base, fresh);
		event_free(fresh);
	}
	for (int i = 0; i < 4; i++) { /* as memcached does on each change of direction */
		event_assign(&event, base, -1, i % 2 ? EV_PERSIST : 0, on_same, &event);
		run_once(base, &event);
	}
	for (int i = 0; i < 4; i++) {
		event_assign(&event, base, -1, 0, on_other, i < 2 ? NULL : &event);
		run_once(base, &event);
	}
	for (int i = 0; i < 3; i++) {
		event_assign(&event, base, -1, 0, on_unassigned, NULL);
		run_once(base, &event);
		event_debug_unassign(&event);
	}
	for (int i = 0; i < 3; i++) {
		event_base_once(base, -1, EV_TIMEOUT, on_single, NULL, NULL);
		event_base_loop(base, EVLOOP_NONBLOCK);
	}
	set_count("on_fresh", on_fresh, KIND_TASKS, 5);
	set_count("on_same", on_same, KIND_TASKS, 1);
	set_count("on_other", on_other, KIND_TASKS, 2);
	set_count("on_unassigned", on_unassigned, KIND_TASKS, 3);
	set_count("on_single", on_single, KIND_TASKS, 3);
	event_base_free(base);
}

/* ---- no end of events: what is kept of them is bounded ---- */

#define CHURN_BATCH 50

static void on_churn(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what, (void)arg;
	COUNT(on_churn, KIND_POLL);
}

/* Memory of this process that is no file's, in KiB. */
static long anonymous_kib(void)
{
	FILE *in = fopen("/proc/self/status", "r");
	char line[256];
	long kib = -1;

	while (in && fgets(line, sizeof(line), in) && sscanf(line, "RssAnon: %ld", &kib) != 1)
		;
	if (in)
		fclose(in);
	return kib;
}

/* Each number is an address of its own, though memory is used again: the events there overlap. */
static struct event *place_of(char *memory, size_t batch, size_t i)
{
	const size_t stride = sizeof(struct event) + 8, per_window = stride / 8;
	size_t window = batch / per_window * CHURN_BATCH + i;

	return (void *)(memory + window * stride + batch % per_window * 8);
}

/* One event on the heap, one in a structure that is forgotten without notice, one that runs once.
 */
static void churn_batch(struct event_base *base, char *memory, size_t batch)
{
	struct event *fresh[CHURN_BATCH];

	for (size_t i = 0; i < CHURN_BATCH; i++) {
		struct event *embedded = place_of(memory, batch, i);

		fresh[i] = event_new(base, -1, 0, on_churn, &fresh[i]);
		event_active(fresh[i], EV_READ, 1);
		event_assign(embedded, base, -1, 0, on_churn, NULL);
		event_active(embedded, EV_READ, 1);
		event_base_once(base, -1, EV_TIMEOUT, on_churn, NULL, NULL);
	}
	event_base_loop(base, EVLOOP_NONBLOCK);
	for (size_t i = 0; i < CHURN_BATCH; i++)
		event_free(fresh[i]);
}

/* D9_CHURN: how many events.  A third of ten million is more than the tasks that are kept. */
static void case_churn(void)
{
	const struct timespec pause = { 0, 5000000 };
	const char *text = getenv("D9_CHURN");
	const size_t n_batches = (text ? strtoul(text, NULL, 10) : 30000) / (3 * CHURN_BATCH);
	struct event_base *base = new_base();
	size_t size = (uintptr_t)place_of(NULL, n_batches, CHURN_BATCH) + sizeof(struct event);
	char *memory = malloc(size);
	long half_kib = 0;

	memset(memory, 0xa5, size);
	for (size_t i = 0; i < n_batches; i++) {
		if (i == n_batches / 2)
			half_kib = anonymous_kib();
		churn_batch(base, memory, i);
		/* Counts are exact if the flush thread, which is nice, gets its turn beside compilers. */
		if (!text && i % 8 == 7)
			nanosleep(&pause, NULL);
	}
	if (anonymous_kib() > half_kib + 8192)
		complain("KiB after the second half", half_kib, anonymous_kib());
	free(memory);
	event_base_free(base);
}

/* ---- loops in callbacks, and callbacks that never return ---- */

static struct event_base *inner_base;
static jmp_buf escape;

static void on_inner(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what, (void)arg;
	COUNT(on_inner, KIND_POLL);
}

static void on_outer(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what, (void)arg;
	COUNT(on_outer, KIND_POLL);
	for (int i = 0; i < 3; i++) {
		struct event *event = evtimer_new(inner_base, on_inner, NULL);

		evtimer_add(event, &one_ms);
		event_base_dispatch(inner_base);
		event_free(event);
	}
}

static void case_nested(void)
{
	struct event_base *base = new_base();
	struct event *event = event_new(base, -1, 0, on_outer, NULL);

	inner_base = new_base();
	for (int i = 0; i < 4; i++)
		run_once(base, event);
	event_free(event);
	event_base_free(inner_base);
	event_base_free(base);
}

static void on_jump(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what, (void)arg;
	COUNT(on_jump, KIND_POLL);
	longjmp(escape, 1);
}

static void on_after(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what, (void)arg;
	COUNT(on_after, KIND_POLL);
}

static void run_after(void)
{
	struct event_base *base = new_base();
	struct event *event = event_new(base, -1, 0, on_after, NULL);

	for (int i = 0; i < 7; i++)
		run_once(base, event);
	event_free(event);
	event_base_free(base);
}

/* A base that was left in the middle cannot be used again. */
static void case_longjmp(void)
{
	for (volatile int i = 0; i < 3; i++) {
		struct event_base *base = new_base();
		struct event *event = event_new(base, -1, 0, on_jump, NULL);

		if (!setjmp(escape))
			run_once(base, event);
		run_after();
	}
}

static void on_exit_thread(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what, (void)arg;
	COUNT(on_exit_thread, KIND_POLL);
	pthread_exit(NULL);
}

static void *run_until_exit(void *arg)
{
	struct event_base *base = new_base();
	struct event *event = event_new(base, -1, 0, on_exit_thread, NULL);

	run_once(base, event);
	return arg;
}

static void case_thread_exit(void)
{
	for (int i = 0; i < 3; i++) {
		pthread_t thread;

		pthread_create(&thread, NULL, run_until_exit, NULL);
		pthread_join(thread, NULL);
		run_after();
	}
}

/* ---- more callbacks than stubs: closures made at run time, as bindings of languages do ---- */

#define CLOSURES      1500
#define CLOSURE_BYTES 16

static unsigned long closure_runs;

static void on_closure(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what, (void)arg;
	closure_runs++;
}

static unsigned char *make_closures(void)
{
	unsigned char *code = mmap(NULL, CLOSURES * CLOSURE_BYTES, PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const uintptr_t target = (uintptr_t)on_closure;

	for (size_t i = 0; i < CLOSURES; i++) {
		unsigned char *at = code + i * CLOSURE_BYTES;

		memcpy(at, "\x48\xb8", 2); /* movabs $target, %rax; jmp *%rax */
		memcpy(at + 2, &target, sizeof(target));
		memcpy(at + 10, "\xff\xe0", 2);
	}
	if (mprotect(code, CLOSURES * CLOSURE_BYTES, PROT_READ | PROT_EXEC))
		exit(77);
	return code;
}

static void case_closures(void)
{
#ifndef __x86_64__
	exit(77);
#endif
	struct event_base *base = new_base();
	unsigned char *code = make_closures();

	for (size_t i = 0; i < CLOSURES; i++) {
		event_callback_fn callback;
		struct event *event;
		void *at = code + i * CLOSURE_BYTES;

		memcpy(&callback, &at, sizeof(callback));
		event = event_new(base, -1, 0, callback, NULL);
		run_once(base, event);
		if (event_get_callback(event) != callback)
			complain("the callback of a closure", 1, 0);
		event_free(event);
	}
	if (closure_runs != CLOSURES)
		complain("closures run", CLOSURES, (long)closure_runs);
	counter_of("closures", code, KIND_CLOSURES)->count = CLOSURES;
	event_base_free(base);
}

/* ---- late timers ---- */

static uint64_t due_us, due_at_last_us, late_us, least_us, late_runs;

static uint64_t now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

/* A deadline is counted in ticks of 4 ms from the last one: a timer may run before its time. */
static void note_lateness(uint64_t deadline_us)
{
	uint64_t now = now_us();

	late_us += now > deadline_us ? now - deadline_us : 0;
	late_runs++;
}

static void on_late_timer(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what, (void)arg;
	COUNT(on_late_timer, KIND_POLL);
	note_lateness(due_us);
}

static void on_blocker(evutil_socket_t fd, short what, void *arg)
{
	const uint64_t until = now_us() + 60000;

	(void)fd, (void)what, (void)arg;
	COUNT(on_blocker, KIND_POLL);
	while (now_us() < until)
		;
	least_us += now_us() - due_at_last_us;
}

static void case_late(void)
{
	struct event_base *base = new_base();
	struct event *timer = evtimer_new(base, on_late_timer, NULL);
	struct event *blocker = event_new(base, -1, 0, on_blocker, NULL);

	for (int i = 0; i < 3; i++) {
		const struct timeval ten_ms = { 0, 10000 };

		due_us = now_us() + 10000;
		evtimer_add(timer, &ten_ms);
		due_at_last_us = now_us() + 10000;
		event_active(blocker, EV_READ, 1);
		event_base_dispatch(base);
	}
	set_count("on_late_timer", on_late_timer, KIND_LATE, (unsigned long)(late_us / late_runs));
	set_count("on_late_timer", on_late_timer, KIND_LEAST, (unsigned long)(least_us / late_runs));
	event_free(timer);
	event_free(blocker);
	event_base_free(base);
}

static uint64_t next_us;

static void on_period(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what;
	COUNT(on_period, KIND_POLL);
	note_lateness(next_us);
	/* As libevent has it: not a period that is over already. */
	next_us += 20000;
	if (next_us < now_us())
		next_us = now_us() + 20000;
	if (late_runs == 5)
		event_base_loopbreak(arg);
}

static void case_periodic(void)
{
	const struct timeval period = { 0, 20000 };
	struct event_base *base = new_base();
	struct event *timer = event_new(base, -1, EV_PERSIST, on_period, base);

	next_us = now_us() + 20000;
	event_add(timer, &period);
	event_base_dispatch(base);
	set_count("on_period", on_period, KIND_LATE, (unsigned long)(late_us / late_runs));
	event_free(timer);
	event_base_free(base);
}

/* ---- set-ups ---- */

/* Blocks that malloc does not know: asking for their size would end the process. */
static void *odd_malloc(size_t size)
{
	char *block = malloc(size + 64);

	return block ? block + 64 : NULL;
}

static void odd_free(void *block)
{
	if (block)
		free((char *)block - 64);
}

static void *odd_realloc(void *block, size_t size)
{
	char *bigger = realloc(block ? (char *)block - 64 : NULL, size + 64);

	return bigger ? bigger + 64 : NULL;
}

static void case_allocator(void)
{
	event_set_mem_functions(odd_malloc, odd_realloc, odd_free);
	run_after();
}

static bool sizes_are_hidden;

/* Without the size of a base its fields are not looked for. */
__attribute__((visibility("default"))) size_t malloc_usable_size(void *block)
{
	size_t (*real)(void *) = (size_t(*)(void *))dlsym(RTLD_NEXT, "malloc_usable_size");

	return sizes_are_hidden || !real ? 0 : real(block);
}

static int once_in_once;

static void on_once_in_once(evutil_socket_t fd, short what, void *arg)
{
	struct event_base *base;

	(void)fd, (void)what, (void)arg;
	COUNT(on_once_in_once, KIND_POLL);
	if (++once_in_once == 4)
		return;
	base = new_base();
	event_base_once(base, -1, EV_TIMEOUT, on_once_in_once, NULL, NULL);
	event_base_dispatch(base);
	event_base_free(base);
}

/* Events of one callback are one task then: it has not ended when the inner one of two returns. */
static void case_unknown_event(void)
{
	sizes_are_hidden = true;
	on_once_in_once(-1, 0, NULL);
	counter_of("on_once_in_once", (void *)on_once_in_once, KIND_POLL)->count--; /* called by us */
}

static void case_lock_debug(void)
{
	evthread_enable_lock_debugging();
	evthread_use_pthreads();
	run_after();
	case_nested();
}

static void case_precise(void)
{
#if LIBEVENT_VERSION_NUMBER >= 0x02010000
	struct event_config *config = event_config_new();
	struct event_base *base;
	struct event *event;

	event_config_set_flag(config, EVENT_BASE_FLAG_PRECISE_TIMER);
	base = event_base_new_with_config(config);
	attach_base(base, adapter);
	event = evtimer_new(base, on_after, NULL);
	evtimer_add(event, &one_ms);
	event_base_dispatch(base);
	event_free(event);
	event_base_free(base);
	event_config_free(config);
#else
	exit(77);
#endif
}

static void case_compat(void)
{
	struct event_base *base = event_init();
	struct event event;

	attach_base(base, adapter);
	event_set(&event, -1, 0, on_same, &event);
	event_add(&event, &one_ms);
	event_once(-1, EV_TIMEOUT, on_single, NULL, &one_ms);
	event_dispatch();
	event_set(&event, -1, 0, on_same, &event);
	event_add(&event, &one_ms);
	event_loop(EVLOOP_ONCE);
	set_count("on_same", on_same, KIND_TASKS, 1);
	event_base_free(base);
}

/* ---- threads and processes ---- */

static void *run_thread(void *arg)
{
	struct event_base *base = new_base();
	event_callback_fn callback = arg ? on_same : on_other;
	struct event *event = event_new(base, -1, 0, callback, NULL);

	for (int i = 0; i < 2000; i++)
		run_once(base, event);
	event_free(event);
	event_base_free(base);
	return NULL;
}

static void case_two_threads(void)
{
	pthread_t threads[2];

	evthread_use_pthreads();
	counter_of("on_same", (void *)on_same, KIND_POLL);
	counter_of("on_other", (void *)on_other, KIND_POLL);
	for (uintptr_t i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, run_thread, (void *)i);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
}

/* The parent ends before its base ever runs; the child goes on with it. */
static void case_daemon(void)
{
	struct event_base *base = new_base();
	struct event *event = event_new(base, -1, 0, on_after, NULL);
	pid_t pid = fork();
	int status = 0;

	if (pid) {
		waitpid(pid, &status, 0);
		_exit(WEXITSTATUS(status));
	}
	event_reinit(base);
	for (int i = 0; i < 7; i++)
		run_once(base, event);
	event_base_once(base, -1, EV_TIMEOUT, on_single, NULL, NULL);
	event_base_dispatch(base);
	event_free(event);
	event_base_free(base);
	exit(counters_write(out_path));
}

/* Events made before the adapter came run, but cannot be recorded. */
static void case_late_adapter(void)
{
	struct event_base *base = event_base_new();
	struct event *old = event_new(base, -1, 0, on_other, NULL);
	struct event *event;

	attach_base(base, adapter);
	event = event_new(base, -1, 0, on_after, NULL);
	for (int i = 0; i < 3; i++) {
		run_once(base, old);
		run_once(base, event);
	}
	counter_of("on_other", (void *)on_other, KIND_POLL)->count = 0;
	event_free(old);
	event_free(event);
	event_base_free(base);
}

/* Attached inside a callback, a base is recorded from its next run on. */
static void on_attach(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what;
	attach_base(arg, adapter);
}

static void case_attach_inside(void)
{
	struct event_base *first = new_base(), *base = event_base_new();
	struct event *attacher = event_new(base, -1, 0, on_attach, base);
	struct event *event = event_new(base, -1, 0, on_after, NULL);

	run_once(base, attacher);
	for (int i = 0; i < 3; i++)
		run_once(base, event);
	event_free(attacher);
	event_free(event);
	event_base_free(base);
	event_base_free(first);
}

/* ---- errno: as alone after each call, though the recorder fails ---- */

#define OUR_ERRNO 4242

#define ERRNO_OF(call)                                                                             \
	do {                                                                                       \
		errno = OUR_ERRNO;                                                                 \
		call;                                                                              \
		log_line("errno %d after %s", errno, #call);                                       \
	} while (0)

static void on_errno(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)arg;
	log_line("errno %d in a callback for %d", errno, what);
	errno = OUR_ERRNO + 1;
}

static void errno_of_events(struct event_base *base)
{
	const struct timeval an_hour = { 3600, 0 };
	struct event *event = NULL, embedded;
	event_callback_fn callback;
	short events;
	void *arg;
	int fd;

	ERRNO_OF(event = event_new(base, -1, EV_PERSIST, on_errno, NULL));
	ERRNO_OF(event_assign(&embedded, base, -1, 0, on_errno, NULL));
	ERRNO_OF(event_add(event, &an_hour));
	ERRNO_OF(event_active(&embedded, EV_READ, 1));
	ERRNO_OF(event_base_once(base, -1, EV_TIMEOUT, on_errno, NULL, NULL));
	ERRNO_OF(event_base_loop(base, EVLOOP_NONBLOCK));
	ERRNO_OF(event_active(event, EV_WRITE, 1));
	ERRNO_OF(event_base_loop(base, EVLOOP_ONCE));
	ERRNO_OF(event_get_callback(event));
	ERRNO_OF(event_get_assignment(event, &base, &fd, &events, &callback, &arg));
	ERRNO_OF(event_base_init_common_timeout(base, &one_ms));
	ERRNO_OF(event_base_loopexit(base, NULL));
	ERRNO_OF(event_base_dispatch(base));
	ERRNO_OF(event_reinit(base));
	ERRNO_OF(event_debug_unassign(&embedded));
	ERRNO_OF(event_free(event));
}

#if LIBEVENT_VERSION_NUMBER >= 0x02010000
static void on_errno_end(struct event *event, void *arg)
{
	(void)event, (void)arg;
	log_line("errno %d in a finalizer", errno);
}

static void errno_of_finalizers(struct event_base *base)
{
	struct event *event = event_new(base, -1, 0, on_errno, NULL), embedded;

	event_assign(&embedded, base, -1, 0, on_errno, NULL);
	ERRNO_OF(event_finalize(0, &embedded, on_errno_end));
	ERRNO_OF(event_free_finalize(0, event, on_errno_end));
	ERRNO_OF(event_base_loop(base, EVLOOP_NONBLOCK));
}
#endif

static void case_errno(void)
{
	struct event_base *base = NULL;

	evthread_use_pthreads();
	ERRNO_OF(base = new_base());
	errno_of_events(base);
#if LIBEVENT_VERSION_NUMBER >= 0x02010000
	errno_of_finalizers(base);
#endif
	ERRNO_OF(evthread_make_base_notifiable(base));
	ERRNO_OF(event_base_free(base));
}

static const struct test_case {
	const char *name;
	void (*run)(void);
} cases[] = {
	{ "attach_inside", case_attach_inside },
	{ "errno", case_errno },
	{ "tasks", case_tasks },
	{ "churn", case_churn },
	{ "nested", case_nested },
	{ "longjmp", case_longjmp },
	{ "thread_exit", case_thread_exit },
	{ "closures", case_closures },
	{ "late", case_late },
	{ "periodic", case_periodic },
	{ "allocator", case_allocator },
	{ "unknown_event", case_unknown_event },
	{ "lock_debug", case_lock_debug },
	{ "precise", case_precise },
	{ "compat", case_compat },
	{ "two_threads", case_two_threads },
	{ "daemon", case_daemon },
	{ "late_adapter", case_late_adapter },
};

int main(int argc, char **argv)
{
	for (int i = 2; i < argc; i++) {
		if (!strncmp(argv[i], "--out=", 6))
			out_path = argv[i] + 6;
		else if (!strncmp(argv[i], "--adapter=", 10))
			adapter = argv[i] + 10;
	}
	for (size_t i = 0; argc > 1 && i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (strcmp(cases[i].name, argv[1]))
			continue;
		cases[i].run();
		return counters_write(out_path);
	}
	return 2;
}
