/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pass walks the loader's list once.  For each module and table it reads the relocations that
 * name a hooked function and judges the word each of them filled in.  Modules in which every word
 * was judged are settled and skipped from then on; others are looked at again.
 *
 * A module is told by its load bias and dynamic section as long as nothing was unloaded.  After
 * an unload all of that is forgotten and every module is read anew: slots that are ours are
 * recognised by their value.
 *
 * dlopen() in another thread may still be relocating a module that the list shows already.
 * Its words hold no address we know, so they are left for later; and while its RELRO pages are
 * still writable nothing in them is touched, because making them read-only would end the loader.
 */
#include "config.h"

#include <dlfcn.h>
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "hook/elf_module.h"
#include "hook/got.h"
#include "hook/patch_lock.h"
#include "hook/stubs.h"

void d9__tick_add(void (*fn)(void)) __attribute__((weak));

#define MODULES_MAX	2048
#define SLOTS_MAX	16384
#define WRITES_MAX	256 /* of one module and table at a time */
#define TABLES_MAX	8
#define TRIES_MAX	8 /* passes that wait for a module's relocation */
#define SECOND_LOOK_NS	10000000u

struct known_module {
	uintptr_t base, dynamic;
	uint8_t settled; /* bit per table */
	uint8_t tries;
	bool reached; /* holds a slot of ours */
};

struct known_slot {
	uintptr_t *word;
	const struct d9__got_hook *hook;
	uint16_t module;
	uint8_t table;
};

/* All under the patch lock, the atomics excepted.  Fixed size: the loader's lock forbids malloc(). */
static struct {
	struct d9__got_table *tables;
	_Atomic(unsigned) n_tables;
	struct known_module modules[MODULES_MAX];
	unsigned n_modules;
	struct known_slot slots[SLOTS_MAX];
	unsigned n_slots;
	/* The loader's counters at the last pass. */
	_Atomic(uint64_t) adds, subs;
	/* When the last pass wants to be looked after; 0: it does not. */
	_Atomic(uint64_t) second_look_ns;
	_Atomic(bool) busy;
	_Atomic(uint64_t) paced_ns;
} engine;

static int protect_pages(void *addr, size_t len, int prot)
{
	return mprotect(addr, len, prot);
}

int (*d9__got_protect)(void *addr, size_t len, int prot) = protect_pages;

/* ---- the lock ---- */

static pthread_mutex_t patch_mutex = PTHREAD_MUTEX_INITIALIZER;

void d9__patch_lock(void)
{
	pthread_mutex_lock(&patch_mutex);
}

bool d9__patch_trylock(void)
{
	return pthread_mutex_trylock(&patch_mutex) == 0;
}

void d9__patch_unlock(void)
{
	pthread_mutex_unlock(&patch_mutex);
}

static void before_fork(void)
{
	d9__patch_lock();
	d9__stubs_lock();
}

static void after_fork_parent(void)
{
	d9__stubs_unlock();
	d9__patch_unlock();
}

static void after_fork_child(void)
{
	/* Another thread may have been between two steps of a pass; it is not here any more. */
	atomic_store_explicit(&engine.busy, false, memory_order_relaxed);
	after_fork_parent();
}

/* ---- hooks of a table, by name ---- */

static uint32_t name_hash(const char *name)
{
	uint32_t hash = 5381;

	for (; *name; name++)
		hash = hash * 33 + (unsigned char)*name;
	return hash ^ hash >> 15;
}

static void index_hooks(struct d9__got_table *table)
{
	for (size_t i = 0; i < table->n_hooks; i++) {
		uint32_t at = name_hash(table->hooks[i].name);

		while (table->lookup[at % sizeof(table->lookup)])
			at++;
		table->lookup[at % sizeof(table->lookup)] = (uint8_t)(i + 1);
	}
}

static const struct d9__got_hook *find_hook(const struct d9__got_table *table, const char *name)
{
	for (uint32_t at = name_hash(name);; at++) {
		uint8_t entry = table->lookup[at % sizeof(table->lookup)];

		if (!entry)
			return NULL;
		if (strcmp(table->hooks[entry - 1].name, name) == 0)
			return &table->hooks[entry - 1];
	}
}

