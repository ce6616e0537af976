/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <elf.h>
#include <errno.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"
#include "base/hash.h"
#include "base/heap.h"
#include "base/own_memory.h"
#include "base/sandbox.h"
#include "base/sanitized.h"
#include "base/thread.h"
#include "base/time.h"
#include "ring/clock.h"
#include "ring/note.h"
#include "segment/module_file.h"
#include "segment/modules.h"

#define FORK_WALK_WAIT_MS 5000 /* a busy machine may stop a thread for so long while it walks */
#define FORK_LOCK_WAIT_MS 200
#define PROBE_WAIT_NS	  (100 * D9__MS_NS)
#define PROBE_STACK_BYTES (64 << 10)
#define NOTES_MAX	  1024 /* bytes of one segment that are looked at for a build-id */

/*
 * Protects everything below.  Never held while the loader is asked: a caller may itself stand in
 * dl_iterate_phdr(), with the loader's lock held.
 */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/*
 * Held while the loader is asked, so that no fork falls into that moment: the child would keep the
 * loader's lock, taken by a thread that it has not, and hang at its next exception or dlopen().
 * Shared by those who look, also from inside dl_iterate_phdr(); a fork has it alone.  Before |lock|.
 */
static pthread_rwlock_t walking = PTHREAD_RWLOCK_INITIALIZER;

/*
 * True in a forked child: another thread of the parent may have had the loader's lock, in dlopen() for
 * instance, and then no thread gives it back.  So the flush thread or a probe asks first, for which the
 * program does not have to wait.
 */
static _Atomic(bool) in_doubt;

static struct {
	pthread_t thread;
	_Atomic(bool) has_begun, has_ended;
	_Atomic(int) tid;	/* 0: it does not run yet */
	_Atomic(uint64_t) end_ns; /* until then others wait for it; 0: none was started */
} probe;

static struct d9__module *modules;
static size_t n_modules;
static unsigned long long adds, subs; /* the loader's counters at the last scan */
static _Atomic(uint32_t) generation; /* of what a scan found */
static void (*on_unload)(uintptr_t start, uintptr_t end);

/* The result of one walk through the loader's list. */
struct scan {
	struct d9__module *found;
	size_t n;
	unsigned long long adds, subs;
	bool unless_changed; /* stop if the counters are those of the last scan */
	bool counted, unchanged, failed;
};

static void take_build_id(struct d9__module *module, uintptr_t address, size_t size)
{
	_Alignas(ElfW(Nhdr)) uint8_t notes[NOTES_MAX];
	const uint8_t *note = notes;
	size_t wanted = size < sizeof(notes) ? size : sizeof(notes);
	size_t len = d9__own_memory_read(address, notes, wanted);

	module->unread |= len < wanted;
	while (len >= sizeof(ElfW(Nhdr))) {
		const ElfW(Nhdr) *head = (const ElfW(Nhdr) *)(const void *)note;
		size_t name = (head->n_namesz + 3u) & ~3u, desc = (head->n_descsz + 3u) & ~3u;

		if (name > len - sizeof(*head) || desc > len - sizeof(*head) - name)
			return;
		note += sizeof(*head);
		if (head->n_type == NT_GNU_BUILD_ID && head->n_namesz == 4 &&
		    !memcmp(note, "GNU", 4)) {
			module->build_id_len = head->n_descsz < D9__BUILD_ID_MAX ?
						       (uint8_t)head->n_descsz : D9__BUILD_ID_MAX;
			memcpy(module->build_id, note + name, module->build_id_len);
			return;
		}
		note += name + desc;
		len -= sizeof(*head) + name + desc;
	}
}

void d9__module_describe(struct d9__module *module, const struct dl_phdr_info *info)
{
	module->base = info->dlpi_addr;
	module->start = UINTPTR_MAX;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
		uintptr_t start = info->dlpi_addr + ph->p_vaddr;

		if (ph->p_type == PT_LOAD) {
			if (start < module->start)
				module->start = start;
			if (start + ph->p_memsz > module->end)
				module->end = start + ph->p_memsz;
		} else if (ph->p_type == PT_NOTE) {
			take_build_id(module, start, ph->p_memsz);
		}
	}
}

static bool append(struct d9__module **list, size_t *n, const struct d9__module *module)
{
	if (!d9__array_grow(*list, *n))
		return false;
	(*list)[(*n)++] = *module;
	return true;
}

