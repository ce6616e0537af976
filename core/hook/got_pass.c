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

#include <errno.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/own_memory.h"
#include "hook/elf_module.h"
#include "hook/got_pass.h"
#include "hook/word.h"

#define MODULES_MAX 2048
#define SLOTS_MAX   16384
#define WRITES_MAX  256 /* of one module and table at a time */
#define OWN_MAX     8
#define RELA_AT_ONCE 1024
#define TRIES_MAX   8   /* passes that wait for a module's relocation */

struct known_module {
	uintptr_t base, dynamic;
	const void *headers;
	uint16_t settled; /* bit per table */
	uint8_t tries;
	bool reached; /* holds a slot of ours */
};

struct known_slot {
	uintptr_t *word;
	const struct d9__got_hook *hook;
	uint16_t module;
	uint8_t table;
};

/*
 * The results of earlier passes.  Under the patch lock, the atomics excepted.  Fixed size: the
 * loader's lock, held while they grow, forbids malloc().
 */
static struct {
	struct known_module modules[MODULES_MAX];
	unsigned n_modules;
	struct known_slot slots[SLOTS_MAX];
	unsigned n_slots;
	/* The loader's counters at the last pass. */
	_Atomic(uint64_t) adds, subs;
} found;

static int protect_pages(void *addr, size_t len, int prot)
{
	return mprotect(addr, len, prot);
}

int (*d9__got_protect)(void *addr, size_t len, int prot) = protect_pages;

/* Our libraries, by file name. */
static const char *const own_files[] = { "libdial9", NULL };

/* ---- hooks of a table, by name ---- */

static uint32_t name_hash(const char *name)
{
	uint32_t hash = 5381;

	for (; *name; name++)
		hash = hash * 33 + (unsigned char)*name;
	return hash ^ hash >> 15;
}

/* Most names are told apart by their first three bytes. */
static unsigned start_of(const char *name)
{
	const unsigned char *c = (const unsigned char *)name;

	return c[0] && c[1] ? ((unsigned)c[0] ^ c[1] * 4u ^ c[2] * 16u) & 0xff : c[0];
}

void d9__got_pass_index(struct d9__got_table *table)
{
	memset(table->starts, 0, sizeof(table->starts));
	memset(table->lookup, 0, sizeof(table->lookup));
	for (size_t i = 0; i < table->n_hooks; i++) {
		uint32_t at = name_hash(table->hooks[i].name);

		while (table->lookup[at % sizeof(table->lookup)])
			at++;
		table->lookup[at % sizeof(table->lookup)] = (uint8_t)(i + 1);
		table->starts[start_of(table->hooks[i].name) / 64] |=
			UINT64_C(1) << start_of(table->hooks[i].name) % 64;
	}
}

static const struct d9__got_hook *find_hook(const struct d9__got_table *table, const char *name)
{
	unsigned start = start_of(name);

	if (!(table->starts[start / 64] >> start % 64 & 1))
		return NULL;
	for (uint32_t at = name_hash(name);; at++) {
		uint8_t entry = table->lookup[at % sizeof(table->lookup)];

		if (!entry)
			return NULL;
		if (strcmp(table->hooks[entry - 1].name, name) == 0)
			return &table->hooks[entry - 1];
	}
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
	/* The preload library's export, which the linker put there: the long way to the hook. */
	if (word->in_own_export && !word->only_bound && word->real)
		return word->place & D9__GOT_SCOPE ? D9__GOT_LEAVE : D9__GOT_SWAP;
	if (word->absolute || (word->only_bound && !(word->in_own_module && word->in_scope)))
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
	struct d9__got_table *tables; /* a list */
	unsigned n_changed;
	unsigned cursor; /* where the next module is likely known */
	unsigned machine;
	struct d9__module_range own[OWN_MAX]; /* our libraries */
	unsigned n_own;

	/* Of the module and table at hand. */
	struct d9__elf_module mod;
	struct known_module *known;
	struct d9__got_table *table;
	ElfW(Rela) rela[RELA_AT_ONCE];
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
	found.n_modules = 0;
	found.n_slots = 0;
	for (struct d9__got_table *table = pass.tables; table; table = table->next) {
		atomic_store_explicit(&table->counts.refused, 0, memory_order_relaxed);
		atomic_store_explicit(&table->counts.foreign, 0, memory_order_relaxed);
		atomic_store_explicit(&table->counts.dropped, 0, memory_order_relaxed);
	}
}

