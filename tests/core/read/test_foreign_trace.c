/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A trace recorded by the original dial9, with counts and time sums found by two other decoders.
 * Not part of this package: D9_FOREIGN_TRACE names it, or it lies beside the source tree.
 */
#include "config.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

#include <dial9/reader.h>

#include "support/d9_test.h"
#include "support/trace_builder.h"

#define PATH     "test_foreign_trace.tmp"
#define EVENTS   210639
#define FIRST_NS UINT64_C(503226130327903) /* scheduler events */
#define LAST_NS  UINT64_C(503230841712017)

static const char *foreign;
static struct trace unpacked;

static const struct expected {
	const char *name; /* begins with this, and */
	const char *part; /* contains this, if any */
	uint64_t n, times;
} table[] = {
	{ "ClockSyncEvent", NULL, 2, UINT64_C(1006453175381224) },
	{ "SegmentMetadataEvent", NULL, 1, UINT64_C(503227142951152) },
	{ "PollStartEvent", NULL, 36801, UINT64_C(72619042442416090) },
	{ "PollEndEvent", NULL, 36801, UINT64_C(72619043725596130) },
	{ "WorkerParkEvent", NULL, 6304, UINT64_C(3172356619077042150) },
	{ "WorkerUnparkEvent", NULL, 6304, UINT64_C(3172356627150536626) },
	{ "QueueSampleEvent", NULL, 464, UINT64_C(233498018109115997) },
	{ "WakeEventEvent", NULL, 35552, UINT64_C(17890829804992038949) },
	{ "TaskSpawnEvent", NULL, 262, UINT64_C(131846153571159579) },
	{ "TaskTerminateEvent", NULL, 359, UINT64_C(180659661133003447) },
	{ "CpuSampleEvent", NULL, 6949, UINT64_C(3496939722625300362) },
	{ "TaskDumpEvent", NULL, 12952, UINT64_C(6517833758028625841) },
	{ "SymbolTableEntry", NULL, 992, 0 },
	{ "SpanCloseEvent", NULL, 9890, UINT64_C(4976944160872897902) },
	{ "SpanEnter", "routes::record_metric", 16483, UINT64_C(8294739099090139601) },
	{ "SpanExit", "routes::record_metric", 16483, UINT64_C(8294739099109922910) },
	{ "SpanEnter", "routes::query_metric", 5927, UINT64_C(2982643639724380766) },
	{ "SpanExit", "routes::query_metric", 5927, UINT64_C(2982643640078462185) },
	{ "SpanEnter", "ddb::query_metric", 5927, UINT64_C(2982643639729074161) },
	{ "SpanExit", "ddb::query_metric", 5927, UINT64_C(2982643640069148788) },
	{ "SpanEnter", "buffer::flush_to_ddb", 72, UINT64_C(36232507254587340) },
	{ "SpanExit", "buffer::flush_to_ddb", 72, UINT64_C(36232507258024758) },
	{ "SpanEnter", "buffer::put_aggregate", 94, UINT64_C(47303550452464932) },
	{ "SpanExit", "buffer::put_aggregate", 94, UINT64_C(47303550455629550) },
};
#define N_TYPES (sizeof(table) / sizeof(table[0]))

struct tally {
	uint64_t n[N_TYPES], times[N_TYPES];
	uint64_t events, first_ns, last_ns, backwards, latest_ns;
	uint64_t addresses, cpu_ns, local_queue;
	struct d9_segment_info info;
};

static void count_type(struct tally *tally, const struct d9_event *event)
{
	const char *name = d9_event_name(event);

	for (size_t i = 0; i < N_TYPES; i++) {
		if (strncmp(name, table[i].name, strlen(table[i].name)) != 0 ||
		    (table[i].part && !strstr(name, table[i].part)))
			continue;
		tally->n[i]++;
		tally->times[i] += event->timestamp_ns;
		return;
	}
	CU_FAIL("an event that is not in the table");
}