static int visit(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct d9__module module = { .base = info->dlpi_addr, .loaded = true };
	struct scan *scan = arg;
	const char *name = info->dlpi_name ? info->dlpi_name : "";
	struct d9__own_headers headers;
	const struct dl_phdr_info *readable;

	(void)size;
	if (!scan->counted) {
		scan->unchanged = scan->unless_changed && info->dlpi_adds == scan->adds &&
				  info->dlpi_subs == scan->subs;
		if (scan->unchanged)
			return 1;
		scan->adds = info->dlpi_adds;
		scan->subs = info->dlpi_subs;
		scan->counted = true;
	}
	readable = d9__own_headers_read(&headers, info);
	module.unread = !readable;
	if (readable)
		d9__module_describe(&module, readable);
	if (readable && module.start >= module.end)
		return 0;
	module.loader_name = d9__hash_text(name);
	module.path = d9__strdup(name);
	if (!module.path || !append(&scan->found, &scan->n, &module)) {
		d9__free(module.path);
		scan->failed = true;
	}
	return scan->failed;
}

/* A module that was met before the sandbox was shut has an entry with all that already. */
static void find_files(struct scan *scan)
{
	int before = errno;

	for (size_t i = 0; i < scan->n && !d9__sandbox_is_shut(); i++)
		if (scan->found[i].path[0] != '/' || !scan->found[i].build_id_len)
			d9__module_find_file(&scan->found[i]);
	errno = before;
}

/* ---- the table ---- */

/* Find the module by its base, because its file was cut: facts that were read before stay. */
static struct d9__module *find_at(uintptr_t base)
{
	for (size_t i = 0; i < n_modules; i++)
		if (modules[i].loaded && modules[i].base == base)
			return &modules[i];
	return NULL;
}

static struct d9__module *find_same(const struct d9__module *module)
{
	if (module->unread)
		return find_at(module->base);
	for (size_t i = 0; i < n_modules; i++)
		if (modules[i].loaded && modules[i].base == module->base &&
		    modules[i].start == module->start && modules[i].end == module->end &&
		    modules[i].loader_name == module->loader_name &&
		    modules[i].build_id_len == module->build_id_len &&
		    !memcmp(modules[i].build_id, module->build_id, module->build_id_len))
			return &modules[i];
	return NULL;
}

/* Bring the table to what |scan| found; takes the paths of |scan| over. */
static int merge_locked(struct scan *scan)
{
	uint64_t now_ns = d9__clock_mono_ns();
	int changed = 0;

	/* Another thread looked later, and was here before. */
	if (scan->adds < adds || scan->subs < subs)
		return 0;
	/* release: pairs with the acquire of d9__modules_generation(), which then finds the rest */
	atomic_fetch_add_explicit(&generation, 1, memory_order_release);
	for (size_t i = 0; i < n_modules; i++)
		modules[i].met = false;
	for (size_t i = 0; i < scan->n; i++) {
		struct d9__module *same = find_same(&scan->found[i]);

		if (same) {
			same->met = true;
			continue;
		}
		if (scan->found[i].start >= scan->found[i].end)
			continue;
		scan->found[i].met = true;
		if (!append(&modules, &n_modules, &scan->found[i]))
			return -ENOMEM;
		scan->found[i].path = NULL;
		changed = 1;
	}
	for (size_t i = 0; i < n_modules; i++)
		if (modules[i].loaded && !modules[i].met) {
			modules[i].loaded = modules[i].reported = false;
			modules[i].gone_ns = now_ns;
			if (on_unload)
				on_unload(modules[i].start, modules[i].end);
			changed = 1;
		}
	adds = scan->adds;
	subs = scan->subs;
	return changed;
}

/* The locks that the thread that forks could take. */
static bool has_walking, has_lock, has_company;

/* In CLOCK_REALTIME, by which locks with a deadline count. */
static struct timespec in_ms(uint64_t ms)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return d9__timespec_of(d9__timespec_ns(&now) + ms * D9__MS_NS);
}

/* How many the program has beside the caller; -1 if that is not told. */
static int other_threads(void)
{
	int ours = atomic_load_explicit(&d9__thread_flush, memory_order_relaxed) != 0, before = errno, n = -1;
	struct stat tasks;

	if (!d9__sandbox_is_shut() && !stat("/proc/self/task", &tasks))
		n = (int)tasks.st_nlink - 2 - 1 - ours; /* as for any directory: two, and one for each below it */
	errno = before;
	return n;
}

