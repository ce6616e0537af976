/* SPDX-License-Identifier: Apache-2.0 */
/* With the library in the program's scope: modules that do not say that they use it. */
#include "config.h"

#include "core/hook/fakes.h"
#include "support/d9_test.h"

static fake_fn real_run;
static int n_run;

static int hook_run(int n)
{
	n_run++;
	return real_run(n);
}

static const char *const names[] = { "libfakeloop", NULL };
static struct d9__images images = { .names = names, .scope_first = true };
static const struct d9__got_hook hooks[] = {
	D9__GOT_HOOK(loop_run, hook_run, &real_run, D9__GOT_EVERYWHERE),
};

/* How often the hook runs when the underlinked module calls, under |reach|. */
static int hooked_calls(enum d9__got_reach reach, const char *const *skip, int flags, bool bind)
{
	struct d9__got_table *table = NULL;
	static struct d9__got_table tables[8];
	static unsigned n_tables;
	void *user = fake_open("user_underlinked", flags);
	fake_fn call = fake_function(user, "user_call");
	int before;

	CU_ASSERT_PTR_NOT_NULL_FATAL(user);
	table = &tables[n_tables++];
	*table = (struct d9__got_table){ .library = "fake", .images = &images, .hooks = hooks,
					 .n_hooks = 1, .reach = reach, .skip = skip };
	if (bind)
		call(1);
	CU_ASSERT_EQUAL(d9__got_install(table), 0);
	before = n_run;
	CU_ASSERT_EQUAL(call(4), 41);
	d9__got_restore(table);
	dlclose(user);
	return n_run - before;
}

static void test_got_module_that_relies_on_its_host_is_reached_bound_or_not(void)
{
	const enum d9__got_reach reach = D9__GOT_NEEDED_OR_BOUND;

	CU_ASSERT_EQUAL(hooked_calls(reach, NULL, RTLD_LAZY, true), 1);
	CU_ASSERT_EQUAL(hooked_calls(reach, NULL, RTLD_NOW, false), 1);
	CU_ASSERT_EQUAL(hooked_calls(reach, NULL, RTLD_LAZY, false), 1);
}

static void test_got_module_without_need_is_out_of_reach_if_need_is_asked(void)
{
	CU_ASSERT_EQUAL(hooked_calls(D9__GOT_NEEDED, NULL, RTLD_NOW, false), 0);
}

static void test_got_any_module_is_reached_but_those_to_skip(void)
{
	static const char *const skip[] = { "user_underlinked", NULL };

	CU_ASSERT_EQUAL(hooked_calls(D9__GOT_ANY, NULL, RTLD_NOW, false), 1);
	CU_ASSERT_EQUAL(hooked_calls(D9__GOT_ANY, skip, RTLD_NOW, false), 0);
}

int main(void)
{
	static const CU_TestInfo tests[] = {
		{ "module that relies on its host is reached, bound or not",
		  test_got_module_that_relies_on_its_host_is_reached_bound_or_not },
		{ "module without need is out of reach if need is asked",
		  test_got_module_without_need_is_out_of_reach_if_need_is_asked },
		{ "any module is reached but those to skip",
		  test_got_any_module_is_reached_but_those_to_skip },
		CU_TEST_INFO_NULL,
	};

	if (!fake_open("libfakeloop", RTLD_NOW | RTLD_GLOBAL))
		return 99;
	return d9_test_main("got_scope", tests);
}
