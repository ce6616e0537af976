/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "base/environment.h"
#include "base/options.h"
#include "support/d9_test.h"

extern char **environ;

/* The program was started with other rights than its caller's. */
static bool secure;

unsigned long __wrap_getauxval(unsigned long type);
unsigned long __real_getauxval(unsigned long type);

unsigned long __wrap_getauxval(unsigned long type)
{
	return type == AT_SECURE ? secure : __real_getauxval(type);
}

static int warnings;

static void count_warning(void *arg, enum d9_log_level level, const char *message)
{
	CU_ASSERT_EQUAL(level, D9_LOG_WARNING);
	CU_ASSERT_PTR_NOT_NULL(strstr(message, (const char *)arg));
	warnings++;
}

/* Return option |id| with |variable| set to |value| in an otherwise empty environment. */
static uint64_t number_with(enum d9__option id, const char *variable, const char *value,
			    int expect_warnings)
{
	struct d9_options api = { .log = count_warning, .log_arg = (void *)variable }, all = { 0 };
	uint64_t number;

	clearenv();
	warnings = 0;
	setenv(variable, value, 1);
	CU_ASSERT_EQUAL(d9__options_resolve(&all, &api), 0);
	number = d9__options_number(&all, id);
	d9__options_release(&all);
	if (warnings != expect_warnings)
		printf("%s=%s: %d warnings\n", variable, value, warnings);
	CU_ASSERT_EQUAL(warnings, expect_warnings);
	return number;
}

static void test_options_booleans_have_twelve_words(void)
{
	static const char *const yes[] = { "t", "true", "1", "y", "yes", "on", "TRUE", " On " };
	static const char *const no[] = { "f", "false", "0", "n", "no", "off", "False", "\tno\n" };

	for (size_t i = 0; i < 8; i++) {
		CU_ASSERT_EQUAL(number_with(D9__OPTION_ENABLED, "DIAL9_ENABLED", yes[i], 0), 1);
		CU_ASSERT_EQUAL(number_with(D9__OPTION_ENABLED, "DIAL9_ENABLED", no[i], 0), 0);
	}
}

static void test_options_nonsense_warns_once_and_counts_as_unset(void)
{
	static const char *const bad[] = { "", " ", "0", "-1", "+1", "1.5", "1 2", "12x",
					   "99999999999999999999", "\xff" };

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CU_ASSERT_EQUAL(number_with(D9__OPTION_ROTATION_MS, "DIAL9_ROTATION_SECS", bad[i],
					    1), 60000);
	CU_ASSERT_EQUAL(number_with(D9__OPTION_ENABLED, "DIAL9_ENABLED", "maybe", 1), 1);
	CU_ASSERT_EQUAL(number_with(D9__OPTION_COMPRESS, "DIAL9_COMPRESS", "lz4", 1), 0);
	CU_ASSERT_EQUAL(number_with(D9__OPTION_RING_MB, "DIAL9_RING_MB", "5000", 1), 32);
}

/* Of the values that were wrong and the names that there are not, what was said last. */
static char said[256];

static void keep_message(void *arg, enum d9_log_level level, const char *message)
{
	CU_ASSERT_PTR_NULL(arg);
	CU_ASSERT_EQUAL(level, D9_LOG_WARNING);
	warnings++;
	snprintf(said, sizeof(said), "%s", message);
}

static void expect_said(const char *variable, const char *value, const char *expected)
{
	struct d9_options api = { .log = keep_message }, all = { 0 };

	clearenv();
	warnings = 0;
	said[0] = '\0';
	setenv(variable, value, 1);
	CU_ASSERT_EQUAL(d9__options_resolve(&all, &api), 0);
	d9__options_release(&all);
	CU_ASSERT_EQUAL(warnings, expected[0] != '\0');
	CU_ASSERT_STRING_EQUAL(said, expected);
}