/* The adapter reads its pointer with its own function type. */
typedef void *any_function __attribute__((may_alias));

static void *real_of(const struct d9__got_hook *hook)
{
	return __atomic_load_n((any_function *)hook->real, __ATOMIC_ACQUIRE);
}

static void set_real(const struct d9__got_hook *hook, void *function)
{
	/* release: before a slot leads anyone to the replacement */
	__atomic_store_n((any_function *)hook->real, function, __ATOMIC_RELEASE);
}

/* ---- judging a word ---- */

enum d9__got_verdict d9__got_judge(const struct d9__got_word *word)
{
	if (word->value == word->replacement)
		return D9__GOT_OURS;
	if (!word->real && !(word->place & D9__GOT_CHAIN))
		return D9__GOT_LEAVE;
	if (word->real && word->value == word->real)
		return D9__GOT_SWAP;
	if (word->absolute || word->only_bound)
		return D9__GOT_LEAVE;
	if (word->in_own_module)
		return word->real ? D9__GOT_BIND : D9__GOT_LEAVE;
	if (!word->in_any_module)
		return D9__GOT_LATER;
	return word->place & D9__GOT_CHAIN ? D9__GOT_ADOPT : D9__GOT_FOREIGN;
}

/* ---- one pass ---- */

struct write {
	uintptr_t *word;
	void *value;
	const struct d9__got_hook *hook;
	bool done;
};

struct pass {
	bool first_module;
	bool forgot;	 /* modules were unloaded: no word is tracked yet */
	bool restoring;	 /* put the real functions back, of |table| only */
	unsigned n_changed;
	unsigned cursor; /* where the next module is likely known */
	unsigned machine;

	/* Of the module and table at hand. */
	struct d9__elf_module mod;
	struct known_module *known;
	struct d9__got_table *table;
	struct write writes[WRITES_MAX];
	unsigned n_writes;
	unsigned n_later, n_refused, n_foreign, n_dropped;
};

/* One pass at a time, under the patch lock; too large for a small thread's stack. */
static struct pass pass;

static void count(_Atomic(uint32_t) *counter, uint32_t n)
{
	atomic_fetch_add_explicit(counter, n, memory_order_relaxed);
}

static void forget_all(void)
{
	engine.n_modules = 0;
	engine.n_slots = 0;
	for (struct d9__got_table *table = engine.tables; table; table = table->next) {
		atomic_store_explicit(&table->counts.refused, 0, memory_order_relaxed);
		atomic_store_explicit(&table->counts.foreign, 0, memory_order_relaxed);
		atomic_store_explicit(&table->counts.dropped, 0, memory_order_relaxed);
	}
}

static struct known_module *know_module(const struct d9__elf_module *mod)
{
	for (unsigned n = engine.n_modules; n > 0; n--, pass.cursor++) {
		struct known_module *known = &engine.modules[pass.cursor % engine.n_modules];

		if (known->base == mod->base && known->dynamic == mod->dynamic) {
			pass.cursor++;
			return known;
		}
	}
	if (engine.n_modules == MODULES_MAX)
		return NULL;
	engine.modules[engine.n_modules] =
		(struct known_module){ .base = mod->base, .dynamic = mod->dynamic };
	return &engine.modules[engine.n_modules++];
}

/* Drop slots that somebody wrote since, and have their modules read again. */
static void verify_slots(void)
{
	for (unsigned i = 0; i < engine.n_slots;) {
		struct known_slot *slot = &engine.slots[i];
		uintptr_t value = __atomic_load_n(slot->word, __ATOMIC_RELAXED);

		if (value == (uintptr_t)slot->hook->replacement) {
			i++;
			continue;
		}
		engine.modules[slot->module].settled &= (uint8_t)~(1u << slot->table);
		for (struct d9__got_table *table = engine.tables; table; table = table->next) {
			if (table->id == slot->table)
				count(&table->counts.repaired, 1);
		}
		*slot = engine.slots[--engine.n_slots];
	}
}

