/* SPDX-License-Identifier: Apache-2.0 */
/* A trace in three lines: writes TRC 1 by hand, so that tests of readers need no recorder. */

#ifndef D9_TRACE_BUILDER_H
#define D9_TRACE_BUILDER_H

#include <stddef.h>
#include <stdint.h>

/*
 *	struct trace t = { 0 };
 *
 *	trace_batch(&t);
 *	trace_builtin(&t, 1, "PollEndEvent");
 *	trace_event(&t, 1, 5000, "u", 0);
 *	trace_save(&t, "some.bin", "plain");
 *	trace_free(&t);
 *
 * Out of memory or a wrong call ends the program: it is a test.
 */
struct trace {
	uint8_t *data;
	size_t len, size;
	uint64_t base_ns;
	uint32_t strings, stacks; /* next pool ids */
	char fields[512][64];     /* type tags of each schema, by type id */
	size_t n_fields[512];
	int has_time[512];
};

/* A header: everything defined before is forgotten. */
void trace_batch(struct trace *t);

/* |fields|: "worker_id:9 local_queue:11", decimal tags.  A name with a "!" first has no time. */
void trace_schema(struct trace *t, unsigned type_id, const char *name, const char *fields);

/* The built-in event |name| as the recorder writes it; or with some of its fields, "worker_id task_id", as another does. */
void trace_builtin(struct trace *t, unsigned type_id, const char *name);
void trace_builtin_fields(struct trace *t, unsigned type_id, const char *name, const char *fields);

/* The annotation |key| = |value| of field |field|. */
void trace_annotate(struct trace *t, unsigned type_id, unsigned field, const char *key,
		    const char *value);

/* Add to the pools; the id. */
uint32_t trace_string(struct trace *t, const char *text);
uint32_t trace_stack(struct trace *t, size_t n, const uint64_t *addresses);

/*
 * An event of |type_id| at |ns|, with a reset where one is needed.  One argument per field, by
 * its type: integers of all widths, pool ids and Bool as uint64_t; I64 as int64_t; F64 as double;
 * String and Bytes as const char *; an optional field is preceded by an int, 1 or 0, and has no
 * argument if that is 0.  Other types: write them with trace_bytes() after trace_head().
 */
void trace_event(struct trace *t, unsigned type_id, uint64_t ns, ...);

/* The beginning of an event alone. */
void trace_head(struct trace *t, unsigned type_id, uint64_t ns);

/* Raw pieces. */
void trace_bytes(struct trace *t, const void *bytes, size_t len);
void trace_uint(struct trace *t, uint64_t n, size_t bytes);
void trace_varint(struct trace *t, uint64_t n);
void trace_text(struct trace *t, const char *text); /* u32 length, bytes */

/* Write it packed as "plain", "gzip", "zstd" or "raw", which is zstd, too. */
void trace_save(const struct trace *t, const char *path, const char *container);

void trace_free(struct trace *t);

#endif /* D9_TRACE_BUILDER_H */
