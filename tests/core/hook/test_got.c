/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/hook/fake_loop.h"
#include "core/hook/fakes.h"
#include "hook/patch_lock.h"
#include "support/d9_test.h"

static fake_fn real_run, real_step;
static int (*real_parent)(void);
static int (*real_getppid)(void);
static void *real_missing;
static _Atomic(int) n_run;
static int n_step, n_getppid;

static int hook_run(int n)
{
	n_run++;
	return real_run(n);
}

static int hook_step(int n)
{
	n_step++;
	return real_step(n);
}

static int hook_getppid(void)
{
	n_getppid++;
	return real_getppid();
}

static const char *const names[] = { "libfakeloop", NULL };
static struct d9__images images = { .names = names, .scope_first = true };
static const struct d9__got_hook hooks[] = {
	D9__GOT_HOOK(loop_run, hook_run, &real_run, D9__GOT_EVERYWHERE),
	D9__GOT_HOOK(loop_step, hook_step, &real_step, D9__GOT_IN_LIBRARY),
	D9__GOT_HOOK(loop_missing, hook_step, &real_missing, D9__GOT_EVERYWHERE),
	D9__GOT_HOOK(getppid, hook_getppid, &real_getppid, D9__GOT_IN_LIBRARY | D9__GOT_CHAIN),
};
static struct d9__got_table table = {
	.library = "fake",
	.images = &images,
	.hooks = hooks,
	.n_hooks = sizeof(hooks) / sizeof(hooks[0]),
	.reach = D9__GOT_NEEDED_OR_BOUND,
};

static uint32_t count_of(_Atomic(uint32_t) *counter)
{
	return atomic_load_explicit(counter, memory_order_relaxed);
}

/* Install over |name|, call loop_run() through it, and tell how often the hook ran. */
static int hooked_calls_of(const char *name, int flags, int *result)
{
	void *user = fake_open(name, flags);
	fake_fn call = fake_function(user, "user_call");
	int before = n_run, err = d9__got_install(&table);

	CU_ASSERT_PTR_NOT_NULL_FATAL(user);
	CU_ASSERT_EQUAL(err, 0);
	*result = call(4);
	int n = n_run - before;
	d9__got_restore(&table);
	CU_ASSERT_EQUAL(call(4), *result);
	CU_ASSERT_EQUAL(n_run - before, n);
	dlclose(user);
	return n;
}

/* First of all: afterwards the library is mapped for ever. */
static void test_got_library_that_comes_later_is_found_by_a_rescan(void)
{
	void *user;

	CU_ASSERT_EQUAL(d9__got_install(&table), -ENOENT);
	CU_ASSERT_PTR_NULL(real_run);
	CU_ASSERT_EQUAL(count_of(&table.counts.slots), 0);

	user = fake_open("user_lazy", RTLD_LAZY | RTLD_LOCAL);
	CU_ASSERT_PTR_NOT_NULL_FATAL(user);
	CU_ASSERT_TRUE(d9__got_rescan_due());
	CU_ASSERT_TRUE(d9__got_rescan());
	CU_ASSERT_FALSE(d9__got_rescan());

	int before = n_run;
	CU_ASSERT_EQUAL(fake_function(user, "user_call")(4), 41);
	CU_ASSERT_EQUAL(n_run - before, 1);
	CU_ASSERT_PTR_NULL(real_missing);
	d9__got_restore(&table);
	dlclose(user);
}

static void test_got_calls_are_hooked_however_they_were_linked(void)
{
	static const char *const users[] = { "user_lazy", "user_now", "user_noplt", "user_data" };
	int result;

	for (size_t i = 0; i < sizeof(users) / sizeof(users[0]); i++) {
		CU_ASSERT_EQUAL(hooked_calls_of(users[i], RTLD_LAZY | RTLD_LOCAL, &result), 1);
		CU_ASSERT_EQUAL(result, 41);
		CU_ASSERT_EQUAL(hooked_calls_of(users[i], RTLD_NOW | RTLD_LOCAL, &result), 1);
		CU_ASSERT_EQUAL(result, 41);
	}
}