static bool track_slot(const struct write *write)
{
	if (engine.n_slots == SLOTS_MAX)
		return false;
	engine.slots[engine.n_slots++] = (struct known_slot){
		.word = write->word,
		.hook = write->hook,
		.module = (uint16_t)(pass.known - engine.modules),
		.table = (uint8_t)pass.table->id,
	};
	return true;
}

static bool is_tracked(const uintptr_t *word)
{
	for (unsigned i = 0; i < engine.n_slots; i++) {
		if (engine.slots[i].word == word)
			return true;
	}
	return false;
}

/* ---- writing ---- */

enum access { READ_ONLY, WRITABLE, UNKNOWN };

/*
 * Can the page of |word| be written?  An atomic "add nothing" by the kernel: no fault, no change,
 * whatever other threads do to the word.
 */
static enum access access_of(uintptr_t *word)
{
	uint32_t key = 0;
	int op = FUTEX_OP(FUTEX_OP_ADD, 0, FUTEX_OP_CMP_EQ, 0);

	if (syscall(SYS_futex, &key, FUTEX_WAKE_OP | FUTEX_PRIVATE_FLAG, 0, NULL, word, op) >= 0)
		return WRITABLE;
	return errno == EFAULT ? READ_ONLY : UNKNOWN;
}

/* The pages that have to be made writable for |word|: a whole RELRO region, or its own. */
static struct d9__module_range pages_of(const uintptr_t *word)
{
	uintptr_t page = getauxval(AT_PAGESZ), addr = (uintptr_t)word;

	if (addr >= pass.mod.relro_low && addr < pass.mod.relro_high)
		return (struct d9__module_range){ pass.mod.relro_low, pass.mod.relro_high };
	addr &= ~(page - 1);
	return (struct d9__module_range){ addr, addr + page };
}

static void store_word(struct write *write)
{
	if (!pass.restoring && !track_slot(write)) {
		pass.n_dropped++;
		return;
	}
	/* release: whoever calls through it finds the real function set */
	__atomic_store_n(write->word, (uintptr_t)write->value, __ATOMIC_RELEASE);
	pass.n_changed++;
}

/* Take the writes from |i| on that lie in |pages|; store them, or count them in |counter|. */
static void finish_writes(unsigned i, struct d9__module_range pages, unsigned *counter)
{
	for (; i < pass.n_writes; i++) {
		struct write *write = &pass.writes[i];

		if (write->done || (uintptr_t)write->word < pages.low ||
		    (uintptr_t)write->word >= pages.high)
			continue;
		write->done = true;
		if (counter)
			++*counter;
		else
			store_word(write);
	}
}

static void commit_pages(unsigned i)
{
	struct d9__module_range pages = pages_of(pass.writes[i].word);
	bool relro = pages.low == pass.mod.relro_low;
	size_t len = pages.high - pages.low;
	enum access access = access_of(pass.writes[i].word);

	if (access == WRITABLE || (access == UNKNOWN && !relro)) {
		/* RELRO that can be written: the loader is still at it, or never protects it. */
		bool wait = relro && !pass.restoring && pass.known->tries < TRIES_MAX;

		finish_writes(i, pages, wait ? &pass.n_later : NULL);
		return;
	}
	if (d9__got_protect((void *)pages.low, len, PROT_READ | PROT_WRITE) == 0)
		finish_writes(i, pages, NULL);
	else
		finish_writes(i, pages, &pass.n_refused);
	/* After a refusal, too: the pages before the refused one may have changed. */
	d9__got_protect((void *)pages.low, len, PROT_READ);
}

static void commit_writes(void)
{
	for (unsigned i = 0; i < pass.n_writes; i++) {
		if (!pass.writes[i].done)
			commit_pages(i);
	}
	pass.n_writes = 0;
}

/* ---- reading a module ---- */

static bool in_any_module(uintptr_t value)
{
	struct d9__module_range range;

	return d9__module_range_of((const void *)value, &range);
}

