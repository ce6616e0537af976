/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/own_memory.h"
#include "base/sanitized.h"
#include "base/time.h"
#include "segment/modules.h"
#include "support/d9_test.h"

struct found {
	int n, with_build_id, main, unloaded;
};

static void note(void *arg, const struct d9__module *module)
{
	struct found *found = arg;

	found->n++;
	found->with_build_id += module->build_id_len >= 8;
	found->main += strstr(module->path, "test_modules") != NULL;
	found->unloaded += !module->loaded;
	CU_ASSERT(module->start < module->end);
}

static void test_modules_are_reported_once_per_segment(void)
{
	struct found first = { 0 }, second = { 0 }, third = { 0 };

	CU_ASSERT_EQUAL(d9__modules_scan(), 1);
	CU_ASSERT_EQUAL(d9__modules_scan(), 0);
	d9__modules_report(note, &first);
	d9__modules_report(note, &second);
	d9__modules_renew();
	d9__modules_report(note, &third);

	CU_ASSERT(first.n >= 3);
	CU_ASSERT_EQUAL(first.main, 1);
	CU_ASSERT(first.with_build_id >= 1);
	CU_ASSERT_EQUAL(second.n, 0);
	CU_ASSERT_EQUAL(third.n, first.n);
	d9__modules_release();
}

static void test_module_that_comes_and_goes_is_told_twice(void)
{
	struct found found = { 0 };
	void *handle;

	d9__modules_scan();
	d9__modules_report(note, &found);
	handle = dlopen("libutil.so.1", RTLD_NOW | RTLD_LOCAL);
	if (!handle)
		handle = dlopen("libanl.so.1", RTLD_NOW | RTLD_LOCAL);
	if (!handle)
		return;
	found = (struct found){ 0 };
	CU_ASSERT_EQUAL(d9__modules_scan(), 1);
	d9__modules_report(note, &found);
	CU_ASSERT_EQUAL(found.n, 1);
	CU_ASSERT_EQUAL(found.unloaded, 0);
	dlclose(handle);
	if (d9__modules_scan() == 1) {
		found = (struct found){ 0 };
		d9__modules_report(note, &found);
		CU_ASSERT_EQUAL(found.unloaded, 1);
	}
	d9__modules_release();
}

/* ---- files ---- */

static char own_dir[] = "/tmp/dial9-modules.XXXXXX";

/* Copy a library of the system to |path|, without its build-id if |bare|.  False: there is none. */
static bool copy_library(const char *path, bool bare)
{
	static const char note[] = { 4, 0, 0, 0, 20, 0, 0, 0, 3, 0, 0, 0, 'G', 'N', 'U', 0 };
	void *handle = dlopen("libutil.so.1", RTLD_NOW | RTLD_LOCAL);
	static char bytes[1 << 20], *found;
	struct link_map *map;
	FILE *in, *out;
	size_t n;

	if (!handle || dlinfo(handle, RTLD_DI_LINKMAP, &map))
		return false;
	in = fopen(map->l_name, "r");
	out = fopen(path, "w");
	CU_ASSERT_FATAL(in && out);
	n = fread(bytes, 1, sizeof(bytes), in);
	found = memmem(bytes, n, note, sizeof(note));
	if (bare && found)
		found[12] = 'X';
	CU_ASSERT_EQUAL(fwrite(bytes, 1, n, out), n);
	fclose(in);
	fclose(out);
	dlclose(handle);
	return true;
}

/* A copy of the module whose path ends in |name|; its path is the table's. */
struct wanted {
	const char *name;
	struct d9__module module;
};

static void find_module(void *arg, const struct d9__module *module)
{
	struct wanted *wanted = arg;
	size_t len = strlen(module->path), own = strlen(wanted->name);

	if (len >= own && !strcmp(module->path + len - own, wanted->name))
		wanted->module = *module;
}

static uintptr_t gone_start, gone_end;

static void note_gone(uintptr_t start, uintptr_t end)
{
	gone_start = start;
	gone_end = end;
}

/* Load copy.so in a folder of its own by a relative path.  NULL: there is no library to copy. */
static void *load_copy(bool bare, char path[64])
{
	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(strcpy(own_dir, "/tmp/dial9-modules.XXXXXX")));
	CU_ASSERT_EQUAL_FATAL(chdir(own_dir), 0);
	snprintf(path, 64, "%s/copy.so", own_dir);
	return copy_library(path, bare) ? dlopen("./copy.so", RTLD_NOW | RTLD_LOCAL) : NULL;
}

