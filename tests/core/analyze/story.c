/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "story.h"

#define ORIGIN_NS UINT64_C(5000000000)

enum {
	POLL_START = 1,
	POLL_END,
	PARK,
	UNPARK,
	WAKE,
	SPAWN,
	TERMINATE,
	QUEUE,
	LOSS,
	USAGE,
	METADATA,
	SPAN_ENTER,
	SPAN_EXIT,
	SPAN_CLOSE,
	OFF_CPU,
	STALE_TIMER,
	LOOP_TASKS,
	HELPER_RUN,
};

static uint64_t at(uint64_t us)
{
	return ORIGIN_NS + us * 1000;
}

void story_begin(struct story *s)
{
	struct trace *t = &s->t;

	*s = (struct story){ .t = { .data = NULL } };
	trace_batch(t);
	trace_schema(t, POLL_START, "PollStartEvent",
		     "worker_id:9 local_queue:11 task_id:9 spawn_loc:7");
	trace_schema(t, POLL_END, "PollEndEvent", "worker_id:9");
	trace_schema(t, PARK, "WorkerParkEvent",
		     "worker_id:9 local_queue:11 cpu_time_ns:9 tid:13");
	trace_schema(t, UNPARK, "WorkerUnparkEvent",
		     "worker_id:9 local_queue:11 cpu_time_ns:9 sched_wait_ns:9 tid:13");
	trace_schema(t, WAKE, "WakeEventEvent",
		     "waker_task_id:9 woken_task_id:9 target_worker:11 reason:11");
	trace_schema(t, SPAWN, "TaskSpawnEvent",
		     "task_id:9 spawn_loc:7 instrumented:3 callback:9 spawn_addr:9 kind:7 fd:137 "
		     "name:135");
	trace_schema(t, TERMINATE, "TaskTerminateEvent", "task_id:9");
	trace_schema(t, QUEUE, "QueueSampleEvent", "global_queue:11");
	trace_schema(t, LOSS, "RecorderLossEvent",
		     "tid:13 worker_id:9 cause:7 events:9 from_ns:9 to_ns:9");
	trace_schema(t, USAGE, "ProcessResourceUsageEvent",
		     "user_cpu_ns:9 system_cpu_ns:9 max_rss_bytes:9 minor_faults:9 major_faults:9 "
		     "block_input_ops:9 block_output_ops:9 voluntary_context_switches:9 "
		     "involuntary_context_switches:9");
	trace_schema(t, METADATA, "SegmentMetadataEvent", "entries:10");
	trace_schema(t, SPAN_ENTER, "SpanEnter:libevent",
		     "worker_id:9 span_id:9 parent_span_id:137 span_name:7");
	trace_schema(t, SPAN_EXIT, "SpanExit:libevent", "worker_id:9 span_id:9 span_name:7");
	trace_schema(t, SPAN_CLOSE, "SpanCloseEvent", "span_id:9");
	trace_schema(t, OFF_CPU, "OffCpuEvent",
		     "worker_id:9 task_id:9 blocked_ns:9 run_queue_ns:9");
	trace_schema(t, STALE_TIMER, "StaleTimerEvent",
		     "worker_id:9 task_id:9 timeout_ns:9 due_ns:9");
	trace_schema(t, LOOP_TASKS, "LoopTasksEvent", "loop:7 tasks:9");
	trace_schema(t, HELPER_RUN, "HelperRunEvent",
		     "function:7 item:9 task_id:9 wait_ns:9 run_ns:9");
}

void story_unpark(struct story *s, unsigned worker, uint64_t us, uint64_t cpu_us)
{
	trace_event(&s->t, UNPARK, at(us), (uint64_t)worker, UINT64_C(0), cpu_us * 1000,
		    UINT64_C(0), (uint64_t)worker + 100);
}

