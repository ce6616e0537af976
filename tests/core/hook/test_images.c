/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>

#include "core/hook/fakes.h"
#include "support/d9_test.h"

static const char *const names[] = { "libfakeloop", NULL };

static void test_images_are_found_when_they_are_mapped_and_kept(void)
{
	struct d9__images images = { .names = names };
	void *user, *run;

	errno = 77;
	CU_ASSERT_EQUAL(d9__images_refresh(&images), 0);
	user = fake_open("user_now", RTLD_NOW | RTLD_LOCAL);
	CU_ASSERT_EQUAL(d9__images_refresh(&images), 1);
	CU_ASSERT_EQUAL(errno, 77);
	run = dlsym(user, "loop_run");
	CU_ASSERT_TRUE(d9__images_contain(&images, run));
	CU_ASSERT_FALSE(d9__images_contain(&images, dlsym(user, "user_call")));
	CU_ASSERT_FALSE(d9__images_contain(&images, NULL));

	dlclose(user);
	CU_ASSERT_EQUAL(d9__images_refresh(&images), 1);
	CU_ASSERT_EQUAL(((fake_fn)run)(4), 41);
}

static void test_images_resolve_only_inside_the_library(void)
{
	struct d9__images images = { .names = names }, in_scope = { .names = names, .scope_first = true };
	void *user = fake_open("user_now", RTLD_NOW | RTLD_LOCAL), *run = dlsym(user, "loop_run");
	struct d9__image_symbol symbols[] = { { .name = "loop_run" }, { .name = "getppid" },
					      { .name = "loop_missing" } };

	d9__images_refresh(&images);
	d9__images_resolve_all(&images, symbols, 3);
	CU_ASSERT_PTR_EQUAL(symbols[0].address, run);
	CU_ASSERT_PTR_NULL(symbols[1].address);
	CU_ASSERT_PTR_NULL(symbols[2].address);

	/* Another definition that stands in scope before the library's does not count. */
	void *other = fake_open("libfakeother", RTLD_NOW | RTLD_GLOBAL);
	CU_ASSERT_PTR_NOT_EQUAL(dlsym(RTLD_DEFAULT, "loop_run"), run);
	d9__images_refresh(&in_scope);
	CU_ASSERT_PTR_EQUAL(d9__images_resolve(&in_scope, "loop_run"), run);
	dlclose(other);
	dlclose(user);
}

static void test_module_definitions_are_told_by_address(void)
{
	void *own = fake_open("user_own", RTLD_NOW | RTLD_LOCAL);
	void *now = fake_open("user_now", RTLD_NOW | RTLD_LOCAL);
	void *own_call = dlsym(own, "user_call"), *now_call = dlsym(now, "user_call");
	struct d9__module_range range = { 0, 0 };

	CU_ASSERT_PTR_EQUAL(d9__module_definition(own_call, "loop_run"), dlsym(own, "loop_run"));
	CU_ASSERT_PTR_NULL(d9__module_definition(now_call, "loop_run"));
	CU_ASSERT_TRUE(d9__module_range_of(now_call, &range));
	CU_ASSERT_TRUE((uintptr_t)now_call >= range.low && (uintptr_t)now_call < range.high);
	CU_ASSERT_FALSE(d9__module_range_of((void *)16, &range));
	CU_ASSERT_PTR_NOT_NULL(d9__module_next_definition(names, "getppid"));
	CU_ASSERT_PTR_NULL(d9__module_next_definition(names, "loop_missing"));
	dlclose(now);
	dlclose(own);
}

int main(void)
{
	static const CU_TestInfo tests[] = {
		{ "are found when they are mapped, and kept",
		  test_images_are_found_when_they_are_mapped_and_kept },
		{ "resolve only inside the library", test_images_resolve_only_inside_the_library },
		{ "definitions are told by address", test_module_definitions_are_told_by_address },
		CU_TEST_INFO_NULL,
	};

	return d9_test_main("images", tests);
}