static void remove_copy(const char *path)
{
	unlink(path);
	rmdir(own_dir);
	d9__modules_on_unload(NULL);
	d9__modules_release();
}

static void test_path_of_a_module_is_absolute_however_it_was_loaded(void)
{
	struct wanted copy = { .name = "copy.so" }, program = { .name = "test_modules" };
	struct stat st;
	char path[64];
	void *handle = load_copy(false, path);

	/* By where the process is now the file is not found. */
	CU_ASSERT_EQUAL_FATAL(chdir("/"), 0);
	d9__modules_scan();
	d9__modules_each(find_module, &program);
	CU_ASSERT_EQUAL_FATAL(program.module.path[0], '/');
	CU_ASSERT_EQUAL(stat(program.module.path, &st), 0);
	if (handle) {
		d9__modules_each(find_module, &copy);
		CU_ASSERT_STRING_EQUAL(copy.module.path, path);
		CU_ASSERT_TRUE(copy.module.build_id_len > 0);
		CU_ASSERT_EQUAL(copy.module.file_size, 0);
		dlclose(handle);
	}
	remove_copy(path);
}

static void test_file_without_a_build_id_is_told_by_size_time_and_inode(void)
{
	struct wanted copy = { .name = "copy.so" };
	char path[64];
	void *handle = load_copy(true, path);
	struct stat st;

	if (handle) {
		CU_ASSERT_EQUAL(stat(path, &st), 0);
		d9__modules_scan();
		d9__modules_each(find_module, &copy);
		CU_ASSERT_EQUAL(copy.module.build_id_len, 0);
		CU_ASSERT_EQUAL(copy.module.file_size, st.st_size);
		CU_ASSERT_EQUAL(copy.module.file_mtime_ns,
				d9__timespec_ns(&st.st_mtim));
		CU_ASSERT_EQUAL(copy.module.file_inode, st.st_ino);
		dlclose(handle);
	}
	remove_copy(path);
}

static void test_replaced_file_does_not_stand_in_for_the_loaded_one(void)
{
	struct wanted copy = { .name = "copy.so" };
	char path[64];
	void *handle = load_copy(true, path);
	FILE *other;

	if (handle) {
		unlink(path);
		other = fopen(path, "w");
		CU_ASSERT_PTR_NOT_NULL_FATAL(other);
		fclose(other);
		d9__modules_scan();
		d9__modules_each(find_module, &copy);
		CU_ASSERT_STRING_EQUAL(copy.module.path, path);
		CU_ASSERT_EQUAL(copy.module.file_inode, 0);
		dlclose(handle);
	}
	remove_copy(path);
}

static void test_unloaded_module_is_told_by_its_addresses_and_in_the_next_segment(void)
{
	struct wanted copy = { .name = "copy.so" };
	struct found found = { 0 };
	char path[64];
	void *handle = load_copy(false, path);

	d9__modules_on_unload(note_gone);
	d9__modules_scan();
	d9__modules_report(note, &found);
	if (handle) {
		d9__modules_each(find_module, &copy);
		dlclose(handle);
		CU_ASSERT_EQUAL(d9__modules_scan(), 1);
		CU_ASSERT_EQUAL(gone_start, copy.module.start);
		CU_ASSERT_EQUAL(gone_end, copy.module.end);
		/* A segment that ended before it was told of. */
		d9__modules_renew();
		found = (struct found){ 0 };
		d9__modules_report(note, &found);
		CU_ASSERT_EQUAL(found.unloaded, 1);
		d9__modules_renew();
		found = (struct found){ 0 };
		d9__modules_report(note, &found);
		CU_ASSERT_EQUAL(found.unloaded, 0);
	}
	remove_copy(path);
}

static int here;

static void test_address_is_named_by_module_and_offset(void)
{
	char name[256], expect[64];
	Dl_info info;

	dladdr(&here, &info);
	snprintf(expect, sizeof(expect), "+0x%lx",
		 (unsigned long)((const char *)&here - (const char *)info.dli_fbase));

	CU_ASSERT(d9__module_name_of(&here, name, sizeof(name)) > 0);
	CU_ASSERT_PTR_NOT_NULL(strstr(name, "test_modules+0x"));
	CU_ASSERT_STRING_EQUAL(strchr(name, '+'), expect);
	CU_ASSERT_EQUAL(d9__module_name_of((void *)1, name, sizeof(name)), 3);
	CU_ASSERT_STRING_EQUAL(name, "0x1");
	CU_ASSERT_EQUAL(d9__module_name_of(&here, name, 4), 3);
	CU_ASSERT_EQUAL(strlen(name), 3);
	d9__modules_release();
}