/*
 * An allocator whose handler ran before this one (tcmalloc's may) holds its own locks by now, and a
 * thread that holds one of ours may be waiting for them in malloc().  Then neither would ever go
 * on, so the waits have an end: a late one for who walks, since the child would hang at the
 * loader's lock.  Constructors and destructors run without that one, and may fork.
 */
void d9__modules_fork_prepare(void)
{
	struct timespec until = in_ms(FORK_WALK_WAIT_MS);

	has_company = other_threads() != 0;
	has_walking = !pthread_rwlock_timedwrlock(&walking, &until);
	until = in_ms(FORK_LOCK_WAIT_MS);
	has_lock = !pthread_mutex_timedlock(&lock, &until);
}

void d9__modules_fork_parent(void)
{
	if (has_lock)
		pthread_mutex_unlock(&lock);
	if (has_walking)
		pthread_rwlock_unlock(&walking);
}

#if defined(__SANITIZE_THREAD__)
/* Part of its runtime, which does not see that a lock is made anew. */
void AnnotateRWLockReleased(const char *file, int line, const volatile void *held, long writer);
#else
#define AnnotateRWLockReleased(file, line, held, writer) ((void)0)
#endif

/* The table is as another thread left it in the middle of a change: the next scan makes a new one. */
static void forget_torn(void)
{
	pthread_mutex_init(&lock, NULL);
	modules = NULL;
	n_modules = 0;
}

/* The lock knows its owner by a thread id, which is another one here. */
void d9__modules_fork_child(void)
{
	if (has_lock) {
		AnnotateRWLockReleased(__FILE__, __LINE__, &lock, 1);
		pthread_mutex_init(&lock, NULL);
	} else {
		forget_torn();
	}
	if (has_walking)
		AnnotateRWLockReleased(__FILE__, __LINE__, &walking, 1);
	pthread_rwlock_init(&walking, NULL);
	if (has_company || !has_walking) {
		memset(&probe, 0, sizeof(probe));
		atomic_store_explicit(&in_doubt, true, memory_order_relaxed);
	}
}

static int first_module(struct dl_phdr_info *info, size_t size, void *arg)
{
	(void)info, (void)size, (void)arg;
	return 1;
}

static void *ask_loader(void *unused)
{
	atomic_store(&probe.tid, (int)syscall(SYS_gettid));
	dl_iterate_phdr(first_module, NULL);
	atomic_store(&in_doubt, false);
	atomic_store(&probe.has_ended, true);
	return unused;
}

/* False: the probe hangs, or there is none; then it is of no use to wait again. */
static bool wait_for_probe(void)
{
	const struct timespec pause = { 0, 100000 };

	while (!atomic_load(&probe.has_ended)) {
		if (d9__clock_mono_ns() >= atomic_load(&probe.end_ns))
			return false;
		nanosleep(&pause, NULL);
	}
	return true;
}

static bool try_probe(void)
{
	if (atomic_exchange(&probe.has_begun, true))
		return wait_for_probe();
	atomic_store(&probe.end_ns, d9__clock_mono_ns() + PROBE_WAIT_NS);
	if (d9__thread_start(&probe.thread, D9__THREAD_NAMES "probe", ask_loader, D9__SANITIZED ? 0 : PROBE_STACK_BYTES)) {
		atomic_store(&probe.end_ns, 0);
		return false;
	}
	if (!wait_for_probe()) {
		pthread_detach(probe.thread);
		return false;
	}
	d9__thread_join(probe.thread, atomic_load(&probe.tid));
	return true;
}

bool d9__modules_may_walk(void)
{
	int before = errno;
	bool may;

	if (!atomic_load_explicit(&in_doubt, memory_order_relaxed) || d9__thread_is_flush())
		return true;
	if (d9__sandbox_is_shut())
		return false;
	may = try_probe();
	errno = before;
	return may;
}

int d9__modules_walk(int (*each)(struct dl_phdr_info *info, size_t size, void *arg), void *arg)
{
	int result;

	if (!d9__modules_may_walk())
		return 0;
	pthread_rwlock_rdlock(&walking);
	result = dl_iterate_phdr(each, arg);
	pthread_rwlock_unlock(&walking);
	atomic_store_explicit(&in_doubt, false, memory_order_relaxed);
	return result;
}

