/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "story.h"
#include "support/d9_test.h"

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
	STATE,
	LAST_SIGN,
	STUCK,
	FIGURES,
	HELD,
	SOURCE_TIME,
	WAITED,
	TASK_DUMP,
	ACCEPT_QUEUE,
	SAMPLE,
	DISK,
	OUTSIDE,
	RUN_QUEUE,
	STACK_SAMPLE,
	TASK_IO,
	STOPPED,
	LIBRARY,
	PUT_ASIDE,
	BOUND,
};

static uint64_t at(uint64_t us)
{
	return ORIGIN_NS + us * 1000;
}

void story_begin(struct story *s)
{
	struct trace *t = &s->t;

	*s = (struct story){ .t = { .data = NULL }, .queue = 1 };
	trace_batch(t);
	trace_builtin(t, POLL_START, "PollStartEvent");
	trace_builtin(t, POLL_END, "PollEndEvent");
	trace_builtin(t, PARK, "WorkerParkEvent");
	trace_builtin(t, UNPARK, "WorkerUnparkEvent");
	trace_builtin(t, WAKE, "WakeEventEvent");
	trace_builtin(t, SPAWN, "TaskSpawnEvent");
	trace_builtin(t, TERMINATE, "TaskTerminateEvent");
	trace_builtin(t, QUEUE, "QueueSampleEvent");
	trace_builtin(t, TASK_DUMP, "TaskDumpEvent");
	trace_builtin(t, ACCEPT_QUEUE, "TcpAcceptQueueEvent");
	trace_builtin(t, LOSS, "RecorderLossEvent");
	trace_builtin_fields(
		t, USAGE, "ProcessResourceUsageEvent",
		"user_cpu_ns system_cpu_ns max_rss_bytes minor_faults major_faults block_input_ops "
		"block_output_ops voluntary_context_switches involuntary_context_switches");
	trace_builtin(t, METADATA, "SegmentMetadataEvent");
	trace_schema(t, SPAN_ENTER, "SpanEnter:libevent",
		     "worker_id:9 span_id:9 parent_span_id:137 span_name:7");
	trace_schema(t, SPAN_EXIT, "SpanExit:libevent", "worker_id:9 span_id:9 span_name:7");
	trace_builtin_fields(t, SPAN_CLOSE, "SpanCloseEvent", "span_id");
	trace_builtin_fields(t, OFF_CPU, "OffCpuEvent", "worker_id task_id blocked_ns run_queue_ns voluntary_switches");
	trace_builtin_fields(t, STATE, "ProcessStateEvent",
			     "resident_bytes descriptors threads cgroup_throttled_ns cgroup_throttled");
	trace_builtin(t, LAST_SIGN, "LastSignEvent");
	trace_builtin_fields(t, STUCK, "StuckPollEvent",
			     "worker_id task_id syscall running for_ns wchan");
	trace_schema(t, LIBRARY, "StuckPollEvent",
		     "worker_id:9 task_id:9 syscall:7 running:9 for_ns:9 wchan:7 kind:7 cpu_ns:9");
	trace_schema(t, FIGURES, "OffCpuEvent",
		     "worker_id:9 task_id:9 blocked_ns:9 run_queue_ns:9 minor_faults:9 user_cpu_ns:9 "
		     "system_cpu_ns:9");
	trace_builtin_fields(t, HELD, "ProcessStateEvent", "resident_bytes descriptors threads");
	trace_schema(t, SOURCE_TIME, "SourceTimeEvent",
		     "worker_id:9 task_id:9 phase:7 calls:9 total_ns:9 max_ns:9");
	trace_builtin_fields(t, WAITED, "BlockingCallEvent",
			     "worker_id task_id function fd duration_ns holder_tid holder_task "
			     "held_ns held_ready_ns");
	trace_schema(t, DISK, "OffCpuEvent",
		     "worker_id:9 task_id:9 blocked_ns:9 run_queue_ns:9 major_faults:9");
	trace_builtin_fields(t, SAMPLE, "CpuSampleEvent", "worker_id tid source cpu");
	trace_schema(t, STALE_TIMER, "StaleTimerEvent",
		     "worker_id:9 task_id:9 timeout_ns:9 due_ns:9");
	trace_builtin(t, OUTSIDE, "LoopOutsideEvent");
	trace_builtin(t, PUT_ASIDE, "RunQueueEvent");
	trace_builtin(t, BOUND, "BoundThreadEvent");
	trace_builtin_fields(t, RUN_QUEUE, "ProcessStateEvent", "resident_bytes runqueue_ns");
	trace_builtin_fields(t, STACK_SAMPLE, "CpuSampleEvent", "worker_id tid source callchain");
	trace_builtin_fields(t, TASK_IO, "TaskIoEvent",
			     "worker_id task_id reads again eof errors last_errno "
			     "read_bytes writes accepts");
	trace_builtin_fields(t, STOPPED, "ProcessStoppedEvent", "from_ns to_ns");
	trace_builtin(t, LOOP_TASKS, "LoopTasksEvent");
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

	trace_event(&s->t, POLL_START, at(us), (uint64_t)worker, s->queue, task, text);
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

void story_wake_by(struct story *s, uint64_t us, unsigned by, uint64_t task, unsigned reason)
{
	trace_event(&s->t, WAKE, at(us), UINT64_C(0), task, (uint64_t)by, (uint64_t)reason);
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

void story_spawn_named(struct story *s, uint64_t us, uint64_t task, const char *place, const char *name)
{
	uint64_t text = trace_string(&s->t, place), kind_text = trace_string(&s->t, "io");

	trace_event(&s->t, SPAWN, at(us), task, text, UINT64_C(1), UINT64_C(0), UINT64_C(0),
		    kind_text, 0, 1, (uint64_t)trace_string(&s->t, name));
}

void story_terminate(struct story *s, uint64_t us, uint64_t task)
{
	trace_event(&s->t, TERMINATE, at(us), task);
}

void story_queue(struct story *s, uint64_t us, unsigned depth)
{
	trace_event(&s->t, QUEUE, at(us), (uint64_t)depth);
}

void story_dump(struct story *s, uint64_t us, uint64_t task, uint64_t address)
{
	uint64_t stack = trace_stack(&s->t, 1, &address);

	trace_event(&s->t, TASK_DUMP, at(us), task, stack, UINT64_C(0), UINT64_C(0));
}

void story_accept_queue(struct story *s, unsigned worker, uint64_t us, unsigned pending, unsigned limit)
{
	trace_event(&s->t, ACCEPT_QUEUE, at(us), UINT64_C(77), UINT64_C(1), UINT64_C(4), "127.0.0.1", UINT64_C(8080),
		    (uint64_t)pending, (uint64_t)limit, (uint64_t)worker);
}

void story_tasks(struct story *s, uint64_t us, unsigned tasks)
{
	uint64_t loop = trace_string(&s->t, "main");

	trace_event(&s->t, LOOP_TASKS, at(us), loop, (uint64_t)tasks);
}

void story_span(struct story *s, unsigned worker, uint64_t from_us, uint64_t to_us, uint64_t id,
		const char *name)
{
	story_enter(s, worker, from_us, id, name);
	story_exit(s, worker, to_us, id, name);
}

void story_enter(struct story *s, unsigned worker, uint64_t us, uint64_t id, const char *name)
{
	uint64_t text = trace_string(&s->t, name);

	trace_event(&s->t, SPAN_ENTER, at(us), (uint64_t)worker, id, 0, text);
}

void story_exit(struct story *s, unsigned worker, uint64_t us, uint64_t id, const char *name)
{
	uint64_t text = trace_string(&s->t, name);

	trace_event(&s->t, SPAN_EXIT, at(us), (uint64_t)worker, id, text);
	trace_event(&s->t, SPAN_CLOSE, at(us), id);
}

void story_sleeps(struct story *s, uint64_t us, uint64_t voluntary_switches)
{
	trace_event(&s->t, USAGE, at(us), UINT64_C(0), UINT64_C(0), UINT64_C(0), UINT64_C(0),
		    UINT64_C(0), UINT64_C(0), UINT64_C(0), voluntary_switches, UINT64_C(0));
}

void story_usage(struct story *s, uint64_t us, uint64_t forced_switches)
{
	trace_event(&s->t, USAGE, at(us), UINT64_C(0), UINT64_C(0), UINT64_C(0), UINT64_C(0),
		    UINT64_C(0), UINT64_C(0), UINT64_C(0), UINT64_C(0), forced_switches);
}

void story_cpu_usage(struct story *s, uint64_t us, uint64_t cpu_us)
{
	trace_event(&s->t, USAGE, at(us), cpu_us * 1000, UINT64_C(0), UINT64_C(0), UINT64_C(0),
		    UINT64_C(0), UINT64_C(0), UINT64_C(0), UINT64_C(0), UINT64_C(0));
}

void story_off_cpu(struct story *s, unsigned worker, uint64_t us, uint64_t task,
		   uint64_t blocked_us, uint64_t run_queue_us)
{
	trace_event(&s->t, OFF_CPU, at(us), (uint64_t)worker, task, blocked_us * 1000,
		    run_queue_us * 1000, 0);
}

void story_off_cpu_switched(struct story *s, unsigned worker, uint64_t us, uint64_t task,
			    uint64_t blocked_us, uint64_t run_queue_us, uint64_t switches)
{
	trace_event(&s->t, OFF_CPU, at(us), (uint64_t)worker, task, blocked_us * 1000,
		    run_queue_us * 1000, 1, switches);
}

void story_state(struct story *s, uint64_t us, uint64_t throttled_us, uint64_t throttled)
{
	trace_event(&s->t, STATE, at(us), UINT64_C(1), UINT64_C(1), UINT64_C(1), 1, throttled_us * 1000, 1,
		    throttled);
}

void story_last_sign(struct story *s, unsigned worker, uint64_t us, uint64_t task, uint64_t since_us,
		     const char *span)
{
	uint64_t text = trace_string(&s->t, span);

	trace_event(&s->t, LAST_SIGN, at(us), (uint64_t)worker, task, at(since_us), text);
}

void story_stuck(struct story *s, unsigned worker, uint64_t us, uint64_t task, const char *where, bool running)
{
	uint64_t text = trace_string(&s->t, where), none = trace_string(&s->t, "");

	trace_event(&s->t, STUCK, at(us), (uint64_t)worker, task, text, (uint64_t)running, UINT64_C(10000000), none);
}

void story_library(struct story *s, unsigned worker, uint64_t us, uint64_t for_us, uint64_t cpu_us)
{
	uint64_t none = trace_string(&s->t, ""), kind = trace_string(&s->t, "library");

	trace_event(&s->t, LIBRARY, at(us), (uint64_t)worker, UINT64_C(0), none, UINT64_C(1),
		    for_us * 1000, none, kind, cpu_us * 1000);
}

void story_figures(struct story *s, unsigned worker, uint64_t us, uint64_t task, uint64_t faults,
		   uint64_t user_us, uint64_t system_us)
{
	trace_event(&s->t, FIGURES, at(us), (uint64_t)worker, task, UINT64_C(0), UINT64_C(0), faults,
		    user_us * 1000, system_us * 1000);
}

void story_asleep(struct story *s, unsigned worker, uint64_t us, uint64_t task, const char *syscall,
		  unsigned running, const char *wchan)
{
	uint64_t syscall_text = trace_string(&s->t, syscall), wchan_text = trace_string(&s->t, wchan);

	trace_event(&s->t, STUCK, at(us), (uint64_t)worker, task, syscall_text, (uint64_t)running,
		    UINT64_C(10000000), wchan_text);
}

void story_waited(struct story *s, unsigned worker, uint64_t us, uint64_t task, const char *function,
		  uint64_t took_us)
{
	story_waited_for(s, worker, us, task, function, took_us, 0);
}

void story_waited_for(struct story *s, unsigned worker, uint64_t us, uint64_t task, const char *function,
		      uint64_t took_us, unsigned holder_tid)
{
	uint64_t text = trace_string(&s->t, function);

	trace_event(&s->t, WAITED, at(us), (uint64_t)worker, task, text, 0, took_us * 1000,
		    (uint64_t)holder_tid, UINT64_C(0), 0, 0);
}

void story_held_up(struct story *s, unsigned worker, uint64_t us, uint64_t task, uint64_t took_us,
		   uint64_t held_us, uint64_t ready_us)
{
	uint64_t text = trace_string(&s->t, "pthread_mutex_lock");

	trace_event(&s->t, WAITED, at(us), (uint64_t)worker, task, text, 0, took_us * 1000,
		    UINT64_C(4711), UINT64_C(0), 1, held_us * 1000, 1, ready_us * 1000);
}

void story_disk(struct story *s, unsigned worker, uint64_t us, uint64_t task, uint64_t blocked_us, uint64_t faults)
{
	trace_event(&s->t, DISK, at(us), (uint64_t)worker, task, blocked_us * 1000, UINT64_C(0), faults);
}

void story_sample(struct story *s, unsigned worker, uint64_t us)
{
	trace_event(&s->t, SAMPLE, at(us), (uint64_t)worker, (uint64_t)worker + 100, UINT64_C(0), 0);
}

void story_left_cpu(struct story *s, unsigned worker, uint64_t us, int switched)
{
	trace_event(&s->t, SAMPLE, at(us), (uint64_t)worker, (uint64_t)worker + 100, UINT64_C(1), switched, UINT64_C(0));
}

void story_sample_in(struct story *s, unsigned worker, uint64_t us, size_t n,
		     const uint64_t *addresses)
{
	uint64_t stack = trace_stack(&s->t, n, addresses);

	trace_event(&s->t, STACK_SAMPLE, at(us), (uint64_t)worker, (uint64_t)worker + 100,
		    UINT64_C(0), stack);
}

void story_sample_before(struct story *s, uint64_t us, size_t n, const uint64_t *addresses)
{
	uint64_t stack = trace_stack(&s->t, n, addresses);

	trace_event(&s->t, STACK_SAMPLE, at(us), UINT64_C(255), UINT64_C(100), UINT64_C(0), stack);
}

void story_held(struct story *s, uint64_t us, uint64_t resident_kib, uint64_t descriptors)
{
	trace_event(&s->t, HELD, at(us), resident_kib * 1024, descriptors, UINT64_C(1));
}

void story_source_time(struct story *s, unsigned worker, uint64_t us, uint64_t task, const char *phase,
		       uint64_t calls, uint64_t total_us, uint64_t max_us)
{
	uint64_t text = trace_string(&s->t, phase);

	trace_event(&s->t, SOURCE_TIME, at(us), (uint64_t)worker, task, text, calls, total_us * 1000,
		    max_us * 1000);
}

void story_outside(struct story *s, unsigned worker, uint64_t from_us, uint64_t to_us)
{
	trace_event(&s->t, OUTSIDE, at(to_us), (uint64_t)worker, at(from_us), at(to_us));
}

void story_put_aside_since(struct story *s, unsigned worker, uint64_t from_us, uint64_t us,
			   uint64_t wait_us)
{
	trace_event(&s->t, PUT_ASIDE, at(us), (uint64_t)worker, at(from_us), 1000 * wait_us);
}

void story_put_aside(struct story *s, unsigned worker, uint64_t us, uint64_t wait_us)
{
	story_put_aside_since(s, worker, us - wait_us, us, wait_us);
}

void story_bound(struct story *s, uint64_t us, const struct story_bound *thread)
{
	uint64_t name = trace_string(&s->t, thread->name), cpus = trace_string(&s->t, thread->cpus);

	trace_event(&s->t, BOUND, at(us), (uint64_t)thread->tid, name, cpus, 1000 * thread->cpu_us,
		    1000 * thread->wait_us);
}

void story_io(struct story *s, uint64_t us, uint64_t task, const struct story_io *io)
{
	uint64_t in_vain = io->again + io->eof + io->errors + io->looks;

	trace_event(&s->t, TASK_IO, at(us), UINT64_C(0), task, io->reads, io->again, io->eof,
		    io->errors, io->last_errno, io->reads > in_vain ? io->reads - in_vain : 0,
		    io->writes, io->accepts);
}

void story_stop(struct story *s, uint64_t from_us, uint64_t to_us)
{
	trace_event(&s->t, STOPPED, at(to_us), at(from_us), at(to_us));
}

void story_run_queue(struct story *s, uint64_t us, uint64_t ready_us)
{
	trace_event(&s->t, RUN_QUEUE, at(us), UINT64_C(1), 1, ready_us * 1000);
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

void story_cut(struct story *s, uint64_t us, struct d9__sums *sums)
{
	if (s->n_cuts == STORY_CUTS)
		give_up("too many cuts");
	s->cuts[s->n_cuts].us = us;
	s->cuts[s->n_cuts++].sums = sums;
}

/* Events from |ns| on are not read yet. */
static void take_sums(struct story *s, uint64_t ns, size_t *cut)
{
	for (; *cut < s->n_cuts && at(s->cuts[*cut].us) < ns; ++*cut)
		if (d9__sums_take(s->cuts[*cut].sums, &s->analysis, at(s->cuts[*cut].us)))
			give_up("out of memory");
}

static void read_back(struct story *s, struct d9_reader *reader)
{
	const struct d9_event *event;
	size_t cut = 0;
	int more;

	while ((more = d9_reader_next(reader, &event)) == 1) {
		take_sums(s, event->timestamp_ns, &cut);
		if (d9__analysis_event(&s->analysis, event))
			give_up("out of memory");
	}
	take_sums(s, UINT64_MAX, &cut);
	if (more < 0)
		give_up(d9_reader_message(reader));
	if (d9__analysis_finish(&s->analysis, reader))
		give_up("out of memory");
}

/* What advice may begin with: what is to be done comes before why. */
static const char *const deeds[] = {
	"Add", "Ask", "Bind", "Build", "Check", "Close", "Compare", "Copy", "Cut", "Deal", "Do", "End", "Expect",
	"Free", "Give", "Handle", "Have", "Hold", "Install", "Join", "Keep", "Let", "Look", "Make", "Mend",
	"Raise", "Read", "Record", "Register", "Return", "Run", "Sample", "See", "Send", "Set", "Spread",
	"Stop", "Take", "Try", "Wait", "Wake", "Write",
};

static void check_advice(const struct d9__finding *finding)
{
	size_t len = strcspn(finding->advice, " ,"), i = 0;

	while (i < sizeof(deeds) / sizeof(deeds[0]) && (strlen(deeds[i]) != len || strncmp(deeds[i], finding->advice, len)))
		i++;
	if (i == sizeof(deeds) / sizeof(deeds[0])) {
		fprintf(stderr, "advice of %s: %s\n", finding->check, finding->advice);
		CU_FAIL("advice does not begin with what is to be done");
	}
	for (i = 0; i < finding->n_effects; i++)
		check_advice(finding->effects[i]);
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
	for (size_t i = 0; i < s->findings.n; i++)
		check_advice(s->findings.items[i]);
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

const struct d9__finding *story_effect_of(const struct story *s, const char *check)
{
	for (size_t i = 0; i < s->findings.n; i++)
		for (size_t j = 0; j < s->findings.items[i]->n_effects; j++)
			if (!strcmp(s->findings.items[i]->effects[j]->check, check))
				return s->findings.items[i]->effects[j];
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
