/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <unistd.h>

#include <dial9/error.h>
#include <dial9/version.h>

#include "record/facts.h"
#include "record/flush.h"
#include "ring/gate.h"
#include "ring/names.h"
#include "ring/ring_file.h"
#include "segment/metadata.h"

static void set_number(const char *key, uint64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "%llu", (unsigned long long)value);
	d9__metadata_set(key, text);
}

static void publish_count(const char *key, uint64_t n)
{
	if (n)
		set_number(key, n);
}

void d9__facts_refresh(void)
{
	publish_count("names.other", d9__name_overflows());
	publish_count("processes.cloned",
		      atomic_load_explicit(&d9__ring.control->cloned, memory_order_relaxed));
}

/* "8 MiB: memory cgroup", where the ring is smaller than it was asked to be. */
static void set_ring_limit(void)
{
	char text[96];

	if (!d9__ring.limited_by)
		return;
	snprintf(text, sizeof(text), "%u KiB: %s", d9__ring.chunks_max * (D9__CHUNK_SIZE / 1024u),
		 d9__ring.limited_by);
	d9__metadata_set("ring.limit", text);
}

/* Metadata outlives a recorder: an earlier one, or the parent's, may have set what it could sample. */
static void forget_sources(void)
{
	static const char *const keys[] = { "source.cpu", "source.offcpu", "source.kernel_names", "cpu.sample_hz",
					    "sched.switch_duty", "source.task_dumps" };

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		d9__metadata_set(keys[i], NULL);
}

void d9__facts_tell_ring_name(void)
{
	int err = d9__ring.not_renamed;

	d9__metadata_set("ring.not_renamed", err ? d9_strerror(err) : NULL);
}

void d9__facts_set(const struct d9_options *options, const char *boot_id)
{
	cpu_set_t cpus;
	char path[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);

	if (n > 0) {
		path[n] = '\0';
		d9__metadata_set("program", path);
	}
	d9__metadata_set("service", d9__options_text(options, D9__OPTION_SERVICE));
	d9__metadata_set("host", d9__options_text(options, D9__OPTION_HOST));
	d9__metadata_set("boot_id", boot_id);
	if (d9__ring.why[0])
		d9__metadata_set("ring.fallback", d9__ring.why);
	set_ring_limit();
	d9__facts_tell_ring_name();
	d9__metadata_set("dial9-c.version", D9_VERSION);
	d9__metadata_set("recorder.mode", d9__flush.flight ? "flight" : "continuous");
	d9__metadata_set("processes.cloned", NULL); /* if it is the parent's */
	forget_sources();
	set_number("pid", (uint64_t)getpid());
	d9__metadata_set("cpu.backend", d9__options_word(options, D9__OPTION_CPU_BACKEND));
	d9__metadata_set("cpu.threads", d9__options_word(options, D9__OPTION_CPU_THREADS));
	set_number("sched.wait_sample_rate",
		   d9__options_number(options, D9__OPTION_SCHED_WAIT_RATE));
	if (d9__flush.gate_bits & D9__GATE_ARM) {
		set_number("task_dump.idle_threshold_ms", d9__options_number(options, D9__OPTION_TASK_DUMP_IDLE_MS));
		d9__metadata_set("source.task_dumps", "on");
	}
	set_number("process.available_parallelism",
		   sched_getaffinity(0, sizeof(cpus), &cpus) ? 1 : (uint64_t)CPU_COUNT(&cpus));
	/* Foreign readers weigh all samples by it; ours each by its own. */
	if (d9__options_number(options, D9__OPTION_MEMORY))
		set_number("memory.sample_rate_bytes", d9__options_number(options, D9__OPTION_MEMORY_RATE));
	else
		d9__metadata_set("memory.sample_rate_bytes", NULL);
	for (const struct d9__option_pair *p = options->metadata; p; p = p->next)
		d9__metadata_set(p->key, p->value);
}