static void add_write(const struct d9__got_hook *hook, uintptr_t *word, void *value)
{
	if (pass.n_writes == WRITES_MAX)
		commit_writes();
	pass.writes[pass.n_writes++] = (struct write){ word, value, hook, false };
}

static void track_own(const struct d9__got_hook *hook, uintptr_t *word)
{
	struct write write = { word, hook->replacement, hook, true };

	if ((pass.forgot || !is_tracked(word)) && !track_slot(&write))
		pass.n_dropped++;
}

static void judge_word(const struct d9__got_hook *hook, uintptr_t *word, bool absolute, bool bound)
{
	uintptr_t value = __atomic_load_n(word, __ATOMIC_RELAXED);
	struct d9__got_word question = {
		.value = (void *)value,
		.real = real_of(hook),
		.replacement = hook->replacement,
		.place = hook->place,
		.absolute = absolute,
		.only_bound = bound,
		.in_own_module = d9__elf_module_holds(&pass.mod, value),
		.in_any_module = in_any_module(value),
	};
	enum d9__got_verdict verdict = d9__got_judge(&question);

	if (pass.restoring) {
		if (verdict == D9__GOT_OURS)
			add_write(hook, word, real_of(hook));
		return;
	}
	if (verdict == D9__GOT_ADOPT)
		set_real(hook, (void *)value);
	if (verdict == D9__GOT_SWAP || verdict == D9__GOT_BIND || verdict == D9__GOT_ADOPT)
		add_write(hook, word, hook->replacement);
	else if (verdict == D9__GOT_OURS)
		track_own(hook, word);
	pass.n_foreign += verdict == D9__GOT_FOREIGN;
	pass.n_later += verdict == D9__GOT_LATER;
}

static void read_relocations(const ElfW(Rela) *rela, size_t n, enum d9__got_place place, bool bound)
{
	const struct d9__got_table *table = pass.table;
	struct d9__elf_module *mod = &pass.mod;

	for (; n > 0; n--, rela++) {
		enum d9__elf_word kind = d9__elf_word_of(pass.machine, rela);
		uintptr_t *word = (uintptr_t *)(mod->base + rela->r_offset);

		if (kind == D9__ELF_WORD_OTHER || (uintptr_t)word % sizeof(*word) != 0)
			continue;
		const ElfW(Sym) *symbol = &mod->symbols[ELF64_R_SYM(rela->r_info)];
		/* A module that defines the name embeds its own copy. */
		if (place != D9__GOT_IN_LIBRARY && symbol->st_shndx != SHN_UNDEF)
			continue;
		const struct d9__got_hook *hook =
			find_hook(table, d9__elf_symbol_name(mod, symbol));
		if (hook && (hook->place & place) &&
		    d9__elf_module_is_data(mod, (uintptr_t)word))
			judge_word(hook, word, kind == D9__ELF_WORD_ABSOLUTE, bound);
	}
}

/* Which of |table|'s slots in the module may be swapped: 0 none. */
static unsigned place_of_module(const struct d9__got_table *table, bool *only_bound)
{
	static const char *const own_files[] = { "libdial9", NULL };
	const struct d9__elf_module *mod = &pass.mod;

	*only_bound = false;
	if (d9__elf_module_holds(mod, (uintptr_t)table) ||
	    d9__elf_module_holds(mod, (uintptr_t)&engine) || d9__elf_file_is(mod->path, own_files))
		return 0;
	if (d9__elf_file_is(mod->path, table->images->names))
		return D9__GOT_IN_LIBRARY;
	if (d9__elf_file_is(mod->path, table->skip))
		return 0;
	if (table->reach != D9__GOT_ANY && !d9__elf_module_needs(mod, table->images->names)) {
		if (table->reach == D9__GOT_NEEDED)
			return 0;
		*only_bound = true;
	}
	return D9__GOT_IN_OTHERS;
}

static void add_counts(void)
{
	struct d9__got_counts *counts = &pass.table->counts;

	count(&counts->unsettled, pass.n_later);
	if (pass.n_later && pass.known->tries < TRIES_MAX)
		return; /* read again, and counted then */
	pass.known->settled |= (uint8_t)(1u << pass.table->id);
	count(&counts->refused, pass.n_refused);
	count(&counts->foreign, pass.n_foreign);
	count(&counts->dropped, pass.n_dropped);
}