static void test_got_module_with_a_copy_of_its_own_is_not_touched(void)
{
	int result;

	CU_ASSERT_EQUAL(hooked_calls_of("user_own", RTLD_NOW | RTLD_LOCAL, &result), 0);
	CU_ASSERT_EQUAL(result, -4);
}

static void test_got_slot_of_a_third_module_is_left_and_counted(void)
{
	void *user = fake_open("user_third", RTLD_NOW | RTLD_LOCAL);
	int before = n_run;

	CU_ASSERT_PTR_NOT_NULL_FATAL(user);
	CU_ASSERT_EQUAL(d9__got_install(&table), 0);
	CU_ASSERT_EQUAL(fake_function(user, "user_call")(4), 1004);
	CU_ASSERT_EQUAL(n_run, before);
	CU_ASSERT_EQUAL(count_of(&table.counts.foreign), 1);
	d9__got_restore(&table);
	dlclose(user);
}

static void test_got_calls_inside_the_library_are_hooked_where_asked(void)
{
	void *user = fake_open("user_now", RTLD_NOW | RTLD_LOCAL);
	int before = n_step;

	CU_ASSERT_EQUAL(d9__got_install(&table), 0);
	CU_ASSERT_EQUAL(fake_function(user, "user_call")(2), 21);
	CU_ASSERT_EQUAL(n_step - before, 1); /* by loop_run() */
	CU_ASSERT_EQUAL(fake_function(user, "user_step")(2), 20);
	CU_ASSERT_EQUAL(n_step - before, 1); /* not by the user's own slot */
	d9__got_restore(&table);
	dlclose(user);
}

static void test_got_libc_name_is_hooked_in_the_library_and_reaches_libc(void)
{
	void *user = fake_open("user_now", RTLD_NOW | RTLD_LOCAL);
	int before = n_getppid;

	real_parent = (int (*)(void))dlsym(user, "loop_parent");
	CU_ASSERT_EQUAL(d9__got_install(&table), 0);
	CU_ASSERT_EQUAL(real_parent(), getppid());
	CU_ASSERT_EQUAL(n_getppid - before, 1);
	d9__got_restore(&table);
	CU_ASSERT_EQUAL(real_parent(), getppid());
	CU_ASSERT_EQUAL(n_getppid - before, 1);
	dlclose(user);
}

static void test_got_installed_twice_is_as_once(void)
{
	void *user = fake_open("user_data", RTLD_NOW | RTLD_LOCAL);
	uint32_t slots, modules;
	int before = n_run;

	CU_ASSERT_EQUAL(d9__got_install(&table), 0);
	slots = count_of(&table.counts.slots);
	modules = count_of(&table.counts.modules);
	CU_ASSERT_EQUAL(d9__got_install(&table), 0);
	fake_open("user_third", RTLD_NOW | RTLD_LOCAL);
	CU_ASSERT_EQUAL(d9__got_install(&table), 0);

	CU_ASSERT_EQUAL(count_of(&table.counts.slots), slots);
	CU_ASSERT_EQUAL(count_of(&table.counts.modules), modules);
	CU_ASSERT_EQUAL(fake_function(user, "user_call")(4), 41);
	CU_ASSERT_EQUAL(n_run - before, 1);
	d9__got_restore(&table);
	CU_ASSERT_EQUAL(count_of(&table.counts.slots), 0);
	dlclose(user);
}

static void test_got_word_that_was_overwritten_is_swapped_again(void)
{
	void *user = fake_open("user_data", RTLD_NOW | RTLD_LOCAL), *other;
	fake_fn *pointer = user ? dlsym(user, "user_pointer") : NULL;

	CU_ASSERT_PTR_NOT_NULL_FATAL(pointer);
	CU_ASSERT_EQUAL(d9__got_install(&table), 0);
	CU_ASSERT_PTR_EQUAL((void *)*pointer, (void *)hook_run);
	uint32_t before = count_of(&table.counts.repaired);
	*pointer = real_run;
	other = fake_open("user_lazy", RTLD_NOW | RTLD_LOCAL);
	CU_ASSERT_TRUE(d9__got_rescan());

	CU_ASSERT_PTR_EQUAL((void *)*pointer, (void *)hook_run);
	CU_ASSERT_EQUAL(count_of(&table.counts.repaired) - before, 1);
	d9__got_restore(&table);
	CU_ASSERT_PTR_EQUAL((void *)*pointer, (void *)real_run);
	dlclose(other);
	dlclose(user);
}

