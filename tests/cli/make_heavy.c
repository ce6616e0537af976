/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes small files that cost a reader much: make_heavy KIND N FILE [recent]; of "processes" FILE is the folder of N.  A
 * few bytes packed stand for N of
 * something that readers keep, so that what they may keep has to have a bound of its own.
 */
#include "config.h"

#include <elf.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "support/trace_builder.h"

enum { SYNC = 1, METADATA, START, END, PARK, UNPARK, WAKE, SPAWN, TERMINATE, SAMPLE, SYMBOL, MODULE, LOSS, ENTER, LEAVE, CLOSE, TASKS };

static uint64_t now = UINT64_C(5000000000);
static int anchored; /* the trace tells the time of day */

static void put_schemas(struct trace *t)
{
	trace_batch(t);
	if (anchored) {
		trace_builtin(t, SYNC, "ClockSyncEvent");
		trace_event(t, SYNC, now, UINT64_C(1790000000000000000) + now);
	}
	trace_builtin(t, METADATA, "SegmentMetadataEvent");
	trace_builtin(t, START, "PollStartEvent");
	trace_builtin(t, END, "PollEndEvent");
	trace_builtin(t, PARK, "WorkerParkEvent");
	trace_builtin(t, UNPARK, "WorkerUnparkEvent");
	trace_builtin(t, WAKE, "WakeEventEvent");
	trace_builtin(t, SPAWN, "TaskSpawnEvent");
	trace_schema(t, SAMPLE, "CpuSampleEvent", "worker_id:9 tid:13 source:11 thread_name:135 callchain:8 cpu:137");
	trace_schema(t, SYMBOL, "SymbolTableEntry",
		     "addr:9 size:9 symbol_name:4 inline_depth:9 source_file:4 source_line:9");
	trace_builtin_fields(t, MODULE, "ModuleEvent", "base start size path build_id unloaded");
	trace_schema(t, LOSS, "RecorderLossEvent", "tid:13 worker_id:9 cause:4 events:9 from_ns:9 to_ns:9");
	trace_schema(t, ENTER, "SpanEnter:x", "worker_id:9 span_id:9 parent_span_id:137 span_name:4 note:4");
	trace_schema(t, LEAVE, "SpanExit:x", "worker_id:9 span_id:9 span_name:4");
	trace_schema(t, TASKS, "LoopTasksEvent", "loop:4 tasks:9");
}

static void put_poll(struct trace *t, uint64_t worker, uint64_t task, uint64_t place)
{
	trace_event(t, START, now, worker, UINT64_C(0), task, place);
	trace_event(t, END, now + 10, worker);
	now += 20;
}

/* |n| polls of task 1. */
static void make_polls(struct trace *t, uint64_t n)
{
	put_schemas(t);
	for (uint64_t i = 0, place = trace_string(t, "f @ g"); i < n; i++)
		put_poll(t, 0, 1, place);
}

/* |n| polls of task 1, each longer than 10 ms and in a minute of its own. */
static void make_minutes(struct trace *t, uint64_t n)
{
	put_schemas(t);
	for (uint64_t i = 0, place = trace_string(t, "f @ g"); i < n; i++, now += UINT64_C(60000000000)) {
		trace_event(t, START, now, UINT64_C(0), UINT64_C(0), UINT64_C(1), place);
		trace_event(t, END, now + 20000000, UINT64_C(0));
	}
}

/* |n| wakes of task 1, and a poll. */
static void make_wakes(struct trace *t, uint64_t n)
{
	put_schemas(t);
	for (uint64_t i = 0; i < n; i++, now += 20)
		trace_event(t, WAKE, now, UINT64_C(0), UINT64_C(1), UINT64_C(0), UINT64_C(1));
	put_poll(t, 0, 1, trace_string(t, "f @ g"));
}

/* Polls of |n| tasks, none of which ends, woken before. */
static void make_tasks(struct trace *t, uint64_t n)
{
	put_schemas(t);
	for (uint64_t i = 0, place = trace_string(t, "f @ g"); i < n; i++) {
		trace_event(t, WAKE, now, UINT64_C(0), i + 1, UINT64_C(0), UINT64_C(1));
		put_poll(t, 0, i + 1, place);
	}
}

/* |n| names of |len| bytes, each with a poll. */
static void make_names(struct trace *t, uint64_t n, size_t len)
{
	char *name = malloc(len + 1);

	if (!name)
		exit(99);
	memset(name, 'n', len);
	name[len] = '\0';
	put_schemas(t);
	for (uint64_t i = 0; i < n; i++) {
		int head = snprintf(name, len, "f%llu @ g", (unsigned long long)i);

		name[head] = 'x';
		if (i && i % 256 == 0)
			put_schemas(t);
		put_poll(t, i % 4, i % 4 + 1 + 4 * i, trace_string(t, name));
	}
	free(name);
}

