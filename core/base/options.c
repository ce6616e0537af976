/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/environment.h"
#include "base/heap.h"
#include "base/options.h"
#include "base/span_filter.h"
#include "base/spelling.h"
#include "base/store_name.h"
#include "base/trigger_text.h"
#include "base/utf8.h"

enum kind { BOOL, NUMBER, CHOICE, TEXT };

#define PREFIX "DIAL9_"

/* The original's name for the same switch. */
#define LOOPS_IN_THE_ORIGINAL "DIAL9_TOKIO_INSTRUMENTATION_ENABLED"

#define MIB       (UINT64_C(1) << 20)
#define GIB       (UINT64_C(1) << 30)
#define HOUR_MS   UINT64_C(3600000)
#define YEAR_MS   (HOUR_MS * 24 * 365)

#define TRIGGERS_MAX    (128 << 10) /* as long as a variable can be */
#define MEMORY_RATE_MAX (UINT64_C(1) << 40) /* bytes: less than one sample in a TiB tells nothing */

/* Words of a choice, in the order of its enumeration. */
static const char *const writers[] = { "rotating", "single", "memory", "null", NULL };
static const char *const packings[] = { "zstd", "none", "gzip", NULL };
static const char *const clocks[] = { "auto", "tsc", "monotonic", NULL };
static const char *const old_events[] = { "no", "yes", "both", NULL };
static const char *const pressures[] = { "auto", "no", "yes", NULL };
static const char *const modes[] = { "continuous", "flight", NULL };
static const char *const log_bridges[] = { "off", "error", "warning", "info", "debug", NULL };
static const char *const cpu_threads[] = { "loop", "all", NULL };
static const char *const cpu_backends[] = { "auto", "timer", "perf", "perf-thread", NULL };
static const char *const rings[] = { "auto", "shm", "memfd", "memory", "disk", NULL };