static void patch_module(struct d9__got_table *table)
{
	bool only_bound;
	unsigned place = place_of_module(table, &only_bound);

	pass.table = table;
	pass.n_writes = pass.n_later = pass.n_refused = pass.n_foreign = pass.n_dropped = 0;
	if (place) {
		read_relocations(pass.mod.rela, pass.mod.n_rela, place, only_bound);
		read_relocations(pass.mod.jmprel, pass.mod.n_jmprel, place, only_bound);
		commit_writes();
	}
	if (!pass.restoring)
		add_counts();
}

static void begin_walk(const struct dl_phdr_info *info)
{
	pass.forgot = atomic_load_explicit(&engine.subs, memory_order_relaxed) != info->dlpi_subs;
	if (pass.forgot)
		forget_all();
	else
		verify_slots();
	atomic_store_explicit(&engine.adds, info->dlpi_adds, memory_order_relaxed);
	atomic_store_explicit(&engine.subs, info->dlpi_subs, memory_order_relaxed);
	pass.first_module = false;
}

static int pass_module(struct dl_phdr_info *info, size_t len, void *arg)
{
	bool waiting = false;

	(void)len;
	(void)arg;
	if (pass.first_module)
		begin_walk(info);
	if (!d9__elf_module_init(&pass.mod, info))
		return 0;
	pass.known = know_module(&pass.mod);
	for (struct d9__got_table *table = engine.tables; table; table = table->next) {
		if (table->n_images == 0)
			continue;
		if (!pass.known) {
			count(&table->counts.dropped, 1);
		} else if (!(pass.known->settled & 1u << table->id)) {
			patch_module(table);
			waiting = waiting || pass.n_later > 0;
		}
	}
	if (waiting)
		pass.known->tries++;
	return 0;
}

static uint64_t coarse_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* What the table has now, from the list of slots. */
static void recount_slots(struct d9__got_table *table)
{
	uint32_t n_slots = 0, n_modules = 0;

	for (unsigned i = 0; i < engine.n_modules; i++)
		engine.modules[i].reached = false;
	for (unsigned i = 0; i < engine.n_slots; i++) {
		struct known_module *known = &engine.modules[engine.slots[i].module];

		if (engine.slots[i].table != table->id)
			continue;
		n_slots++;
		n_modules += !known->reached;
		known->reached = true;
	}
	atomic_store_explicit(&table->counts.slots, n_slots, memory_order_relaxed);
	atomic_store_explicit(&table->counts.modules, n_modules, memory_order_relaxed);
}

static void make_pass_locked(void)
{
	bool unsettled = false;

	pass.first_module = true;
	pass.restoring = false;
	pass.n_changed = 0;
	pass.cursor = 0;
	pass.machine = d9__elf_machine();
	for (struct d9__got_table *table = engine.tables; table; table = table->next)
		atomic_store_explicit(&table->counts.unsettled, 0, memory_order_relaxed);
	dl_iterate_phdr(pass_module, NULL);
	for (struct d9__got_table *table = engine.tables; table; table = table->next) {
		recount_slots(table);
		unsettled = unsettled || atomic_load_explicit(&table->counts.unsettled,
							      memory_order_relaxed);
	}
	/* The loader may yet bind lazily, or relocate, over what was just written. */
	atomic_store_explicit(&engine.second_look_ns,
			      pass.n_changed || unsettled ? coarse_now_ns() + SECOND_LOOK_NS : 0,
			      memory_order_relaxed);
}

/* ---- tables ---- */