static void test_options_names_and_values_that_are_not_known_are_told_with_the_nearest(void)
{
	expect_said("DIAL9_MODE", "fligth",
		    "the value 'fligth' of DIAL9_MODE makes no sense and is ignored (is flight meant?)");
	expect_said("DIAL9_MODE", "x\033[m", "the value 'x?[m' of DIAL9_MODE makes no sense and is ignored");
	expect_said("DIAL9_TRACEDIR", "/x", "there is no variable DIAL9_TRACEDIR (is DIAL9_TRACE_DIR meant?)");
	expect_said("DIAL9_DISK_USAGE_MB", "5",
		    "there is no variable DIAL9_DISK_USAGE_MB (is DIAL9_MAX_DISK_USAGE_MB meant?)");
	expect_said("DIAL9_QQQ", "5", "there is no variable DIAL9_QQQ");
	expect_said("DIAL9_PAGER", "less", "");
	expect_said("DIAL8_MODE", "fligth", "");
}

static void test_options_texts_of_the_environment_are_utf8(void)
{
	/* Overlong forms, half of a surrogate pair, above U+10FFFF, cut short, a lone byte. */
	static const char *const bad[] = { "x\xe0\x80\xaf", "\xed\xa0\x80", "\xf0\x80\x80\xaf",
					   "\xf4\x90\x80\x80", "\xe2\x82", "\xff" };
	struct d9_options all = { 0 };

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		number_with(D9__OPTION_ENABLED, "DIAL9_RUNTIME_NAME", bad[i], 1);
	clearenv();
	setenv("DIAL9_RUNTIME_NAME", " tr\xc3\xa4ger \xf0\x9f\x90\x8c\t", 1);
	CU_ASSERT_EQUAL(d9__options_resolve(&all, NULL), 0);
	CU_ASSERT_STRING_EQUAL(d9__options_text(&all, D9__OPTION_RUNTIME_NAME),
			       "tr\xc3\xa4ger \xf0\x9f\x90\x8c");
	d9__options_release(&all);
}

static void test_options_variables_scale_to_our_units(void)
{
	CU_ASSERT_EQUAL(number_with(D9__OPTION_ROTATION_MS, "DIAL9_ROTATION_SECS", "5", 0), 5000);
	CU_ASSERT_EQUAL(number_with(D9__OPTION_MAX_TOTAL_BYTES, "DIAL9_MAX_DISK_USAGE_MB", "8", 0),
			8 << 20);
	CU_ASSERT_EQUAL(number_with(D9__OPTION_MAX_FILE_BYTES, "DIAL9_MAX_DISK_USAGE_MB", "8", 0),
			2 << 20);
	CU_ASSERT_EQUAL(number_with(D9__OPTION_MAX_FILE_BYTES, "DIAL9_MAX_FILE_SIZE_MB", "3", 0),
			3 << 20);
	CU_ASSERT_EQUAL(number_with(D9__OPTION_MAX_FILE_BYTES, "DIAL9_CLOCK", "tsc", 0), 100 << 20);
	CU_ASSERT_EQUAL(number_with(D9__OPTION_COMPRESS, "DIAL9_COMPRESS", "GZIP", 0),
			D9_COMPRESS_GZIP);
	CU_ASSERT_EQUAL(number_with(D9__OPTION_CLOCK, "DIAL9_CLOCK", "monotonic", 0),
			D9_CLOCK_MONOTONIC);
	CU_ASSERT_EQUAL(number_with(D9__OPTION_RING, "DIAL9_RING", "disk", 0), D9_RING_DISK);
	CU_ASSERT_EQUAL(number_with(D9__OPTION_WRITER, "DIAL9_WRITER", "null", 0), D9_WRITER_NULL);
	CU_ASSERT_EQUAL(number_with(D9__OPTION_LOG_BRIDGE, "DIAL9_LOG_BRIDGE", "warning", 0),
			D9_LOG_BRIDGE_WARNING);
	CU_ASSERT_EQUAL(d9__options_early_log_bridge(), D9_LOG_BRIDGE_WARNING);
	CU_ASSERT_EQUAL(number_with(D9__OPTION_LOG_BRIDGE, "DIAL9_LOG_BRIDGE", "all", 1),
			D9_LOG_BRIDGE_OFF);
	CU_ASSERT_EQUAL(d9__options_early_log_bridge(), D9_LOG_BRIDGE_OFF);
	CU_ASSERT_EQUAL(number_with(D9__OPTION_LOOPS, "DIAL9_TOKIO_INSTRUMENTATION_ENABLED", "no",
				    0), 0);
}