/* Every option once: its variable, its kind, its range and what it is when it is not set. */
static const struct spec {
	const char *variable;
	enum kind kind;
	uint64_t scale; /* of the variable; 0: 1 */
	uint64_t min, max, fallback;
	const char *const *words;
} specs[D9__OPTION_COUNT] = {
	[D9__OPTION_ENABLED] = { "DIAL9_ENABLED", BOOL, .max = 1, .fallback = 1 },
	[D9__OPTION_MODE] = { "DIAL9_MODE", CHOICE, .max = 1, .words = modes },
	[D9__OPTION_WRITER] = { "DIAL9_WRITER", CHOICE, .max = 3, .words = writers },
	[D9__OPTION_COMPRESS] = { "DIAL9_COMPRESS", CHOICE, .max = 2, .words = packings },
	[D9__OPTION_CLOCK] = { "DIAL9_CLOCK", CHOICE, .max = 2, .words = clocks },
	[D9__OPTION_RING] = { "DIAL9_RING", CHOICE, .max = 4, .words = rings },
	[D9__OPTION_RING_MB] = { "DIAL9_RING_MB", NUMBER, .min = 1, .max = 128, .fallback = 32 },
	[D9__OPTION_ROTATION_MS] = { "DIAL9_ROTATION_SECS", NUMBER, .scale = 1000, .min = 100,
				     .max = YEAR_MS, .fallback = 60000 },
	[D9__OPTION_MAX_TOTAL_BYTES] = { "DIAL9_MAX_DISK_USAGE_MB", NUMBER, .scale = MIB,
					 .min = 64 << 10, .max = INT64_MAX, .fallback = GIB },
	[D9__OPTION_MAX_FILE_BYTES] = { "DIAL9_MAX_FILE_SIZE_MB", NUMBER, .scale = MIB,
					.min = 16 << 10, .max = INT64_MAX },
	[D9__OPTION_MAX_DUMP_BYTES] = { "DIAL9_MAX_DUMPS_MB", NUMBER, .scale = MIB, .min = 16 << 10,
					.max = INT64_MAX },
	[D9__OPTION_GC_DEAD_NAMESPACES] = { "DIAL9_GC_DEAD_NAMESPACES", BOOL, .max = 1,
					    .fallback = 1 },
	[D9__OPTION_LOOPS] = { "DIAL9_LOOP_INSTRUMENTATION_ENABLED", BOOL, .max = 1,
			       .fallback = 1 },
	[D9__OPTION_TASKS] = { "DIAL9_TASK_TRACKING_ENABLED", BOOL, .max = 1, .fallback = 1 },
	[D9__OPTION_CPU] = { "DIAL9_CPU_PROFILE_ENABLED", BOOL, .max = 1, .fallback = 1 },
	[D9__OPTION_CPU_HZ] = { "DIAL9_CPU_SAMPLE_HZ", NUMBER, .min = 1, .max = 1000,
				.fallback = 99 },
	[D9__OPTION_BLOCKING] = { "DIAL9_BLOCKING_CALLS_ENABLED", BOOL, .max = 1, .fallback = 1 },
	[D9__OPTION_IO] = { "DIAL9_IO_ENABLED", BOOL, .max = 1, .fallback = 1 },
	[D9__OPTION_GUARD_SIGNALS] = { "DIAL9_GUARD_SIGNALS", BOOL, .max = 1, .fallback = 1 },
	[D9__OPTION_GUARD_TSC] = { "DIAL9_GUARD_TSC", BOOL, .max = 1, .fallback = 1 },
	[D9__OPTION_GUARD_MODULES] = { "DIAL9_GUARD_MODULES", BOOL, .max = 1, .fallback = 1 },
	[D9__OPTION_GUARD_LOCKING] = { "DIAL9_GUARD_LOCKING", BOOL, .max = 1, .fallback = 1 },
	[D9__OPTION_CPU_THREADS] = { "DIAL9_CPU_PROFILE_THREADS", CHOICE, .max = 1,
				     .words = cpu_threads },
	[D9__OPTION_CPU_BACKEND] = { "DIAL9_CPU_BACKEND", CHOICE, .max = 3, .words = cpu_backends },
	[D9__OPTION_OFF_CPU] = { "DIAL9_SCHEDULE_PROFILE_ENABLED", BOOL, .max = 1 },
	[D9__OPTION_USAGE] = { "DIAL9_PROCESS_RESOURCE_USAGE_ENABLED", BOOL, .max = 1,
			       .fallback = 1 },
	[D9__OPTION_USAGE_INTERVAL_MS] = { "DIAL9_PROCESS_RESOURCE_USAGE_SAMPLE_INTERVAL_MS",
					   NUMBER, .min = 1, .max = HOUR_MS, .fallback = 100 },
	[D9__OPTION_QUEUE_INTERVAL_MS] = { "DIAL9_QUEUE_SAMPLE_INTERVAL_MS", NUMBER, .max = HOUR_MS,
					   .fallback = 100 },
	[D9__OPTION_SCHED_WAIT_RATE] = { "DIAL9_SCHED_WAIT_SAMPLE_RATE", NUMBER, .min = 1,
					 .max = 1000000, .fallback = 10 },
	[D9__OPTION_LOG_BRIDGE] = { "DIAL9_LOG_BRIDGE", CHOICE, .max = 4, .words = log_bridges },
	[D9__OPTION_TASK_DUMPS] = { "DIAL9_TASK_DUMP_ENABLED", BOOL, .max = 1 },
	[D9__OPTION_TASK_DUMP_IDLE_MS] = { "DIAL9_TASK_DUMP_IDLE_THRESHOLD_MS", NUMBER, .min = 1,
					   .max = HOUR_MS, .fallback = 10 },
	[D9__OPTION_ACCEPT_QUEUES] = { "DIAL9_SOCKET_ACCEPT_QUEUES_ENABLED", BOOL, .max = 1 },
	[D9__OPTION_ACCEPT_QUEUE_MS] = { "DIAL9_SOCKET_ACCEPT_QUEUES_SAMPLE_INTERVAL_MS", NUMBER,
					 .min = 1, .max = HOUR_MS, .fallback = 400 },
	[D9__OPTION_MEMORY] = { "DIAL9_MEMORY_PROFILE_ENABLED", BOOL, .max = 1 },
	[D9__OPTION_MEMORY_RATE] = { "DIAL9_MEMORY_SAMPLE_RATE_BYTES", NUMBER, .min = 1,
				     .max = MEMORY_RATE_MAX, .fallback = 512 << 10 },
	[D9__OPTION_MEMORY_LIVE_SET] = { "DIAL9_MEMORY_TRACK_LIVESET", BOOL, .max = 1 },
	[D9__OPTION_MEMORY_SEED] = { "DIAL9_MEMORY_SEED", NUMBER, .max = UINT64_MAX },
	[D9__OPTION_STEP_ASIDE] = { "DIAL9_STEP_ASIDE_ENABLED", BOOL, .max = 1, .fallback = 1 },
	[D9__OPTION_LATE_START] = { "DIAL9_LATE_START_ENABLED", BOOL, .max = 1, .fallback = 1 },
	[D9__OPTION_PRESSURE] = { "DIAL9_PRESSURE", CHOICE, .max = 2, .words = pressures },
	[D9__OPTION_OLD_EVENTS] = { "DIAL9_OLD_EVENTS", CHOICE, .max = 2, .words = old_events },
	[D9__OPTION_TRACE_DIR] = { "DIAL9_TRACE_DIR", TEXT },
	[D9__OPTION_SERVICE] = { "DIAL9_SERVICE_NAME", TEXT },
	[D9__OPTION_HOST] = { NULL, TEXT },
	[D9__OPTION_RUNTIME_NAME] = { "DIAL9_RUNTIME_NAME", TEXT },
	[D9__OPTION_SPAN_FILTER] = { "DIAL9_SPAN_FILTER", TEXT },
	[D9__OPTION_TRIGGERS] = { "DIAL9_TRIGGERS", TEXT },
	[D9__OPTION_S3_BUCKET] = { "DIAL9_S3_BUCKET", TEXT },
	[D9__OPTION_S3_PREFIX] = { "DIAL9_S3_PREFIX", TEXT },
	[D9__OPTION_GIVER] = { "DIAL9_GIVER", TEXT },
};