void story_unpark_waited(struct story *s, unsigned worker, uint64_t us, uint64_t wait_us)
{
	trace_event(&s->t, UNPARK, at(us), (uint64_t)worker, UINT64_C(0), UINT64_C(0),
		    wait_us * 1000, (uint64_t)worker + 100);
}

void story_park(struct story *s, unsigned worker, uint64_t us, uint64_t cpu_us)
{
	trace_event(&s->t, PARK, at(us), (uint64_t)worker, UINT64_C(0), cpu_us * 1000,
		    (uint64_t)worker + 100);
}

void story_park_of(struct story *s, unsigned worker, uint64_t us, uint32_t tid)
{
	trace_event(&s->t, PARK, at(us), (uint64_t)worker, UINT64_C(0), UINT64_C(0), (uint64_t)tid);
}

void story_start(struct story *s, unsigned worker, uint64_t us, uint64_t task, const char *place)
{
	uint64_t text = trace_string(&s->t, place);

	trace_event(&s->t, POLL_START, at(us), (uint64_t)worker, UINT64_C(1), task, text);
}

void story_end(struct story *s, unsigned worker, uint64_t us)
{
	trace_event(&s->t, POLL_END, at(us), (uint64_t)worker);
}

void story_poll(struct story *s, unsigned worker, uint64_t from_us, uint64_t to_us, uint64_t task,
		const char *place)
{
	story_start(s, worker, from_us, task, place);
	story_end(s, worker, to_us);
}

void story_wake(struct story *s, uint64_t us, uint64_t waker, uint64_t task, unsigned reason)
{
	trace_event(&s->t, WAKE, at(us), waker, task, UINT64_C(0), (uint64_t)reason);
}

void story_spawn(struct story *s, uint64_t us, uint64_t task, const char *place, const char *kind)
{
	uint64_t text = trace_string(&s->t, place), kind_text = trace_string(&s->t, kind);

	trace_event(&s->t, SPAWN, at(us), task, text, UINT64_C(1), UINT64_C(0), UINT64_C(0),
		    kind_text, 0, 0);
}

void story_spawn_fd(struct story *s, uint64_t us, uint64_t task, const char *place, unsigned fd)
{
	uint64_t text = trace_string(&s->t, place), kind_text = trace_string(&s->t, "io");

	trace_event(&s->t, SPAWN, at(us), task, text, UINT64_C(1), UINT64_C(0), UINT64_C(0),
		    kind_text, 1, (uint64_t)fd, 0);
}

void story_terminate(struct story *s, uint64_t us, uint64_t task)
{
	trace_event(&s->t, TERMINATE, at(us), task);
}

void story_queue(struct story *s, uint64_t us, unsigned depth)
{
	trace_event(&s->t, QUEUE, at(us), (uint64_t)depth);
}

void story_tasks(struct story *s, uint64_t us, unsigned tasks)
{
	uint64_t loop = trace_string(&s->t, "main");

	trace_event(&s->t, LOOP_TASKS, at(us), loop, (uint64_t)tasks);
}

void story_span(struct story *s, unsigned worker, uint64_t from_us, uint64_t to_us, uint64_t id,
		const char *name)
{
	uint64_t text = trace_string(&s->t, name);

	trace_event(&s->t, SPAN_ENTER, at(from_us), (uint64_t)worker, id, 0, text);
	trace_event(&s->t, SPAN_EXIT, at(to_us), (uint64_t)worker, id, text);
	trace_event(&s->t, SPAN_CLOSE, at(to_us), id);
}

void story_usage(struct story *s, uint64_t us, uint64_t forced_switches)
{
	trace_event(&s->t, USAGE, at(us), UINT64_C(0), UINT64_C(0), UINT64_C(0), UINT64_C(0),
		    UINT64_C(0), UINT64_C(0), UINT64_C(0), UINT64_C(0), forced_switches);
}