static _Atomic(bool) done;

static void *scan_always(void *arg)
{
	while (!atomic_load(&done)) {
		d9__modules_scan();
		d9__modules_release(); /* the next one looks at all of them */
	}
	return arg;
}

static int first_module(struct dl_phdr_info *info, size_t len, void *arg)
{
	(void)info;
	(void)len;
	(void)arg;
	return 1;
}

static int exit_of_child_that_asks_the_loader(void)
{
	int status = -1;
	pid_t pid = fork();

	if (!pid) {
		alarm(60); /* a child that hangs */
		_exit(dl_iterate_phdr(first_module, NULL) - 1);
	}
	CU_ASSERT_EQUAL_FATAL(waitpid(pid, &status, 0), pid);
	return status;
}

static _Atomic(bool) stands, has_forked;
static _Thread_local bool is_held_up; /* once it has the loader's lock, as a thread that gets no CPU */

struct call {
	int (*each)(struct dl_phdr_info *info, size_t len, void *arg);
	void *arg;
};

static int stand(struct dl_phdr_info *info, size_t len, void *arg)
{
	const struct timespec while_ = { 0, 600000000 };
	const struct call *call = arg;

	if (is_held_up) {
		atomic_store(&stands, true);
		nanosleep(&while_, NULL);
	}
	is_held_up = false;
	return call->each(info, len, call->arg);
}

/* In the place of the loader's. */
int dl_iterate_phdr(int (*each)(struct dl_phdr_info *info, size_t len, void *arg), void *arg)
{
	int (*next)(int (*)(struct dl_phdr_info *, size_t, void *), void *);
	struct call call = { each, arg };

	*(void **)&next = dlsym(RTLD_NEXT, "dl_iterate_phdr");
	return next(stand, &call);
}

static void *walk_slowly(void *arg)
{
	is_held_up = true;
	d9__modules_walk(first_module, arg);
	/* TSan's child complains of a thread that was at its end and not joined yet. */
	while (!atomic_load(&has_forked))
		sched_yield();
	return arg;
}

static void fork_as_the_recorder_does(void)
{
	static bool once;

	if (!once)
		pthread_atfork(d9__modules_fork_prepare, d9__modules_fork_parent, d9__modules_fork_child);
	once = true;
}

static void test_fork_waits_for_a_scan_that_the_machine_holds_up(void)
{
	pthread_t thread;

	fork_as_the_recorder_does();
	CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, walk_slowly, NULL), 0);
	while (!atomic_load(&stands))
		sched_yield();
	CU_ASSERT_EQUAL(exit_of_child_that_asks_the_loader(), 0);
	atomic_store(&has_forked, true);
	pthread_join(thread, NULL);
}

static int stand_still(struct dl_phdr_info *info, size_t size, void *held)
{
	(void)info, (void)size;
	pthread_barrier_wait(held);
	pthread_barrier_wait(held);
	return 1;
}

static void *hold_the_loader(void *held)
{
	dl_iterate_phdr(stand_still, held);
	return NULL;
}

static void *hold_nothing(void *held)
{
	pthread_barrier_wait(held);
	pthread_barrier_wait(held);
	return NULL;
}

/* A busy machine may not let the thread run that tries it before the first one has waited enough.
 */
static bool asks_the_loader(void)
{
	while (!d9__modules_may_walk())
		usleep(1000);
	return d9__modules_may_walk() && d9__modules_have_code((const void *)(uintptr_t)note) && d9__modules_scan() == 1;
}

static bool asks_nothing(void)
{
	return !d9__modules_may_walk() && !d9__modules_have_code((const void *)(uintptr_t)note) && !d9__modules_scan();
}

/* ThreadSanitizer ends a child of a program with other threads that starts one of its own. */
static bool may_children_start_threads(void)
{
	return D9__SANITIZED != 2;
}

