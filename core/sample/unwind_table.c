/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One thread at a time changes anything: the one that has set |is_busy|, which is the flush thread but for the very first
 * time.  So it reads without a lock.  It holds |lock|
 * while it changes lists, so that a fork finds them whole; never while it asks the loader or compiles.
 * Handlers load |current| once and follow it to memory that is not written any more, but for two flags.
 *
 * Old versions are not counted by their readers, for a handler should not write to memory that it shares
 * with others.  They are kept until no handler that has seen one can be running: see free_retired().
 */
#include "config.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/heap.h"
#include "base/maps.h"
#include "base/sort.h"
#include "base/time.h"
#include "record/flush.h"
#include "sample/eh_frame.h"
#include "sample/module_frames.h"
#include "sample/unwind_table.h"
#include "segment/modules.h"

#define EAGER_ROWS   ((size_t)8 * 1024 * 1024 / sizeof(struct d9__unwind_row))
#define ALL_ROWS     ((size_t)32 * 1024 * 1024 / sizeof(struct d9__unwind_row))
#define COPIES_BYTES ((size_t)4 * 1024 * 1024) /* in one walk; a single larger section is copied too */

/* In libraries of distributions a row describes about 5 bytes of .eh_frame. */
#define SECTION_PER_ROW 5

#define RETIRED_NS    (10 * D9__SECOND_NS)
#define RETIRED_KEPT  64
#define RETIRED_TICKS 64

enum rows_state {
	ROWS_WAITING, /* to be made now, or when a sample hits the module */
	ROWS_LARGE,   /* too large to be made before a sample hits the module */
	ROWS_MADE,    /* there may be none */
	ROWS_REFUSED, /* over the limit */
};

/* The rows of a module, wherever it is loaded. */
struct module_rows {
	struct module_rows *next;
	struct d9__frames_key key;
	struct d9__eh_frame_rows rows; /* never changes once a version has it */
	enum rows_state state;
	size_t n_versions;     /* that name it */
	_Atomic(bool) was_hit; /* by a handler that found no rows; never cleared */
};

/* Executable memory. */
struct span {
	uintptr_t low, high;
	uintptr_t base; /* what its rows count from */
	const struct d9__unwind_row *row; /* NULL: none, or not yet */
	size_t n;
	struct module_rows *module; /* NULL: none has it */
};

struct d9__unwind_table {
	uint64_t number;
	struct d9__unwind_table *newer; /* among the retired */
	uint64_t retired_ns, retired_tick;
	size_t n_modules, n;
	struct span span[]; /* in order, without overlaps */
};

/* Written by the flush thread (release), loaded by handlers (acquire). */
static _Atomic(struct d9__unwind_table *) current;

/* Set by handlers, taken by the flush thread: a module has |was_hit|; an address was in no span. */
static _Atomic(bool) was_asked, was_nowhere;

static _Atomic(bool) rows_wanted; /* by anybody, until the tables stop */
static _Atomic(bool) has_rows;	  /* |current| has those that were wanted */

static _Atomic(bool) is_busy; /* a thread brings the tables up to date */

/* Protected by |lock| against forks. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct module_rows *modules;
static struct d9__unwind_table *oldest, *newest; /* retired versions */
static size_t n_retired;
static size_t n_rows;
static uint64_t n_versions; /* ever made */
static uint64_t n_ticks;    /* calls of d9__unwind_tables_refresh() */

static struct d9__frames_list loaded; /* as the last walk found it; no copies between refreshes */
static bool ever_walked;

/* In order, without overlaps. */
struct ranges {
	struct d9__mapping *range;
	size_t n, capacity;
};
static struct ranges others; /* executable memory that no module has, as it was at |others_ns| */
static uint64_t others_ns;

/* ---- what handlers do ---- */

const struct d9__unwind_table *d9__unwind_table_now(void)
{
	/* acquire: pairs with the release in publish() */
	return atomic_load_explicit(&current, memory_order_acquire);
}