int d9_options_new(struct d9_options **out)
{
	struct d9_options *options = d9__calloc(1, sizeof(*options));

	if (!options)
		return -ENOMEM;
	*out = options;
	return 0;
}

void d9__options_release(struct d9_options *options)
{
	for (size_t i = 0; i < D9__OPTION_TEXTS; i++)
		d9__free(options->text[i]);
	while (options->metadata) {
		struct d9__option_pair *pair = options->metadata;

		options->metadata = pair->next;
		d9__free(pair->key);
		d9__free(pair->value);
		d9__free(pair);
	}
	*options = (struct d9_options){ 0 };
}

void d9_options_free(struct d9_options *options)
{
	if (options)
		d9__options_release(options);
	d9__free(options);
}

static int set_number(struct d9_options *options, enum d9__option id, uint64_t value)
{
	if (!options || value < specs[id].min || value > specs[id].max)
		return -EINVAL;
	options->number[id] = value;
	options->set |= UINT64_C(1) << id;
	return 0;
}

static int set_text(struct d9_options *options, enum d9__option id, const char *value)
{
	size_t max = id == D9__OPTION_TRIGGERS ? TRIGGERS_MAX : PATH_MAX;
	char *copy;

	if (!options || !value || !*value || strlen(value) >= max)
		return -EINVAL;
	if ((id == D9__OPTION_SPAN_FILTER && d9__span_filter_check(value)) ||
	    (id == D9__OPTION_S3_BUCKET && !d9__is_bucket_name(value)) ||
	    (id == D9__OPTION_S3_PREFIX && !d9__is_key_prefix(value)))
		return -EINVAL;
	copy = d9__strdup(value);
	if (!copy)
		return -ENOMEM;
	d9__free(options->text[id - D9__OPTION_NUMBERS]);
	options->text[id - D9__OPTION_NUMBERS] = copy;
	options->set |= UINT64_C(1) << id;
	return 0;
}

int d9_options_set_environment(struct d9_options *options, bool on)
{
	if (!options)
		return -EINVAL;
	options->no_environment = !on;
	return 0;
}

int d9_options_set_enabled(struct d9_options *options, bool on)
{
	return set_number(options, D9__OPTION_ENABLED, on);
}

int d9_options_set_trace_dir(struct d9_options *options, const char *dir)
{
	return set_text(options, D9__OPTION_TRACE_DIR, dir);
}

int d9_options_set_service(struct d9_options *options, const char *name)
{
	return set_text(options, D9__OPTION_SERVICE, name);
}

