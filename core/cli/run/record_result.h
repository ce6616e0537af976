/* SPDX-License-Identifier: Apache-2.0 */
/* `dial9 record`: the result of a run, read from the trace directory. */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The sub-directories of a trace directory, one per recorded process. */
struct d9__namespaces {
	char **names;
	size_t n;
};

/* A loop library that nothing is recorded of, and why: loop.LIBRARY.refused. */
struct d9__refusal {
	char library[32], version[64], reason[128];
};

#define D9__REFUSALS_MAX 4

/* A program in which no recorder could start. */
struct d9__failure {
	int err; /* errno; 0: there is none */
	char service[64];
};

/* The result of a run: the directories of new processes, and the events in them. */
struct d9__record_result {
	size_t processes;
	size_t living; /* of them, still recording: daemons */
	bool alone;	/* the trace directory holds nothing else */
	char **paths;	/* of the new processes, NULL-ended; |processes| of them */
	uint64_t bytes;
	bool counted; /* false: too much to count in passing */
	uint64_t events;
	bool active; /* not all of them are the recorder's own */
	char ring_fallback[96]; /* why a ring is not where it should be; empty: none */
	char ended[128];	/* when recording did, if that was before the program: recorder.ended */
	char no_samples[256];	/* why there are none; "": there are, or none were asked for */
	char no_allocations[256]; /* the same of allocations, which are a fault wherever this is told */
	bool backend_asked;	  /* --cpu-backend was given: then a lack of samples is an error */
	struct d9__refusal refusals[D9__REFUSALS_MAX];
	size_t n_refusals;
};

/* 0, -ENOMEM, or an error of opendir(3); none at all if |dir| does not exist. */
int d9__namespaces_list(const char *dir, struct d9__namespaces *out);
bool d9__namespaces_hold(const struct d9__namespaces *namespaces, const char *name);
void d9__namespaces_release(struct d9__namespaces *namespaces);

/* Read, and remove, the file that a recorder which could not start left in |dir|. */
void d9__failure_take(const char *dir, struct d9__failure *out);

/* Collect what |dir| holds beside |before|.  0 or -errno. */
int d9__record_result_collect(const char *dir, const struct d9__namespaces *before,
			      struct d9__record_result *out);

/* Nothing that a loop, or the program itself, did is in it. */
static inline bool d9__record_result_is_empty(const struct d9__record_result *result)
{
	return result->counted && !result->active;
}

void d9__record_result_release(struct d9__record_result *result);