/* Whether no table has anything to look for in a module, which is told by the loader's word alone. */
static bool is_settled(const struct dl_phdr_info *info)
{
	uint16_t wanted = 0;

	for (const struct d9__got_table *table = pass.tables; table; table = table->next)
		if (atomic_load_explicit(&table->n_images, memory_order_relaxed))
			wanted |= (uint16_t)(1u << table->id);
	for (unsigned i = 0; i < found.n_modules; i++)
		if (found.modules[i].base == info->dlpi_addr && found.modules[i].headers == info->dlpi_phdr)
			return !(wanted & ~found.modules[i].settled);
	return false;
}

static struct known_module *know_module(const struct d9__elf_module *mod, const struct dl_phdr_info *info)
{
	for (unsigned n = found.n_modules; n > 0; n--, pass.cursor++) {
		struct known_module *known = &found.modules[pass.cursor % found.n_modules];

		if (known->base == mod->base && known->dynamic == mod->dynamic) {
			pass.cursor++;
			return known;
		}
	}
	if (found.n_modules == MODULES_MAX)
		return NULL;
	found.modules[found.n_modules] =
		(struct known_module){ .base = mod->base, .dynamic = mod->dynamic, .headers = info->dlpi_phdr };
	return &found.modules[found.n_modules++];
}

/* Drop slots that were written since, and have their modules read again. */
static void verify_slots(void)
{
	for (unsigned i = 0; i < found.n_slots;) {
		struct known_slot *slot = &found.slots[i];
		uintptr_t value;

		if (!d9__elf_read_word(slot->word, &value)) {
			*slot = found.slots[--found.n_slots];
			continue;
		}
		if (value == (uintptr_t)slot->hook->replacement) {
			i++;
			continue;
		}
		found.modules[slot->module].settled &= (uint16_t)~(1u << slot->table);
		for (struct d9__got_table *table = pass.tables; table; table = table->next) {
			if (table->id == slot->table)
				count(&table->counts.repaired, 1);
		}
		*slot = found.slots[--found.n_slots];
	}
}

static bool track_slot(const struct write *write)
{
	if (found.n_slots == SLOTS_MAX)
		return false;
	found.slots[found.n_slots++] = (struct known_slot){
		.word = write->word,
		.hook = write->hook,
		.module = (uint16_t)(pass.known - found.modules),
		.table = (uint8_t)pass.table->id,
	};
	return true;
}

static bool is_tracked(const uintptr_t *word)
{
	for (unsigned i = 0; i < found.n_slots; i++) {
		if (found.slots[i].word == word)
			return true;
	}
	return false;
}