uint64_t d9__unwind_table_number(const struct d9__unwind_table *table)
{
	return table->number;
}

static const struct span *find_span(const struct d9__unwind_table *table, uintptr_t pc)
{
	size_t from = 0, to = table->n;

	while (from < to) {
		size_t middle = (from + to) / 2;

		if (pc < table->span[middle].low)
			to = middle;
		else if (pc >= table->span[middle].high)
			from = middle + 1;
		else
			return &table->span[middle];
	}
	return NULL;
}

/* The last row that begins at |offset| or before it. */
static const struct d9__unwind_row *find_row(const struct span *span, uint32_t offset)
{
	const struct d9__unwind_row *row = span->row;
	size_t n = span->n;

	if (!row || n == 0 || offset < row[0].pc)
		return NULL;
	while (n > 1) {
		size_t half = n / 2;

		if (row[half].pc <= offset)
			row += half;
		n -= half;
	}
	return row;
}

/* Set |*flag|, which others look at.  True if it was not set. */
static bool raise_flag(_Atomic(bool) *flag)
{
	if (atomic_load_explicit(flag, memory_order_relaxed))
		return false;
	/* release: pairs with the acquire in d9__unwind_tables_refresh() */
	atomic_store_explicit(flag, true, memory_order_release);
	return true;
}

bool d9__unwind_table_find(const struct d9__unwind_table *table, uintptr_t pc, const struct d9__unwind_row **row)
{
	const struct span *span = find_span(table, pc);

	*row = NULL;
	if (!span) {
		raise_flag(&was_nowhere);
		return false;
	}
	if (!span->row && span->module && raise_flag(&span->module->was_hit))
		raise_flag(&was_asked);
	if (pc - span->base <= UINT32_MAX)
		*row = find_row(span, (uint32_t)(pc - span->base));
	return true;
}

/* ---- rows of modules ---- */

static struct module_rows *find_module(const struct d9__frames_key *key)
{
	struct module_rows *module = modules;

	while (module && memcmp(&module->key, key, sizeof(*key)) != 0)
		module = module->next;
	return module;
}

static struct module_rows *add_module(const struct d9__frames_key *key)
{
	struct module_rows *module = d9__calloc(1, sizeof(*module));

	if (!module)
		return NULL;
	module->key = *key;
	pthread_mutex_lock(&lock);
	module->next = modules;
	modules = module;
	pthread_mutex_unlock(&lock);
	return module;
}

/* Modules that no version names, all if |all|. */
static void free_modules_locked(bool all)
{
	for (struct module_rows **link = &modules; *link;) {
		struct module_rows *module = *link;

		if (module->n_versions && !all) {
			link = &module->next;
			continue;
		}
		*link = module->next;
		n_rows -= module->rows.n;
		d9__free(module->rows.row);
		d9__free(module);
	}
}

static bool was_hit(const struct module_rows *module)
{
	return atomic_load_explicit(&module->was_hit, memory_order_relaxed);
}

/* A program that waits for this thread to end has no use for rows. */
static bool is_ending(void)
{
	return atomic_load_explicit(&d9__flush.stop, memory_order_relaxed) != 0;
}

/* How many rows may be made of |module| now; 0: leave it for later. */
static size_t allowance(const struct module_rows *module)
{
	if (is_ending())
		return 0;
	if (module && was_hit(module) && module->state <= ROWS_LARGE)
		return n_rows < ALL_ROWS ? ALL_ROWS - n_rows : 1;
	if ((module && module->state != ROWS_WAITING) ||
	    !atomic_load_explicit(&rows_wanted, memory_order_relaxed))
		return 0;
	return n_rows < EAGER_ROWS ? EAGER_ROWS - n_rows : 0;
}

/* The amount that a walk has copied so far. */
struct copies {
	size_t n, bytes;
};

