/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>

#include "core/hook/fakes.h"
#include "hook/first_call.h"
#include "support/d9_test.h"

static bool mapped;
static unsigned n_refreshed;
static void *library_function; /* the one address that counts as the library's */

static bool refresh(void)
{
	n_refreshed++;
	return mapped;
}

static bool owns(const void *address)
{
	return address == library_function;
}

static void test_trigger_of_a_module_with_its_own_copy_means_that_copy(void)
{
	static struct d9__first_call trigger = D9__TRIGGER("loop_run", refresh, owns);
	void *own = fake_open("user_own", RTLD_NOW | RTLD_LOCAL);
	void *caller = dlsym(own, "user_call");
	bool nobody = true;

	mapped = true;
	n_refreshed = 0;
	errno = 77;
	for (int i = 0; i < 3; i++)
		CU_ASSERT_PTR_EQUAL(d9__first_call_target(&trigger, caller, &nobody),
				    dlsym(own, "loop_run"));
	CU_ASSERT_FALSE(nobody);
	CU_ASSERT_EQUAL(n_refreshed, 1);
	CU_ASSERT_EQUAL(errno, 77);
	dlclose(own);
}

static void test_trigger_with_the_library_mapped_means_the_hook_and_is_judged_once(void)
{
	static struct d9__first_call trigger = D9__TRIGGER("loop_run", refresh, owns);
	void *user = fake_open("user_now", RTLD_NOW | RTLD_LOCAL);
	void *caller = dlsym(user, "user_call");
	bool nobody = true;

	mapped = true;
	n_refreshed = 0;
	library_function = dlsym(user, "loop_run");
	for (int i = 0; i < 3; i++)
		CU_ASSERT_PTR_NULL(d9__first_call_target(&trigger, caller, &nobody));
	CU_ASSERT_FALSE(nobody);
	CU_ASSERT_EQUAL(n_refreshed, 1);

	/* The range of an unloaded module may belong to another one by now. */
	dlclose(fake_open("user_data", RTLD_NOW | RTLD_LOCAL));
	d9__first_call_target(&trigger, caller, &nobody);
	CU_ASSERT_EQUAL(n_refreshed, 2);
	dlclose(user);
}

static void test_trigger_of_the_library_itself_means_the_hook(void)
{
	static struct d9__first_call trigger = D9__TRIGGER("loop_run", refresh, owns);
	void *user = fake_open("user_now", RTLD_NOW | RTLD_LOCAL);
	bool nobody = true;

	mapped = true;
	library_function = dlsym(user, "loop_step"); /* calls, in a module that defines the name */
	CU_ASSERT_PTR_NULL(d9__first_call_target(&trigger, library_function, &nobody));
	CU_ASSERT_FALSE(nobody);
	dlclose(user);
}

static void test_trigger_without_the_library_means_the_next_definition(void)
{
	static struct d9__first_call trigger = D9__TRIGGER("getppid", refresh, owns);
	static struct d9__first_call none = D9__TRIGGER("loop_missing", refresh, owns);
	bool nobody = true;

	mapped = false;
	library_function = NULL;
	CU_ASSERT_PTR_EQUAL(d9__first_call_target(&trigger, &mapped, &nobody),
			    dlsym(RTLD_NEXT, "getppid"));
	CU_ASSERT_FALSE(nobody);
	CU_ASSERT_PTR_NULL(d9__first_call_target(&none, &mapped, &nobody));
	CU_ASSERT_TRUE(nobody);

	/* It may come yet: not remembered. */
	mapped = true;
	CU_ASSERT_PTR_NULL(d9__first_call_target(&none, &mapped, &nobody));
	CU_ASSERT_FALSE(nobody);
}

static void test_trigger_with_an_emulation_before_the_library_means_the_emulation(void)
{
	static struct d9__first_call trigger = D9__TRIGGER("getppid", refresh, owns);
	bool nobody;

	mapped = true;
	library_function = NULL;
	CU_ASSERT_PTR_EQUAL(d9__first_call_target(&trigger, &mapped, &nobody),
			    dlsym(RTLD_NEXT, "getppid"));
}

int main(void)
{
	static const CU_TestInfo tests[] = {
		{ "of a module with its own copy means that copy",
		  test_trigger_of_a_module_with_its_own_copy_means_that_copy },
		{ "with the library mapped means the hook, and is judged once",
		  test_trigger_with_the_library_mapped_means_the_hook_and_is_judged_once },
		{ "of the library itself means the hook",
		  test_trigger_of_the_library_itself_means_the_hook },
		{ "without the library means the next definition",
		  test_trigger_without_the_library_means_the_next_definition },
		{ "with an emulation before the library means the emulation",
		  test_trigger_with_an_emulation_before_the_library_means_the_emulation },
		CU_TEST_INFO_NULL,
	};

	return d9_test_main("trigger", tests);
}