static void forget_table(struct d9__got_table *table)
{
	for (unsigned i = 0; i < engine.n_modules; i++) {
		engine.modules[i].settled &= (uint8_t)~(1u << table->id);
		engine.modules[i].tries = 0;
	}
	for (unsigned i = 0; i < engine.n_slots;) {
		if (engine.slots[i].table == table->id)
			engine.slots[i] = engine.slots[--engine.n_slots];
		else
			i++;
	}
	atomic_store_explicit(&table->counts.refused, 0, memory_order_relaxed);
	atomic_store_explicit(&table->counts.foreign, 0, memory_order_relaxed);
	atomic_store_explicit(&table->counts.dropped, 0, memory_order_relaxed);
}

/* Not under the patch lock: dlsym() may wait for a constructor. */
static void resolve_hooks(struct d9__got_table *table)
{
	struct d9__image_symbol symbols[D9__GOT_HOOKS_MAX];

	for (size_t i = 0; i < table->n_hooks; i++)
		symbols[i] = (struct d9__image_symbol){ .name = table->hooks[i].name };
	d9__images_resolve_all(table->images, symbols, table->n_hooks);
	for (size_t i = 0; i < table->n_hooks; i++) {
		const struct d9__got_hook *hook = &table->hooks[i];
		void *found = symbols[i].address;

		if (hook->place & D9__GOT_CHAIN)
			found = dlsym(RTLD_DEFAULT, hook->name);
		/* One that was found stays: callbacks may be under way in it. */
		if (found && !real_of(hook))
			set_real(hook, found);
	}
}

int d9__got_resolve(struct d9__got_table *table)
{
	int saved_errno = errno;
	unsigned n = d9__images_refresh(table->images);

	if (n > 0)
		resolve_hooks(table);
	errno = saved_errno;
	return n > 0 ? 0 : -ENOENT;
}

static void refresh_table(struct d9__got_table *table)
{
	unsigned n = d9__images_refresh(table->images);

	if (n == table->n_images)
		return;
	if (n > 0)
		resolve_hooks(table);
	d9__patch_lock();
	forget_table(table);
	table->n_images = n;
	d9__patch_unlock();
}

static void make_pass(void)
{
	struct d9__got_table *tables[TABLES_MAX];
	uint64_t subs = atomic_load_explicit(&engine.subs, memory_order_relaxed);
	unsigned n = 0;

	d9__patch_lock();
	for (struct d9__got_table *table = engine.tables; table; table = table->next)
		tables[n++] = table;
	d9__patch_unlock();
	for (unsigned i = 0; i < n; i++)
		refresh_table(tables[i]);
	d9__patch_lock();
	make_pass_locked();
	d9__patch_unlock();
	if (atomic_load_explicit(&engine.subs, memory_order_relaxed) != subs)
		d9__stubs_sweep();
}

/* A replacement that the linker bound to the loop library's own function would call itself. */
static bool hooks_are_ours(const struct d9__got_table *table)
{
	struct d9__module_range own;

	if (table->n_hooks > D9__GOT_HOOKS_MAX || !d9__module_range_of(table, &own))
		return false;
	for (size_t i = 0; i < table->n_hooks; i++) {
		uintptr_t addr = (uintptr_t)table->hooks[i].replacement;

		if (addr < own.low || addr >= own.high)
			return false;
	}
	return true;
}

/* 0, or -ENOSPC; the lowest free id, so that a table that was restored can come again. */
static int register_table_locked(struct d9__got_table *table)
{
	unsigned used = 0;

	if (table->registered)
		return 0;
	for (struct d9__got_table *other = engine.tables; other; other = other->next)
		used |= 1u << other->id;
	for (table->id = 0; used & 1u << table->id; table->id++)
		continue;
	if (table->id >= TABLES_MAX)
		return -ENOSPC;
	if (!table->indexed)
		index_hooks(table);
	table->indexed = true;
	table->registered = true;
	table->n_images = 0;
	table->next = engine.tables;
	engine.tables = table;
	atomic_fetch_add_explicit(&engine.n_tables, 1, memory_order_relaxed);
	return 0;
}

static void unregister_table_locked(struct d9__got_table *table)
{
	struct d9__got_table **link = &engine.tables;

	while (*link && *link != table)
		link = &(*link)->next;
	if (!*link)
		return;
	*link = table->next;
	table->registered = false;
	atomic_store_explicit(&table->installed, false, memory_order_relaxed);
	forget_table(table);
	recount_slots(table);
	atomic_fetch_sub_explicit(&engine.n_tables, 1, memory_order_relaxed);
}