static bool is_scheduler_event(enum d9_event_kind kind)
{
	return kind == D9_EVENT_POLL_START || kind == D9_EVENT_POLL_END ||
	       kind == D9_EVENT_WORKER_PARK || kind == D9_EVENT_WORKER_UNPARK ||
	       kind == D9_EVENT_QUEUE_SAMPLE || kind == D9_EVENT_WAKE;
}

static void count_event(struct tally *tally, const struct d9_event *event)
{
	const struct d9_value *stack;

	tally->events++;
	tally->backwards += event->timestamp_ns < tally->latest_ns;
	tally->latest_ns = event->timestamp_ns;
	count_type(tally, event);
	if (is_scheduler_event(event->kind)) {
		if (!tally->first_ns || event->timestamp_ns < tally->first_ns)
			tally->first_ns = event->timestamp_ns;
		if (event->timestamp_ns > tally->last_ns)
			tally->last_ns = event->timestamp_ns;
	}
	stack = event->kind == D9_EVENT_CPU_SAMPLE ? d9_event_known(event, D9_CPU_SAMPLE_CALLCHAIN)
						   : NULL;
	tally->addresses += stack ? stack->u.stack.n : 0;
	if (event->kind == D9_EVENT_WORKER_PARK)
		tally->cpu_ns += d9_event_known_u64(event, D9_WORKER_PARK_CPU_TIME_NS, 0);
	if (event->kind == D9_EVENT_POLL_START)
		tally->local_queue += d9_event_known_u64(event, D9_POLL_START_LOCAL_QUEUE, 0);
}

static struct tally read_trace(const char *path, bool file_order)
{
	const struct d9_event *event;
	struct d9_reader *reader = NULL;
	struct tally tally = { 0 };
	int got;

	CU_ASSERT_EQUAL_FATAL(d9_reader_new(&reader), 0);
	d9_reader_set_file_order(reader, file_order);
	CU_ASSERT_EQUAL(d9_reader_add(reader, path), 0);
	while ((got = d9_reader_next(reader, &event)) == 1)
		count_event(&tally, event);
	CU_ASSERT_EQUAL(got, 0);
	d9_reader_segment(reader, 0, &tally.info);
	CU_ASSERT_EQUAL(tally.info.err, 0);
	tally.info.path = tally.info.message = NULL;
	d9_reader_free(reader);
	return tally;
}

/* |times| copies of the trace one after another. */
static void check(const struct tally *tally, uint64_t times, bool file_order)
{
	for (size_t i = 0; i < N_TYPES; i++) {
		CU_ASSERT_EQUAL(tally->n[i], table[i].n * times);
		CU_ASSERT_EQUAL(tally->times[i], table[i].times * times);
	}
	CU_ASSERT_EQUAL(tally->events, EVENTS * times);
	CU_ASSERT_EQUAL(tally->info.events, EVENTS * times);
	CU_ASSERT_EQUAL(tally->info.batches, 14 * times);
	CU_ASSERT_EQUAL(tally->info.unusable, 0);
	CU_ASSERT_EQUAL(tally->info.unresolved, 0);
	CU_ASSERT_EQUAL(tally->first_ns, FIRST_NS);
	CU_ASSERT_EQUAL(tally->last_ns, LAST_NS);
	CU_ASSERT_EQUAL(tally->addresses, 148742 * times);
	CU_ASSERT_EQUAL(tally->cpu_ns, UINT64_C(1475549144711) * times);
	CU_ASSERT_EQUAL(tally->local_queue, 127124 * times);
	CU_ASSERT(file_order || tally->backwards == 0);
}

static void check_packed(const char *container, uint64_t times)
{
	struct trace t = { 0 };

	for (uint64_t i = 0; i < times; i++)
		trace_bytes(&t, unpacked.data, unpacked.len);
	trace_save(&t, PATH, container);
	trace_free(&t);
	for (int file_order = 0; file_order < 2; file_order++) {
		struct tally tally = read_trace(PATH, file_order);

		CU_ASSERT_STRING_EQUAL(tally.info.container, container);
		CU_ASSERT_EQUAL(tally.info.unpacked_bytes, times * UINT64_C(4047237));
		check(&tally, times, file_order);
	}
	unlink(PATH);
}