void story_off_cpu(struct story *s, unsigned worker, uint64_t us, uint64_t task,
		   uint64_t blocked_us, uint64_t run_queue_us)
{
	trace_event(&s->t, OFF_CPU, at(us), (uint64_t)worker, task, blocked_us * 1000,
		    run_queue_us * 1000);
}

void story_stale_timer(struct story *s, unsigned worker, uint64_t us, uint64_t task,
		       uint64_t timeout_us, uint64_t due_us)
{
	trace_event(&s->t, STALE_TIMER, at(us), (uint64_t)worker, task, timeout_us * 1000,
		    at(due_us));
}

void story_helper(struct story *s, uint64_t us, const char *function, uint64_t task,
		  uint64_t wait_us, uint64_t run_us)
{
	uint64_t text = trace_string(&s->t, function);

	trace_event(&s->t, HELPER_RUN, at(us), text, us, task, wait_us * 1000, run_us * 1000);
}

void story_loss(struct story *s, uint64_t us, const char *cause, uint64_t events)
{
	uint64_t text = trace_string(&s->t, cause);

	trace_event(&s->t, LOSS, at(us), UINT64_C(100), UINT64_C(0), text, events, at(us) - 1000,
		    at(us));
}

void story_say(struct story *s, const char *key, const char *value)
{
	trace_head(&s->t, METADATA, at(0));
	trace_uint(&s->t, 1, 4);
	trace_text(&s->t, key);
	trace_text(&s->t, value);
}

void story_routine(struct story *s, unsigned worker, uint64_t us, unsigned n)
{
	for (unsigned i = 0; i < n; i++, us += 100) {
		story_unpark(s, worker, us, us / 10);
		story_wake(s, us + 1, 0, 9, 1);
		story_poll(s, worker, us + 2, us + 7, 9, "app+0x900 @ app+0x910");
		story_park(s, worker, us + 8, us / 10 + 8);
	}
}

static void give_up(const char *what)
{
	fprintf(stderr, "story: %s\n", what);
	exit(99);
}

static void read_back(struct story *s, struct d9_reader *reader)
{
	const struct d9_event *event;
	int more;

	while ((more = d9_reader_next(reader, &event)) == 1)
		if (d9__analysis_event(&s->analysis, event))
			give_up("out of memory");
	if (more < 0)
		give_up(d9_reader_message(reader));
	if (d9__analysis_finish(&s->analysis, reader))
		give_up("out of memory");
}

void story_analyse(struct story *s)
{
	char path[] = "/tmp/d9-story-XXXXXX";
	int fd = mkstemp(path);
	struct d9_reader *reader = NULL;

	if (fd < 0 || d9_reader_new(&reader))
		give_up("cannot make a file");
	trace_save(&s->t, path, "plain");
	if (d9_reader_add(reader, path))
		give_up(d9_reader_message(reader));
	read_back(s, reader);
	d9_reader_free(reader);
	unlink(path);
	close(fd);
	if (d9__findings_make(&s->findings, &s->analysis))
		give_up("out of memory");
}

static const struct d9__finding nothing = { .check = "", .message = (char *)"", .name = (char *)"",
					    .advice = "", .severity = D9__SEVERITIES };

const struct d9__finding *story_finding(const struct story *s, size_t i)
{
	return i < s->findings.n ? s->findings.items[i] : &nothing;
}

const struct d9__finding *story_finding_of(const struct story *s, const char *check)
{
	for (size_t i = 0; i < s->findings.n; i++)
		if (!strcmp(s->findings.items[i]->check, check))
			return s->findings.items[i];
	return &nothing;
}

const struct d9__callback *story_callback(const struct story *s, const char *place)
{
	for (size_t i = 0; i < s->analysis.callbacks.n; i++)
		if (!strcmp(s->analysis.callbacks.items[i]->location, place))
			return s->analysis.callbacks.items[i];
	return NULL;
}

void story_free(struct story *s)
{
	d9__findings_release(&s->findings);
	d9__analysis_release(&s->analysis);
	trace_free(&s->t);
}
