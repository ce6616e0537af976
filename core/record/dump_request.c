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

#include <dial9/recorder.h>

#include "base/heap.h"
#include "ring/clock.h"
#include "record/dump_request.h"
#include "record/flush.h"
#include "base/sandbox.h"
#include "record/recorder.h"

#define MS_NS   UINT64_C(1000000)
#define WAIT_NS (100 * MS_NS) /* between two looks whether there is anybody left to make it */

/* Whoever waits holds one reference, the list or the flush thread the other. */
struct d9__dump_request {
	struct d9__dump dump;
	_Atomic(int) references;
	_Atomic(int) done; /* release: |dump| is complete; a futex */
	struct d9__dump_request *next;
};

/* Protects the list, for a few instructions at a time. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct d9__dump_request *first, **last = &first;

static void drop(struct d9__dump_request *request)
{
	/* acq_rel: what the other side did to it comes before it is freed */
	if (atomic_fetch_sub_explicit(&request->references, 1, memory_order_acq_rel) == 1)
		d9__free(request);
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
	drop(request);
}

void d9__dump_requests_clear(void)
{
	struct d9__dump_request *request;

	while ((request = d9__dump_request_next()))
		drop(request);
}

void d9__dump_requests_fork_child(void)
{
	pthread_mutex_init(&lock, NULL);
	first = NULL;
	last = &first;
}

static int make_absolute(char *out, size_t size, const char *dir)
{
	char cwd[PATH_MAX];
	int n;

	if (dir[0] == '/')
		n = snprintf(out, size, "%s", dir);
	else if (!getcwd(cwd, sizeof(cwd)))
		return -errno;
	else
		n = snprintf(out, size, "%s/%s", cwd, dir);
	return n < 0 || (size_t)n >= size ? -ENAMETOOLONG : 0;
}

static void push(struct d9__dump_request *request)
{
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

/* 0, -ETIMEDOUT, or -ESHUTDOWN. */
static int await(struct d9__dump_request *request, uint64_t deadline_ns)
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

static int tell(const struct d9__dump *dump, struct d9_dump_receipt *out, size_t size)
{
	struct d9_dump_receipt receipt = {
		.events = dump->events,
		.bytes = dump->bytes,
		.from_ns = dump->from_ns,
		.to_ns = dump->to_ns,
		.segments = dump->segments,
		.complete = dump->complete,
	};

	if (!out || !size)
		return dump->err;
	if (strlen(dump->path) >= sizeof(receipt.path))
		return -ENAMETOOLONG;
	strcpy(receipt.path, dump->path);
	strcpy(receipt.id, dump->id);
	memset(out, 0, size);
	memcpy(out, &receipt, size < sizeof(receipt) ? size : sizeof(receipt));
	return dump->err;
}

int d9_dump(struct d9_recorder *recorder, uint64_t last_ms, const char *dir, uint32_t deadline_ms,
	    struct d9_dump_receipt *receipt, size_t size)
{
	uint64_t deadline_ns = d9__clock_mono_ns() + deadline_ms * MS_NS;
	struct d9__dump_request *request;
	int saved = errno, err;

	if (!recorder || d9_recorder_running() != recorder || (dir && !*dir) ||
	    last_ms > UINT64_MAX / MS_NS)
		return -EINVAL;
	if (d9__sandbox_is_shut())
		return -EPERM;
	request = d9__calloc(1, sizeof(*request));
	err = request ? 0 : -ENOMEM;
	if (!err && dir)
		err = make_absolute(request->dump.dir, sizeof(request->dump.dir), dir);
	if (!err) {
		request->dump.last_ns = last_ms * MS_NS;
		request->dump.by = "d9_dump";
		request->dump.asked_ns = d9__clock_mono_ns();
		d9__recorder_step_in();
		push(request);
		err = await(request, deadline_ns);
		if (!err)
			err = tell(&request->dump, receipt, size);
		drop(request);
	} else {
		d9__free(request);
	}
	errno = saved;
	return err;
}
