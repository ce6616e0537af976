/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes traces and rings whose texts are meant to harm whoever prints them:
 *
 *	make_hostile trace FILE FIRST             every field of text that a reader knows, and some that it does not
 *	make_hostile recent FILE FIRST            the same, of now
 *	make_hostile ring FILE TRACE-DIR FIRST    a dead process's ring
 *	make_hostile live FILE TRACE-DIR FIRST    this process's: it waits for the end of standard input
 *
 * FIRST: the bad character that each text begins with, so that it is also in what is cut short.
 */
#include "config.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "cli/bad_text.h"
#include "ring/ring_file.h"
#include "support/trace_builder.h"

#define MS UINT64_C(1000000)

static uint64_t origin_ns = UINT64_C(5000000000);
static size_t first;
static char bad[512];

/* |before|, bad characters, |after|: one of a few that are in use at a time. */
static char *wrap(const char *before, const char *after)
{
	static char texts[8][1024];
	static unsigned next;
	char *text = texts[next++ % 8];

	snprintf(text, sizeof(texts[0]), "%s%s%s", before, bad, after);
	return text;
}

static uint64_t pool(struct trace *t, const char *before, const char *after)
{
	return trace_string(t, wrap(before, after));
}

/* ---- a trace ---- */

enum { SYNC = 1, METADATA, START, END, PARK, UNPARK, WAKE, SPAWN, NAMED = 100 };

static void put_metadata(struct trace *t)
{
	static const char *const keys[] = {
		"service", "program", "boot_id", "dump.id", "loop.libev.version", "loop.libev.capabilities",
		"loop.libev.degraded", "loop.glib.refused", "ring.fallback", "runtime.main", "log.dropped", "host",
	};
	size_t n = sizeof(keys) / sizeof(keys[0]);

	trace_builtin(t, METADATA, "SegmentMetadataEvent");
	trace_head(t, METADATA, origin_ns);
	trace_uint(t, n + 3, 4);
	for (size_t i = 0; i < n; i++) {
		trace_text(t, keys[i]);
		trace_text(t, bad);
	}
	trace_text(t, wrap("loop.", ".capabilities"));
	trace_text(t, wrap("poll=", ",park=yes"));
	trace_text(t, wrap("loop.", ".refused"));
	trace_text(t, bad);
	trace_text(t, bad);
	trace_text(t, bad);
}

/* One event each of those that a reader knows, with all of their texts bad. */
static void put_named(struct trace *t, uint64_t ns)
{
	static const struct {
		const char *name, *fields; /* all of them texts, but for those that no event is without */
	} events[] = {
		{ "RecorderHealthEvent", "state:4 error_op:7" },
		{ "RecorderLogEvent", "level:7 text:4" },
		{ "DumpTriggerEvent", "trigger:7 dump_id:7" },
		{ "BlockingCallEvent", "function:7" },
		{ "StuckPollEvent", "syscall:7 wchan:7 kind:7" },
		{ "LoopTasksEvent", "loop:7" },
		{ "HelperRunEvent", "function:7" },
		{ "LastSignEvent", "span:7" },
		{ "SourceTimeEvent", "phase:7" },
		{ "RuntimeMetricsEvent", "runtime_name:7" },
		{ "TcpAcceptQueueEvent", "local_addr:4" },
		{ "SpanMisuseEvent", "span_name:7 mistake:7" },
		{ "LogEvent", "level:7 target:7 library:7 message:4" },
		{ "SpanCloseEvent", "span_name:7 target:7 file:7 level:7" },
	};

	for (unsigned i = 0; i < sizeof(events) / sizeof(events[0]); i++) {
		trace_schema(t, NAMED + i, events[i].name, events[i].fields);
		trace_head(t, NAMED + i, ns + i);
		for (const char *p = events[i].fields; (p = strchr(p, ':')); p++) {
			if (p[1] == '4')
				trace_text(t, bad);
			else
				trace_uint(t, t->strings ? t->strings - 1 : 0, 4);
		}
	}
}

