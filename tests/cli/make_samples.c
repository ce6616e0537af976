/* SPDX-License-Identifier: Apache-2.0 */
/* clang-format off */
/*
 * make_samples PACKING FILE < SCRIPT: a trace of what SCRIPT says, a line each; numbers may be hex.
 *
 *   module PATH BUILD-ID BASE SIZE NS            a file mapped at BASE; "-" for no build-id
 *   unload PATH BUILD-ID BASE SIZE NS
 *   sample NS ADDRESS...                         the innermost first
 *   taken NS WORKER SOURCE TRUNCATED ADDRESS...  with all that a sample says; source 1: off the CPU
 *   switch NS WORKER ADDRESS...                  off the CPU, as a switch of a slice says it
 *   spawn NS CALLBACK SITE [TASK [TEXT]]         addresses; `spawn_loc` has them, too, or TEXT;
 *                                                task 1, unless told
 *   poll NS WORKER TASK CALLBACK SITE [TEXT]     a call of it begins
 *   end NS WORKER
 *   park NS WORKER CPU-NS                        its loop waits; the thread has used CPU-NS so far
 *   unpark NS WORKER CPU-NS
 *   offcpu NS WORKER TASK SLEPT READY            the call that ended just then was off the CPU for
 *                                                so long, both in ns
 *   outside NS WORKER NS                         its thread had left its loop at the second NS
 *   row ADDRESS DEPTH NAME FILE LINE             "-" for no file
 *   rate N                                       bytes between samples of allocations, at 1600
 *   alloc NS TID SIZE PLACE ADDRESSES...         PLACE: of the block; 0: its end is not followed
 *   free NS TID SIZE PLACE NS                    the second NS: of its allocation
 *   overflow NS ALLOCS FREES EVICTED             samples that were lost
 *   blocked NS WORKER FUNCTION NS                a call that took the second NS; the sample of its
 *                                                stack comes before
 *   enter NS WORKER TID SPAN NAME                worker 255: a thread that runs no loop
 *   exit NS WORKER TID SPAN
 *   close NS SPAN
 *   hz N                                         on-CPU samples a second of CPU time
 *   duty SHARE                                   of the time, in which switches are told
 *   pid N
 *   program PATH
 *   loop WORKERS                                 the loop "main" of these workers
 *   lost NS EVENTS                               the recorder had no room
 *   cut N                                        leave out the last N bytes
 */
/* clang-format on */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/trace_builder.h"

enum {
	CLOCK,
	METADATA,
	MODULE,
	SAMPLE,
	SPAWN,
	ROW,
	TAKEN,
	POLL,
	END,
	ALLOC,
	FREE,
	OVERFLOW,
	ENTER,
	EXIT,
	CLOSE,
	BLOCKED,
	LOSS,
	PARK,
	UNPARK,
	OFF_CPU,
	OUTSIDE,
	SWITCH
};

#define FRAMES_MAX 128

static uint64_t number(void)
{
	const char *word = strtok(NULL, " \n");

	return word ? strtoull(word, NULL, 0) : 0;
}

static const char *word(void)
{
	const char *next = strtok(NULL, " \n");

	return next && strcmp(next, "-") != 0 ? next : "";
}

static void put_module(struct trace *t, int unloaded)
{
	const char *path = word(), *build_id = word();
	uint64_t base = number(), size = number(), ns = number();

	trace_event(t, MODULE, ns, base, base, size, path, build_id, (uint64_t)unloaded);
}

/* The addresses up to the end of the line; how many. */
static size_t read_frames(uint64_t frames[FRAMES_MAX])
{
	const char *next;
	size_t n = 0;

	while (n < FRAMES_MAX && (next = strtok(NULL, " \n")))
		frames[n++] = strtoull(next, NULL, 0);
	return n;
}

static void put_sample(struct trace *t)
{
	uint64_t ns = number(), frames[FRAMES_MAX];
	size_t n = read_frames(frames);

	trace_event(t, SAMPLE, ns, (uint64_t)0, (uint64_t)77, (uint64_t)0, (uint64_t)trace_stack(t, n, frames));
}

static void put_taken(struct trace *t)
{
	uint64_t ns = number(), worker = number(), source = number(), truncated = number(), frames[FRAMES_MAX];
	size_t n = read_frames(frames);

	trace_event(t, TAKEN, ns, worker, 77 + worker, source, (uint64_t)trace_stack(t, n, frames), truncated);
}

static void put_switch(struct trace *t)
{
	uint64_t ns = number(), worker = number(), frames[FRAMES_MAX];
	size_t n = read_frames(frames);

	trace_event(t, SWITCH, ns, worker, 77 + worker, (uint64_t)1,
		    (uint64_t)trace_stack(t, n, frames), 1, (uint64_t)0);
}