/* For d9__module_frames_list(). */
static bool is_wanted(void *arg, const struct d9__frames_key *key, size_t estimate)
{
	const struct module_rows *module = find_module(key);
	struct copies *copies = arg;
	size_t max = D9__UNWIND_TABLES ? allowance(module) : 0, rows = estimate / SECTION_PER_ROW;

	if (max == 0 || (copies->n && copies->bytes + estimate > COPIES_BYTES))
		return false;
	/* Skip a module that no sample hit and that exceeds the rows left. */
	if (rows > max && !(module && was_hit(module)))
		return false;
	copies->n++;
	copies->bytes += estimate;
	return true;
}

static void set_rows(struct module_rows *module, enum rows_state state,
		     const struct d9__eh_frame_rows *rows)
{
	pthread_mutex_lock(&lock);
	module->rows = *rows;
	module->state = state;
	n_rows += rows->n;
	pthread_mutex_unlock(&lock);
}

static int compile(struct module_rows *module, const struct d9__module_frames *frames)
{
	struct d9__eh_frame section = { .bytes = frames->copy, .len = frames->len,
					.address = frames->address, .low = frames->low,
					.high = frames->high };
	struct d9__eh_frame_rows rows = { 0 };
	size_t max = allowance(module);
	int err = max ? d9__eh_frame_compile(&section, max, &rows) : 0;

	if (max == 0 || err == -ENOMEM)
		return err;
	set_rows(module, !err ? ROWS_MADE : was_hit(module) ? ROWS_REFUSED : ROWS_LARGE, &rows);
	return 0;
}

/* Compile what was copied.  The number of copies, or -ENOMEM. */
static int compile_copies(void)
{
	int n = 0, err = 0;

	for (size_t i = 0; !err && i < loaded.n; i++) {
		struct d9__module_frames *frames = &loaded.module[i];
		struct module_rows *module = find_module(&frames->key);

		if (!module)
			module = add_module(&frames->key);
		if (!module)
			return -ENOMEM;
		if (!frames->address || !D9__UNWIND_TABLES)
			set_rows(module, ROWS_MADE, &(struct d9__eh_frame_rows){ 0 });
		if (!frames->copy)
			continue;
		err = compile(module, frames);
		d9__module_frames_drop_copy(frames);
		n++;
	}
	return err ? err : n;
}

/* ---- executable memory that no module has ---- */

/* False: out of memory. */
static bool add_range(struct ranges *ranges, uintptr_t low, uintptr_t high)
{
	struct d9__mapping *last = ranges->n ? &ranges->range[ranges->n - 1] : NULL;

	if (last && last->high == low) {
		last->high = high;
		return true;
	}
	if (ranges->n == ranges->capacity) {
		size_t more = ranges->capacity ? ranges->capacity * 2 : 32;
		struct d9__mapping *grown = d9__reallocarray(ranges->range, more, sizeof(*grown));

		if (!grown)
			return false;
		ranges->range = grown;
		ranges->capacity = more;
	}
	ranges->range[ranges->n++] = (struct d9__mapping){ low, high, PROT_EXEC };
	return true;
}

/* |fresh| is what others are from now on, unless |failed|. */
static int replace_others(struct ranges *fresh, bool failed)
{
	d9__free(failed ? fresh->range : others.range);
	if (!failed)
		others = *fresh;
	return failed ? -ENOMEM : 0;
}

/* All executable memory, that of modules too.  Where the kernel does not show it, what was known stays. */
static int read_mappings(void)
{
	struct ranges fresh = { 0 };
	struct d9__mapping mapping;
	struct d9__maps maps;
	bool failed = false;

	if (!d9__maps_open(&maps))
		return 0;
	while (!failed && d9__maps_next(&maps, &mapping))
		failed = mapping.prot & PROT_EXEC && !add_range(&fresh, mapping.low, mapping.high);
	d9__maps_close(&maps);
	return replace_others(&fresh, failed);
}

static uintptr_t start_of_page(uintptr_t address)
{
	return address & ~((uintptr_t)sysconf(_SC_PAGESIZE) - 1);
}

