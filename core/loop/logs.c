/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <dial9/event.h>

#include "base/options.h"
#include "base/time.h"
#include "loop/adapter.h"
#include "loop/loops.h"
#include "record/sandbox.h"
#include "record/source.h"
#include "ring/gate.h"
#include "segment/metadata.h"

#define LINES_PER_SECOND 1000u
#define NO_WORKER	 255u

static const struct d9_field fields[] = {
	{ "worker_id", D9_FIELD_VARINT | D9_FIELD_OPTIONAL, NULL, NULL },
	{ "task_id", D9_FIELD_VARINT | D9_FIELD_OPTIONAL, NULL, NULL },
	{ "tid", D9_FIELD_U32, NULL, NULL },
	{ "library", D9_FIELD_POOLED_STRING, NULL, NULL },
	{ "level", D9_FIELD_POOLED_STRING, NULL, NULL },
	{ "target", D9_FIELD_STRING | D9_FIELD_OPTIONAL, NULL, NULL },
	{ "message", D9_FIELD_STRING, NULL, NULL },
};
static struct d9_event_type line_type = D9_EVENT_TYPE("LogEvent", fields);

/* A level's word, and the least bridge that lets it through. */
static const struct {
	const char *word;
	enum d9_log_bridge least;
} levels[D9__LOG_LEVELS] = {
	[D9__LOG_ERROR] = { "error", D9_LOG_BRIDGE_ERROR },
	[D9__LOG_CRITICAL] = { "critical", D9_LOG_BRIDGE_ERROR },
	[D9__LOG_WARNING] = { "warning", D9_LOG_BRIDGE_WARNING },
	[D9__LOG_MESSAGE] = { "message", D9_LOG_BRIDGE_INFO },
	[D9__LOG_INFO] = { "info", D9_LOG_BRIDGE_INFO },
	[D9__LOG_DEBUG] = { "debug", D9_LOG_BRIDGE_DEBUG },
};

/* Before the first line. */
static struct d9_name level_names[D9__LOG_LEVELS], library_names[D9_LIBRARY_GLIB + 1];
static _Atomic(int) prepared; /* 1 while a thread is at it; 2 once the above can be used */

static _Atomic(uint64_t) second;  /* that |in_second| counts */
static _Atomic(uint32_t) in_second;
static _Atomic(uint64_t) dropped;

bool d9__logs_bridged(void)
{
	int now = atomic_load_explicit(&d9__log_bridge, memory_order_relaxed);

	return (now < 0 ? (int)d9__options_early_log_bridge() : now) != D9_LOG_BRIDGE_OFF;
}

bool d9__log_wanted(enum d9__log_level level)
{
	return d9__gate_open(D9__GATE_EVENT) && !d9__sandbox_is_shut() &&
	       atomic_load_explicit(&d9__log_bridge, memory_order_relaxed) >= (int)levels[level].least;
}

/* ---- what is left out ---- */

static void publish_dropped(void)
{
	uint64_t n = atomic_load_explicit(&dropped, memory_order_relaxed);
	char text[24];

	if (!n)
		return;
	snprintf(text, sizeof(text), "%llu", (unsigned long long)n);
	d9__metadata_set("log.dropped", text);
}

/* Lines of two threads at the turn of a second may both begin it: some more pass then. */
static bool has_room(uint64_t now_ns)
{
	uint64_t now = now_ns / D9__SECOND_NS, counted = atomic_load_explicit(&second,
									  memory_order_relaxed);

	if (now != counted && atomic_compare_exchange_strong_explicit(
				      &second, &counted, now, memory_order_relaxed,
				      memory_order_relaxed))
		atomic_store_explicit(&in_second, 0, memory_order_relaxed);
	return atomic_load_explicit(&in_second, memory_order_relaxed) < LINES_PER_SECOND &&
	       atomic_fetch_add_explicit(&in_second, 1, memory_order_relaxed) < LINES_PER_SECOND;
}

/*
 * False while another thread is at it, or this one, because the program's allocator may log.  All that
 * can wait or allocate happens here and not at later lines.
 */
static bool prepare(void)
{
	int none = 0;

	/* acquire: pairs with the release below */
	if (atomic_load_explicit(&prepared, memory_order_acquire) == 2)
		return true;
	if (!atomic_compare_exchange_strong_explicit(&prepared, &none, 1, memory_order_relaxed,
						     memory_order_relaxed))
		return false;
	for (unsigned i = 0; i < D9__LOG_LEVELS; i++)
		level_names[i] = d9_name_intern(levels[i].word);
	for (unsigned i = 0; i <= D9_LIBRARY_GLIB; i++)
		library_names[i] = d9_name_intern(d9__library_name(i));
	d9_event_type_register(&line_type);
	d9__tick_add(publish_dropped);
	atomic_store_explicit(&prepared, 2, memory_order_release);
	return true;
}

/* ---- a line ---- */

static void record(enum d9_library library, enum d9__log_level level, const char *target,
		   const char *text, size_t len)
{
	struct d9_arg worker = d9_absent(), task = d9_absent();
	struct d9_waker self;

	d9_waker_self(&self);
	if (!has_room(self.ns) || !prepare()) {
		atomic_fetch_add_explicit(&dropped, 1, memory_order_relaxed);
		return;
	}
	if (self.worker != NO_WORKER)
		worker = d9_arg_u64(self.worker);
	if (self.task_id)
		task = d9_arg_u64(self.task_id);
	D9_EMIT(&line_type, worker, task, (uint32_t)syscall(SYS_gettid), library_names[library], level_names[level], target,
		d9_text(text, len));
}

void d9__log_line(enum d9_library library, enum d9__log_level level, const char *target,
		  const char *text, size_t len)
{
	int saved = errno;

	if (d9__log_wanted(level))
		record(library, level, target, text, len);
	errno = saved;
}