static void test_got_pass_wants_a_second_look_soon(void)
{
	void *user = fake_open("user_lazy", RTLD_NOW | RTLD_LOCAL);
	bool due = false;

	CU_ASSERT_EQUAL(d9__got_install(&table), 0);
	CU_ASSERT_FALSE(d9__got_rescan_due());
	for (int i = 0; i < 1000 && !due; i++) {
		usleep(1000);
		due = d9__got_rescan_due();
	}

	CU_ASSERT_TRUE(due);
	CU_ASSERT_TRUE(d9__got_rescan());
	CU_ASSERT_FALSE(d9__got_rescan_due());
	d9__got_restore(&table);
	dlclose(user);
}

static void test_got_module_that_was_unloaded_is_forgotten(void)
{
	void *stays = fake_open("user_now", RTLD_NOW | RTLD_LOCAL);
	void *goes = fake_open("user_data", RTLD_NOW | RTLD_LOCAL);

	CU_ASSERT_EQUAL(d9__got_install(&table), 0);
	uint32_t slots = count_of(&table.counts.slots), modules = count_of(&table.counts.modules);
	dlclose(goes);
	CU_ASSERT_TRUE(d9__got_rescan());

	CU_ASSERT_TRUE(count_of(&table.counts.slots) < slots);
	CU_ASSERT_EQUAL(count_of(&table.counts.modules), modules - 1);
	int before = n_run;
	CU_ASSERT_EQUAL(fake_function(stays, "user_call")(4), 41);
	CU_ASSERT_EQUAL(n_run - before, 1);

	goes = fake_open("user_data", RTLD_NOW | RTLD_LOCAL); /* often at the same address */
	CU_ASSERT_TRUE(d9__got_rescan());
	CU_ASSERT_EQUAL(count_of(&table.counts.slots), slots);
	CU_ASSERT_EQUAL(fake_function(goes, "user_call")(4), 41);
	CU_ASSERT_EQUAL(n_run - before, 2);
	d9__got_restore(&table);
	dlclose(goes);
	dlclose(stays);
}

/* ---- read-only pages ---- */

/* Lines of our mappings of |name|, into |buf|. */
static void read_mappings(const char *name, char *buf, size_t size)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[4096];

	*buf = '\0';
	while (maps && fgets(line, sizeof(line), maps)) {
		if (strstr(line, name) && strlen(buf) + strlen(line) < size)
			strcat(buf, line);
	}
	if (maps)
		fclose(maps);
}

static void test_got_pages_are_read_only_again(void)
{
	static char before[8192], after[8192];
	void *user = fake_open("user_now", RTLD_NOW | RTLD_LOCAL);

	read_mappings("user_now.so", before, sizeof(before));
	CU_ASSERT_EQUAL(d9__got_install(&table), 0);
	read_mappings("user_now.so", after, sizeof(after));
	CU_ASSERT_STRING_EQUAL(before, after);
	d9__got_restore(&table);
	read_mappings("user_now.so", after, sizeof(after));
	CU_ASSERT_STRING_EQUAL(before, after);
	dlclose(user);
}

static int n_protected;

static int refuse(void *addr, size_t len, int prot)
{
	n_protected++;
	if (prot & PROT_WRITE) {
		errno = EPERM;
		return -1;
	}
	return mprotect(addr, len, prot);
}

