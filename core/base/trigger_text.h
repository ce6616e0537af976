/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Trigger texts: what is to be kept, in one line.
 *
 *	[NAME:] CONDITION [for T] [where loop|callback|thread ~ GLOB]... [last T] [then T] [every T] [at most N/h]
 *	[pairs KEY=VALUE...]
 *
 * The program knows no names of functions.  Who can look them up writes behind the glob what it stands for: `resolved
 * MODULE+0xOFFSET|+0xOFFSET|MODULE+0xOFFSET...`, of which one without a module is of that of the one before.
 *
 * CONDITION is one of `poll > T`, `lateness > T`, `blocked > T`, `queue > N`, `wakes > N/s`, `polls > N/s`, `loss > N` and
 * `call`.  T is a number with its unit, such as 50ms.  `;` and ends of lines separate triggers; `@FILE` stands for those in
 * a file.
 *
 * The recorder reads them and so does dial9, which tells of mistakes before a program starts.  No memory is
 * allocated; any thread.
 */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define D9__TRIGGER_NAME    64 /* with its end; so are the others */
#define D9__TRIGGER_GLOB    128
#define D9__TRIGGER_MATCHES 4
#define D9__TRIGGER_PAIRS   512
#define D9__TRIGGER_TEXT    1024 /* longest text of one trigger */
#define D9__TRIGGER_MOST    360	 /* dumps an hour */
#define D9__TRIGGERS_MAX    32u /* at once, of a process */
#define D9__TRIGGER_RESOLVED 4096 /* of one trigger, all that names of callbacks stand for; not part of its text */

enum d9__trigger_kind {
	D9__TRIGGER_CALL, /* only the program fires it, or dial9 */
	D9__TRIGGER_POLL,
	D9__TRIGGER_LATENESS,
	D9__TRIGGER_BLOCKED,
	D9__TRIGGER_QUEUE,
	D9__TRIGGER_WAKES,
	D9__TRIGGER_POLLS,
	D9__TRIGGER_LOSS,
	D9__TRIGGER_KINDS,
};

/* The kind of its numbers. */
enum d9__trigger_unit { D9__TRIGGER_NO_UNIT, D9__TRIGGER_NS, D9__TRIGGER_COUNT, D9__TRIGGER_PER_SECOND };

enum d9__trigger_subject { D9__TRIGGER_LOOP, D9__TRIGGER_CALLBACK, D9__TRIGGER_THREAD };

struct d9__trigger_match {
	enum d9__trigger_subject subject;
	char glob[D9__TRIGGER_GLOB];
	bool is_name;	   /* of functions, which are not resolved yet */
	uint16_t resolved; /* what it stands for, in |resolved| of the trigger; 0: itself */
	/* In the text: the glob, and what is there for the recorder alone. */
	uint16_t from, to, cut_from, cut_to;
};

struct d9__trigger {
	char name[D9__TRIGGER_NAME]; /* the condition, if it was given none */
	enum d9__trigger_kind kind;
	uint64_t threshold; /* in the condition's unit */
	uint64_t for_ns;    /* it has to hold for so long */
	struct d9__trigger_match matches[D9__TRIGGER_MATCHES];
	unsigned n_matches; /* all of them have to match */
	uint64_t last_ns, then_ns; /* the window, before and behind the moment it fires */
	uint64_t every_ns;	   /* others that fire meanwhile join its dump */
	uint32_t at_most;	   /* dumps of this process in an hour */
	char pairs[D9__TRIGGER_PAIRS]; /* KEY=VALUE, each with its end, an empty one behind the last */
	char resolved[D9__TRIGGER_RESOLVED];
	uint16_t n_resolved;
};

struct d9__trigger_fault {
	uint32_t column; /* counts characters from 1 */
	char text[160];	 /* what is wrong there */
};

/*
 * The next text of a list that |*list| points into: its length, |*one| its first byte, and |*list| behind it.  False:
 * there is none left.  Blank ones and lines that begin with # are passed over.
 */
bool d9__trigger_next(const char **list, const char **one, size_t *len);

/* Where |one| stands in |list|: the line, and the characters before it there; both count from 1 and 0. */
uint32_t d9__trigger_line(const char *list, const char *one, uint32_t *before);

/* False: |fault| tells where it is wrong, and |out| is not to be used. */
bool d9__trigger_parse(const char *text, size_t len, struct d9__trigger *out, struct d9__trigger_fault *fault);

/* Parse a text in the same way in which callbacks may have names, and mark them. */
bool d9__trigger_parse_names(const char *text, size_t len, struct d9__trigger *out, struct d9__trigger_fault *fault);

/* |text|, which was parsed to |trigger|, as its author wrote it: without what was resolved. */
void d9__trigger_plain(const struct d9__trigger *trigger, const char *text, size_t len, char *out, size_t size);

/* "poll", "blocked", ... */
const char *d9__trigger_kind_name(enum d9__trigger_kind kind);

enum d9__trigger_unit d9__trigger_unit(enum d9__trigger_kind kind);

/* Whether |text| matches |glob|: * is any text, ? any byte. */
bool d9__trigger_glob(const char *glob, const char *text, size_t len);

/* Whether a callback, |text|, is one of those in |resolved|. */
bool d9__trigger_stands_for(const char *resolved, const char *text, size_t len);
