/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Redirect calls in the loaded program, by its GOT slots.
 *
 * An adapter describes the functions it hooks in one static table and installs it.  The engine
 * resolves the real functions, walks all modules and swaps the slots the table may reach; it
 * comes back for modules that are loaded later.  Exact in every link order, and nothing that
 * embeds a copy of the loop library is touched.
 *
 * One lock covers all patching in the process.  Under it no code but this engine's runs, and the
 * loader's load lock is not taken, so a constructor under dlopen() may come here at any time.
 * No function here changes errno.
 */

#pragma once

#include <dial9/export.h>

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hook/images.h"

#define D9__GOT_HOOKS_MAX 128

/* Where a hooked name's slots may be swapped. */
enum d9__got_place {
	D9__GOT_IN_LIBRARY = 1, /* in the loop library itself: its internal calls */
	D9__GOT_IN_OTHERS = 2,  /* in the modules that |reach| allows */
	D9__GOT_EVERYWHERE = D9__GOT_IN_LIBRARY | D9__GOT_IN_OTHERS,
	/*
	 * A libc function: a slot that points at a third module (a checker's runtime, another
	 * tracer) is swapped too, and that function becomes the real one, so it stays in the
	 * chain.  Without it such a slot is left alone and counted.
	 */
	D9__GOT_CHAIN = 4,
	/*
	 * A libc function, in all modules: the real one is what the program's scope gives for the name.  A slot that
	 * points elsewhere (an old version of the function, another library's of that name, another table's hook) is
	 * left alone.
	 */
	D9__GOT_SCOPE = 8,
};

/* Which modules outside the library are reached. */
enum d9__got_reach {
	D9__GOT_NEEDED,          /* those with a DT_NEEDED of the library (libev) */
	/*
	 * And, in all others, slots that point into the library now; not yet bound ones if the
	 * program's scope leads to the library (libevent: plugins that rely on their host).
	 */
	D9__GOT_NEEDED_OR_BOUND,
	D9__GOT_ANY,             /* all but those in |skip| (GLib) */
};

/* One hooked function. */
struct d9__got_hook {
	const char *name;
	void *replacement; /* in the adapter's own image: -Bsymbolic or hidden */
	/*
	 * The adapter's pointer to the real function: stored (release) when it is found, before
	 * the first slot is swapped.  A name that stays NULL is never swapped.
	 */
	void *real;
	unsigned place; /* enum d9__got_place */
};

/*
 * { "event_assign", hook_event_assign, &real_event_assign, D9__GOT_EVERYWHERE }, whatever the
 * function types.
 */
#define D9__GOT_HOOK(function, hook, real_pointer, where)                                          \
	{                                                                                          \
		.name = #function, .replacement = (void *)(hook), .real = (void *)(real_pointer),  \
		.place = (where)                                                                   \
	}

/* Counters of the words that were patched; readable at any time. */
struct d9__got_counts {
	_Atomic(uint32_t) modules;  /* with at least one swapped slot */
	_Atomic(uint32_t) slots;    /* swapped and still mapped */
	_Atomic(uint32_t) refused;  /* the kernel refused to make the page writable; left alone */
	_Atomic(uint32_t) foreign;  /* point at a third module's function; left alone */
	_Atomic(uint32_t) unsettled; /* not yet relocated, looked at again on the next rescan */
	_Atomic(uint32_t) repaired; /* were overwritten by the loader, swapped again */
	_Atomic(uint32_t) dropped;  /* engine's own tables full; left alone */
};

/*
 * An adapter defines one, static.  |hooks| stay sorted as the adapter likes; the engine keeps
 * only pointers, for the life of the process.
 */
struct d9__got_table {
	const char *library;           /* "libevent": for humans */
	struct d9__images *images;
	const struct d9__got_hook *hooks;
	size_t n_hooks;                /* at most D9__GOT_HOOKS_MAX */
	enum d9__got_reach reach;
	const char *const *skip;       /* file names (as names of d9__images) never touched; or NULL */