static void test_got_refused_page_is_left_counted_and_the_rest_swapped(void)
{
	int (*protect)(void *, size_t, int) = d9__got_protect;
	void *now = fake_open("user_now", RTLD_NOW | RTLD_LOCAL);
	void *data = fake_open("user_data", RTLD_NOW | RTLD_LOCAL);
	int before = n_run;

	d9__got_protect = refuse;
	errno = 77;
	CU_ASSERT_EQUAL(d9__got_install(&table), 0);
	CU_ASSERT_EQUAL(errno, 77);
	d9__got_protect = protect;

	CU_ASSERT_TRUE(n_protected > 0);
	CU_ASSERT_TRUE(count_of(&table.counts.refused) > 0);
	CU_ASSERT_EQUAL(fake_function(now, "user_call")(4), 41);
	CU_ASSERT_EQUAL(n_run, before);
	CU_ASSERT_EQUAL(fake_function(data, "user_call")(4), 41);
	CU_ASSERT_EQUAL(n_run, before + 1);
	d9__got_restore(&table);
	dlclose(data);
	dlclose(now);
}

static void test_got_table_whose_every_slot_is_refused_gives_eperm(void)
{
	static fake_fn real;
	static const struct d9__got_hook only[] = {
		D9__GOT_HOOK(loop_run, hook_run, &real, D9__GOT_IN_OTHERS),
	};
	static struct d9__got_table refused = {
		.library = "fake", .images = &images, .hooks = only, .n_hooks = 1,
		.reach = D9__GOT_NEEDED,
	};
	int (*protect)(void *, size_t, int) = d9__got_protect;
	void *now = fake_open("user_now", RTLD_NOW | RTLD_LOCAL);

	d9__got_protect = refuse;
	CU_ASSERT_EQUAL(d9__got_install(&refused), -EPERM);
	d9__got_protect = protect;
	d9__got_restore(&refused);
	dlclose(now);
}

static void test_got_hook_outside_the_adapter_is_not_supported(void)
{
	static void *real;
	static struct d9__got_hook only[] = {
		{ .name = "loop_run", .real = &real, .place = D9__GOT_EVERYWHERE },
	};
	static struct d9__got_table wrong = {
		.library = "fake", .images = &images, .hooks = only, .n_hooks = 1,
	};

	only[0].replacement = dlsym(RTLD_DEFAULT, "getppid");
	CU_ASSERT_EQUAL(d9__got_install(&wrong), -ENOTSUP);
	CU_ASSERT_PTR_NULL(real);
}

/* ---- verdicts that no test can bring about with a loader of today ---- */

static void test_got_verdict_follows_what_the_word_holds(void)
{
	int real, hook, third;
	static const struct {
		const char *what;
		unsigned place;
		int value; /* 0 real, 1 hook, 2 third */
		bool has_real, absolute, only_bound, in_scope, own_export, own_module, any_module;
		enum d9__got_verdict verdict;
	} cases[] = {
		{ "real", 3, 0, 1, 0, 0, 0, 0, 0, 1, D9__GOT_SWAP },
		{ "ours", 3, 1, 1, 0, 0, 0, 0, 0, 1, D9__GOT_OURS },
		{ "unknown real", 3, 2, 0, 0, 0, 0, 0, 1, 1, D9__GOT_LEAVE },
		{ "unbound", 3, 2, 1, 0, 0, 0, 0, 1, 1, D9__GOT_BIND },
		{ "unbound, library not needed", 3, 2, 1, 0, 1, 0, 0, 1, 1, D9__GOT_LEAVE },
		{ "unbound, leads to the library", 3, 2, 1, 0, 1, 1, 0, 1, 1, D9__GOT_BIND },
		{ "third", 3, 2, 1, 0, 0, 0, 0, 0, 1, D9__GOT_FOREIGN },
		{ "third, libc name", 7, 2, 1, 0, 0, 0, 0, 0, 1, D9__GOT_ADOPT },
		{ "third, library not needed", 3, 2, 1, 0, 1, 1, 0, 0, 1, D9__GOT_LEAVE },
		{ "third, libc name by scope", 11, 2, 1, 0, 0, 0, 0, 0, 1, D9__GOT_FOREIGN },
		{ "unbound, libc name by scope", 11, 2, 1, 0, 0, 0, 0, 1, 1, D9__GOT_BIND },
		{ "another hook of ours, libc name by scope", 11, 2, 1, 0, 0, 0, 1, 0, 1, D9__GOT_LEAVE },
		{ "our export", 3, 2, 1, 0, 0, 0, 1, 0, 1, D9__GOT_SWAP },
		{ "our export, library not needed", 3, 2, 1, 0, 1, 0, 1, 0, 1, D9__GOT_LEAVE },
		{ "data with real", 3, 0, 1, 1, 0, 0, 0, 0, 1, D9__GOT_SWAP },
		{ "data with something else", 3, 2, 1, 1, 0, 0, 0, 1, 1, D9__GOT_LEAVE },
		{ "not relocated", 3, 2, 1, 0, 0, 0, 0, 0, 0, D9__GOT_LATER },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const void *values[] = { &real, &hook, &third };
		struct d9__got_word word = {
			.value = values[cases[i].value],
			.real = cases[i].has_real ? &real : NULL,
			.replacement = &hook,
			.place = cases[i].place,
			.absolute = cases[i].absolute,
			.only_bound = cases[i].only_bound,
			.in_scope = cases[i].in_scope,
			.in_own_export = cases[i].own_export,
			.in_own_module = cases[i].own_module,
			.in_any_module = cases[i].any_module,
		};

		if (d9__got_judge(&word) != cases[i].verdict)
			CU_FAIL(cases[i].what);
	}
}

