/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/heap.h"
#include "base/time.h"
#include "record/dump_request.h"
#include "record/flush.h"
#include "ring/clock.h"

#define WAIT_NS (100 * D9__MS_NS) /* between two looks whether the flush thread has ended */

/* The thread that waits holds one reference, the list or the flush thread the other. */
struct d9__dump_request {
	struct d9__dump dump;
	_Atomic(int) references;
	_Atomic(int) done; /* release: |dump| is complete; a futex */
	struct d9__dump_request *next;
};

/* Protects the list, for a few instructions at a time. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct d9__dump_request *first, **last = &first;

void d9__dump_request_drop(struct d9__dump_request *request)
{
	/* acq_rel: what the other side did to it comes before it is freed */
	if (atomic_fetch_sub_explicit(&request->references, 1, memory_order_acq_rel) == 1)
		d9__free(request);
}

struct d9__dump_request *d9__dump_request_new(void)
{
	struct d9__dump_request *request = d9__calloc(1, sizeof(*request));

	if (request)
		atomic_store_explicit(&request->references, 1, memory_order_relaxed);
	return request;
}

struct d9__dump_request *d9__dump_request_next(void)
{
	struct d9__dump_request *request;

	pthread_mutex_lock(&lock);
	request = first;
	if (request) {
		first = request->next;
		if (!first)
			last = &first;
	}
	pthread_mutex_unlock(&lock);
	return request;
}

struct d9__dump *d9__dump_request_dump(struct d9__dump_request *request)
{
	return &request->dump;
}

void d9__dump_request_done(struct d9__dump_request *request)
{
	atomic_store_explicit(&request->done, 1, memory_order_release);
	syscall(SYS_futex, &request->done, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
	d9__dump_request_drop(request);
}

void d9__dump_requests_clear(void)
{
	struct d9__dump_request *request;

	while ((request = d9__dump_request_next()))
		d9__dump_request_drop(request);
}

void d9__dump_requests_fork_child(void)
{
	pthread_mutex_init(&lock, NULL);
	first = NULL;
	last = &first;
}

void d9__dump_request_push(struct d9__dump_request *request)
{
	/* relaxed: the lock orders it */
	atomic_store_explicit(&request->references, 2, memory_order_relaxed);
	pthread_mutex_lock(&lock);
	*last = request;
	last = &request->next;
	pthread_mutex_unlock(&lock);
	d9__flush_wake();
}

static bool is_done(struct d9__dump_request *request)
{
	return atomic_load_explicit(&request->done, memory_order_acquire);
}

int d9__dump_request_await(struct d9__dump_request *request, uint64_t deadline_ns)
{
	while (!is_done(request)) {
		uint64_t now_ns = d9__clock_mono_ns(), wait_ns = WAIT_NS;
		struct timespec timeout;

		if (now_ns >= deadline_ns)
			return -ETIMEDOUT;
		/* Asked after |ended| was seen: what is done by then is done. */
		if (atomic_load_explicit(&d9__flush.ended, memory_order_acquire))
			return is_done(request) ? 0 : -ESHUTDOWN;
		if (deadline_ns - now_ns < wait_ns)
			wait_ns = deadline_ns - now_ns;
		timeout = (struct timespec){ 0, (long)wait_ns };
		syscall(SYS_futex, &request->done, FUTEX_WAIT_PRIVATE, 0, &timeout, NULL, 0);
	}
	return 0;
}