static void put_others(struct trace *t, uint64_t ns)
{
	static const uint64_t stack[] = { 0x10010, 0x10020 };
	uint64_t text = pool(t, "", "");

	trace_builtin_fields(t, 40, "ModuleEvent", "base start size path build_id unloaded");
	trace_event(t, 40, ns, UINT64_C(0x10000), UINT64_C(0x10000), UINT64_C(0x1000), wrap("/", ""), bad, UINT64_C(0));
	trace_builtin(t, 41, "SymbolTableEntry");
	trace_event(t, 41, 0, UINT64_C(0x20000), UINT64_C(1), text, UINT64_C(0), text, UINT64_C(7));
	trace_builtin(t, 42, "RecorderLossEvent");
	trace_event(t, 42, ns, UINT64_C(1), UINT64_C(0), text, UINT64_C(37), ns, ns);
	trace_builtin_fields(t, 43, "CpuSampleEvent", "worker_id tid source thread_name callchain cpu");
	for (uint64_t i = 0; i < 20; i++)
		trace_event(t, 43, ns + i, i & 1 ? UINT64_C(0) : UINT64_C(255), UINT64_C(4242), i & 1, 1, text,
			    (uint64_t)trace_stack(t, 2, stack), 0);
	trace_schema(t, 44, wrap("SpanEnter:", "::x:f.c:3"), "worker_id:9 span_id:9 parent_span_id:137 span_name:7 note:4");
	trace_schema(t, 45, wrap("SpanExit:", "::x:f.c:3"), "worker_id:9 span_id:9 span_name:7");
	trace_event(t, 44, ns + 30, UINT64_C(0), UINT64_C(3), 0, text, bad);
	trace_schema(t, 46, wrap("", "Event"), wrap("", ":4 worker_id:9 n:9"));
	trace_annotate(t, 46, 2, "unit", bad);
	trace_event(t, 46, ns + 31, bad, UINT64_C(0), UINT64_C(150));
	trace_event(t, 45, ns + 32, UINT64_C(0), UINT64_C(3), text);
	put_named(t, ns + 40);
}

/* Calls that block, of names of each form. */
static void put_calls(struct trace *t)
{
	const uint64_t places[] = { pool(t, "", "+0x10 @ x+0x20"), pool(t, "x+0x1 @ ", "+0x20"), pool(t, "", ""),
				    pool(t, "", ":42") };
	uint64_t ns = origin_ns + 10, kind = pool(t, "", "");

	trace_builtin(t, START, "PollStartEvent");
	trace_builtin(t, END, "PollEndEvent");
	trace_builtin(t, PARK, "WorkerParkEvent");
	trace_builtin(t, UNPARK, "WorkerUnparkEvent");
	trace_builtin(t, WAKE, "WakeEventEvent");
	trace_builtin(t, SPAWN, "TaskSpawnEvent");
	for (uint64_t i = 0; i < 4; i++)
		trace_event(t, SPAWN, ns, i + 1, places[i], UINT64_C(1), UINT64_C(0x20000), UINT64_C(0x10010), kind, 0, 1,
			    kind);
	for (uint64_t i = 0; i < 80; i++, ns += 60 * MS) {
		trace_event(t, WAKE, ns, (i + 1) % 4 + 1, i % 4 + 1, UINT64_C(0), UINT64_C(4));
		trace_event(t, UNPARK, ns + 10, UINT64_C(0), UINT64_C(0), i, UINT64_C(0), UINT64_C(4242));
		trace_event(t, START, ns + MS, UINT64_C(0), UINT64_C(2), i % 4 + 1, places[i % 4]);
		if (i == 40)
			put_others(t, ns + 2 * MS);
		trace_event(t, END, ns + 50 * MS, UINT64_C(0));
		trace_event(t, PARK, ns + 51 * MS, UINT64_C(0), UINT64_C(0), i + 1, UINT64_C(4242));
	}
}

static int make_trace(const char *path)
{
	struct trace t = { 0 };

	trace_batch(&t);
	put_metadata(&t);
	put_calls(&t);
	trace_save(&t, path, "plain");
	trace_free(&t);
	return 0;
}

/* ---- a ring ---- */

/* Field 22 of /proc/self/stat. */
static uint64_t start_time(void)
{
	char buf[1024], *p;
	FILE *file = fopen("/proc/self/stat", "re");
	size_t n = file ? fread(buf, 1, sizeof(buf) - 1, file) : 0;

	if (file)
		fclose(file);
	buf[n] = '\0';
	p = strrchr(buf, ')');
	for (int field = 2; p && field < 22; field++)
		p = strchr(p + 1, ' ');
	return p ? strtoull(p + 1, NULL, 10) : 0;
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 * MS + (uint64_t)ts.tv_nsec;
}

static void fill_header(struct d9__ring_header *header, const char *trace_dir, bool live)
{
	memcpy(header->magic, D9__RING_MAGIC, sizeof(header->magic));
	header->layout = D9__RING_LAYOUT;
	header->kind = D9__RING_SHM;
	header->slot_count = D9__SLOT_COUNT;
	header->chunk_size = D9__CHUNK_SIZE;
	header->chunks_at = D9__RING_CHUNKS_AT;
	header->chunks_max = D9__CHUNKS_MAX;
	header->pid = live ? (uint32_t)getpid() : (uint32_t)(900000000 + first);
	header->start_time = start_time();
	bad_text(header->kernel_boot_id, sizeof(header->kernel_boot_id), first);
	bad_text(header->boot_id, sizeof(header->boot_id), first);
	bad_text(header->service, sizeof(header->service), first);
	snprintf(header->trace_dir, sizeof(header->trace_dir), "%s", trace_dir);
	if (live)
		snprintf(header->boot_id, sizeof(header->boot_id), "live");
}