static int compare_code(struct dl_phdr_info *info, size_t size, void *arg)
{
	const uintptr_t *addr = arg;

	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &info->dlpi_phdr[i];

		if (ph->p_type == PT_LOAD && ph->p_flags & PF_X && *addr - info->dlpi_addr - ph->p_vaddr < ph->p_memsz)
			return 1;
	}
	return 0;
}

bool d9__modules_have_code(const void *addr)
{
	uintptr_t wanted = (uintptr_t)addr;

	return d9__modules_walk(compare_code, &wanted) != 0;
}

int d9__modules_scan(void)
{
	struct scan scan = { 0 };
	int changed = 0;

	if (!d9__modules_may_walk())
		return 0;
	pthread_mutex_lock(&lock);
	scan.adds = adds;
	scan.subs = subs;
	scan.unless_changed = n_modules != 0;
	pthread_mutex_unlock(&lock);
	d9__modules_walk(visit, &scan);
	if (!scan.failed && !scan.unchanged)
		find_files(&scan);
	if (scan.failed) {
		changed = -ENOMEM;
	} else if (!scan.unchanged) {
		pthread_mutex_lock(&lock);
		changed = merge_locked(&scan);
		pthread_mutex_unlock(&lock);
		if (changed > 0 && scan.unless_changed)
			d9__note(D9_LOG_INFO, "modules came or went: the list was read again");
	}
	for (size_t i = 0; i < scan.n; i++)
		d9__free(scan.found[i].path);
	d9__free(scan.found);
	return changed;
}

uint32_t d9__modules_generation(void)
{
	return atomic_load_explicit(&generation, memory_order_acquire);
}

void d9__modules_each(void (*fn)(void *arg, const struct d9__module *module), void *arg)
{
	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < n_modules; i++)
		fn(arg, &modules[i]);
	pthread_mutex_unlock(&lock);
}

void d9__modules_on_unload(void (*fn)(uintptr_t start, uintptr_t end))
{
	on_unload = fn;
}

void d9__modules_renew(void)
{
	size_t kept = 0;

	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < n_modules; i++) {
		if (!modules[i].loaded && modules[i].reported) {
			d9__free(modules[i].path);
			continue;
		}
		modules[i].reported = false;
		modules[kept++] = modules[i];
	}
	n_modules = kept;
	pthread_mutex_unlock(&lock);
}

void d9__modules_report(void (*fn)(void *arg, const struct d9__module *module), void *arg)
{
	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < n_modules; i++)
		if (!modules[i].reported) {
			fn(arg, &modules[i]);
			modules[i].reported = true;
		}
	pthread_mutex_unlock(&lock);
}

static bool name_locked(uintptr_t addr, char *buf, size_t len, int *n)
{
	for (size_t i = n_modules; i-- > 0;) {
		const struct d9__module *module = &modules[i];
		const char *slash;

		if (!module->loaded || addr < module->start || addr >= module->end)
			continue;
		slash = strrchr(module->path, '/');
		*n = snprintf(buf, len, "%s+0x%lx", slash ? slash + 1 : module->path,
			      (unsigned long)(addr - module->base));
		return true;
	}
	return false;
}

int d9__module_name_of(const void *addr, char *buf, size_t len)
{
	int n = 0;
	bool known = false;

	/* A scan that found nothing new is no answer: another thread's may have put it into the
	 * table meanwhile. */
	for (int round = 0; round < 2 && !known; round++) {
		if (round > 0)
			d9__modules_scan();
		pthread_mutex_lock(&lock);
		known = name_locked((uintptr_t)addr, buf, len, &n);
		pthread_mutex_unlock(&lock);
	}
	if (!known)
		n = snprintf(buf, len, "0x%lx", (unsigned long)(uintptr_t)addr);
	return n < 0 ? 0 : (size_t)n < len ? n : len ? (int)len - 1 : 0;
}

void d9__modules_release(void)
{
	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < n_modules; i++)
		d9__free(modules[i].path);
	d9__free(modules);
	modules = NULL;
	n_modules = 0;
	adds = subs = 0;
	pthread_mutex_unlock(&lock);
}
