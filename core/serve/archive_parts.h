/* SPDX-License-Identifier: Apache-2.0 */
/* Declarations that the files of the archive share. */

#pragma once

#include <stdbool.h>

#include "analyze/texts.h"
#include "base/table.h"
#include "serve/archive.h"
#include "serve/child.h"
#include "serve/duration_steps.h"

enum d9__known {
	D9__KNOWN_WAITING, /* it will be read soon */
	D9__KNOWN_READING,
	D9__KNOWN,
	D9__KNOWN_FAILED, /* it cannot be read: |why| */
	D9__KNOWN_LISTED, /* its name is known; its content is read when a question needs it */
};

/* Calls of one callback, or passes of one span, in one segment. */
struct d9__archived_callback {
	uint32_t number; /* in |callbacks| or |spans| */
	uint64_t calls, total_ns, longest_ns, at_ns, worker;
	char *segment; /* an hour's that has the longest, as the page calls it; owned, or NULL */
	size_t n_durations;
	struct {
		uint32_t step;
		uint64_t calls;
	} * durations; /* owned */
};

/* The facts of one segment. */
struct d9__archived {
	char *service, *host, *process; /* owned; |process| names its recording */
	char *map;			/* its JSON for the map; owned */
	double from_ms, to_ms;		/* since 1970 */
	struct d9__archived_callback *callbacks, *spans;
	size_t n_callbacks, n_spans;
	uint64_t left_out_calls, left_out_ns, samples;
	struct d9__archived_self {
		uint32_t node;
		uint64_t samples;
	} * selves; /* samples that end in a node of the tree */
	size_t n_selves;
	size_t bytes; /* taken from the budget */
	bool counts;  /* callbacks and samples are kept: the budget allowed it */
};

struct d9__archive_entry {
	struct d9__archive *archive;
	char *name;			   /* owned */
	uint64_t bytes, identity, reading; /* the identity now, and when it was read */
	int64_t modified_ns;
	const struct d9__source_facts *facts; /* NULL: only its content tells */
	bool here, fetching;		      /* of a place far away */
	uint64_t read_at_ms; /* since the start of the machine */
	bool active, listed;
	enum d9__known state;
	char *why;	  /* owned */
	uint64_t version; /* when it changed */
	struct d9__child *child;
	struct d9__archived *said; /* the latest; NULL: none yet */
};

struct d9__archive_node {
	uint32_t parent, name; /* node 0 is the root */
	uint8_t kind;
};

struct d9__archive {
	struct event_base *base;
	struct event *again; /* looks whether an active segment is due */
	const struct d9__segment_source *source;
	struct d9__archive_entry **entries; /* owned, in the order of the listing */
	size_t n, running, fetching;
	struct d9__table by_name;
	uint64_t version, removed; /* of the last change, of the last removal */

	struct d9__texts callbacks, spans; /* "SERVICE\x1fNAME\x1fSOURCE" */
	struct d9__texts names;	    /* of frames */
	struct d9__archive_node *nodes;
	size_t n_nodes;
	struct d9__table by_edge; /* number of a node + 1, by parent and name */
};