/* It answers at once whatever it is asked, with an error and the place that is at fault, or with what it made. */
static void fill_control(struct d9__ring_control *control)
{
	control->wanted_done = INT32_MAX & ~UINT32_C(0xff);
	control->rotate_done = control->dump_done = 1000;
	control->rotate_err = -13;
	control->dump.err = first & 1 ? 0 : -13;
	control->dump.events = 5;
	bad_text(control->dump.path, sizeof(bad), first);
}

static void fill_trigger(struct d9__ring_trigger *trigger)
{
	trigger->done = 1000;
	trigger->err = first & 1 ? 0 : -22;
	trigger->fired = 3;
	bad_text(trigger->answer, sizeof(bad), first);
}

static void fill_open(struct d9__ring_open *call, size_t from)
{
	call->since_ns = now_ns() - 5000 * MS;
	call->known = 1;
	bad_text(call->syscall, sizeof(call->syscall), from);
	bad_text(call->wchan, sizeof(call->wchan), from);
	bad_text(call->loc, sizeof(call->loc), from);
	bad_text(call->span, sizeof(call->span), from);
}

static void fill_health(struct d9__ring_health *health)
{
	char fact[sizeof(bad)];

	strcpy(fact, bad);
	for (char *p = fact; (p = strchr(p, '\n'));)
		*p = 'n';
	health->state = D9__STATE_PAUSED;
	health->state_since_ns = health->tick_ns = health->error_ns = now_ns();
	health->error = 13;
	health->error_count = 1;
	bad_text(health->error_op, sizeof(health->error_op), first);
	bad_text(health->clock_reason, sizeof(health->clock_reason), first);
	bad_text(health->segment, sizeof(health->segment), first);
	health->n_open = D9__RING_OPEN_MAX;
	for (size_t i = 0; i < D9__RING_OPEN_MAX; i++)
		fill_open(&health->open[i], first + 5 * i);
	if (snprintf(health->facts, sizeof(health->facts),
		 "program=%s\nring.fallback=%s\nloop.libev.refused=%s\nloop.libev.degraded=%s\nloop.libev.version=%s\n"
		 "loop.libev.capabilities=%s\nloop.%s.capabilities=x\n%s=x\n", fact, fact, fact, fact, fact, fact, fact,
		 fact) >= (int)sizeof(health->facts))
		exit(99);
}

static void fill_notes(struct d9__notes *notes)
{
	char text[D9__NOTE_TEXT + 1];

	for (size_t i = 0; i < 8; i++) {
		bad_text(text, sizeof(text), first + 5 * i);
		d9__note(D9_LOG_WARNING, "%s", text);
	}
	d9__notes_copy(notes);
}

static int make_ring(const char *path, const char *trace_dir, bool live)
{
	static struct d9__ring_header header;
	static struct d9__notes notes;
	static struct d9__ring_health health;
	static struct d9__ring_control control;
	static struct d9__ring_trigger trigger;
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	char c;

	fill_header(&header, trace_dir, live);
	fill_health(&health);
	fill_control(&control);
	fill_trigger(&trigger);
	fill_notes(&notes);
	if (fd < 0 || ftruncate(fd, D9__RING_CHUNKS_AT) ||
	    pwrite(fd, &header, sizeof(header), 0) != (ssize_t)sizeof(header) ||
	    pwrite(fd, &control, sizeof(control), D9__RING_CONTROL_AT) != (ssize_t)sizeof(control) ||
	    pwrite(fd, &trigger, sizeof(trigger), D9__RING_TRIGGER_AT) != (ssize_t)sizeof(trigger) ||
	    pwrite(fd, &notes, sizeof(notes), D9__RING_NOTES_AT) != (ssize_t)sizeof(notes) ||
	    pwrite(fd, &health, sizeof(health), D9__RING_HEALTH_AT) != (ssize_t)sizeof(health)) {
		perror(path);
		return 2;
	}
	if (live) {
		/* So that it is found where a recorder's ring is, and taken for one at work. */
		prctl(PR_SET_NAME, "dial9-flush");
		flock(fd, LOCK_EX);
		puts("ready");
		fflush(stdout);
		while (read(STDIN_FILENO, &c, 1) > 0)
			;
	}
	return 0;
}

int main(int argc, char **argv)
{
	const char *kind = argc > 1 ? argv[1] : "";

	first = argc > 3 ? strtoul(argv[argc - 1], NULL, 10) : 0;
	bad_text(bad, sizeof(bad), first);
	if (!strcmp(kind, "recent"))
		origin_ns = now_ns();
	if ((!strcmp(kind, "trace") || !strcmp(kind, "recent")) && argc == 4)
		return make_trace(argv[2]);
	if ((!strcmp(kind, "ring") || !strcmp(kind, "live")) && argc == 5)
		return make_ring(argv[2], argv[3], !strcmp(kind, "live"));
	fputs("usage: make_hostile trace|recent FILE FIRST | ring|live FILE TRACE-DIR FIRST\n", stderr);
	return 2;
}
