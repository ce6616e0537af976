/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <dial9/loop.h>

#include "loop/callsites.h"
#include "loop/generated.h"
#include "ring/names.h"
#include "segment/modules.h"
#include "support/d9_test.h"

/* The name that the trace has for tasks of |callsite|.  Valid until the next call. */
static const char *text_of(const struct d9_callsite *callsite)
{
	static char text[256];
	const struct d9__name *name = d9__name_text(d9__callsite_name(callsite));

	snprintf(text, sizeof(text), "%.*s", (int)name->len, name->text);
	return text;
}

static const char *name_of(const void *callback, const void *site)
{
	return text_of(d9_callsite(callback, site, 0));
}

static const void *at(uintptr_t address)
{
	return (const void *)address;
}

static void test_a_library_s_own_callback_is_called_by_its_role(void)
{
	static char own, other;

	CU_ASSERT_PTR_NULL(d9__callback_role(&own));
	d9__callback_role_set(&own, "listener accept");
	CU_ASSERT_STRING_EQUAL(d9__callback_role(&own), "listener accept");
	CU_ASSERT_PTR_NULL(d9__callback_role(&other));
	CU_ASSERT_PTR_NOT_NULL(strstr(name_of(&own, (const void *)(uintptr_t)name_of), "listener accept @ test_callsites"));
}

static void test_a_role_may_be_told_better_until_it_is_used(void)
{
	static char own;

	d9__callback_role_set(&own, "bufferevent read");
	d9__callback_role_set(&own, "bufferevent TLS handshake");
	CU_ASSERT_STRING_EQUAL(name_of(&own, NULL), "bufferevent TLS handshake");
}

static void test_more_roles_than_there_are_places_for_are_no_roles(void)
{
	static char callbacks[1024];
	size_t known = 0;

	for (size_t i = 0; i < sizeof(callbacks); i++)
		d9__callback_role_set(&callbacks[i], "x");
	for (size_t i = 0; i < sizeof(callbacks); i++)
		known += d9__callback_role(&callbacks[i]) != NULL;
	CU_ASSERT_TRUE(known > 200 && known <= 256);
}

static void test_runtimes_of_languages_are_known_by_their_modules(void)
{
	CU_ASSERT_STRING_EQUAL(d9__language_of("python3.11+0x1234"), "python");
	CU_ASSERT_STRING_EQUAL(d9__language_of("_gi.cpython-311-x86_64-linux-gnu.so+0x8"), "python");
	CU_ASSERT_STRING_EQUAL(d9__language_of("libluajit-5.1.so.2+0x1"), "lua");
	CU_ASSERT_STRING_EQUAL(d9__language_of("node+0x1"), "node");
	CU_ASSERT_PTR_NULL(d9__language_of("nodelay+0x1"));
	CU_ASSERT_PTR_NULL(d9__language_of("memcached+0x1"));
	/* Behind the module nothing counts. */
	CU_ASSERT_PTR_NULL(d9__language_of("a+python"));
}

static void test_code_that_comes_where_a_module_was_has_a_callsite_of_its_own(void)
{
	const void *site = (const void *)(uintptr_t)name_of;
	const void *own = (const void *)(uintptr_t)text_of;
	const struct d9_callsite *before, *registered, *kept = d9_callsite(own, site, 0);
	void *handle = dlopen("libutil.so.1", RTLD_NOW | RTLD_LOCAL), *function;
	struct link_map *map;

	if (!handle)
		return;
	CU_ASSERT_EQUAL_FATAL(dlinfo(handle, RTLD_DI_LINKMAP, &map), 0);
	function = (char *)map->l_addr + 64;
	before = d9_callsite(function, site, 0);
	registered = d9_callsite(own, function, 0);
	CU_ASSERT_PTR_NOT_NULL(strstr(text_of(before), "libutil"));
	CU_ASSERT_PTR_EQUAL(d9_callsite(function, site, 0), before);
	dlclose(handle);
	if (d9__modules_scan() != 1)
		return;
	CU_ASSERT_PTR_NOT_EQUAL(d9_callsite(function, site, D9_CALLSITE_LOCKED), before);
	CU_ASSERT_PTR_NOT_EQUAL(d9_callsite(own, function, D9_CALLSITE_LOCKED), registered);
	CU_ASSERT_PTR_EQUAL(d9_callsite(own, site, 0), kept);
}