static void rescan_at_tick(void)
{
	d9__got_rescan();
}

static void start_engine(void)
{
	pthread_atfork(before_fork, after_fork_parent, after_fork_child);
	if (d9__tick_add)
		d9__tick_add(rescan_at_tick);
}

static int install_table(struct d9__got_table *table)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	uint32_t slots, refused;
	int err;

	if (d9__elf_machine() == 0 || !hooks_are_ours(table))
		return -ENOTSUP;
	d9__patch_lock();
	err = register_table_locked(table);
	d9__patch_unlock();
	if (err)
		return err;
	/* Without the library: no walk over relocations, nothing started. */
	if (d9__images_refresh(table->images) == 0)
		return -ENOENT;
	pthread_once(&once, start_engine);
	make_pass();
	slots = atomic_load_explicit(&table->counts.slots, memory_order_relaxed);
	refused = atomic_load_explicit(&table->counts.refused, memory_order_relaxed);
	if (slots == 0 && refused > 0)
		return -EPERM;
	/* release: whoever sees it sees the real functions */
	atomic_store_explicit(&table->installed, true, memory_order_release);
	return 0;
}

int d9__got_install(struct d9__got_table *table)
{
	int saved_errno = errno, err = 0;

	if (!atomic_load_explicit(&table->installed, memory_order_acquire) ||
	    d9__got_rescan_due())
		err = install_table(table);
	errno = saved_errno;
	return err;
}

/* ---- again ---- */

struct loader_counters {
	uint64_t adds, subs;
};

/* They are the same for every module: the first one tells. */
static int read_counters(struct dl_phdr_info *info, size_t len, void *arg)
{
	struct loader_counters *counters = arg;

	(void)len;
	counters->adds = info->dlpi_adds;
	counters->subs = info->dlpi_subs;
	return 1;
}

bool d9__got_rescan_due(void)
{
	struct loader_counters now;
	uint64_t second_look_ns;

	if (atomic_load_explicit(&engine.n_tables, memory_order_relaxed) == 0 ||
	    !d9__patch_trylock())
		return false;
	dl_iterate_phdr(read_counters, &now);
	d9__patch_unlock();
	if (now.adds != atomic_load_explicit(&engine.adds, memory_order_relaxed) ||
	    now.subs != atomic_load_explicit(&engine.subs, memory_order_relaxed))
		return true;
	second_look_ns = atomic_load_explicit(&engine.second_look_ns, memory_order_relaxed);
	return second_look_ns != 0 && coarse_now_ns() >= second_look_ns;
}

bool d9__got_rescan(void)
{
	int saved_errno = errno;
	bool due = d9__got_rescan_due();

	if (!due || atomic_exchange_explicit(&engine.busy, true, memory_order_acquire))
		return false;
	make_pass();
	/* release: the next one sees all of this pass */
	atomic_store_explicit(&engine.busy, false, memory_order_release);
	errno = saved_errno;
	return true;
}

void d9__got_rescan_paced(uint64_t now_ns)
{
	uint64_t last = atomic_load_explicit(&engine.paced_ns, memory_order_relaxed);

	if (now_ns - last < SECOND_LOOK_NS)
		return;
	atomic_store_explicit(&engine.paced_ns, now_ns, memory_order_relaxed);
	d9__got_rescan();
}

static int restore_module(struct dl_phdr_info *info, size_t len, void *arg)
{
	struct d9__got_table *table = arg;

	(void)len;
	if (d9__elf_module_init(&pass.mod, info))
		patch_module(table);
	return 0;
}

void d9__got_restore(struct d9__got_table *table)
{
	int saved_errno = errno;

	d9__patch_lock();
	if (table->registered) {
		pass.restoring = true;
		dl_iterate_phdr(restore_module, table);
		unregister_table_locked(table);
	}
	d9__patch_unlock();
	errno = saved_errno;
}