static void put_alloc(struct trace *t)
{
	uint64_t ns = number(), tid = number(), size = number(), place = number(), frames[FRAMES_MAX];
	size_t n = read_frames(frames);

	trace_event(t, ALLOC, ns, tid, size, place, (uint64_t)trace_stack(t, n, frames));
}

static void put_free(struct trace *t)
{
	uint64_t ns = number(), tid = number(), size = number(), place = number();

	trace_event(t, FREE, ns, tid, place, size, number());
}

static void put_overflow(struct trace *t)
{
	uint64_t ns = number(), allocs = number(), frees = number();

	trace_event(t, OVERFLOW, ns, allocs, frees, number());
}

/* The rest of the line, or both addresses. */
static uint64_t location(struct trace *t, uint64_t callback, uint64_t site)
{
	const char *told = strtok(NULL, "\n");
	char text[64];

	if (told)
		return trace_string(t, told);
	snprintf(text, sizeof(text), "0x%llx @ 0x%llx", (unsigned long long)callback, (unsigned long long)site);
	return trace_string(t, text);
}

static void put_spawn(struct trace *t)
{
	uint64_t ns = number(), callback = number(), site = number(), task = number();
	uint64_t place = location(t, callback, site);

	trace_event(t, SPAWN, ns, task ? task : 1, place, (uint64_t)1, callback, site);
}

static void put_poll(struct trace *t)
{
	uint64_t ns = number(), worker = number(), task = number(), callback = number(), site = number();
	uint64_t place = location(t, callback, site);

	trace_event(t, POLL, ns, worker, (uint64_t)0, task, place);
}

static void put_end(struct trace *t)
{
	uint64_t ns = number();

	trace_event(t, END, ns, number());
}

/* A park or an unpark. */
static void put_wait(struct trace *t, unsigned type)
{
	uint64_t ns = number(), worker = number(), cpu_ns = number();

	trace_event(t, type, ns, worker, (uint64_t)0, cpu_ns, 77 + worker);
}

static void put_off_cpu(struct trace *t)
{
	uint64_t ns = number(), worker = number(), task = number(), slept_ns = number();

	trace_event(t, OFF_CPU, ns, worker, task, slept_ns, number());
}

static void put_outside(struct trace *t)
{
	uint64_t ns = number(), worker = number();

	trace_event(t, OUTSIDE, ns, worker, number(), ns);
}

static void put_row(struct trace *t)
{
	uint64_t address = number(), depth = number();
	const char *name = word(), *file = word();

	trace_event(t, ROW, 0, address, (uint64_t)0, (uint64_t)trace_string(t, name), depth,
		    (uint64_t)trace_string(t, file), number());
}

static void put_blocked(struct trace *t)
{
	uint64_t ns = number(), worker = number(), function = trace_string(t, word());

	trace_event(t, BLOCKED, ns, worker, (uint64_t)1, function, number(), (uint64_t)0);
}

/* A span is a function that the library calls if its name is "CALLBACK@SITE". */
static void put_enter(struct trace *t)
{
	uint64_t ns = number(), worker = number(), tid = number(), span = number();
	const char *name = word(), *at = strchr(name, '@');
	char text[128];

	if (at)
		snprintf(text, sizeof(text), "%.*s @ %s", (int)(at - name), name, at + 1);
	else
		snprintf(text, sizeof(text), "%s", name);
	trace_event(t, ENTER, ns, worker, span, (uint64_t)trace_string(t, text), span, tid);
}

static void put_exit(struct trace *t)
{
	uint64_t ns = number(), worker = number(), tid = number(), span = number();

	trace_event(t, EXIT, ns, worker, span, (uint64_t)trace_string(t, ""), span, tid);
}

static void put_close(struct trace *t)
{
	uint64_t ns = number();

	trace_event(t, CLOSE, ns, number());
}

static void put_loss(struct trace *t)
{
	uint64_t ns = number(), events = number();

	trace_event(t, LOSS, ns, (uint64_t)77, (uint64_t)1, trace_string(t, "no_chunk"), events, ns, ns);
}

static void put_metadata(struct trace *t, const char *key, uint64_t ns)
{
	trace_head(t, METADATA, ns);
	trace_uint(t, 1, 4);
	trace_text(t, key);
	trace_text(t, word());
}