/* ---- threads and processes ---- */

static _Atomic(bool) stop;

static void *rescan_all_the_time(void *arg)
{
	while (!stop)
		d9__got_rescan();
	return arg;
}

static void test_got_rescans_while_another_thread_loads_and_unloads(void)
{
	static const char *const users[] = { "user_lazy", "user_now", "user_data", "user_own" };
	pthread_t thread;

	CU_ASSERT_EQUAL(d9__got_install(&table), 0);
	stop = false;
	pthread_create(&thread, NULL, rescan_all_the_time, NULL);
	for (int i = 0; i < 200; i++) {
		void *user = fake_open(users[i % 4], i & 4 ? RTLD_NOW : RTLD_LAZY);
		fake_fn call = fake_function(user, "user_call");

		for (int j = 0; j < 20 && call; j++)
			CU_ASSERT_EQUAL(call(j), i % 4 == 3 ? -j : 10 * j + 1);
		dlclose(user);
	}
	stop = true;
	pthread_join(thread, NULL);
	CU_ASSERT_EQUAL(count_of(&table.counts.dropped), 0);
	d9__got_restore(&table);
}

static pthread_barrier_t start;

static void *install(void *arg)
{
	(void)arg;
	pthread_barrier_wait(&start);
	return (void *)(intptr_t)d9__got_install(&table);
}

/* As two threads do that attach their loops at once. */
static void test_got_two_threads_may_install_at_once(void)
{
	void *user = fake_open("user_now", RTLD_NOW | RTLD_LOCAL);

	pthread_barrier_init(&start, NULL, 2);
	for (int i = 0; i < 50; i++) {
		pthread_t thread;
		void *other = NULL;
		int before = n_run;

		CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, install, NULL), 0);
		CU_ASSERT_PTR_NULL(install(NULL));
		pthread_join(thread, &other);
		CU_ASSERT_PTR_NULL(other);
		CU_ASSERT_EQUAL(fake_function(user, "user_call")(4), 41);
		CU_ASSERT_EQUAL(n_run - before, 1);
		d9__got_restore(&table);
	}
	pthread_barrier_destroy(&start);
	dlclose(user);
}

static void test_got_child_of_a_fork_during_rescans_can_load_and_rescan(void)
{
	pthread_t thread;

	CU_ASSERT_EQUAL(d9__got_install(&table), 0);
	stop = false;
	pthread_create(&thread, NULL, rescan_all_the_time, NULL);
	for (int i = 0; i < 20; i++) {
		int status = -1;
		pid_t pid = fork();

		if (pid == 0) {
			alarm(10);
			void *user = fake_open("user_now", RTLD_NOW | RTLD_LOCAL);
			bool made = d9__got_rescan();
			int before = n_run, result = fake_function(user, "user_call")(4);
			_exit(made && result == 41 && n_run - before == 1 ? 0 : 1);
		}
		waitpid(pid, &status, 0);
		CU_ASSERT_EQUAL(status, 0);
	}
	stop = true;
	pthread_join(thread, NULL);
	d9__got_restore(&table);
}