static void test_options_set_by_the_program_beat_the_environment(void)
{
	struct d9_options *api = NULL, all = { 0 };

	clearenv();
	setenv("DIAL9_ROTATION_SECS", "7", 1);
	setenv("DIAL9_TRACE_DIR", "/from/environment", 1);
	setenv("DIAL9_SERVICE_NAME", "from-environment", 1);
	CU_ASSERT_EQUAL_FATAL(d9_options_new(&api), 0);
	CU_ASSERT_EQUAL(d9_options_set_rotation_ms(api, 250), 0);
	CU_ASSERT_EQUAL(d9_options_set_trace_dir(api, "/from/program"), 0);

	CU_ASSERT_EQUAL(d9__options_resolve(&all, api), 0);

	CU_ASSERT_EQUAL(d9__options_number(&all, D9__OPTION_ROTATION_MS), 250);
	CU_ASSERT_STRING_EQUAL(d9__options_text(&all, D9__OPTION_TRACE_DIR), "/from/program");
	CU_ASSERT_STRING_EQUAL(d9__options_text(&all, D9__OPTION_SERVICE), "from-environment");
	d9__options_release(&all);

	d9_options_set_environment(api, false);
	CU_ASSERT_EQUAL(d9__options_resolve(&all, api), 0);
	CU_ASSERT_STRING_EQUAL(d9__options_text(&all, D9__OPTION_SERVICE), "test_options");
	d9__options_release(&all);
	d9_options_free(api);
}

static void test_options_default_directory_is_per_user(void)
{
	struct d9_options all = { 0 };
	char expect[64];

	clearenv();
	setenv("TMPDIR", "/var/tmp", 1);
	CU_ASSERT_EQUAL(d9__options_resolve(&all, NULL), 0);
	snprintf(expect, sizeof(expect), "/var/tmp/dial9-%lu", (unsigned long)geteuid());
	CU_ASSERT_STRING_EQUAL(d9__options_text(&all, D9__OPTION_TRACE_DIR), expect);
	CU_ASSERT_PTR_NULL(d9__options_text(&all, D9__OPTION_RUNTIME_NAME));
	d9__options_release(&all);
	setenv("STATE_DIRECTORY", "/var/lib/frobd:/var/lib/other", 1);
	CU_ASSERT_EQUAL(d9__options_resolve(&all, NULL), 0);
	snprintf(expect, sizeof(expect), "/var/lib/frobd/dial9-%lu", (unsigned long)geteuid());
	CU_ASSERT_STRING_EQUAL(d9__options_text(&all, D9__OPTION_TRACE_DIR), expect);
	d9__options_release(&all);
}

static void test_environment_of_who_may_not_choose_does_not_count(void)
{
	struct d9_options all = { 0 };
	char expect[64];

	clearenv();
	setenv("TMPDIR", "/var/tmp", 1);
	setenv("STATE_DIRECTORY", "/var/lib/anybody", 1);
	setenv("DIAL9_TRACE_DIR", "/home/anybody", 1);
	setenv("DIAL9_MAX_DISK_USAGE_MB", "1", 1);
	setenv("DIAL9_LOG_BRIDGE", "debug", 1);
	secure = true;
	CU_ASSERT_EQUAL(d9__options_early_log_bridge(), D9_LOG_BRIDGE_OFF);
	CU_ASSERT_EQUAL(d9__options_resolve(&all, NULL), 0);
	secure = false;
	snprintf(expect, sizeof(expect), "/tmp/dial9-%lu", (unsigned long)geteuid());
	CU_ASSERT_STRING_EQUAL(d9__options_text(&all, D9__OPTION_TRACE_DIR), expect);
	CU_ASSERT_EQUAL(d9__options_number(&all, D9__OPTION_MAX_TOTAL_BYTES), 1 << 30);
	CU_ASSERT_EQUAL(d9__options_early_log_bridge(), D9_LOG_BRIDGE_DEBUG);
	d9__options_release(&all);
}

