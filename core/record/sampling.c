/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "base/options.h"
#include "base/own_memory.h"
#include "base/time.h"
#include "record/sampling.h"
#include "ring/ring_file.h"

struct d9__sampling d9__sampling;
struct d9__slot_stack d9__slot_stacks[D9__SLOT_COUNT];

void d9__sampling_set_memory(const struct d9_options *options)
{
	atomic_store_explicit(&d9__sampling.memory_live_set, d9__options_number(options, D9__OPTION_MEMORY_LIVE_SET) != 0,
			      memory_order_relaxed);
	atomic_store_explicit(&d9__sampling.memory_seed, d9__options_number(options, D9__OPTION_MEMORY_SEED),
			      memory_order_relaxed);
	atomic_store_explicit(&d9__sampling.memory_rate, d9__options_number(options, D9__OPTION_MEMORY) ?
			      d9__options_number(options, D9__OPTION_MEMORY_RATE) : 0, memory_order_relaxed);
}

void d9__sampling_set(const struct d9_options *options)
{
	struct d9__sampling *sampling = &d9__sampling;
	bool on = d9__options_number(options, D9__OPTION_CPU) != 0;
	bool io = d9__options_number(options, D9__OPTION_BLOCKING) &&
		  d9__options_number(options, D9__OPTION_IO);

	atomic_store_explicit(&sampling->cpu_hz, on ? (uint32_t)d9__options_number(options, D9__OPTION_CPU_HZ) : 0,
			      memory_order_relaxed);
	atomic_store_explicit(&sampling->all_threads,
			      d9__options_number(options, D9__OPTION_CPU_THREADS) == D9_CPU_THREADS_ALL,
			      memory_order_relaxed);
	atomic_store_explicit(&sampling->cpu_backend, (uint32_t)d9__options_number(options, D9__OPTION_CPU_BACKEND),
			      memory_order_relaxed);
	atomic_store_explicit(&sampling->off_cpu, d9__options_number(options, D9__OPTION_OFF_CPU) != 0,
			      memory_order_relaxed);
	atomic_store_explicit(&sampling->blocking, d9__options_number(options, D9__OPTION_BLOCKING) != 0,
			      memory_order_relaxed);
	atomic_store_explicit(&sampling->io, io, memory_order_relaxed);
	atomic_store_explicit(&sampling->guard_signals, d9__options_number(options, D9__OPTION_GUARD_SIGNALS) != 0,
			      memory_order_relaxed);
	atomic_store_explicit(&sampling->unguarded_tsc, d9__options_number(options, D9__OPTION_GUARD_TSC) == 0,
			      memory_order_relaxed);
	d9__own_memory_trust(d9__options_number(options, D9__OPTION_GUARD_MODULES) == 0);
	atomic_store_explicit(&sampling->unguarded_locking, d9__options_number(options, D9__OPTION_GUARD_LOCKING) == 0,
			      memory_order_relaxed);
	atomic_store_explicit(&sampling->idle_ns, d9__options_number(options, D9__OPTION_TASK_DUMP_IDLE_MS) * D9__MS_NS,
			      memory_order_relaxed);
	atomic_store_explicit(&sampling->segment_ns, d9__options_number(options, D9__OPTION_ROTATION_MS) * D9__MS_NS,
			      memory_order_relaxed);
	atomic_store_explicit(&sampling->accept_queue_ns,
			      d9__options_number(options, D9__OPTION_ACCEPT_QUEUE_MS) * D9__MS_NS, memory_order_relaxed);
	d9__sampling_set_memory(options);
}