static int exit_of_child_beside(void *(*other)(void *held), bool (*is_right)(void))
{
	pthread_barrier_t held;
	pthread_t thread;
	int status = -1;
	pid_t pid;

	fork_as_the_recorder_does();
	d9__modules_release();
	pthread_barrier_init(&held, NULL, 2);
	CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, other, &held), 0);
	pthread_barrier_wait(&held);
	pid = fork();
	if (!pid) {
		alarm(60);
		_exit(is_right() ? 0 : 1);
	}
	CU_ASSERT_EQUAL_FATAL(waitpid(pid, &status, 0), pid);
	pthread_barrier_wait(&held);
	pthread_join(thread, NULL);
	pthread_barrier_destroy(&held);
	return status;
}

static void test_child_asks_the_loader_unless_another_thread_had_its_lock(void)
{
	if (!may_children_start_threads())
		return;
	CU_ASSERT_EQUAL(exit_of_child_beside(hold_nothing, asks_the_loader), 0);
	CU_ASSERT_EQUAL(exit_of_child_beside(hold_the_loader, asks_nothing), 0);
}

static void test_child_of_a_parent_without_other_threads_asks_the_loader_at_once(void)
{
	int status = -1;
	pid_t pid;

	fork_as_the_recorder_does();
	d9__modules_release();
	pid = fork();
	if (!pid)
		_exit(d9__modules_scan() - 1);
	CU_ASSERT_EQUAL_FATAL(waitpid(pid, &status, 0), pid);
	CU_ASSERT_EQUAL(status, 0);
}

static _Atomic(bool) changes;

/* Under the table's lock, for longer than a fork waits for it. */
static void change_slowly(void *arg, const struct d9__module *module)
{
	const struct timespec while_ = { 0, 600000000 };

	(void)arg;
	(void)module;
	if (!atomic_exchange(&changes, true))
		nanosleep(&while_, NULL);
}

static void *hold_the_table(void *arg)
{
	d9__modules_each(change_slowly, arg);
	while (!atomic_load(&has_forked))
		sched_yield();
	return arg;
}

static void test_child_forked_during_a_change_of_the_table_makes_a_new_one(void)
{
	pthread_t thread;
	int status = -1;
	pid_t pid;

	if (!may_children_start_threads())
		return;
	fork_as_the_recorder_does();
	atomic_store(&has_forked, false);
	CU_ASSERT_EQUAL_FATAL(d9__modules_scan(), 1);
	CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, hold_the_table, NULL), 0);
	while (!atomic_load(&changes))
		sched_yield();
	pid = fork();
	if (!pid) {
		alarm(60);
		_exit(d9__modules_scan() - 1);
	}
	CU_ASSERT_EQUAL_FATAL(waitpid(pid, &status, 0), pid);
	CU_ASSERT_EQUAL(status, 0);
	atomic_store(&has_forked, true);
	pthread_join(thread, NULL);
	d9__modules_release();
}

static void test_child_forked_during_a_scan_finds_the_loader_unlocked(void)
{
	pthread_t thread;

	fork_as_the_recorder_does();
	CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, scan_always, NULL), 0);
	for (int i = 0; i < 100; i++)
		CU_ASSERT_EQUAL_FATAL(exit_of_child_that_asks_the_loader(), 0);
	atomic_store(&done, true);
	pthread_join(thread, NULL);
	d9__modules_release();
}

static void test_code_of_modules_is_told_from_their_data_and_from_stacks(void)
{
	static int data;
	int local = 0;

	CU_ASSERT_TRUE(d9__modules_have_code((const void *)(uintptr_t)note));
	CU_ASSERT_TRUE(d9__modules_have_code((const void *)(uintptr_t)dlsym(RTLD_DEFAULT, "qsort")));
	CU_ASSERT_FALSE(d9__modules_have_code(&data));
	CU_ASSERT_FALSE(d9__modules_have_code(&local));
	CU_ASSERT_FALSE(d9__modules_have_code(NULL));
	CU_ASSERT_FALSE(d9__modules_have_code((const void *)UINTPTR_MAX));
}

/* Two pages of a file, of which the second goes. */
static char *map_cut_file(size_t page)
{
	FILE *file = tmpfile();
	char *map;

	CU_ASSERT_PTR_NOT_NULL_FATAL(file);
	CU_ASSERT_EQUAL_FATAL(ftruncate(fileno(file), (off_t)(2 * page)), 0);
	map = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE, fileno(file), 0);
	CU_ASSERT_FATAL(map != MAP_FAILED);
	memset(map, 'x', 2 * page);
	CU_ASSERT_EQUAL_FATAL(ftruncate(fileno(file), (off_t)page), 0);
	fclose(file);
	return map;
}