static void test_foreign_trace_as_it_is(void)
{
	struct tally tally = read_trace(foreign, false);

	check(&tally, 1, false);
}

static void test_foreign_trace_in_every_packing(void)
{
	check_packed("plain", 1);
	check_packed("gzip", 1);
	check_packed("zstd", 1);
}

static void test_foreign_trace_twice_in_one_file(void)
{
	check_packed("plain", 2);
	check_packed("gzip", 2);
	check_packed("zstd", 2);
}

/* Standard input becomes a pipe, or the file itself. */
static struct tally read_stdin(bool pipe_it, bool file_order)
{
	int keep = dup(STDIN_FILENO), fd = open(foreign, O_RDONLY), ends[2];
	struct tally tally;
	pid_t writer = 0;

	if (pipe_it) {
		CU_ASSERT_EQUAL_FATAL(pipe(ends), 0);
		writer = fork();
		if (writer == 0) {
			char buf[10000];
			ssize_t n;

			close(ends[0]);
			while ((n = read(fd, buf, sizeof(buf))) > 0)
				if (write(ends[1], buf, (size_t)n) != n)
					_exit(1);
			_exit(0);
		}
		close(ends[1]);
		close(fd);
		fd = ends[0];
	}
	dup2(fd, STDIN_FILENO);
	close(fd);
	tally = read_trace("-", file_order);
	if (writer)
		waitpid(writer, NULL, 0);
	dup2(keep, STDIN_FILENO);
	close(keep);
	return tally;
}

static void test_foreign_trace_through_standard_input(void)
{
	for (int i = 0; i < 4; i++) {
		struct tally tally = read_stdin(i & 1, i & 2);

		check(&tally, 1, i & 2);
	}
}

static void test_foreign_trace_cut_short_gives_the_events_before_the_cut(void)
{
	struct trace t = { 0 };
	struct tally tally;

	trace_bytes(&t, unpacked.data, 2229463 + 1000);
	trace_save(&t, PATH ".active", "plain");
	trace_free(&t);
	tally = read_trace(PATH ".active", false);
	unlink(PATH ".active");

	CU_ASSERT_TRUE(tally.info.truncated);
	CU_ASSERT(tally.info.err_offset > 2229463 && tally.info.err_offset <= 2229463 + 1000);
	CU_ASSERT_EQUAL(tally.info.batches, 9);
	/* The eight whole batches, and some of the ninth's 136 events. */
	CU_ASSERT(tally.events > 119485 && tally.events < 119485 + 136);
	CU_ASSERT_EQUAL(tally.backwards, 0);
}

static bool unpack(void)
{
	static char buf[1 << 16];
	gzFile file = gzopen(foreign, "rb");
	int n;

	while (file && (n = gzread(file, buf, sizeof(buf))) > 0)
		trace_bytes(&unpacked, buf, (size_t)n);
	if (file)
		gzclose(file);
	return unpacked.len > 0;
}

int main(void)
{
	static const CU_TestInfo tests[] = {
		{ "as it is", test_foreign_trace_as_it_is },
		{ "in every packing", test_foreign_trace_in_every_packing },
		{ "twice in one file", test_foreign_trace_twice_in_one_file },
		{ "through standard input", test_foreign_trace_through_standard_input },
		{ "cut short gives the events before the cut",
		  test_foreign_trace_cut_short_gives_the_events_before_the_cut },
		CU_TEST_INFO_NULL,
	};
	static char path[4096];
	const char *top = getenv("top_srcdir"), *named = getenv("D9_FOREIGN_TRACE");
	int failed;

	snprintf(path, sizeof(path), "%s/../shared/data/foreign-demo-trace.bin.gz",
		 top ? top : ".");
	foreign = named ? named : path;
	if (access(foreign, R_OK) != 0 || !unpack()) {
		printf("there is no %s; D9_FOREIGN_TRACE may name it\n", foreign);
		return 77;
	}
	failed = d9_test_main("foreign_trace", tests);
	trace_free(&unpacked);
	return failed;
}