int d9_options_set_s3(struct d9_options *options, const char *bucket, const char *prefix, const char *service)
{
	int err;

	/* All of it or nothing. */
	if (!options || !bucket || !d9__is_bucket_name(bucket) || (prefix && (!*prefix || !d9__is_key_prefix(prefix))) ||
	    (service && !*service))
		return -EINVAL;
	err = set_text(options, D9__OPTION_S3_BUCKET, bucket);
	if (!err && prefix)
		err = set_text(options, D9__OPTION_S3_PREFIX, prefix);
	return err || !service ? err : set_text(options, D9__OPTION_SERVICE, service);
}

int d9_options_set_host(struct d9_options *options, const char *name)
{
	return set_text(options, D9__OPTION_HOST, name);
}

int d9_options_set_runtime_name(struct d9_options *options, const char *name)
{
	return set_text(options, D9__OPTION_RUNTIME_NAME, name);
}

int d9_options_set_span_filter(struct d9_options *options, const char *filter)
{
	return set_text(options, D9__OPTION_SPAN_FILTER, filter);
}

int d9_options_set_triggers(struct d9_options *options, const char *texts)
{
	const char *list = texts, *one;
	struct d9__trigger_fault fault;
	struct d9__trigger trigger;
	size_t len;

	/* Files are read when the recorder starts. */
	while (list && d9__trigger_next(&list, &one, &len))
		if (*one != '@' && !d9__trigger_parse(one, len, &trigger, &fault))
			return -EINVAL;
	return set_text(options, D9__OPTION_TRIGGERS, texts);
}

int d9_options_add_metadata(struct d9_options *options, const char *key, const char *value)
{
	struct d9__option_pair *pair, **end;

	if (!options || !key || !value || !*key || strlen(key) > 255 || strlen(value) > 4095)
		return -EINVAL;
	pair = d9__calloc(1, sizeof(*pair));
	if (!pair || !(pair->key = d9__strdup(key)) || !(pair->value = d9__strdup(value))) {
		if (pair)
			d9__free(pair->key);
		d9__free(pair);
		return -ENOMEM;
	}
	for (end = &options->metadata; *end; end = &(*end)->next)
		;
	*end = pair;
	return 0;
}

int d9_options_set_mode(struct d9_options *options, enum d9_mode mode)
{
	return set_number(options, D9__OPTION_MODE, (uint64_t)mode);
}

int d9_options_set_writer(struct d9_options *options, enum d9_writer writer)
{
	return set_number(options, D9__OPTION_WRITER, (uint64_t)writer);
}

int d9_options_set_compress(struct d9_options *options, enum d9_compress compress)
{
	return set_number(options, D9__OPTION_COMPRESS, (uint64_t)compress);
}

int d9_options_set_rotation_ms(struct d9_options *options, uint64_t rotation_ms)
{
	if (rotation_ms == UINT64_MAX)
		rotation_ms = YEAR_MS;
	return set_number(options, D9__OPTION_ROTATION_MS, rotation_ms);
}

int d9_options_set_max_total_bytes(struct d9_options *options, uint64_t max_bytes)
{
	return set_number(options, D9__OPTION_MAX_TOTAL_BYTES, max_bytes);
}

int d9_options_set_max_dump_bytes(struct d9_options *options, uint64_t max_bytes)
{
	return set_number(options, D9__OPTION_MAX_DUMP_BYTES, max_bytes);
}

int d9_options_set_max_file_bytes(struct d9_options *options, uint64_t max_bytes)
{
	return set_number(options, D9__OPTION_MAX_FILE_BYTES, max_bytes);
}

int d9_options_set_gc_dead_namespaces(struct d9_options *options, bool on)
{
	return set_number(options, D9__OPTION_GC_DEAD_NAMESPACES, on);
}

int d9_options_set_ring_mb(struct d9_options *options, uint32_t ring_mb)
{
	return set_number(options, D9__OPTION_RING_MB, ring_mb);
}

int d9_options_set_ring(struct d9_options *options, enum d9_ring ring)
{
	return set_number(options, D9__OPTION_RING, (uint64_t)ring);
}

int d9_options_set_clock(struct d9_options *options, enum d9_clock clock)
{
	return set_number(options, D9__OPTION_CLOCK, (uint64_t)clock);
}

int d9_options_set_loop_instrumentation(struct d9_options *options, bool on)
{
	return set_number(options, D9__OPTION_LOOPS, on);
}

int d9_options_set_task_tracking(struct d9_options *options, bool on)
{
	return set_number(options, D9__OPTION_TASKS, on);
}

