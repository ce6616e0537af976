/* SPDX-License-Identifier: Apache-2.0 */
/* The flush thread tells the counts of all threads, once a second and at the end. */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/time.h"
#include "drain/health.h"
#include "loop/task_io.h"
#include "loop/thread_state.h"
#include "record/source.h"

/* Of one thread. */
static struct {
	struct d9__io_growth growths[D9__IO_ROWS];
	size_t n;
} taken;

static void take(void *arg, struct d9__thread *thread)
{
	(void)arg;
	taken.n = d9__task_io_take(thread, taken.growths);
}

void d9__task_io_tell(struct d9__slot *own, uint64_t ns)
{
	/* Written behind the lock.  Where a thread ends meanwhile another has to wait. */
	for (size_t n = 0; d9__threads_nth(n, take, NULL); n++)
		for (size_t i = 0; i < taken.n; i++)
			d9__task_io_emit(own, ns, &taken.growths[i]);
}

static void sample(struct d9__source *source, struct d9__slot *own, uint64_t now_ns)
{
	(void)source;
	d9__task_io_tell(own, now_ns);
}

/* For `dial9 status`.  Two lines that do not fit are left out. */
static void tell_sums(char *buf, size_t size)
{
	int n = snprintf(buf, size, "io.calls=%" PRIu64 "\nio.events=%" PRIu64 "\n",
			 atomic_load_explicit(&d9__io_sums.calls, memory_order_relaxed),
			 atomic_load_explicit(&d9__io_sums.events, memory_order_relaxed));

	if (n < 0 || (size_t)n >= size)
		buf[0] = '\0';
}

void d9__task_io_start(void)
{
	static struct d9__source source = { .name = "io", .period_ns = D9__SECOND_NS,
					    .sample = sample };

	d9__source_add(&source);
	d9__health_provide(tell_sums);
}