/* Asks for the name of a function at the same moment as the other thread. */
struct asker {
	pthread_barrier_t *both;
	char name[64];
};

static void *ask_for_a_name(void *arg)
{
	struct asker *asker = arg;

	pthread_barrier_wait(asker->both);
	d9__module_name_of((const void *)(uintptr_t)ask_for_a_name, asker->name,
			   sizeof(asker->name));
	return NULL;
}

static void test_name_is_told_while_another_thread_makes_the_table(void)
{
	struct asker askers[2];
	pthread_barrier_t both;
	int unknown = 0;

	pthread_barrier_init(&both, NULL, 2);
	askers[0].both = askers[1].both = &both;
	for (int i = 0; i < 500; i++) {
		pthread_t other;

		d9__modules_release();
		pthread_create(&other, NULL, ask_for_a_name, &askers[1]);
		ask_for_a_name(&askers[0]);
		pthread_join(other, NULL);
		unknown += !strncmp(askers[0].name, "0x", 2) + !strncmp(askers[1].name, "0x", 2);
	}
	CU_ASSERT_EQUAL(unknown, 0);
	pthread_barrier_destroy(&both);
	d9__modules_release();
}

static void test_memory_of_a_file_that_was_cut_is_read_up_to_there(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *map = map_cut_file(page), copy[64];

	CU_ASSERT_EQUAL(d9__own_memory_read((uintptr_t)map, copy, sizeof(copy)), sizeof(copy));
	CU_ASSERT_EQUAL(d9__own_memory_read((uintptr_t)map + page - 10, copy, sizeof(copy)), 10);
	CU_ASSERT_EQUAL(copy[9], 'x');
	CU_ASSERT_EQUAL(d9__own_memory_read((uintptr_t)map + page, copy, sizeof(copy)), 0);
	CU_ASSERT_EQUAL(d9__own_memory_read(0, copy, sizeof(copy)), 0);
	munmap(map, 2 * page);
}

static void test_child_reads_its_own_memory(void)
{
	volatile int value = 1;
	int copy = 0, status;
	pid_t child;

	d9__own_memory_read((uintptr_t)&value, &copy, sizeof(copy));
	CU_ASSERT_EQUAL(copy, 1);
	child = fork();
	if (!child) {
		value = 2;
		_exit(d9__own_memory_read((uintptr_t)&value, &copy, sizeof(copy)) == sizeof(copy) && copy == 2 ? 0 : 1);
	}
	CU_ASSERT_EQUAL(waitpid(child, &status, 0), child);
	CU_ASSERT_EQUAL(status, 0);
}

int main(void)
{
	static const CU_TestInfo tests[] = {
		{ "once per segment", test_modules_are_reported_once_per_segment },
		{ "comes and goes", test_module_that_comes_and_goes_is_told_twice },
		{ "path is absolute", test_path_of_a_module_is_absolute_however_it_was_loaded },
		{ "a file without a build-id",
		  test_file_without_a_build_id_is_told_by_size_time_and_inode },
		{ "a file that was replaced",
		  test_replaced_file_does_not_stand_in_for_the_loaded_one },
		{ "unloaded modules are told",
		  test_unloaded_module_is_told_by_its_addresses_and_in_the_next_segment },
		{ "code of modules is told from their data and from stacks",
		  test_code_of_modules_is_told_from_their_data_and_from_stacks },
		{ "names", test_address_is_named_by_module_and_offset },
		{ "names beside another thread",
		  test_name_is_told_while_another_thread_makes_the_table },
		{ "fork during a scan that the machine holds up", test_fork_waits_for_a_scan_that_the_machine_holds_up },
		{ "fork during a change of the table", test_child_forked_during_a_change_of_the_table_makes_a_new_one },
		{ "fork during a scan", test_child_forked_during_a_scan_finds_the_loader_unlocked },
		{ "fork beside other threads", test_child_asks_the_loader_unless_another_thread_had_its_lock },
		{ "fork without other threads", test_child_of_a_parent_without_other_threads_asks_the_loader_at_once },
		{ "a file that was cut", test_memory_of_a_file_that_was_cut_is_read_up_to_there },
		{ "memory of a child", test_child_reads_its_own_memory },
		CU_TEST_INFO_NULL,
	};

	return d9_test_main("modules", tests);
}