static void begin(struct trace *t)
{
	trace_batch(t);
	trace_builtin(t, CLOCK, "ClockSyncEvent");
	trace_builtin(t, METADATA, "SegmentMetadataEvent");
	trace_builtin_fields(t, MODULE, "ModuleEvent", "base start size path build_id unloaded");
	trace_builtin_fields(t, SAMPLE, "CpuSampleEvent", "worker_id tid source callchain");
	trace_builtin_fields(t, SPAWN, "TaskSpawnEvent", "task_id spawn_loc instrumented callback spawn_addr");
	trace_builtin(t, ROW, "SymbolTableEntry");
	trace_builtin_fields(t, TAKEN, "CpuSampleEvent", "worker_id tid source callchain truncated");
	trace_builtin(t, POLL, "PollStartEvent");
	trace_builtin(t, END, "PollEndEvent");
	trace_builtin_fields(t, ALLOC, "AllocEvent", "tid size addr callchain");
	trace_builtin(t, FREE, "FreeEvent");
	trace_builtin(t, OVERFLOW, "MemoryProfileOverflowEvent");
	trace_schema(t, ENTER, "SpanEnter:test", "worker_id:9 span_id:9 span_name:7 span_instance_id:9 tid:13");
	trace_schema(t, EXIT, "SpanExit:test", "worker_id:9 span_id:9 span_name:7 span_instance_id:9 tid:13");
	trace_builtin_fields(t, BLOCKED, "BlockingCallEvent", "worker_id task_id function duration_ns holder_tid");
	trace_builtin(t, LOSS, "RecorderLossEvent");
	trace_builtin_fields(t, PARK, "WorkerParkEvent", "worker_id local_queue cpu_time_ns tid");
	trace_builtin_fields(t, UNPARK, "WorkerUnparkEvent",
			     "worker_id local_queue cpu_time_ns tid");
	trace_builtin_fields(t, OFF_CPU, "OffCpuEvent",
			     "worker_id task_id blocked_ns run_queue_ns");
	trace_builtin_fields(t, OUTSIDE, "LoopOutsideEvent", "worker_id from_ns to_ns");
	trace_builtin_fields(t, SWITCH, "CpuSampleEvent", "worker_id tid source callchain cpu");
	trace_builtin_fields(t, CLOSE, "SpanCloseEvent", "span_id");
	trace_event(t, CLOCK, 1000, (uint64_t)1700000000000000000);
}

int main(int argc, char **argv)
{
	static char line[1 << 16];
	struct trace t = { 0 };

	if (argc != 3)
		return 2;
	begin(&t);
	while (fgets(line, sizeof(line), stdin)) {
		const char *what = strtok(line, " \n");

		if (!what)
			continue;
		if (!strcmp(what, "module") || !strcmp(what, "unload"))
			put_module(&t, *what == 'u');
		else if (!strcmp(what, "sample"))
			put_sample(&t);
		else if (!strcmp(what, "taken"))
			put_taken(&t);
		else if (!strcmp(what, "switch"))
			put_switch(&t);
		else if (!strcmp(what, "duty"))
			put_metadata(&t, "sched.switch_duty", 1600);
		else if (!strcmp(what, "poll"))
			put_poll(&t);
		else if (!strcmp(what, "end"))
			put_end(&t);
		else if (!strcmp(what, "park"))
			put_wait(&t, PARK);
		else if (!strcmp(what, "unpark"))
			put_wait(&t, UNPARK);
		else if (!strcmp(what, "offcpu"))
			put_off_cpu(&t);
		else if (!strcmp(what, "outside"))
			put_outside(&t);
		else if (!strcmp(what, "spawn"))
			put_spawn(&t);
		else if (!strcmp(what, "row"))
			put_row(&t);
		else if (!strcmp(what, "blocked"))
			put_blocked(&t);
		else if (!strcmp(what, "enter"))
			put_enter(&t);
		else if (!strcmp(what, "exit"))
			put_exit(&t);
		else if (!strcmp(what, "close"))
			put_close(&t);
		else if (!strcmp(what, "hz"))
			put_metadata(&t, "cpu.sample_hz", 1600);
		else if (!strcmp(what, "pid"))
			put_metadata(&t, "pid", 1500);
		else if (!strcmp(what, "program"))
			put_metadata(&t, "program", 1500);
		else if (!strcmp(what, "loop"))
			put_metadata(&t, "runtime.main", 1600);
		else if (!strcmp(what, "lost"))
			put_loss(&t);
		else if (!strcmp(what, "rate"))
			put_metadata(&t, "memory.sample_rate_bytes", 1600);
		else if (!strcmp(what, "alloc"))
			put_alloc(&t);
		else if (!strcmp(what, "free"))
			put_free(&t);
		else if (!strcmp(what, "overflow"))
			put_overflow(&t);
		else if (!strcmp(what, "cut"))
			t.len -= number();
		else
			return 2;
	}
	trace_save(&t, argv[2], argv[1]);
	trace_free(&t);
	return 0;
}
