/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "record/modules.h"
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

int main(void)
{
	static const CU_TestInfo tests[] = {
		{ "once per segment", test_modules_are_reported_once_per_segment },
		{ "comes and goes", test_module_that_comes_and_goes_is_told_twice },
		{ "names", test_address_is_named_by_module_and_offset },
		{ "fork during a scan that the machine holds up", test_fork_waits_for_a_scan_that_the_machine_holds_up },
		{ "fork during a change of the table", test_child_forked_during_a_change_of_the_table_makes_a_new_one },
		{ "fork during a scan", test_child_forked_during_a_scan_finds_the_loader_unlocked },
		CU_TEST_INFO_NULL,
	};

	return d9_test_main("modules", tests);
}
