/* SPDX-License-Identifier: Apache-2.0 */
/* Finding: a fault that a trace shows, and the functions by which a check makes one. */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analyze/analysis.h"
#include "base/time.h"

enum d9__severity {
	D9__CRITICAL,
	D9__WARNING,
	D9__INFO,
	D9__SEVERITIES
};

/* "critical", "warning", "info". */
const char *d9__severity_name(enum d9__severity severity);

/* The subject of a check.  Consequences stand under causes of the same. */
enum d9__about {
	D9__ABOUT_DATA,	 /* how far all other findings can be trusted */
	D9__ABOUT_TIME,	 /* what has the loop, and who waits for it */
	D9__ABOUT_WAKES, /* loops that are woken for little, or not when they should */
	D9__ABOUT_KEPT,	 /* tasks, memory, descriptors that only grow */
	D9__ABOUT_REST,
	D9__ABOUT_RECORDING /* what it lacks, and no figure is wrong by it */
};

/* One observation behind a finding.  Zero fields: not said. */
struct d9__evidence {
	char *text; /* without time and place */
	uint64_t at_ns, duration_ns;
	bool has_worker;
	uint64_t worker, task;
	const struct d9__callback *callback;
};

#define D9__EVIDENCE_MAX 12
#define D9__EFFECTS_MAX  8

/*
 * One cause, one finding: what follows from it is kept under it.  A check that finds a consequence
 * (a late timer, waits, a backlog) names the callback whose doing it is, d9__finding_set_effect();
 * when all checks have run, those whose callback has a finding of its own become effects of that
 * one.
 */
struct d9__finding {
	const char *check; /* stable id, "long-callback" */
	unsigned rank;	   /* of the check: causes before consequences */
	/*
	 * among findings of one severity: that of its check, or of one that tells of the same time
	 */
	unsigned place;
	enum d9__about about;
	enum d9__severity severity;
	uint64_t impact;     /* larger first, among findings of one place and severity */
	char *message;       /* one sentence */
	char *name;          /* the function, span or loop it is about, or NULL */
	/* "182 ms": the first in |brief| that has a unit, which the card shows; or NULL */
	char *figure;
	/* |message| in a verb phrase without the name, at most 70 characters, or NULL */
	char *brief;
	/* "83 % in render_row (svc.c:88)": where its callback was found on the CPU; or NULL */
	char *hot;
	/* "62 % on CPU, 38 % blocked in fsync": its callback's longest calls; or NULL */
	char *time;
	bool has_gain;	     /* what would be without its callback is known, */
	struct d9__gain gain; /* and is this */
	/*
	 * "fsync(7) at db_commit (svc.c:53), 20 times, 500 ms in all": what its callback blocks in;
	 * or NULL
	 */
	char *blocked;
	const char *advice;  /* what to do */
	bool machine;        /* about the machine, not about the program */
	const struct d9__callback *callback; /* that it is about, or NULL */
	const char *source;  /* where that is, "hello.c:52", or NULL; borrowed */
	char held_in[48];    /* the function that held the lock it waits for, or "" */
	uint64_t task;       /* an example, for dial9 diagram --task; 0: none */
	struct d9__evidence evidence[D9__EVIDENCE_MAX];
	size_t n_evidence;

	/*
	 * Of a consequence: how it reads under its cause ("29 waits over 5 ms"), and who caused it.
	 */
	char *effect;
	const struct d9__callback *culprit;
	struct d9__finding *effects[D9__EFFECTS_MAX]; /* owned, and not among the findings */
	size_t n_effects;
};

struct d9__owners;

/* Worst first.  All zero is empty. */
struct d9__findings {
	struct d9__finding **items;
	size_t n;
	size_t by_severity[D9__SEVERITIES];

	/* Callbacks with a finding that says more of their long calls than that they are long. */
	struct d9__explained {
		const struct d9__callback *callback;
		struct d9__finding *finding;
	} *explained;
	size_t n_explained;

	struct d9__rhythm *rhythms; /* of its long calls, from the first check that asks on */
	size_t n_rhythms;

	struct d9__owners *owners; /* of each loop, by number of its worker */

	/* While they are made. */
	const struct d9__analysis *analysis;
	unsigned rank, place;
	const char *check;
	enum d9__about about;
	int err;
};

/* Free |finding| with its effects. */
void d9__finding_release(struct d9__finding *finding);

/*
 * Calls from here on are long for |worker|: three times the 99th percentile of its calls, at least
 * a millisecond, at most D9__LONG_ALWAYS_NS.
 */
#define D9__LONG_ALWAYS_NS (10 * D9__MS_NS)
uint64_t d9__long_call_ns(const struct d9__worker *worker);

/* A new finding of the check that runs, or NULL: out of memory, noted in |findings|. */
struct d9__finding *d9__finding_add(struct d9__findings *findings, enum d9__severity severity,
				    uint64_t impact, const char *advice, const char *format, ...)
	__attribute__((format(printf, 5, 6)));

/* Name what |finding| is about; |name| is copied. */
void d9__finding_set_name(struct d9__findings *findings, struct d9__finding *finding,
			  const char *name, size_t len);

/* printf(3) arguments for the name of |callback|; NULL is "nothing". */
struct d9__shown_name {
	const char *text;
	int len;
};
struct d9__shown_name d9__finding_name(const struct d9__callback *callback);

/* Whether both have one name: a function may be registered at several places. */
bool d9__finding_same_name(const struct d9__callback *a, const struct d9__callback *b);

/* |finding| is about |callback|: its name, its source. */
void d9__finding_set_callback(struct d9__findings *findings, struct d9__finding *finding,
			      const struct d9__callback *callback);

/* Append a sentence to |finding|'s message. */
void d9__finding_append(struct d9__findings *findings, struct d9__finding *finding,
			const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Set |finding|'s brief.  |finding| may be NULL, here and below. */
void d9__finding_set_brief(struct d9__findings *findings, struct d9__finding *finding,
			   const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/*
 * From this share of its loop's time on the brief of a callback's calls tells it: few long ones may
 * be the least of it.
 */
#define D9__TOLD_SHARE 0.1

/* |finding| is about the machine, and not about the program: its brief says what is with it. */
void d9__finding_set_machine(struct d9__findings *findings, struct d9__finding *finding,
			     const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* |finding| is a consequence of what |culprit| did (NULL: unknown), and reads so under it. */
void d9__finding_set_effect(struct d9__findings *findings, struct d9__finding *finding,
			    const struct d9__callback *culprit, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

/*
 * |n| in |ns| as so many a second, in two digits: exact ones would be taken for the number of
 * calls, which tables have.
 */
uint64_t d9__finding_rate(uint64_t n, uint64_t ns);

/* " (12.0 ms preempted)", or nothing if that is not worth telling. */
void d9__finding_taken(uint64_t taken_ns, char *buf, size_t size);

/* Append |evidence|, whose text is made from |format|.  Beyond D9__EVIDENCE_MAX nothing happens. */
void d9__finding_add_evidence(struct d9__findings *findings, struct d9__finding *finding,
			      const struct d9__evidence *evidence, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

/*
 * |finding| tells of the long calls of |callback|: no other accuses it for them, and what follows
 * is its effect.
 */
void d9__finding_explain(struct d9__findings *findings, struct d9__finding *finding,
			 const struct d9__callback *callback);
bool d9__finding_is_explained(const struct d9__findings *findings,
			      const struct d9__callback *callback);

/* Whether an earlier |check| found something. */
bool d9__finding_told(const struct d9__findings *findings, const char *check);