static uintptr_t end_of_page(uintptr_t address)
{
	return start_of_page(address + (uintptr_t)sysconf(_SC_PAGESIZE) - 1);
}

/*
 * Leave in |others| what is in none of |table|, whose spans are those of modules: what a module has now may be data of the
 * program's when that is unloaded.
 */
static int subtract_modules(const struct d9__unwind_table *table)
{
	struct ranges fresh = { 0 };
	bool failed = false;
	size_t k = 0;

	for (size_t i = 0; i < others.n; i++) {
		uintptr_t low = others.range[i].low, high = others.range[i].high;

		while (!failed && low < high) {
			uintptr_t end = high;

			while (k < table->n && end_of_page(table->span[k].high) <= low)
				k++;
			if (k < table->n && table->span[k].low < high)
				end = start_of_page(table->span[k].low);
			if (low < end)
				failed = !add_range(&fresh, low, end);
			low = end < high ? end_of_page(table->span[k].high) : high;
		}
	}
	return replace_others(&fresh, failed);
}

/* ---- versions ---- */

static int by_low(const void *a, const void *b)
{
	const struct span *x = a, *y = b;

	return (x->low > y->low) - (x->low < y->low);
}

/*
 * One byte before the function that makecontext() has a coroutine return to: it ends the coroutine, and nothing called it.
 * The C library has rows for it that say something else.
 */
#if defined(__x86_64__)
static void never_called(void)
{
}

static uintptr_t start_of_contexts(void)
{
	uintptr_t stack[64] __attribute__((aligned(16)));
	static ucontext_t context;
	static uintptr_t start;

	if (start)
		return start;
	context.uc_stack.ss_sp = stack;
	context.uc_stack.ss_size = sizeof(stack);
	makecontext(&context, never_called, 0);
	start = *(const uintptr_t *)(uintptr_t)context.uc_mcontext.gregs[REG_RSP] - 1;
	return start;
}
#else
static uintptr_t start_of_contexts(void)
{
	return 0;
}
#endif

static void add_span(struct d9__unwind_table *table, const struct span *span)
{
	if (span->low < span->high)
		table->span[table->n++] = *span;
}

/* Add |code|, in three parts if |start|, a byte that is an end of stacks, is in it. */
static void add_code(struct d9__unwind_table *table, const struct d9__module_code *code, uintptr_t start)
{
	static const struct d9__unwind_row end = { .cfa = D9__CFA_END };
	const struct d9__module_frames *frames = &loaded.module[code->module];
	struct module_rows *module = find_module(&frames->key);
	struct span span = { code->low, code->high, frames->low, module->rows.row, module->rows.n, module };

	if (start >= code->low && start < code->high) {
		span.high = start;
		add_span(table, &span);
		add_span(table, &(struct span){ start, start + 1, start, &end, 1, module });
		span.low = start + 1;
		span.high = code->high;
	}
	add_span(table, &span);
}

/* |table| with the others, in order, or NULL. */
static struct d9__unwind_table *add_others(struct d9__unwind_table *table)
{
	struct d9__unwind_table *grown = NULL;

	if (!subtract_modules(table))
		grown = d9__realloc(table, sizeof(*table) + (table->n + others.n) * sizeof(table->span[0]));
	if (!grown) {
		d9__free(table);
		return NULL;
	}
	for (size_t i = 0; i < others.n; i++)
		add_span(grown, &(struct span){ .low = others.range[i].low, .high = others.range[i].high });
	d9__sort(grown->span, grown->n, sizeof(grown->span[0]), by_low);
	return grown;
}

static struct d9__unwind_table *make_version(void)
{
	struct d9__unwind_table *table =
		d9__calloc(1, sizeof(*table) + (loaded.n_code + 2) * sizeof(table->span[0]));
	uintptr_t start = start_of_contexts();

	if (!table)
		return NULL;
	table->n_modules = loaded.n;
	for (size_t i = 0; i < loaded.n_code; i++)
		add_code(table, &loaded.code[i], start);
	d9__sort(table->span, table->n, sizeof(table->span[0]), by_low);
	return others.n ? add_others(table) : table;
}