static void test_environment_that_is_taken_is_still_found(void)
{
	clearenv();
	setenv("DIAL9_SERVICE_NAME", "taken", 1);
	setenv("OTHER", "left", 1);
	d9__environment_take();
	CU_ASSERT_PTR_NULL(getenv("DIAL9_SERVICE_NAME"));
	CU_ASSERT_STRING_EQUAL(d9__environment_get("DIAL9_SERVICE_NAME"), "taken");
	CU_ASSERT_STRING_EQUAL(d9__environment_get("OTHER"), "left");
	CU_ASSERT_PTR_NULL(d9__environment_get("DIAL9_SERVICE"));
}

static void test_options_setters_refuse_what_is_out_of_range(void)
{
	struct d9_options *api = NULL;

	CU_ASSERT_EQUAL_FATAL(d9_options_new(&api), 0);
	CU_ASSERT_EQUAL(d9_options_set_rotation_ms(api, 99), -EINVAL);
	CU_ASSERT_EQUAL(d9_options_set_rotation_ms(api, UINT64_MAX), 0);
	CU_ASSERT_EQUAL(d9_options_set_max_total_bytes(api, 1000), -EINVAL);
	CU_ASSERT_EQUAL(d9_options_set_ring_mb(api, 0), -EINVAL);
	CU_ASSERT_EQUAL(d9_options_set_writer(api, (enum d9_writer)9), -EINVAL);
	CU_ASSERT_EQUAL(d9_options_set_trace_dir(api, NULL), -EINVAL);
	CU_ASSERT_EQUAL(d9_options_set_trace_dir(api, ""), -EINVAL);
	CU_ASSERT_EQUAL(d9_options_set_trace_dir(NULL, "/x"), -EINVAL);
	CU_ASSERT_EQUAL(d9_options_set_cpu_threads(api, (enum d9_cpu_threads)2), -EINVAL);
	CU_ASSERT_EQUAL(d9_options_set_cpu_backend(api, (enum d9_cpu_backend)4), -EINVAL);
	CU_ASSERT_EQUAL(d9_options_set_cpu_backend(api, D9_CPU_BACKEND_PERF_THREAD), 0);
	CU_ASSERT_EQUAL(d9_options_set_off_cpu(NULL, true), -EINVAL);
	CU_ASSERT_EQUAL(d9_options_add_metadata(api, "", "x"), -EINVAL);
	CU_ASSERT_EQUAL(d9_options_add_metadata(api, "key", "value"), 0);
	CU_ASSERT_EQUAL(d9_options_set_usage_interval_ms(api, 0), 0);
	d9_options_free(api);
	d9_options_free(NULL);
}

/* Only then the preload library starts a recorder without a loop. */
static void test_stacks_alone_are_wanted_of_all_threads_and_no_loop(void)
{
	clearenv();
	CU_ASSERT_FALSE(d9__options_profile_only());
	setenv("DIAL9_CPU_PROFILE_THREADS", "all", 1);
	CU_ASSERT_FALSE(d9__options_profile_only());
	setenv("DIAL9_LOOP_INSTRUMENTATION_ENABLED", "off", 1);
	CU_ASSERT_TRUE(d9__options_profile_only());
	setenv("DIAL9_CPU_PROFILE_ENABLED", "false", 1);
	CU_ASSERT_FALSE(d9__options_profile_only());
	unsetenv("DIAL9_CPU_PROFILE_ENABLED");
	setenv("DIAL9_CPU_PROFILE_THREADS", "loop", 1);
	CU_ASSERT_FALSE(d9__options_profile_only());
	CU_ASSERT_EQUAL(number_with(D9__OPTION_CPU_BACKEND, "DIAL9_CPU_BACKEND", "perf-thread", 0), D9_CPU_BACKEND_PERF_THREAD);
	CU_ASSERT_EQUAL(number_with(D9__OPTION_CPU_BACKEND, "DIAL9_CPU_BACKEND", "ptrace", 1), D9_CPU_BACKEND_AUTO);
	CU_ASSERT_EQUAL(number_with(D9__OPTION_OFF_CPU, "DIAL9_SCHEDULE_PROFILE_ENABLED", "yes", 0), 1);
	CU_ASSERT_EQUAL(number_with(D9__OPTION_CPU, "DIAL9_FORCE_CTIMER", "1", 0), 1);
}