static void test_generated_code_is_called_after_the_module_that_registered_it(void)
{
	const void *site = (const void *)(uintptr_t)name_of;
	char expected[64];

	/* The first page, and those behind it, are never mapped. */
	CU_ASSERT_PTR_NOT_NULL(strstr(name_of(at(16), site), "test_callsites callback @ test_callsites+0x"));
	CU_ASSERT_PTR_NOT_NULL(strstr(name_of(at(32), site), "test_callsites callback 2 @ test_callsites+0x"));
	/* It is the same function, wherever it is registered. */
	CU_ASSERT_PTR_NOT_NULL(strstr(name_of(at(32), (const char *)site + 1), "test_callsites callback 2 @ "));
	for (unsigned i = 3; i <= 8; i++) {
		snprintf(expected, sizeof(expected), "test_callsites callback %u @ ", i);
		CU_ASSERT_PTR_NOT_NULL(strstr(name_of(at(16 * i), site), expected));
	}
	/* Bindings make a closure for each call. */
	CU_ASSERT_PTR_NOT_NULL(strstr(name_of(at(1024), site), "other test_callsites callbacks @ "));
	CU_ASSERT_PTR_NOT_NULL(strstr(name_of(at(1040), site), "other test_callsites callbacks @ "));
}

static const char *name_of_kind(const void *callback, const void *site, enum d9_task_kind kind)
{
	return text_of(d9__callsite_of_kind(callback, site, kind));
}

static void test_generated_code_is_called_after_the_kind_of_its_tasks_too(void)
{
	const void *site = (const void *)(uintptr_t)name_of;

	CU_ASSERT_PTR_NOT_NULL(strstr(name_of_kind(at(0x501), site, D9_TASK_TIMER), "test_callsites timer callback @ "));
	CU_ASSERT_PTR_NOT_NULL(strstr(name_of_kind(at(0x502), site, D9_TASK_IO), "test_callsites io callback @ "));
	CU_ASSERT_PTR_NOT_NULL(strstr(name_of_kind(at(0x503), site, D9_TASK_TIMER), "test_callsites timer callback 2 @ "));
	/* What the program compiled has its own name. */
	CU_ASSERT_PTR_NULL(strstr(name_of_kind(site, NULL, D9_TASK_TIMER), "timer"));
}

static void test_generated_code_that_runs_once_has_one_callsite(void)
{
	const void *site = (const void *)(uintptr_t)name_of;
	const struct d9_callsite *idle = d9__callsite_of_kind(at(0x600), site, D9_TASK_IDLE), *other = NULL;

	CU_ASSERT_STRING_EQUAL(text_of(idle), "test_callsites idle callback");
	CU_ASSERT_PTR_NULL(idle->callback);
	CU_ASSERT_PTR_EQUAL(d9__callsite_of_kind(at(0x601), site, D9_TASK_IDLE), idle);
	/* However many timers are made anew for each time. */
	for (uintptr_t i = 0; i < 2 * D9__CALLSITES_MAX; i++)
		other = d9__callsite_of_kind(at(0x100000 + i), site, D9_TASK_TIMER);
	CU_ASSERT_STRING_EQUAL(text_of(other), "other test_callsites timer callbacks");
	CU_ASSERT_EQUAL(d9__callsites_overflows(), 0);
}

static void test_an_address_that_nobody_owns_stays_an_address(void)
{
	CU_ASSERT_STRING_EQUAL(name_of(at(0x1000), at(0x2000)), "0x1000 @ 0x2000");
}

int main(void)
{
	static CU_TestInfo tests[] = {
		{ "a library's own callback is called by its role",
		  test_a_library_s_own_callback_is_called_by_its_role },
		{ "a role may be told better until it is used",
		  test_a_role_may_be_told_better_until_it_is_used },
		{ "runtimes of languages are known by their modules",
		  test_runtimes_of_languages_are_known_by_their_modules },
		{ "code that comes where a module was has a callsite of its own",
		  test_code_that_comes_where_a_module_was_has_a_callsite_of_its_own },
		{ "generated code is called after the module that registered it",
		  test_generated_code_is_called_after_the_module_that_registered_it },
		{ "generated code is called after the kind of its tasks, too",
		  test_generated_code_is_called_after_the_kind_of_its_tasks_too },
		{ "generated code that runs once has one callsite",
		  test_generated_code_that_runs_once_has_one_callsite },
		{ "an address that nobody owns stays an address",
		  test_an_address_that_nobody_owns_stays_an_address },
		/* The last: it fills the table. */
		{ "more roles than there are places for are no roles",
		  test_more_roles_than_there_are_places_for_are_no_roles },
		CU_TEST_INFO_NULL,
	};

	return d9_test_main("callsites", tests);
}