/* |n| batches that begin at once and last as long, each with a pool of a megabyte. */
static void make_overlaps(struct trace *t, uint64_t n)
{
	static char text[1 << 20];

	memset(text, 'x', sizeof(text) - 1);
	for (uint64_t i = 0; i < n; i++) {
		uint64_t begin = now + i, place;

		put_schemas(t);
		place = trace_string(t, text);
		trace_event(t, START, begin, i % 200, UINT64_C(0), i + 1, place);
		trace_event(t, END, begin + 1000000000, i % 200);
	}
}

static void make_modules(struct trace *t, uint64_t n)
{
	char path[64];

	put_schemas(t);
	for (uint64_t i = 0; i < n; i++) {
		snprintf(path, sizeof(path), "/nowhere/lib%llu.so", (unsigned long long)i);
		trace_event(t, MODULE, now + i, i << 20, i << 20, UINT64_C(1) << 20, path, "", UINT64_C(0));
		snprintf(path, sizeof(path), "lib%llu.so+0x10 @ lib0.so+0x20", (unsigned long long)i);
		if (i % 100 == 0)
			put_poll(t, 0, i + 1, trace_string(t, path));
	}
}

/* Rows of the trace's own symbols, or samples of |n| different stacks. */
static void make_symbols(struct trace *t, uint64_t n)
{
	char name[64];

	put_schemas(t);
	for (uint64_t i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "symbol_%llu", (unsigned long long)i);
		trace_event(t, SYMBOL, 0, i * 16, UINT64_C(16), name, UINT64_C(0), name, UINT64_C(7));
	}
}

static void make_stacks(struct trace *t, uint64_t n)
{
	put_schemas(t);
	for (uint64_t i = 0; i < n; i++) {
		trace_head(t, SAMPLE, now + i);
		trace_varint(t, 0);
		trace_uint(t, 1, 4);
		trace_uint(t, 0, 1);
		trace_uint(t, 0, 1);
		trace_uint(t, 64, 4);
		for (uint64_t k = 0; k < 64; k++)
			trace_uint(t, k ? k : i, 8);
		trace_uint(t, 0, 1);
	}
}

/* |n| spans that are entered and never closed, each of a name of its own if |types|. */
static void make_spans(struct trace *t, uint64_t n, int types)
{
	char name[64] = "span";

	put_schemas(t);
	for (uint64_t i = 0; i < n; i++) {
		if (types)
			snprintf(name, sizeof(name), "span_%llu", (unsigned long long)i);
		trace_event(t, ENTER, now + i, UINT64_C(0), i + 1, 0, name, name);
	}
}

static void make_metadata(struct trace *t, uint64_t n)
{
	char key[64];

	put_schemas(t);
	for (uint64_t i = 0; i < n; i += 1000) {
		trace_head(t, METADATA, now + i);
		trace_uint(t, 1000, 4);
		for (uint64_t k = 0; k < 1000; k++) {
			snprintf(key, sizeof(key), "loop.l%" PRIu64 ".capabilities", i + k);
			trace_text(t, key);
			trace_text(t, "poll=yes,park=no");
		}
	}
}

/* |n| loops with a number of tasks each, causes of loss, and workers. */
static void make_loops(struct trace *t, uint64_t n)
{
	char name[64];

	put_schemas(t);
	for (uint64_t i = 0, place = trace_string(t, "f @ g"); i < n; i++) {
		snprintf(name, sizeof(name), "loop %llu", (unsigned long long)i);
		trace_event(t, TASKS, now, name, i);
		trace_event(t, LOSS, now, UINT64_C(1), i, name, UINT64_C(1), now, now);
		trace_event(t, UNPARK, now, i, UINT64_C(0), UINT64_C(0), UINT64_C(0), i + 1);
		put_poll(t, i, i + 1, place);
	}
}

/* |n| types of events with forty fields, each with an event. */
static void make_types(struct trace *t, uint64_t n)
{
	char name[64], fields[1024] = "";

	for (int k = 0; k < 40; k++)
		sprintf(fields + strlen(fields), "%cf\033\033\033\033%d:9", k ? ' ' : 'g', k);
	for (uint64_t i = 0; i < n; i++) {
		if (i % 400 == 0)
			trace_batch(t);
		snprintf(name, sizeof(name), "Type%lluEvent", (unsigned long long)i);
		trace_schema(t, (unsigned)(i % 400) + 1, name, fields);
		trace_head(t, (unsigned)(i % 400) + 1, now + i);
		for (int k = 0; k < 40; k++)
			trace_varint(t, 0);
	}
}

/* Calls at both ends of all time. */
static void make_ends_of_time(struct trace *t)
{
	uint64_t place;

	put_schemas(t);
	place = trace_string(t, "f @ g");
	trace_event(t, START, 1, UINT64_C(0), UINT64_C(0), UINT64_C(1), place);
	trace_event(t, END, 2, UINT64_C(0));
	trace_event(t, START, UINT64_MAX - 5, UINT64_C(0), UINT64_C(0), UINT64_C(1), place);
	trace_event(t, END, UINT64_MAX - 1, UINT64_C(0));
}

