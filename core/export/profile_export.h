/* SPDX-License-Identifier: Apache-2.0 */
/* Profiles as files: the options that choose samples, where the file goes, and the formats. */

#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "export/profile.h"
#include "tool/args.h"

enum {
	D9__PROFILE_KIND = 512,
	D9__PROFILE_CALLBACK,
	D9__PROFILE_SPAN,
	D9__PROFILE_LOOP,
	D9__PROFILE_FROM,
	D9__PROFILE_TO,
	D9__PROFILE_MIN_DURATION,
	D9__PROFILE_BY,
	D9__PROFILE_WEIGHT,
	D9__PROFILE_OWN_FRAMES,
};

/* Rows of a command's table of options: no other may have 'w' or these keys. */
#define D9__PROFILE_OPTS                                                                           \
	{ D9__PROFILE_KIND, "kind", "K",                                                           \
	  "cpu, off-cpu, heap, live (heap, not freed) or idle (where idle tasks were armed) "      \
	  "[cpu]" },                                                                               \
		{ 'w', "worker", "N", "only samples of worker N" },                                \
		{ D9__PROFILE_LOOP, "loop", "NAME",                                                \
		  "only samples of the threads of the loop NAME" },                                \
		{ D9__PROFILE_CALLBACK, "callback", "NAME",                                        \
		  "only samples inside of the callback NAME; * and ? stand for others" },          \
		{ D9__PROFILE_SPAN, "span", "NAME", "only samples inside of spans called NAME" },  \
		{ D9__PROFILE_FROM, "from", "TIME",                                                \
		  "only samples from TIME after the first event on" },                             \
		{ D9__PROFILE_TO, "to", "TIME", "only samples up to TIME after the first event" }, \
		{ D9__PROFILE_MIN_DURATION, "min-duration", "DUR",                                 \
		  "only samples inside of calls of callbacks that took DUR or longer" },           \
		{ D9__PROFILE_BY, "by", "WHAT",                                                    \
		  "callback, worker, thread or span: the outermost frame" },                       \
		{ D9__PROFILE_WEIGHT, "weight", "W",                                               \
		  "samples, ns or bytes: what to count [what the kind is told in]" },              \
	{                                                                                          \
		D9__PROFILE_OWN_FRAMES, "own-frames", NULL, "with the recorder's own frames"       \
	}

struct d9__profile_options {
	struct d9__profile_filter wanted;
	const char *given; /* the name of one that was given; NULL: none was */
	bool raw;	   /* addresses are not named */
};

void d9__profile_options_init(struct d9__profile_options *options);

/* Take the option |key|, one of the rows; false after a line on stderr. */
bool d9__profile_options_take(struct d9__profile_options *options, const struct d9__args *args, int key);

/* Write |profile| to |out|; write errors stay in |out|.  0 or -ENOMEM. */
typedef int d9__profile_writer(struct d9__profile *profile, FILE *out);

struct d9__profile_target {
	const char *path; /* "-": standard output */
	bool gzip;
	d9__profile_writer *write;
	bool calls; /* are written, too */
};

/* Read |paths| and write |target|: the whole of a command behind its options.  The exit status. */
int d9__profile_export(const char *command, char **paths, const struct d9__profile_options *options,
		       const struct d9__profile_target *target);

/* "outermost;...;innermost COUNT", one line each stack. */
d9__profile_writer d9__export_folded;

/* For speedscope: the samples, and each worker's calls over time if the profile has them. */
d9__profile_writer d9__export_speedscope;

/* A profile for pprof, not yet packed. */
d9__profile_writer d9__export_pprof;