int d9_options_set_usage_interval_ms(struct d9_options *options, uint32_t interval_ms)
{
	int err = interval_ms ? set_number(options, D9__OPTION_USAGE_INTERVAL_MS, interval_ms) : 0;

	return err ? err : set_number(options, D9__OPTION_USAGE, interval_ms != 0);
}

int d9_options_set_queue_interval_ms(struct d9_options *options, uint32_t interval_ms)
{
	return set_number(options, D9__OPTION_QUEUE_INTERVAL_MS, interval_ms);
}

int d9_options_set_sched_wait_sample_rate(struct d9_options *options, uint32_t n)
{
	return set_number(options, D9__OPTION_SCHED_WAIT_RATE, n);
}

int d9_options_set_cpu_hz(struct d9_options *options, uint32_t hz)
{
	int err = hz ? set_number(options, D9__OPTION_CPU_HZ, hz) : 0;

	return err ? err : set_number(options, D9__OPTION_CPU, hz != 0);
}

int d9_options_set_blocking_calls(struct d9_options *options, bool on)
{
	return set_number(options, D9__OPTION_BLOCKING, on);
}

int d9_options_set_io(struct d9_options *options, bool on)
{
	return set_number(options, D9__OPTION_IO, on);
}

int d9_options_set_task_dumps(struct d9_options *options, uint32_t idle_ms)
{
	int err = idle_ms ? set_number(options, D9__OPTION_TASK_DUMP_IDLE_MS, idle_ms) : 0;

	return err ? err : set_number(options, D9__OPTION_TASK_DUMPS, idle_ms != 0);
}

int d9_options_set_accept_queues(struct d9_options *options, uint32_t interval_ms)
{
	int err = interval_ms ? set_number(options, D9__OPTION_ACCEPT_QUEUE_MS, interval_ms) : 0;

	return err ? err : set_number(options, D9__OPTION_ACCEPT_QUEUES, interval_ms != 0);
}

int d9_options_set_cpu_threads(struct d9_options *options, enum d9_cpu_threads threads)
{
	return set_number(options, D9__OPTION_CPU_THREADS, (uint64_t)threads);
}

int d9_options_set_cpu_backend(struct d9_options *options, enum d9_cpu_backend backend)
{
	return set_number(options, D9__OPTION_CPU_BACKEND, (uint64_t)backend);
}

int d9_options_set_off_cpu(struct d9_options *options, bool on)
{
	return set_number(options, D9__OPTION_OFF_CPU, on);
}

int d9_options_set_memory(struct d9_options *options, uint64_t mean_bytes)
{
	int err = mean_bytes ? set_number(options, D9__OPTION_MEMORY_RATE, mean_bytes) : 0;

	return err ? err : set_number(options, D9__OPTION_MEMORY, mean_bytes != 0);
}

int d9_options_set_memory_live_set(struct d9_options *options, bool on)
{
	return set_number(options, D9__OPTION_MEMORY_LIVE_SET, on);
}

int d9_options_set_memory_seed(struct d9_options *options, uint64_t seed)
{
	return set_number(options, D9__OPTION_MEMORY_SEED, seed);
}

int d9_options_set_log_bridge(struct d9_options *options, enum d9_log_bridge level)
{
	return set_number(options, D9__OPTION_LOG_BRIDGE, (uint64_t)level);
}

int d9_options_set_log(struct d9_options *options, d9_log_fn log, void *arg)
{
	if (!options)
		return -EINVAL;
	options->log = log;
	options->log_arg = arg;
	return 0;
}

int d9_options_set_segment_sealed(struct d9_options *options, d9_segment_fn sealed, void *arg)
{
	if (!options)
		return -EINVAL;
	options->sealed = sealed;
	options->sealed_arg = arg;
	return 0;
}

/* ---- the environment ---- */

/* Copy |text| without the blanks around it; false if it does not fit or nothing is left. */
static bool trim(char *buf, size_t size, const char *text)
{
	size_t len;

	while (isspace((unsigned char)*text))
		text++;
	len = strlen(text);
	while (len && isspace((unsigned char)text[len - 1]))
		len--;
	if (!len || len >= size)
		return false;
	memcpy(buf, text, len);
	buf[len] = '\0';
	return true;
}

static int find_word(const char *text, const char *const *words)
{
	for (int i = 0; words[i]; i++)
		if (!strcasecmp(text, words[i]))
			return i;
	return -EINVAL;
}