/* A module that is a file of a gigabyte of symbols, which are a hole; it is made beside the trace. */
static void make_elf(struct trace *t, uint64_t bytes)
{
	Elf64_Ehdr head = { .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
			    .e_type = ET_DYN, .e_machine = EM_X86_64, .e_version = EV_CURRENT,
			    .e_shoff = sizeof(head), .e_ehsize = sizeof(head), .e_shentsize = sizeof(Elf64_Shdr),
			    .e_shnum = 3 };
	Elf64_Shdr sections[3] = {
		[1] = { .sh_type = SHT_SYMTAB, .sh_offset = 4096, .sh_size = bytes, .sh_link = 2,
			.sh_entsize = sizeof(Elf64_Sym) },
		[2] = { .sh_type = SHT_STRTAB, .sh_offset = 2048, .sh_size = 1 },
	};
	char path[4096];
	int fd = open("sparse.elf", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	if (fd < 0 || !realpath("sparse.elf", path) || ftruncate(fd, (off_t)(4096 + bytes)) ||
	    pwrite(fd, &head, sizeof(head), 0) != (ssize_t)sizeof(head) ||
	    pwrite(fd, sections, sizeof(sections), sizeof(head)) != (ssize_t)sizeof(sections))
		exit(99);
	put_schemas(t);
	trace_event(t, MODULE, now, UINT64_C(0), UINT64_C(0), UINT64_C(1) << 40, path, "", UINT64_C(0));
	put_poll(t, 0, 1, trace_string(t, "sparse.elf+0x10 @ sparse.elf+0x20"));
}

/* |n| files in the folder |path|, each of a process of its own. */
static int make_processes(uint64_t n, const char *path)
{
	char file[4096], boot_id[32];

	for (uint64_t i = 0; i < n; i++) {
		struct trace t = { 0 };

		snprintf(file, sizeof(file), "%s/trace.%" PRIu64 ".bin", path, i);
		snprintf(boot_id, sizeof(boot_id), "abcd-%" PRIu64, i);
		trace_batch(&t);
		trace_builtin(&t, METADATA, "SegmentMetadataEvent");
		trace_head(&t, METADATA, now + i);
		trace_uint(&t, 1, 4);
		trace_text(&t, "boot_id");
		trace_text(&t, boot_id);
		trace_save(&t, file, "plain");
		trace_free(&t);
	}
	return 0;
}

/* A process with |n| areas of memory that could hold a ring, until standard input ends. */
static int be_large(uint64_t n)
{
	const size_t size = 8 << 20;
	char c;

	for (uint64_t i = 0; i < n; i++) {
		char *area = mmap(NULL, size + 4096, PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

		/* What lies side by side would be one. */
		if (area == MAP_FAILED || mprotect(area + size, 4096, PROT_NONE))
			break;
	}
	prctl(PR_SET_NAME, "dial9-flush");
	puts("ready");
	fflush(stdout);
	while (read(STDIN_FILENO, &c, 1) > 0)
		;
	return 0;
}

int main(int argc, char **argv)
{
	struct trace t = { 0 };
	const char *kind = argc >= 4 ? argv[1] : "";
	struct timespec ts;
	uint64_t n = argc >= 4 ? strtoull(argv[2], NULL, 10) : 0;

	anchored = argc == 5 && !strcmp(argv[4], "anchored");
	if (argc == 5 && !anchored && !clock_gettime(CLOCK_MONOTONIC, &ts))
		now = (uint64_t)ts.tv_sec * UINT64_C(1000000000);
	if (!strcmp(kind, "polls"))
		make_polls(&t, n);
	else if (!strcmp(kind, "minutes"))
		make_minutes(&t, n);
	else if (!strcmp(kind, "wakes"))
		make_wakes(&t, n);
	else if (!strcmp(kind, "tasks"))
		make_tasks(&t, n);
	else if (!strcmp(kind, "names"))
		make_names(&t, n, 60000);
	else if (!strcmp(kind, "short-names"))
		make_names(&t, n, 32);
	else if (!strcmp(kind, "overlaps"))
		make_overlaps(&t, n);
	else if (!strcmp(kind, "modules"))
		make_modules(&t, n);
	else if (!strcmp(kind, "symbols"))
		make_symbols(&t, n);
	else if (!strcmp(kind, "stacks"))
		make_stacks(&t, n);
	else if (!strcmp(kind, "spans"))
		make_spans(&t, n, 0);
	else if (!strcmp(kind, "span-types"))
		make_spans(&t, n, 1);
	else if (!strcmp(kind, "metadata"))
		make_metadata(&t, n);
	else if (!strcmp(kind, "loops"))
		make_loops(&t, n);
	else if (!strcmp(kind, "types"))
		make_types(&t, n);
	else if (!strcmp(kind, "elf"))
		make_elf(&t, n);
	else if (!strcmp(kind, "areas"))
		return be_large(n);
	else if (!strcmp(kind, "processes"))
		return make_processes(n, argv[3]);
	else if (!strcmp(kind, "ends-of-time"))
		make_ends_of_time(&t);
	else {
		fputs("usage: make_heavy KIND N FILE [recent|anchored]\n", stderr);
		return 2;
	}
	trace_save(&t, argv[3], "zstd");
	trace_free(&t);
	return 0;
}