	/* The engine's. */
	struct d9__got_counts counts;
	struct d9__got_table *next;
	struct d9__module_range own; /* the adapter's image */
	uint64_t starts[4];         /* beginnings of the hooked names, as a set */
	unsigned id;                /* its bit in the sets of settled modules */
	uint8_t lookup[4 * D9__GOT_HOOKS_MAX]; /* open addressing by name: hook + 1; 0 free */
	/* Two threads that install at once write the same into these. */
	_Atomic(bool) in_scope[D9__GOT_HOOKS_MAX]; /* the program's scope gives the real function */
	_Atomic(unsigned) n_images; /* mapped when the real functions were last looked for */
	bool registered, indexed;
	_Atomic(bool) installed;    /* the library was found and its slots were swapped */
};

/*
 * Find the library, resolve the real functions, swap the slots; from then on rescans include
 * the table.  May be called again at any time (each attach does): then it is a rescan that is
 * not skipped.
 *
 * @return 0        swapped; |counts| tell what was left out
 *         -ENOENT  the library is not mapped as a shared object.  Nothing touched; try again later
 *         -ENOTSUP the machine's relocations are not known, or a replacement lies outside the
 *                  module of |table|.  Nothing touched, for good
 *         -EPERM   the kernel refused every slot.  Nothing touched
 *         -EDEADLK d9__modules_may_walk() is false.  Nothing touched
 *
 * Any thread; not under a loop library's lock; not async-signal-safe.
 */
D9_API int d9__got_install(struct d9__got_table *table);

/*
 * Were modules loaded or unloaded since the last pass, or does a pass want its second look?
 * 260 instructions: the loader's counters, under two locks of its own.  Not under a loop
 * library's lock.
 */
D9_API bool d9__got_rescan_due(void);

/*
 * If due: swap slots of new modules for all installed tables, verify those of earlier passes,
 * mark stubs dead whose callback was unmapped (hook/stubs.h).  True if a pass was made.  A thread
 * that finds another one at it returns at once.
 *
 * For loop entry, triggers, and d9__tick_add(); not under a loop library's lock.
 */
D9_API bool d9__got_rescan(void);

/* d9__got_rescan(), but looks at most every 10 ms: for park hooks.  |now_ns|: any stamp. */
D9_API void d9__got_rescan_paced(uint64_t now_ns);

/* Put the real functions back where the slot is still ours.  For tests and failed attaches. */
D9_API void d9__got_restore(struct d9__got_table *table);

/*
 * For a hook that is entered before its real function is known (the library came later): look
 * for all of the table's now.  0, or -ENOENT if the library is not mapped.  Takes the loader's
 * load lock.
 */
D9_API int d9__got_resolve(struct d9__got_table *table);

/* ---- for tests ---- */

/* mprotect(2), replaced by tests of its refusal. */
extern int (*d9__got_protect)(void *addr, size_t len, int prot);

/* The verdict on a word, by its present value. */
enum d9__got_verdict {
	D9__GOT_SWAP,    /* holds the real function */
	D9__GOT_BIND,    /* not bound yet: points into its own module */
	D9__GOT_ADOPT,   /* another's function, which becomes the real one */
	D9__GOT_OURS,    /* swapped before */
	D9__GOT_FOREIGN, /* another's function; not ours to change */
	D9__GOT_LATER,   /* not relocated yet */
	D9__GOT_LEAVE,   /* none of our business */
};

/* The inputs of the verdict. */
struct d9__got_word {
	const void *value, *real, *replacement;
	unsigned place;      /* of the hook */
	bool absolute;       /* a plain word of data, not a slot of the GOT */
	bool only_bound;     /* the module does not say that it uses the library */
	bool in_scope;       /* the program's scope gives the real function for the name */
	bool in_own_export;  /* |value| points into one of our libraries */
	bool in_own_module;  /* |value| points into the module that holds the word */
	bool in_any_module;
};

enum d9__got_verdict d9__got_judge(const struct d9__got_word *word);
