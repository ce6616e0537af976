/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The things that an adapter's hooks can and cannot see, as metadata of the trace:
 *
 *	loop.libevent.version       2.1.12-stable
 *	loop.libevent.capabilities  poll=full,park=on,wake=full,lateness=on,task_end=partial
 *	loop.libevent.degraded      no unique deadline offset; 2 slots refused   (empty: nothing)
 *	loop.libevent.stubs_full    17
 *	loop.libevent.loops_dropped 1   (how often one could not be attached, though it was to be)
 *	loop.libevent.refused       functions of libevent are missing   (only if nothing is recorded)
 *
 * Setting is cheap and may be done under any lock; publishing hands the keys to the recorder, which
 * writes what changed, and is done at attach and once per tick of the flush thread.
 */

#pragma once

#include <dial9/export.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define D9__CAPABILITIES_MAX 24
#define D9__REASONS_MAX      16
#define D9__COUNTERS_MAX     16

struct d9__capability {
	const char *key;  /* borrowed for ever: string literals */
	const char *text; /* borrowed for ever */
};

struct d9__capability_counter {
	const char *key;
	_Atomic(uint32_t) *count; /* borrowed for ever, read when published */
	uint64_t (*sum)(void);	  /* or asked when published */
};

/* An adapter defines one, static: { .library = "libevent" } plus D9__CAPABILITIES_INIT. */
struct d9__capabilities {
	const char *library; /* middle of the keys */

	/* The module's; |lock| protects all that follows.  A leaf. */
	pthread_mutex_t lock;
	char version[64];
	struct d9__capability list[D9__CAPABILITIES_MAX];
	unsigned n;
	const char *reasons[D9__REASONS_MAX];
	unsigned n_reasons;
	struct d9__capability_counter counters[D9__COUNTERS_MAX];
	unsigned n_counters;
	const char *refused; /* borrowed for ever; NULL: it is not */

	_Atomic(uint32_t) loops_dropped;
};

#define D9__CAPABILITIES_INIT(name)                                                                \
	{                                                                                          \
		.library = (name), .lock = PTHREAD_MUTEX_INITIALIZER                               \
	}

/* Key `version`; copied, cut to 63 bytes. */
D9_API void d9__capabilities_set_version(struct d9__capabilities *caps, const char *version);

/* Say "key=text"; a later text for the same key replaces the earlier.  Both borrowed for ever. */
D9_API void d9__capability_set(struct d9__capabilities *caps, const char *key, const char *text);

/* The text of |key|, borrowed for ever; NULL if it was never set. */
D9_API const char *d9__capability(struct d9__capabilities *caps, const char *key);

/* Name one thing that is missing, once; |reason| is borrowed for ever and holds no ';'. */
D9_API void d9__capability_degrade(struct d9__capabilities *caps, const char *reason);

/*
 * Nothing of the library is recorded, because attaching gave |err|; what -ENOTSUP means says
 * |unsupported|, borrowed for ever.  With |record| the trace was asked for from outside, and no
 * program looks at what attach returns: the recorder is started, so that the trace says why it is
 * empty.  Publishes, too.
 */
D9_API void d9__capability_refuse(struct d9__capabilities *caps, int err, const char *unsupported,
				  bool record);

/*
 * |err| is what attaching a loop gave that is recorded without the program's asking: no program
 * looks at it.  Counted if not 0.
 */
D9_API void d9__capability_loop(struct d9__capabilities *caps, int err);

/*
 * Publish *|count| as key `loop.<library>.<key>` from now on, once it is not 0; both borrowed for
 * ever.
 */
D9_API void d9__capability_count(struct d9__capabilities *caps, const char *key,
				 _Atomic(uint32_t) *count);

/*
 * Publish like d9__capability_count() what |sum| returns; called on the flush thread or in
 * d9__capabilities_publish(), without a lock.
 */
D9_API void d9__capability_sum(struct d9__capabilities *caps, const char *key,
			       uint64_t (*sum)(void));

/*
 * The comma list as it stands.  Writes at most |len| bytes with the final NUL; returns the length
 * without a cut.
 */
D9_API size_t d9__capabilities_text(struct d9__capabilities *caps, char *buf, size_t len);

/*
 * Hand all keys to the recorder as metadata.  Not from a hook under a loop's lock.  Any
 * thread.  No errno is changed.
 */
D9_API void d9__capabilities_publish(struct d9__capabilities *caps);

/* Publish |caps| at every tick of the flush thread from now on. */
D9_API void d9__capabilities_follow(struct d9__capabilities *caps);