static int parse_bool(const char *text)
{
	static const char *const yes[] = { "t", "true", "1", "y", "yes", "on", NULL };
	static const char *const no[] = { "f", "false", "0", "n", "no", "off", NULL };

	if (find_word(text, yes) >= 0)
		return 1;
	return find_word(text, no) >= 0 ? 0 : -EINVAL;
}

static int parse_number(const char *text, uint64_t scale, uint64_t *out)
{
	uint64_t value = 0;

	if (!scale)
		scale = 1;
	for (; *text; text++) {
		if (!isdigit((unsigned char)*text) || value > (UINT64_MAX - 9) / 10)
			return -EINVAL;
		value = value * 10 + (uint64_t)(*text - '0');
	}
	if (!value || value > UINT64_MAX / scale)
		return -EINVAL;
	*out = value * scale;
	return 0;
}

/* A text must be UTF-8, because that is what the trace holds. */
static bool is_utf8(const char *text)
{
	size_t len = strlen(text), n;

	for (; len; text += n, len -= n)
		if (!(n = d9__utf8_len(text, len)))
			return false;
	return true;
}

/* Take |text| as the value of option |id|. */
static int parse(struct d9_options *options, enum d9__option id, const char *text)
{
	const struct spec *spec = &specs[id];
	char buf[PATH_MAX];
	uint64_t value = 0;
	int word;

	/* Where `dial9 record` has looked up names they are longer than all else. */
	if (id == D9__OPTION_TRIGGERS)
		return is_utf8(text) ? set_text(options, id, text) : -EINVAL;
	if (!trim(buf, sizeof(buf), text))
		return -EINVAL;
	switch (spec->kind) {
	case TEXT:
		return is_utf8(buf) ? set_text(options, id, buf) : -EINVAL;
	case NUMBER:
		if (parse_number(buf, spec->scale, &value))
			return -EINVAL;
		break;
	case BOOL:
	case CHOICE:
		word = spec->kind == BOOL ? parse_bool(buf) : find_word(buf, spec->words);
		if (word < 0)
			return -EINVAL;
		value = (uint64_t)word;
		break;
	}
	return set_number(options, id, value);
}

/* Variables that are no options of a recorder's. */
static const char *const other_variables[] = {
	"DIAL9_FOLLOW", "DIAL9_GIVER", "DIAL9_PAGER", "DIAL9_PRELOAD", LOOPS_IN_THE_ORIGINAL,
	/* In the original it keeps the automatic choice to timers, which ours chooses anyway. */
	"DIAL9_FORCE_CTIMER",
};
#define OTHER_VARIABLES (sizeof(other_variables) / sizeof(other_variables[0]))

/* Variable |i| of all; NULL behind the last, "" for an option that has none. */
static const char *variable_at(size_t i)
{
	if (i < D9__OPTION_COUNT)
		return specs[i].variable ? specs[i].variable : "";
	return i < D9__OPTION_COUNT + OTHER_VARIABLES ? other_variables[i - D9__OPTION_COUNT] : NULL;
}

bool d9__options_knows(const char *variable, size_t len)
{
	const char *known;

	for (size_t i = 0; (known = variable_at(i)); i++)
		if (strlen(known) == len && !memcmp(known, variable, len))
			return true;
	return false;
}

/* " (is flight meant?)", if something known is near. */
static void guess(const struct d9__spelling *nearest, const char *prefix, char *buf, size_t size)
{
	buf[0] = '\0';
	if (nearest->name)
		snprintf(buf, size, " (is %s%s meant?)", prefix, nearest->name);
}

/* A message may end on a terminal: what is not printable there becomes '?'. */
static void copy_printable(char *buf, size_t size, const char *text, size_t len)
{
	size_t n = 0;

	for (; n < len && n + 1 < size; n++)
		buf[n] = text[n] >= ' ' && text[n] <= '~' ? text[n] : '?';
	buf[n] = '\0';
}

static void warn_of_value(const struct d9_options *options, const struct spec *spec, const char *variable,
			  const char *text)
{
	char value[65], message[256], near[96];
	struct d9__spelling nearest = { .word = value };

	if (!options->log)
		return;
	copy_printable(value, sizeof(value), text, strlen(text));
	for (size_t i = 0; spec->kind == CHOICE && spec->words[i]; i++)
		d9__spelling_try(&nearest, spec->words[i]);
	guess(&nearest, "", near, sizeof(near));
	snprintf(message, sizeof(message), "the value '%s' of %s makes no sense and is ignored%s", value,
		 variable, near);
	options->log(options->log_arg, D9_LOG_WARNING, message);
}

