/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <sys/resource.h>
#include <time.h>

#include "base/time.h"
#include "record/source.h"
#include "record/usage.h"
#include "ring/emit_inl.h"
#include "ring/gate.h"

static uint64_t ns_of(const struct timeval *tv)
{
	return (uint64_t)tv->tv_sec * D9__SECOND_NS + (uint64_t)tv->tv_usec * D9__US_NS;
}

/* CPU time of the flush thread, which this is. */
static uint64_t own_cpu_ns(void)
{
	struct timespec used;

	return clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used) ? 0 : d9__timespec_ns(&used);
}

static void write_usage(struct d9__slot *slot, uint64_t now_ns)
{
	struct rusage ru;
	uint8_t *p;

	if (getrusage(RUSAGE_SELF, &ru))
		return;
	p = d9__emit_begin(slot, D9__EVENT_RESOURCE_USAGE, now_ns, 10 * D9__VARINT_MAX);
	if (!p)
		return;
	p = d9__varint_put(p, ns_of(&ru.ru_utime));
	p = d9__varint_put(p, ns_of(&ru.ru_stime));
	p = d9__varint_put(p, (uint64_t)ru.ru_maxrss * 1024u); /* the kernel counts KiB */
	p = d9__varint_put(p, (uint64_t)ru.ru_minflt);
	p = d9__varint_put(p, (uint64_t)ru.ru_majflt);
	p = d9__varint_put(p, (uint64_t)ru.ru_inblock);
	p = d9__varint_put(p, (uint64_t)ru.ru_oublock);
	p = d9__varint_put(p, (uint64_t)ru.ru_nvcsw);
	p = d9__varint_put(p, (uint64_t)ru.ru_nivcsw);
	p = d9__varint_put(p, own_cpu_ns());
	d9__emit_end(slot, p);
}

static void sample(struct d9__source *source, struct d9__slot *slot, uint64_t now_ns)
{
	(void)source;
	write_usage(slot, now_ns);
}

static struct d9__source usage = { .name = "usage", .sample = sample };

bool d9__usage_is_wanted(void)
{
	return atomic_load_explicit(&usage.period_ns, memory_order_relaxed) != 0;
}

bool d9__usage_is_on(void)
{
	return d9__gate_open(D9__GATE_LOOP | D9__GATE_EVENT) && d9__usage_is_wanted();
}

void d9__usage_set_interval(uint64_t interval_ns)
{
	atomic_store_explicit(&usage.period_ns, interval_ns, memory_order_relaxed);
	d9__source_add(&usage);
}

void d9__usage_sample(struct d9__slot *slot, uint64_t now_ns)
{
	if (d9__usage_is_wanted())
		write_usage(slot, now_ns);
}
