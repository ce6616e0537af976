/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

#include "base/sanitized.h"
#include "base/time.h"
#include "hook/elf_module.h"
#include "hook/got.h"
#include "hook/got_pass.h"
#include "hook/patch_lock.h"
#include "hook/stubs.h"
#include "record/sandbox.h"
#include "record/source.h"
#include "segment/modules.h"

#define SECOND_LOOK_NS (10 * D9__MS_NS)

static struct {
	struct d9__got_table *tables; /* under the patch lock */
	_Atomic(unsigned) n_tables;
	/* When the last pass wants to be looked after; 0: it does not. */
	_Atomic(uint64_t) second_look_ns;
	_Atomic(uint64_t) paced_ns; /* last look of a park hook */
	_Atomic(bool) busy;         /* a thread makes a rescan */
} engine;

/* ---- fork ---- */

static void before_fork(void)
{
	d9__patch_fork_prepare();
	d9__stubs_lock();
}

static void after_fork_parent(void)
{
	d9__stubs_unlock();
	d9__patch_fork_parent();
}

static void after_fork_child(void)
{
	/* Another thread may have been between two steps of a pass; it is not here any more. */
	atomic_store_explicit(&engine.busy, false, memory_order_relaxed);
	d9__stubs_unlock();
	d9__patch_fork_child();
}

/* ---- tables ---- */

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

		/* Hooks of several tables may share a word: ask for it once. */
		if (hook->place & (D9__GOT_CHAIN | D9__GOT_SCOPE) && !d9__got_real(hook))
			found = dlsym(RTLD_DEFAULT, hook->name);
		/* One that was found stays: callbacks may be under way in it. */
		if (found && !d9__got_real(hook))
			d9__got_set_real(hook, found);
		atomic_store_explicit(&table->in_scope[i], symbols[i].in_scope, memory_order_relaxed);
	}
	D9__TSAN_RELEASE(table);
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

	/* acquire: the real functions are known then */
	if (n == atomic_load_explicit(&table->n_images, memory_order_acquire))
		return;
	if (n > 0)
		resolve_hooks(table);
	d9__patch_lock();
	d9__got_pass_forget(table);
	atomic_store_explicit(&table->n_images, n, memory_order_release);
	d9__patch_unlock();
}

static uint64_t coarse_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	return d9__timespec_ns(&now);
}

static void make_pass(void)
{
	struct d9__got_table *tables[D9__GOT_TABLES_MAX];
	uint64_t subs = d9__got_pass_counters().subs;
	unsigned n = 0;
	bool again;

	d9__patch_lock();
	for (struct d9__got_table *table = engine.tables; table; table = table->next)
		tables[n++] = table;
	d9__patch_unlock();
	for (unsigned i = 0; i < n; i++)
		refresh_table(tables[i]);
	d9__patch_lock();
	again = d9__got_pass_make(engine.tables);
	/* The loader may yet bind lazily, or relocate, over what was just written. */
	atomic_store_explicit(&engine.second_look_ns, again ? coarse_now_ns() + SECOND_LOOK_NS : 0,
			      memory_order_relaxed);
	d9__patch_unlock();
	if (d9__got_pass_counters().subs != subs)
		d9__stubs_sweep();
}

/* A replacement that the linker bound to the loop library's own function would call itself. */
static bool hooks_are_ours(const struct d9__got_table *table, struct d9__module_range *own)
{
	if (table->n_hooks > D9__GOT_HOOKS_MAX || !d9__module_range_of(table, own))
		return false;
	for (size_t i = 0; i < table->n_hooks; i++) {
		uintptr_t addr = (uintptr_t)table->hooks[i].replacement;

		if (addr < own->low || addr >= own->high)
			return false;
	}
	return true;
}

/* 0, or -ENOSPC; the lowest free id, so that a table that was restored can come again. */
static int register_table_locked(struct d9__got_table *table, const struct d9__module_range *own)
{
	unsigned used = 0;

	if (table->registered)
		return 0;
	for (struct d9__got_table *other = engine.tables; other; other = other->next)
		used |= 1u << other->id;
	for (table->id = 0; used & 1u << table->id; table->id++)
		continue;
	if (table->id >= D9__GOT_TABLES_MAX)
		return -ENOSPC;
	if (!table->indexed)
		d9__got_pass_index(table);
	table->indexed = true;
	table->own = *own;
	table->registered = true;
	atomic_store_explicit(&table->n_images, 0, memory_order_relaxed);
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
	d9__got_pass_restore(table);
	atomic_fetch_sub_explicit(&engine.n_tables, 1, memory_order_relaxed);
}

static void rescan_at_tick(void)
{
	d9__got_rescan();
}

static void start_engine(void)
{
	pthread_atfork(before_fork, after_fork_parent, after_fork_child);
	d9__tick_add(rescan_at_tick);
}

static int install_table(struct d9__got_table *table)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct d9__module_range own;
	uint32_t slots, refused;
	int err;

	if (d9__elf_machine() == 0 || !hooks_are_ours(table, &own))
		return -ENOTSUP;
	d9__patch_lock();
	err = register_table_locked(table, &own);
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
	/* release: a thread that sees it sees the real functions */
	atomic_store_explicit(&table->installed, true, memory_order_release);
	return 0;
}

int d9__got_install(struct d9__got_table *table)
{
	int saved_errno = errno, err = 0;

	bool installed = atomic_load_explicit(&table->installed, memory_order_acquire);

	if (d9__sandbox_is_shut())
		err = installed ? 0 : -EPERM;
	else if (!d9__modules_may_walk())
		err = installed ? 0 : -EDEADLK;
	else if (!installed || d9__got_rescan_due())
		err = install_table(table);
	errno = saved_errno;
	return err;
}

/* ---- again ---- */

/* They are the same for every module: the first one tells. */
static int read_counters(struct dl_phdr_info *info, size_t len, void *arg)
{
	struct d9__loader_counters *counters = arg;

	(void)len;
	counters->adds = info->dlpi_adds;
	counters->subs = info->dlpi_subs;
	return 1;
}

bool d9__got_rescan_due(void)
{
	struct d9__loader_counters now, last = d9__got_pass_counters();
	uint64_t second_look_ns;

	if (d9__sandbox_is_shut() ||
	    atomic_load_explicit(&engine.n_tables, memory_order_relaxed) == 0 || !d9__modules_may_walk() ||
	    !d9__patch_trylock())
		return false;
	dl_iterate_phdr(read_counters, &now);
	d9__patch_unlock();
	if (now.adds != last.adds || now.subs != last.subs)
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

void d9__got_restore(struct d9__got_table *table)
{
	int saved_errno = errno;

	d9__patch_lock();
	if (table->registered)
		unregister_table_locked(table);
	d9__patch_unlock();
	errno = saved_errno;
}