/* ---- writing ---- */

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
	/* By now the page should be writable: it is not there any more. */
	if (d9__word_access(write->word) == D9__WORD_READ_ONLY) {
		pass.n_refused++;
		return;
	}
	if (!pass.restoring && !track_slot(write)) {
		pass.n_dropped++;
		return;
	}
	/* release: a call through it finds the real function set */
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
	enum d9__word_access access = d9__word_access(pass.writes[i].word);

	if (access == D9__WORD_WRITABLE || (access == D9__WORD_UNKNOWN && !relro)) {
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

static int note_own_module(struct dl_phdr_info *info, size_t len, void *arg)
{
	struct d9__elf_module mod;

	(void)len;
	(void)arg;
	if (pass.n_own < OWN_MAX && info->dlpi_name && d9__elf_file_is(info->dlpi_name, own_files) &&
	    d9__elf_module_init(&mod, info))
		pass.own[pass.n_own++] = (struct d9__module_range){ mod.low, mod.high };
	return 0;
}

static bool is_own_code(uintptr_t addr)
{
	for (unsigned i = 0; i < pass.n_own; i++) {
		if (addr >= pass.own[i].low && addr < pass.own[i].high)
			return true;
	}
	return false;
}

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

static void judge_word(const struct d9__got_hook *hook, uintptr_t *word, uintptr_t value, bool absolute, bool bound)
{
	struct d9__got_word question = {
		.value = (void *)value,
		.real = d9__got_real(hook),
		.replacement = hook->replacement,
		.place = hook->place,
		.absolute = absolute,
		.only_bound = bound,
		.in_scope = atomic_load_explicit(&pass.table->in_scope[hook - pass.table->hooks], memory_order_relaxed),
		.in_own_export = is_own_code(value),
		.in_own_module = d9__elf_module_holds(&pass.mod, value),
		.in_any_module = in_any_module(value),
	};
	enum d9__got_verdict verdict = d9__got_judge(&question);

	if (pass.restoring) {
		if (verdict == D9__GOT_OURS)
			add_write(hook, word, d9__got_real(hook));
		return;
	}
	if (verdict == D9__GOT_ADOPT)
		d9__got_set_real(hook, (void *)value);
	if (verdict == D9__GOT_SWAP || verdict == D9__GOT_BIND || verdict == D9__GOT_ADOPT)
		add_write(hook, word, hook->replacement);
	else if (verdict == D9__GOT_OURS)
		track_own(hook, word);
	pass.n_foreign += verdict == D9__GOT_FOREIGN;
	pass.n_later += verdict == D9__GOT_LATER;
}

/*
 * Cheap look before the names: does |word| hold a function of the library or of the adapter, or
 * is it not bound yet?
 */
static bool leads_to(const struct d9__got_table *table, const uintptr_t *word)
{
	uintptr_t value;

	return d9__elf_read_word(word, &value) &&
	       (d9__images_contain(table->images, (const void *)value) || d9__elf_module_holds(&pass.mod, value) ||
		(value >= table->own.low && value < table->own.high));
}

static void read_relocation(const ElfW(Rela) *rela, enum d9__got_place place, bool bound)
{
	const struct d9__got_table *table = pass.table;
	struct d9__elf_module *mod = &pass.mod;
	enum d9__elf_word kind = d9__elf_word_of(pass.machine, rela);
	uintptr_t *word = (uintptr_t *)(mod->base + rela->r_offset);
	const struct d9__got_hook *hook;
	char name[D9__ELF_NAME_MAX];
	uintptr_t value;
	ElfW(Sym) symbol;

	if (kind == D9__ELF_WORD_OTHER || (uintptr_t)word % sizeof(*word) != 0 || (bound && !leads_to(table, word)) ||
	    !d9__elf_read_symbol(mod, ELF64_R_SYM(rela->r_info), &symbol))
		return;
	/* A module that defines the name embeds its own copy. */
	if (place != D9__GOT_IN_LIBRARY && symbol.st_shndx != SHN_UNDEF)
		return;
	d9__elf_read_name(mod, symbol.st_name, name);
	hook = find_hook(table, name);
	if (hook && (hook->place & place) && d9__elf_module_is_data(mod, (uintptr_t)word) && d9__elf_read_word(word, &value))
		judge_word(hook, word, value, kind == D9__ELF_WORD_ABSOLUTE, bound);
}

static void read_relocations(const ElfW(Rela) *rela, size_t n, enum d9__got_place place, bool bound)
{
	while (n > 0) {
		size_t wanted = n < RELA_AT_ONCE ? n : RELA_AT_ONCE;
		size_t got = d9__own_memory_read((uintptr_t)rela, pass.rela, wanted * sizeof(*rela)) / sizeof(*rela);

		for (size_t i = 0; i < got; i++)
			read_relocation(&pass.rela[i], place, bound);
		if (got < wanted)
			return;
		rela += got;
		n -= got;
	}
}

/* Which of |table|'s slots in the module may be swapped: 0 none. */
static unsigned place_of_module(const struct d9__got_table *table, bool *only_bound)
{
	const struct d9__elf_module *mod = &pass.mod;

	*only_bound = false;
	if (d9__elf_module_holds(mod, (uintptr_t)table) ||
	    d9__elf_module_holds(mod, (uintptr_t)&found) || d9__elf_file_is(mod->path, own_files))
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
	pass.known->settled |= (uint16_t)(1u << pass.table->id);
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
	pass.forgot = atomic_load_explicit(&found.subs, memory_order_relaxed) != info->dlpi_subs;
	if (pass.forgot)
		forget_all();
	else
		verify_slots();
	atomic_store_explicit(&found.adds, info->dlpi_adds, memory_order_relaxed);
	atomic_store_explicit(&found.subs, info->dlpi_subs, memory_order_relaxed);
	pass.first_module = false;
}

static int pass_module(struct dl_phdr_info *info, size_t len, void *arg)
{
	struct known_module *known;
	bool waiting = false;

	(void)len;
	(void)arg;
	if (pass.first_module)
		begin_walk(info);
	if (is_settled(info) || !d9__elf_module_init(&pass.mod, info))
		return 0;
	pass.known = known = know_module(&pass.mod, info);
	for (struct d9__got_table *table = pass.tables; table; table = table->next) {
		if (atomic_load_explicit(&table->n_images, memory_order_relaxed) == 0)
			continue;
		if (!known) {
			count(&table->counts.dropped, 1);
		} else if (!(known->settled & 1u << table->id)) {
			patch_module(table);
			waiting = waiting || pass.n_later > 0;
		}
	}
	if (waiting)
		known->tries++;
	return 0;
}

/* Read the table's present values, from the list of slots. */
static void recount_slots(struct d9__got_table *table)
{
	uint32_t n_slots = 0, n_modules = 0;

	for (unsigned i = 0; i < found.n_modules; i++)
		found.modules[i].reached = false;
	for (unsigned i = 0; i < found.n_slots; i++) {
		struct known_module *known = &found.modules[found.slots[i].module];

		if (found.slots[i].table != table->id)
			continue;
		n_slots++;
		n_modules += !known->reached;
		known->reached = true;
	}
	atomic_store_explicit(&table->counts.slots, n_slots, memory_order_relaxed);
	atomic_store_explicit(&table->counts.modules, n_modules, memory_order_relaxed);
}

bool d9__got_pass_make(struct d9__got_table *tables)
{
	bool again;

	pass.first_module = true;
	pass.restoring = false;
	pass.tables = tables;
	pass.n_changed = 0;
	pass.cursor = 0;
	pass.machine = d9__elf_machine();
	for (struct d9__got_table *table = tables; table; table = table->next)
		atomic_store_explicit(&table->counts.unsettled, 0, memory_order_relaxed);
	pass.n_own = 0;
	d9__elf_forget_pages();
	dl_iterate_phdr(note_own_module, NULL);
	dl_iterate_phdr(pass_module, NULL);
	again = pass.n_changed > 0;
	for (struct d9__got_table *table = tables; table; table = table->next) {
		recount_slots(table);
		again = again ||
			atomic_load_explicit(&table->counts.unsettled, memory_order_relaxed) > 0;
	}
	return again;
}

struct d9__loader_counters d9__got_pass_counters(void)
{
	return (struct d9__loader_counters){
		.adds = atomic_load_explicit(&found.adds, memory_order_relaxed),
		.subs = atomic_load_explicit(&found.subs, memory_order_relaxed),
	};
}

void d9__got_pass_forget(struct d9__got_table *table)
{
	for (unsigned i = 0; i < found.n_modules; i++) {
		found.modules[i].settled &= (uint16_t)~(1u << table->id);
		found.modules[i].tries = 0;
	}
	for (unsigned i = 0; i < found.n_slots;) {
		if (found.slots[i].table == table->id)
			found.slots[i] = found.slots[--found.n_slots];
		else
			i++;
	}
	atomic_store_explicit(&table->counts.refused, 0, memory_order_relaxed);
	atomic_store_explicit(&table->counts.foreign, 0, memory_order_relaxed);
	atomic_store_explicit(&table->counts.dropped, 0, memory_order_relaxed);
}

static int restore_module(struct dl_phdr_info *info, size_t len, void *arg)
{
	struct d9__got_table *table = arg;

	(void)len;
	if (d9__elf_module_init(&pass.mod, info))
		patch_module(table);
	return 0;
}

void d9__got_pass_restore(struct d9__got_table *table)
{
	pass.restoring = true;
	pass.machine = d9__elf_machine();
	d9__elf_forget_pages();
	dl_iterate_phdr(restore_module, table);
	d9__got_pass_forget(table);
	recount_slots(table);
}
