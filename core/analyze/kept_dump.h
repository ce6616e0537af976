/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kept dump: what the manifest of a dump tells (dump.ID.json, beside the segments that it lists), and what of it is there.
 * The reader does not trust it: any user who may write to the directory can write one.  It takes names of segments in that
 * directory only.
 */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct json_object;

/* Texts are borrowed from |json|; times are ns since 1970. */
struct d9__kept_fire {
	const char *trigger, *condition;
	uint64_t threshold, value, ns;
};

struct d9__kept_segment {
	const char *name; /* as the manifest has it: that of a segment, without a folder */
	char *path;	  /* where it is, also while it is being written */
	bool missing;	  /* there is no such file; a link is none */
	uint64_t bytes;
};

enum d9__kept_state {
	D9__KEPT_OPEN,	 /* its window is */
	D9__KEPT_CLOSED, /* all is there that will be */
	D9__KEPT_FAILED, /* it could not be written, or not all of it */
};

struct d9__kept_dump {
	struct json_object *json; /* owned */
	char *path;		  /* of the manifest; owned */
	const char *id, *trigger;
	const char *error; /* NULL: none */
	enum d9__kept_state state;
	bool complete; /* nothing was lost in it */
	uint64_t fired_ns, from_ns, to_ns;
	struct d9__kept_fire *fired; /* owned */
	size_t n_fired;
	uint64_t fired_count; /* at least |n_fired| */
	uint64_t suppressed;  /* firings before it that made no dump */
	struct d9__kept_segment *segments; /* each once; owned */
	size_t n_segments, n_missing;
	uint64_t n_unlisted; /* that it has no place for */
	uint64_t bytes;		/* of what is there */
	struct json_object *pairs; /* borrowed from |json|, see d9__kept_dump_pairs() */
};

/* "open", "closed", "failed", as manifests have it. */
const char *d9__kept_state_name(enum d9__kept_state state);

/* Whether a file is called as manifests are: dump.*.json. */
bool d9__kept_dump_is_name(const char *name);

/* Whether |path| is meant to be a manifest: a file that is called so or begins as JSON does, and no trace begins so. */
bool d9__kept_dump_is(const char *path);

/*
 * Parse |text|, without a look at any file.  0, -EBADMSG or -ENOMEM; then |*why| tells what is wrong, for the caller to
 * free, or is NULL, and |dump| is to be released all the same.
 */
int d9__kept_dump_parse(struct d9__kept_dump *dump, const char *text, size_t len, char **why);

/*
 * Read the manifest |path| and look which of its segments are there.  |follow|: |path| may be a link, and the segments are
 * beside what it leads to.  An open one of a program that has ended counts as failed, and lists what was recovered of it.
 * As d9__kept_dump_parse(), or an error of open(2) or read(2).
 */
int d9__kept_dump_load(struct d9__kept_dump *dump, const char *path, bool follow, char **why);

/* Call |fn| with each pair of its trigger. */
typedef void d9__kept_pair_fn(void *arg, const char *key, const char *value);
void d9__kept_dump_pairs(const struct d9__kept_dump *dump, d9__kept_pair_fn *fn, void *arg);

void d9__kept_dump_release(struct d9__kept_dump *dump);

/* "40.2 ms > 30.0 ms", "12 > 10", "1200/s > 1000/s"; "" of one that measures nothing. */
void d9__kept_fire_measure(const struct d9__kept_fire *fire, char *out, size_t size);

/* "ns", "count" or "per_second", by the condition; "" of one that measures nothing. */
const char *d9__kept_fire_unit(const struct d9__kept_fire *fire);