static bool equal(const struct d9__unwind_table *a, const struct d9__unwind_table *b)
{
	if (!a || !b || a->n != b->n)
		return false;
	for (size_t i = 0; i < a->n; i++)
		if (a->span[i].low != b->span[i].low || a->span[i].high != b->span[i].high ||
		    a->span[i].module != b->span[i].module || a->span[i].row != b->span[i].row)
			return false;
	return true;
}

static void retire_locked(struct d9__unwind_table *table, uint64_t now_ns)
{
	table->retired_ns = now_ns;
	table->retired_tick = n_ticks;
	if (newest)
		newest->newer = table;
	else
		oldest = table;
	newest = table;
	n_retired++;
}

/* |table| may be NULL. */
static void publish(struct d9__unwind_table *table, uint64_t now_ns)
{
	struct d9__unwind_table *old = atomic_load_explicit(&current, memory_order_relaxed);

	pthread_mutex_lock(&lock);
	for (size_t i = 0; table && i < table->n; i++)
		if (table->span[i].module)
			table->span[i].module->n_versions++;
	if (table)
		table->number = ++n_versions;
	/* release: pairs with the acquire in d9__unwind_table_now() */
	atomic_store_explicit(&current, table, memory_order_release);
	if (old)
		retire_locked(old, now_ns);
	pthread_mutex_unlock(&lock);
}

static void free_version_locked(struct d9__unwind_table *table)
{
	for (size_t i = 0; i < table->n; i++)
		if (table->span[i].module)
			table->span[i].module->n_versions--;
	d9__free(table);
}

static void free_oldest_locked(void)
{
	struct d9__unwind_table *table = oldest;

	oldest = table->newer;
	if (!oldest)
		newest = NULL;
	n_retired--;
	free_version_locked(table);
}

/*
 * A version is kept for 10 s after it was replaced, and while there are less than 64; if memory is short,
 * only for the 10 s.  A process may be stopped in the middle of a handler for longer than that, and with it
 * this thread.  So as many refreshes have to pass, too, which takes the flush thread a second or more.
 */
static void free_retired(uint64_t now_ns)
{
	pthread_mutex_lock(&lock);
	while (oldest && (n_retired > RETIRED_KEPT || n_rows >= EAGER_ROWS) &&
	       now_ns - oldest->retired_ns > RETIRED_NS &&
	       n_ticks - oldest->retired_tick > RETIRED_TICKS)
		free_oldest_locked();
	free_modules_locked(false);
	pthread_mutex_unlock(&lock);
}

static int rebuild(uint64_t now_ns)
{
	bool wanted = atomic_load_explicit(&rows_wanted, memory_order_relaxed);
	struct d9__unwind_table *table;
	int n, err;

	do {
		struct copies copies = { 0 };

		err = d9__module_frames_list(&loaded, is_wanted, &copies);
		if (err)
			return err;
		n = compile_copies();
	} while (n > 0);
	table = n < 0 ? NULL : make_version();
	if (!table)
		return -ENOMEM;
	if (equal(table, atomic_load_explicit(&current, memory_order_relaxed)))
		d9__free(table);
	else
		publish(table, now_ns);
	/* release: pairs with the acquire in d9__unwind_tables_have_rows() */
	atomic_store_explicit(&has_rows, wanted && !is_ending(), memory_order_release);
	return 0;
}

/* acquire: pairs with the release in raise_flag() */
static bool take_flag(_Atomic(bool) *flag)
{
	return atomic_exchange_explicit(flag, false, memory_order_acquire);
}

/* 1: others were read anew; 0: there was no need, or it is too early; or -ENOMEM. */
static int look_for_others(uint64_t now_ns)
{
	int err;

	if (now_ns - others_ns < D9__SECOND_NS || !take_flag(&was_nowhere))
		return 0;
	others_ns = now_ns;
	err = read_mappings();
	return err ? err : 1;
}

