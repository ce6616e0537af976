/* SPDX-License-Identifier: Apache-2.0 */
/* Options: the numbers and texts that the recorder was started with. */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <dial9/export.h>
#include <dial9/options.h>

enum d9__option {
	D9__OPTION_ENABLED,
	D9__OPTION_MODE,
	D9__OPTION_WRITER,
	D9__OPTION_COMPRESS,
	D9__OPTION_CLOCK,
	D9__OPTION_RING,
	D9__OPTION_RING_MB,
	D9__OPTION_ROTATION_MS,
	D9__OPTION_MAX_TOTAL_BYTES,
	D9__OPTION_MAX_FILE_BYTES,
	D9__OPTION_MAX_DUMP_BYTES,
	D9__OPTION_GC_DEAD_NAMESPACES,
	D9__OPTION_LOOPS,
	D9__OPTION_TASKS,
	D9__OPTION_CPU,
	D9__OPTION_CPU_HZ,
	D9__OPTION_BLOCKING,
	D9__OPTION_IO,
	D9__OPTION_GUARD_SIGNALS,
	D9__OPTION_GUARD_TSC,
	D9__OPTION_GUARD_MODULES,
	D9__OPTION_GUARD_LOCKING,
	D9__OPTION_CPU_THREADS,
	D9__OPTION_CPU_BACKEND,
	D9__OPTION_OFF_CPU,
	D9__OPTION_USAGE,
	D9__OPTION_USAGE_INTERVAL_MS,
	D9__OPTION_QUEUE_INTERVAL_MS,
	D9__OPTION_SCHED_WAIT_RATE,
	D9__OPTION_LOG_BRIDGE,
	D9__OPTION_TASK_DUMPS,
	D9__OPTION_TASK_DUMP_IDLE_MS,
	D9__OPTION_ACCEPT_QUEUES,
	D9__OPTION_ACCEPT_QUEUE_MS,
	D9__OPTION_MEMORY,
	D9__OPTION_MEMORY_RATE,
	D9__OPTION_MEMORY_LIVE_SET,
	D9__OPTION_MEMORY_SEED,
	D9__OPTION_STEP_ASIDE,
	D9__OPTION_LATE_START,
	D9__OPTION_PRESSURE,
	D9__OPTION_OLD_EVENTS, /* for tests */
	D9__OPTION_NUMBERS,
	/* Texts. */
	D9__OPTION_TRACE_DIR = D9__OPTION_NUMBERS,
	D9__OPTION_SERVICE,
	D9__OPTION_HOST,
	D9__OPTION_RUNTIME_NAME,
	D9__OPTION_SPAN_FILTER,
	D9__OPTION_TRIGGERS, /* see base/trigger_text.h */
	D9__OPTION_S3_BUCKET,
	D9__OPTION_S3_PREFIX,
	D9__OPTION_GIVER, /* of `dial9 record`; see segment/directory_helper.h */
	D9__OPTION_COUNT
};

#define D9__OPTION_TEXTS (D9__OPTION_COUNT - D9__OPTION_NUMBERS)

/* One fact of the program about itself. */
struct d9__option_pair {
	char *key, *value;
	struct d9__option_pair *next;
};

struct d9_options {
	bool no_environment;
	uint64_t set; /* bit per enum d9__option: has a value of its own */
	uint64_t number[D9__OPTION_NUMBERS];
	char *text[D9__OPTION_TEXTS]; /* NULL: none */
	struct d9__option_pair *metadata;
	d9_log_fn log;
	void *log_arg;
	d9_segment_fn sealed;
	void *sealed_arg;
};

/*
 * Complete |out| (zeroed) from |api| (may be NULL), the environment and the defaults; problems in the
 * environment go to the log callback of |api|.  0 or -ENOMEM; |out| is to be released either way.
 */
int d9__options_resolve(struct d9_options *out, const struct d9_options *api);

/* Whether |variable|, |len| bytes, is one of those that dial9 knows, options or not. */
bool d9__options_knows(const char *variable, size_t len);

/*
 * True if the environment wants no loops recorded, but the stacks of all threads: then the preload library
 * starts the recorder, because no loop will.
 */
D9_API bool d9__options_profile_only(void);

/* DIAL9_LOG_BRIDGE alone, for those who come before the first start. */
enum d9_log_bridge d9__options_early_log_bridge(void);

/* Whether the environment asks for samples of allocations, likewise. */
D9_API bool d9__options_early_memory(void);

/*
 * True if the environment wants those two to begin with their first sample or behind 100 ms of CPU time, and
 * not in a constructor.
 */
D9_API bool d9__options_late_start(void);

/* Free what |options| points to, not itself. */
void d9__options_release(struct d9_options *options);

static inline uint64_t d9__options_number(const struct d9_options *options, enum d9__option id)
{
	return options->number[id];
}

/* The word for the number of a choice. */
const char *d9__options_word(const struct d9_options *options, enum d9__option id);

/* NULL if the option has no value. */
static inline const char *d9__options_text(const struct d9_options *options, enum d9__option id)
{
	return options->text[id - D9__OPTION_NUMBERS];
}