static void warn_of_name(const struct d9_options *options, const char *variable, size_t len)
{
	char name[64], message[256], near[96];
	struct d9__spelling nearest = { .word = name + strlen(PREFIX) };
	const char *known;

	copy_printable(name, sizeof(name), variable, len);
	/* Compare behind the prefix, because a prefix that all have makes none nearer. */
	for (size_t i = 0; (known = variable_at(i)); i++)
		if (*known)
			d9__spelling_try(&nearest, known + strlen(PREFIX));
	guess(&nearest, PREFIX, near, sizeof(near));
	snprintf(message, sizeof(message), "there is no variable %s%s", name, near);
	options->log(options->log_arg, D9_LOG_WARNING, message);
}

/* Warn of variables that begin like ours and are none, because the user who set them expects an effect. */
static void warn_of_names(const struct d9_options *options)
{
	const char *variable;

	for (size_t i = 0; options->log && (variable = d9__environment_ours(i)); i++) {
		size_t len = strcspn(variable, "=");

		if (!d9__options_knows(variable, len))
			warn_of_name(options, variable, len);
	}
}

static int read_variable(struct d9_options *options, enum d9__option id, const char *variable)
{
	const char *text = variable ? d9__environment_get(variable) : NULL;
	int err;

	if (!text || options->set & UINT64_C(1) << id)
		return 0;
	err = parse(options, id, text);
	if (err == -EINVAL)
		warn_of_value(options, &specs[id], variable, text);
	return err == -ENOMEM ? err : 0;
}

static int read_environment(struct d9_options *options)
{
	/*
	 * Options that name a place do so in the directory that `dial9 record` named, and in no
	 * other.
	 */
	bool own_place = (options->set & UINT64_C(1) << D9__OPTION_TRACE_DIR) != 0;
	int err = 0;

	for (int id = 0; id < D9__OPTION_COUNT && !err; id++)
		if (id != D9__OPTION_GIVER || !own_place)
			err = read_variable(options, (enum d9__option)id, specs[id].variable);
	warn_of_names(options);
	/* Ours wins. */
	return err ? err : read_variable(options, D9__OPTION_LOOPS, LOOPS_IN_THE_ORIGINAL);
}

const char *d9__options_word(const struct d9_options *options, enum d9__option id)
{
	return specs[id].words[options->number[id]];
}

bool d9__options_profile_only(void)
{
	static const enum d9__option ids[] = { D9__OPTION_LOOPS, D9__OPTION_CPU, D9__OPTION_CPU_THREADS };
	struct d9_options options = { .number = { [D9__OPTION_LOOPS] = 1, [D9__OPTION_CPU] = 1 } };

	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++)
		read_variable(&options, ids[i], specs[ids[i]].variable);
	read_variable(&options, D9__OPTION_LOOPS, LOOPS_IN_THE_ORIGINAL);
	return !options.number[D9__OPTION_LOOPS] && options.number[D9__OPTION_CPU] &&
	       options.number[D9__OPTION_CPU_THREADS] == D9_CPU_THREADS_ALL;
}

enum d9_log_bridge d9__options_early_log_bridge(void)
{
	struct d9_options options = { 0 };

	read_variable(&options, D9__OPTION_LOG_BRIDGE, specs[D9__OPTION_LOG_BRIDGE].variable);
	return (enum d9_log_bridge)options.number[D9__OPTION_LOG_BRIDGE];
}

bool d9__options_early_memory(void)
{
	struct d9_options options = { 0 };

	read_variable(&options, D9__OPTION_MEMORY, specs[D9__OPTION_MEMORY].variable);
	return options.number[D9__OPTION_MEMORY];
}

bool d9__options_late_start(void)
{
	struct d9_options options = { .number = { [D9__OPTION_LATE_START] = 1 } };

	read_variable(&options, D9__OPTION_LATE_START, specs[D9__OPTION_LATE_START].variable);
	return options.number[D9__OPTION_LATE_START];
}

/* ---- defaults ---- */