static int refresh(uint64_t now_ns)
{
	bool asked = take_flag(&was_asked);
	int err = look_for_others(now_ns);

	n_ticks++;
	if (err > 0 || asked || !ever_walked || d9__module_frames_changed(&loaded)) {
		err = rebuild(now_ns);
		ever_walked = !err;
	}
	free_retired(now_ns);
	return err;
}

int d9__unwind_tables_refresh(uint64_t now_ns)
{
	int err;

	/* acquire: pairs with the release below */
	if (atomic_exchange_explicit(&is_busy, true, memory_order_acquire))
		return 0;
	err = refresh(now_ns);
	atomic_store_explicit(&is_busy, false, memory_order_release);
	return err;
}

int d9__unwind_tables_begin(uint64_t now_ns)
{
	return d9__modules_may_walk() ? d9__unwind_tables_refresh(now_ns) : 0;
}

void d9__unwind_tables_want_rows(void)
{
	if (raise_flag(&rows_wanted))
		raise_flag(&was_asked);
}

bool d9__unwind_tables_have_rows(void)
{
	/* acquire: pairs with the release in rebuild() */
	return !D9__UNWIND_TABLES || atomic_load_explicit(&has_rows, memory_order_acquire);
}

static void forget_rows(void)
{
	atomic_store_explicit(&has_rows, false, memory_order_relaxed);
	atomic_store_explicit(&rows_wanted, false, memory_order_relaxed);
}

void d9__unwind_tables_stop(uint64_t now_ns)
{
	forget_rows();
	if (atomic_load_explicit(&current, memory_order_relaxed))
		publish(NULL, now_ns);
	ever_walked = false;
}

void d9__unwind_tables_release(void)
{
	struct d9__unwind_table *table = atomic_load_explicit(&current, memory_order_relaxed);

	forget_rows();
	pthread_mutex_lock(&lock);
	/* release: as in publish() */
	atomic_store_explicit(&current, NULL, memory_order_release);
	if (table)
		free_version_locked(table);
	while (oldest)
		free_oldest_locked();
	free_modules_locked(true);
	pthread_mutex_unlock(&lock);
	d9__module_frames_list_release(&loaded);
	d9__free(others.range);
	others = (struct ranges){ 0 };
	others_ns = 0;
	atomic_store_explicit(&was_nowhere, false, memory_order_relaxed);
	ever_walked = false;
}

void d9__unwind_tables_fork_prepare(void)
{
	pthread_mutex_lock(&lock);
}

void d9__unwind_tables_fork_parent(void)
{
	pthread_mutex_unlock(&lock);
}

void d9__unwind_tables_fork_child(void)
{
	/* The fork may have fallen into a walk of the flush thread, which the child has not. */
	atomic_store_explicit(&is_busy, false, memory_order_relaxed);
	loaded = (struct d9__frames_list){ 0 };
	others = (struct ranges){ 0 };
	others_ns = 0;
	atomic_store_explicit(&was_nowhere, true, memory_order_relaxed);
	ever_walked = false;
	pthread_mutex_unlock(&lock);
}

void d9__unwind_tables_figures(struct d9__unwind_figures *figures)
{
	const struct d9__unwind_table *table = d9__unwind_table_now();

	*figures = (struct d9__unwind_figures){ 0 };
	pthread_mutex_lock(&lock);
	figures->n_rows = n_rows;
	figures->n_retired = n_retired;
	for (size_t i = 0; table && i < table->n; i++) {
		const struct module_rows *module = table->span[i].module;

		figures->n_others += !module;
		if (!module || (i && table->span[i - 1].module == module))
			continue;
		figures->n_waiting += module->state <= ROWS_LARGE;
		figures->n_refused += module->state == ROWS_REFUSED;
	}
	pthread_mutex_unlock(&lock);
	figures->version = table ? table->number : 0;
	figures->n_modules = table ? table->n_modules : 0;
}