static int stand(struct dl_phdr_info *info, size_t len, void *unused)
{
	(void)info, (void)len, (void)unused;
	pthread_barrier_wait(&start);
	pthread_barrier_wait(&start);
	return 1;
}

static void *hold_loader(void *unused)
{
	dl_iterate_phdr(stand, NULL);
	return unused;
}

static void *rescan_once(void *unused)
{
	d9__got_rescan();
	return unused;
}

/* A thread of the program keeps the loader's lock until the child has ended, and a rescan waits for it. */
static void test_got_fork_does_not_wait_for_a_rescan_that_waits_for_the_loader(void)
{
	pthread_t holder, scanner;
	int status = -1;
	pid_t pid;

	alarm(60);
	CU_ASSERT_EQUAL(d9__got_install(&table), 0);
	pthread_barrier_init(&start, NULL, 2);
	pthread_create(&holder, NULL, hold_loader, NULL);
	pthread_barrier_wait(&start);
	pthread_create(&scanner, NULL, rescan_once, NULL);
	while (d9__patch_trylock()) {
		d9__patch_unlock();
		sched_yield();
	}
	pid = fork();
	if (pid == 0) {
		alarm(10);
		_exit(d9__patch_trylock() ? 0 : 1);
	}
	waitpid(pid, &status, 0);
	CU_ASSERT_EQUAL(status, 0);
	pthread_barrier_wait(&start);
	pthread_join(holder, NULL);
	pthread_join(scanner, NULL);
	pthread_barrier_destroy(&start);
	d9__got_restore(&table);
	alarm(0);
}

int main(void)
{
	static const CU_TestInfo tests[] = {
		{ "library that comes later is found by a rescan",
		  test_got_library_that_comes_later_is_found_by_a_rescan },
		{ "calls are hooked however they were linked",
		  test_got_calls_are_hooked_however_they_were_linked },
		{ "module with a copy of its own is not touched",
		  test_got_module_with_a_copy_of_its_own_is_not_touched },
		{ "slot of a third module is left and counted",
		  test_got_slot_of_a_third_module_is_left_and_counted },
		{ "calls inside the library are hooked where asked",
		  test_got_calls_inside_the_library_are_hooked_where_asked },
		{ "libc name is hooked in the library and reaches libc",
		  test_got_libc_name_is_hooked_in_the_library_and_reaches_libc },
		{ "installed twice is as once", test_got_installed_twice_is_as_once },
		{ "word that was overwritten is swapped again",
		  test_got_word_that_was_overwritten_is_swapped_again },
		{ "pass wants a second look soon", test_got_pass_wants_a_second_look_soon },
		{ "module that was unloaded is forgotten",
		  test_got_module_that_was_unloaded_is_forgotten },
		{ "pages are read-only again", test_got_pages_are_read_only_again },
		{ "refused page is left, counted, and the rest swapped",
		  test_got_refused_page_is_left_counted_and_the_rest_swapped },
		{ "table whose every slot is refused gives -EPERM",
		  test_got_table_whose_every_slot_is_refused_gives_eperm },
		{ "hook outside the adapter is not supported",
		  test_got_hook_outside_the_adapter_is_not_supported },
		{ "verdict follows what the word holds",
		  test_got_verdict_follows_what_the_word_holds },
		{ "two threads may install at once", test_got_two_threads_may_install_at_once },
		{ "rescans while another thread loads and unloads",
		  test_got_rescans_while_another_thread_loads_and_unloads },
		{ "child of a fork during rescans can load and rescan",
		  test_got_child_of_a_fork_during_rescans_can_load_and_rescan },
		{ "fork does not wait for a rescan that waits for the loader",
		  test_got_fork_does_not_wait_for_a_rescan_that_waits_for_the_loader },
		CU_TEST_INFO_NULL,
	};

	return d9_test_main("got", tests);
}