static void test_options_of_a_store_are_names_of_one_or_none(void)
{
	static const char *const bad[] = { "", "ab", "a/b", "-abc", "a..b", "bucket name", "caf\xc3\xa9", "s3://b" };
	static const char *const bad_prefixes[] = { "", "/p", "p//q", "p q", "p?x", "p%2f" };
	struct d9_options *api, all = { 0 };
	char name[300];

	clearenv();
	CU_ASSERT_EQUAL_FATAL(d9_options_new(&api), 0);
	CU_ASSERT_EQUAL(d9_options_set_s3(api, NULL, NULL, NULL), -EINVAL);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CU_ASSERT_EQUAL(d9_options_set_s3(api, bad[i], NULL, NULL), -EINVAL);
	for (size_t i = 0; i < sizeof(bad_prefixes) / sizeof(bad_prefixes[0]); i++)
		CU_ASSERT_EQUAL(d9_options_set_s3(api, "bucket", bad_prefixes[i], "service"), -EINVAL);
	memset(name, 'a', sizeof(name));
	name[64] = '\0';
	CU_ASSERT_EQUAL(d9_options_set_s3(api, name, NULL, NULL), -EINVAL);
	name[64] = 'a', name[257] = '\0';
	CU_ASSERT_EQUAL(d9_options_set_s3(api, "bucket", name, NULL), -EINVAL);
	CU_ASSERT_EQUAL(d9__options_resolve(&all, api), 0);
	CU_ASSERT_PTR_NULL(d9__options_text(&all, D9__OPTION_S3_BUCKET));
	CU_ASSERT_STRING_EQUAL(d9__options_text(&all, D9__OPTION_SERVICE), "test_options");
	d9__options_release(&all);

	setenv("DIAL9_S3_BUCKET", " from-environment ", 1);
	setenv("DIAL9_S3_PREFIX", "team/traces/", 1);
	CU_ASSERT_EQUAL(d9__options_resolve(&all, api), 0);
	CU_ASSERT_STRING_EQUAL(d9__options_text(&all, D9__OPTION_S3_BUCKET), "from-environment");
	CU_ASSERT_STRING_EQUAL(d9__options_text(&all, D9__OPTION_S3_PREFIX), "team/traces/");
	d9__options_release(&all);

	setenv("DIAL9_S3_BUCKET", "../etc", 1);
	unsetenv("DIAL9_S3_PREFIX");
	CU_ASSERT_EQUAL(d9_options_set_s3(api, "my.bucket-1", NULL, "shop"), 0);
	CU_ASSERT_EQUAL(d9__options_resolve(&all, api), 0);
	CU_ASSERT_STRING_EQUAL(d9__options_text(&all, D9__OPTION_S3_BUCKET), "my.bucket-1");
	CU_ASSERT_STRING_EQUAL(d9__options_text(&all, D9__OPTION_S3_PREFIX), "dial9-traces");
	CU_ASSERT_STRING_EQUAL(d9__options_text(&all, D9__OPTION_SERVICE), "shop");
	d9__options_release(&all);
	d9_options_free(api);
	unsetenv("DIAL9_S3_BUCKET");
}

int main(void)
{
	static const CU_TestInfo tests[] = {
		{ "booleans have twelve words", test_options_booleans_have_twelve_words },
		{ "nonsense counts as unset",
		  test_options_nonsense_warns_once_and_counts_as_unset },
		{ "what is not known is told",
		  test_options_names_and_values_that_are_not_known_are_told_with_the_nearest },
		{ "texts of the environment are UTF-8",
		  test_options_texts_of_the_environment_are_utf8 },
		{ "variables scale", test_options_variables_scale_to_our_units },
		{ "the program beats the environment",
		  test_options_set_by_the_program_beat_the_environment },
		{ "default directory", test_options_default_directory_is_per_user },
		{ "stacks alone are wanted of all threads and no loop",
		  test_stacks_alone_are_wanted_of_all_threads_and_no_loop },
		{ "ranges", test_options_setters_refuse_what_is_out_of_range },
		{ "names of a store", test_options_of_a_store_are_names_of_one_or_none },
		{ "environment of strangers", test_environment_of_who_may_not_choose_does_not_count },
		{ "environment taken", test_environment_that_is_taken_is_still_found },
		CU_TEST_INFO_NULL,
	};

	return d9_test_main("options", tests);
}
