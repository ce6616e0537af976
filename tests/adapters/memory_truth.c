/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory_truth TRACE < TRUTH: whether a trace in which everything was sampled tells the truth, which is lines
 * "WHO SIZE ALLOCATED FREED", WHO being a process: the one that allocated MARK_MAIN or MARK_CHILD bytes; what others did,
 * shells for example, is of no account.  Every FreeEvent must be of an allocation that is live.  Says what is wrong; 0 if
 * nothing is.
 */
#include "config.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <dial9/reader.h>

#define SIZES	   256
#define BLOCKS_MAX 400000
#define PROCESSES  8
#define MARK_MAIN  6029
#define MARK_CHILD 5003

struct size {
	uint64_t size;
	long allocated, freed;
};

static struct block {
	uint64_t address, ns;
	unsigned process;
	bool live;
} *blocks;

static struct {
	char folder[4096];
	struct size sizes[SIZES];
	size_t n;
} processes[PROCESSES];

static size_t n_blocks;
static long wrong;

static struct size *size_of(unsigned process, uint64_t size)
{
	size_t i = 0;

	while (i < processes[process].n && processes[process].sizes[i].size != size)
		i++;
	if (i == SIZES)
		exit(99);
	if (i == processes[process].n)
		processes[process].sizes[processes[process].n++].size = size;
	return &processes[process].sizes[i];
}

static void allocated(unsigned process, const struct d9_event *event)
{
	uint64_t address = d9_event_known_u64(event, D9_ALLOC_ADDR, 0);
	const struct d9_value *stack = d9_event_known(event, D9_ALLOC_CALLCHAIN);

	if (n_blocks == BLOCKS_MAX)
		exit(99);
	blocks[n_blocks++] = (struct block){ address, event->timestamp_ns, process, true };
	size_of(process, d9_event_known_u64(event, D9_ALLOC_SIZE, 0))->allocated++;
	if (!stack || !stack->present || stack->unresolved || stack->u.stack.n < 2) {
		printf("an allocation without a stack\n");
		wrong++;
	}
}

static void freed(unsigned process, const struct d9_event *event)
{
	uint64_t address = d9_event_known_u64(event, D9_FREE_ADDR, 0);
	uint64_t ns = d9_event_known_u64(event, D9_FREE_ALLOC_TIMESTAMP_NS, 0);

	for (size_t i = n_blocks; i-- > 0;) {
		if (blocks[i].address != address || !blocks[i].live || blocks[i].process != process)
			continue;
		if (blocks[i].ns != ns)
			break;
		blocks[i].live = false;
		size_of(process, d9_event_known_u64(event, D9_FREE_SIZE, 0))->freed++;
		return;
	}
	printf("a free of %llu bytes at %llx without its allocation\n",
	       (unsigned long long)d9_event_known_u64(event, D9_FREE_SIZE, 0), (unsigned long long)address);
	wrong++;
}

/* Processes have directories of their own. */
static unsigned process_of(const struct d9_reader *reader, const struct d9_event *event)
{
	struct d9_segment_info info;
	unsigned i = 0;
	size_t len;

	if (d9_reader_segment(reader, event->segment, &info) || !info.path)
		exit(99);
	len = (size_t)(strrchr(info.path, '/') - info.path);
	while (i < PROCESSES && processes[i].folder[0] &&
	       (strlen(processes[i].folder) != len || strncmp(processes[i].folder, info.path, len) != 0))
		i++;
	if (i == PROCESSES)
		exit(99);
	snprintf(processes[i].folder, sizeof(processes[i].folder), "%.*s", (int)len, info.path);
	return i;
}

static unsigned process_with(uint64_t mark)
{
	for (unsigned i = 0; i < PROCESSES; i++)
		if (size_of(i, mark)->allocated)
			return i;
	printf("nobody allocated %llu bytes\n", (unsigned long long)mark);
	exit(1);
}

static void compare(void)
{
	char who[16];
	unsigned long long size;
	long a, f;

	while (scanf("%15s %llu %ld %ld", who, &size, &a, &f) == 4) {
		const struct size *seen = size_of(process_with(!strcmp(who, "child") ? MARK_CHILD : MARK_MAIN), size);

		if (seen->allocated == a && seen->freed == f)
			continue;
		printf("%s, %llu bytes: %ld allocated and %ld freed, and recorded %ld and %ld\n", who, size, a, f,
		       seen->allocated, seen->freed);
		wrong++;
	}
}

int main(int argc, char **argv)
{
	const struct d9_event *event;
	struct d9_reader *reader;

	blocks = calloc(BLOCKS_MAX, sizeof(*blocks));
	if (argc != 2 || !blocks || d9_reader_new(&reader) || d9_reader_add(reader, argv[1]))
		return 99;
	while (d9_reader_next(reader, &event) == 1) {
		unsigned process;

		if (event->kind == D9_EVENT_MEMORY_OVERFLOW) {
			printf("samples were lost\n");
			wrong++;
		}
		if (event->kind != D9_EVENT_ALLOC && event->kind != D9_EVENT_FREE)
			continue;
		process = process_of(reader, event);
		if (event->kind == D9_EVENT_ALLOC)
			allocated(process, event);
		else
			freed(process, event);
	}
	compare();
	d9_reader_free(reader);
	free(blocks);
	return wrong != 0;
}
