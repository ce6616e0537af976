/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How fast traces are read.  A stream as the recorder writes it, chunks of 64 KiB with polls,
 * wakes and parks of four workers, is decoded in memory:
 *
 *	frames    the decoder alone: every event passed, its time and type known
 *	values    and all its fields decoded
 *	reader    a file, through <dial9/reader.h>, in time order
 *
 * All in time of this thread's CPU.
 */
#include "config.h"

#include <inttypes.h>
#include <unistd.h>

#include <dial9/reader.h>

#include "bench/bench.h"
#include "format/values.h"
#include "support/trace_builder.h"

#define CHUNKS       320
#define CHUNK_BYTES  65536
#define ROUNDS       7
#define BUDGET       30 /* M events/s */
#define WORKERS      4

enum { START = 1, END, PARK, UNPARK, WAKE };

static void define_events(struct trace *t)
{
	trace_batch(t);
	trace_builtin(t, START, "PollStartEvent");
	trace_builtin(t, END, "PollEndEvent");
	trace_builtin(t, PARK, "WorkerParkEvent");
	trace_builtin(t, UNPARK, "WorkerUnparkEvent");
	trace_builtin(t, WAKE, "WakeEventEvent");
	for (int i = 0; i < 20; i++)
		trace_string(t, "server+0x12340 @ server+0x45670");
}

/* One round of a loop: unpark, four wakes and polls, park. */
static uint64_t add_round(struct trace *t, uint64_t ns, uint64_t worker, uint64_t round)
{
	trace_event(t, UNPARK, ns, worker, (uint64_t)0, ns / 7, (uint64_t)0, 4000 + worker);
	for (uint64_t k = 0; k < 4; k++) {
		uint64_t task = (round * 7 + k * 13) % 3000 + 1;

		trace_event(t, WAKE, ns += 30, (uint64_t)0, task, worker, (uint64_t)1);
		trace_event(t, START, ns += 40, worker, (uint64_t)(4 - k), task, task % 20);
		trace_event(t, END, ns += 900 + task * 3, worker);
	}
	ns += 50;
	trace_event(t, PARK, ns, worker, (uint64_t)0, ns / 7, 4000 + worker);
	return ns + 20000;
}

static void build_trace(struct trace *t)
{
	uint64_t ns[WORKERS] = { 5000000000000, 5000000000100, 5000000000200, 5000000000300 };
	struct trace chunk = { 0 };

	for (uint64_t i = 0; i < CHUNKS; i++) {
		uint64_t worker = i % WORKERS;

		chunk.len = 0;
		define_events(&chunk);
		for (uint64_t round = 0; chunk.len < CHUNK_BYTES - 200; round++)
			ns[worker] = add_round(&chunk, ns[worker], worker, round);
		trace_bytes(t, chunk.data, chunk.len);
	}
	trace_free(&chunk);
}

static uint64_t decode(const struct trace *t, bool with_values, uint64_t *check)
{
	struct d9__definitions set = { 0 };
	struct d9__decoder decoder;
	struct d9__values values = { 0 };
	struct d9__cursor in = { t->data, t->data + t->len, 0 };
	struct d9__frame frame;
	uint64_t n = 0, sum = 0;

	d9__decoder_init(&decoder, &set, 0);
	while (d9__decoder_next(&decoder, &in, &frame) == 1) {
		if (frame.kind != D9__FRAME_EVENT)
			continue;
		n++;
		sum += frame.timestamp_ns;
		if (with_values && d9__values_build(&values, &decoder, &frame) == 0)
			sum += values.items[0].u.u64;
	}
	*check += sum;
	d9__values_release(&values);
	d9__decoder_release(&decoder);
	d9__definitions_release(&set);
	return n;
}

static uint64_t read_file(const char *path, uint64_t *check)
{
	const struct d9_event *event;
	struct d9_reader *reader;
	uint64_t n = 0;

	if (d9_reader_new(&reader) != 0)
		return 0;
	if (d9_reader_add(reader, path) == 0)
		while (d9_reader_next(reader, &event) == 1) {
			n++;
			*check += d9_event_known_u64(event, 0, 0);
		}
	d9_reader_free(reader);
	return n;
}

static void measure(const char *what, const struct trace *t, int mode, const char *path,
		    double budget, uint64_t *check)
{
	double rates[ROUNDS];

	for (int i = 0; i < ROUNDS; i++) {
		double start = bench_cpu_ns();
		uint64_t n = path ? read_file(path, check) : decode(t, mode == 1, check);

		rates[i] = (double)n * 1e3 / (bench_cpu_ns() - start);
	}
	bench_value(what, "M events/s", rates, ROUNDS, -budget);
}

int main(void)
{
	static const char *const packings[] = { "plain", "gzip", "zstd" };
	char path[] = "/tmp/bench_read.XXXXXX", what[64];
	int fd = mkstemp(path);
	struct trace t = { 0 };
	uint64_t check = 0;

	if (fd < 0)
		return 2;
	close(fd);
	build_trace(&t);
	measure("decoding, types and times", &t, 0, NULL, 0, &check);
	measure("decoding, values", &t, 1, NULL, 0, &check);
	for (int i = 0; i < 3; i++) {
		trace_save(&t, path, packings[i]);
		snprintf(what, sizeof(what), "reading in time order, %s", packings[i]);
		measure(what, &t, 0, path, i == 2 ? BUDGET : 0, &check);
	}
	unlink(path);
	trace_free(&t);
	printf("check %" PRIx64 "\n", check);
	return 0;
}
