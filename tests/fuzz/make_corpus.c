/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes the parts of the corpus that are not worked examples of the format: make_corpus DIR.
 * Run by hand when the corpus is to grow; the files are kept so that packed ones stay the same.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>

#include "support/trace_builder.h"

static void save(struct trace *t, const char *dir, const char *name, const char *container)
{
	char path[4096];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	trace_save(t, path, container);
}

static void add_polls(struct trace *t)
{
	trace_batch(t);
	trace_builtin(t, 1, "PollStartEvent");
	trace_builtin(t, 2, "PollEndEvent");
	trace_builtin(t, 3, "WakeEventEvent");
	trace_schema(t, 4, "!Timeless", "x:12");
	trace_string(t, "server+0x10 @ server+0x20");
	for (uint64_t i = 0; i < 6; i++) {
		uint64_t ns = 9000000000 + i * 30000000;

		trace_event(t, 1, ns, (uint64_t)0, i, i + 300, (uint64_t)0);
		trace_event(t, 3, ns - 5000, (uint64_t)0, i + 301, (uint64_t)0, (uint64_t)2);
		trace_event(t, 2, ns + 100, (uint64_t)0);
		trace_event(t, 4, 0, i);
	}
}

static void add_all_types(struct trace *t)
{
	static const uint64_t stack[] = { 0x7f0000001234, 0x400abc };

	trace_batch(t);
	trace_schema(t, 256, "AllTypes",
		     "a:1 b:2 c:3 d:4 e:5 f:6 g:7 i:9 k:11 l:12 m:13 n:141 o:132");
	trace_annotate(t, 256, 0, "unit", "us");
	trace_stack(t, 2, stack);
	trace_string(t, "pooled");
	trace_event(t, 256, 77, (int64_t)-5, 1.5, (uint64_t)1, "text", "bytes", (uint64_t)0,
		    (uint64_t)0, UINT64_MAX, (uint64_t)8, (uint64_t)16, (uint64_t)32, 1,
		    (uint64_t)33, 0);
	trace_schema(t, 257, "Containers", "h:8 j:10 l:14 m:15");
	trace_head(t, 257, 78);
	trace_bytes(t, "\1\0\0\0\x34\x12\0\0\0\0\0\0", 12);
	trace_bytes(t, "\1\0\0\0\1\0\0\0k\1\0\0\0v", 14);
	trace_bytes(t, "\2\0\0\0\x0b\5\x0e\1\0\0\0\x03\1", 13);
	trace_bytes(t, "\1\0\0\0\x04\1\0\0\0k\x0f\0\0\0\0", 15);
}

int main(int argc, char **argv)
{
	struct trace polls = { 0 }, types = { 0 };

	if (argc != 2)
		return 2;
	add_polls(&polls);
	add_all_types(&types);
	trace_bytes(&polls, types.data, types.len);
	save(&polls, argv[1], "polls_and_types.bin", "plain");
	save(&polls, argv[1], "polls_and_types.bin.gz", "gzip");
	save(&polls, argv[1], "polls_and_types.bin.zst", "zstd");
	trace_free(&polls);
	trace_free(&types);
	return 0;
}