/* The first directory of |list|, which systemd separates by colons; its length, 0 if that is none. */
static int first_of(const char *list)
{
	return list && list[0] == '/' ? (int)strcspn(list, ":") : 0;
}

/*
 * Prefer the directory that systemd keeps for the service, because it outlives the next start of
 * the machine.
 */
static int default_trace_dir(struct d9_options *options)
{
	const char *state = d9__environment_get("STATE_DIRECTORY"), *tmp = d9__environment_get("TMPDIR");
	int len = first_of(state), n;
	char dir[PATH_MAX];

	if (!len) {
		state = tmp && tmp[0] == '/' ? tmp : "/tmp";
		len = (int)strlen(state);
	}
	n = snprintf(dir, sizeof(dir), "%.*s/dial9-%lu", len, state, (unsigned long)geteuid());
	return n < (int)sizeof(dir) ? set_text(options, D9__OPTION_TRACE_DIR, dir) : -EINVAL;
}

/* The stem of the executable's name: "frobd" of "/usr/sbin/frobd.real". */
static int default_service(struct d9_options *options)
{
	char path[PATH_MAX], *base, *dot;
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);

	if (n <= 0)
		return set_text(options, D9__OPTION_SERVICE, "unknown-service");
	path[n] = '\0';
	base = strrchr(path, '/');
	base = base ? base + 1 : path;
	dot = strrchr(base, '.');
	if (dot && dot != base)
		*dot = '\0';
	return set_text(options, D9__OPTION_SERVICE, *base ? base : "unknown-service");
}

static int default_host(struct d9_options *options)
{
	char host[256];

	if (gethostname(host, sizeof(host)) || !host[0])
		strcpy(host, "unknown-host");
	host[sizeof(host) - 1] = '\0';
	return set_text(options, D9__OPTION_HOST, host);
}

static int apply_defaults(struct d9_options *options)
{
	uint64_t *number = options->number;
	uint64_t total, share;
	int err = 0;

	for (int id = 0; id < D9__OPTION_NUMBERS; id++)
		if (!(options->set & UINT64_C(1) << id))
			number[id] = specs[id].fallback;
	total = number[D9__OPTION_MAX_TOTAL_BYTES];
	share = number[D9__OPTION_WRITER] == D9_WRITER_MEMORY ? total / 8 : total / 4;
	if (!number[D9__OPTION_MAX_FILE_BYTES])
		number[D9__OPTION_MAX_FILE_BYTES] = share < 100 * MIB ? share : 100 * MIB;
	if (!number[D9__OPTION_MAX_DUMP_BYTES])
		number[D9__OPTION_MAX_DUMP_BYTES] = total / 5;
	if (!d9__options_text(options, D9__OPTION_TRACE_DIR))
		err = default_trace_dir(options);
	if (!err && !d9__options_text(options, D9__OPTION_SERVICE))
		err = default_service(options);
	if (!err && !d9__options_text(options, D9__OPTION_HOST))
		err = default_host(options);
	if (!err && !d9__options_text(options, D9__OPTION_SPAN_FILTER))
		err = set_text(options, D9__OPTION_SPAN_FILTER, "info");
	if (!err && !d9__options_text(options, D9__OPTION_S3_PREFIX))
		err = set_text(options, D9__OPTION_S3_PREFIX, "dial9-traces");
	return err;
}

static int copy(struct d9_options *out, const struct d9_options *api)
{
	int err = 0;

	out->no_environment = api->no_environment;
	out->log = api->log;
	out->log_arg = api->log_arg;
	out->sealed = api->sealed;
	out->sealed_arg = api->sealed_arg;
	for (const struct d9__option_pair *p = api->metadata; p && !err; p = p->next)
		err = d9_options_add_metadata(out, p->key, p->value);
	for (int id = 0; id < D9__OPTION_COUNT && !err; id++) {
		if (!(api->set & UINT64_C(1) << id))
			continue;
		if (id < D9__OPTION_NUMBERS)
			err = set_number(out, (enum d9__option)id, api->number[id]);
		else
			err = set_text(out, (enum d9__option)id,
				       d9__options_text(api, (enum d9__option)id));
	}
	return err;
}

int d9__options_resolve(struct d9_options *out, const struct d9_options *api)
{
	int err = api ? copy(out, api) : 0;

	if (!err && !out->no_environment)
		err = read_environment(out);
	return err ? err : apply_defaults(out);
}
