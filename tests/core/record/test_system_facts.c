/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cgroup.h"
#include "record/system_facts.h"
#include "support/d9_test.h"

static void test_the_processor_has_the_name_that_its_machine_gives_it(void)
{
	static const struct {
		const char *text, *model;
	} texts[] = {
		{ "processor\t: 0\nvendor_id\t: X\nmodel\t\t: 85\nmodel name\t: Fast(R) CPU @ 2.5GHz\n",
		  "Fast(R) CPU @ 2.5GHz" },
		{ "processor\t: 0\nCPU part\t: 0xd08\n\nRevision\t: c0\nModel\t\t: Board 4\n", "Board 4" },
		{ "processor\t: 0\nBogoMIPS\t: 243.75\n", "" },
		{ "model name", "" },
		{ "model name\t:", "" },
		{ "", "" },
	};
	char model[64];

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		d9__system_facts_model(texts[i].text, model, sizeof(model));
		CU_ASSERT_STRING_EQUAL(model, texts[i].model);
	}
	d9__system_facts_model(texts[0].text, model, 5);
	CU_ASSERT_STRING_EQUAL(model, "Fast");
}

static void test_a_limit_of_processors_is_quota_by_period(void)
{
	CU_ASSERT_EQUAL(d9__cgroup_parse_cpu("150000 100000\n"), 1500);
	CU_ASSERT_EQUAL(d9__cgroup_parse_cpu("5000 100000"), 50);
	CU_ASSERT_EQUAL(d9__cgroup_parse_cpu("max 100000\n"), UINT64_MAX);
	CU_ASSERT_EQUAL(d9__cgroup_parse_cpu("1000 0\n"), UINT64_MAX);
	CU_ASSERT_EQUAL(d9__cgroup_parse_cpu("99999999999999999999999 1\n"), UINT64_MAX);
	CU_ASSERT_EQUAL(d9__cgroup_parse_cpu(""), UINT64_MAX);
}

static void write_file(const char *dir, const char *name, const char *text)
{
	char path[256];
	FILE *out;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	out = fopen(path, "w");
	CU_ASSERT_PTR_NOT_NULL_FATAL(out);
	fputs(text, out);
	fclose(out);
}

static void test_both_versions_of_cgroups_tell_their_limits(void)
{
	static const char *const names[] = { "cpu.max", "memory.max", "cpu.cfs_quota_us", "cpu.cfs_period_us",
					     "memory.limit_in_bytes" };
	char dir[] = "/tmp/d9-cgroup-XXXXXX", path[256];

	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(dir));
	CU_ASSERT_EQUAL(d9__cgroup_cpu_limit(dir, true), UINT64_MAX);
	CU_ASSERT_EQUAL(d9__cgroup_cpu_limit(dir, false), UINT64_MAX);
	CU_ASSERT_EQUAL(d9__cgroup_memory_limit(dir, true), UINT64_MAX);
	write_file(dir, "cpu.max", "200000 100000\n");
	write_file(dir, "memory.max", "1048576\n");
	write_file(dir, "cpu.cfs_quota_us", "-1\n");
	write_file(dir, "cpu.cfs_period_us", "100000\n");
	write_file(dir, "memory.limit_in_bytes", "9223372036854771712\n");
	CU_ASSERT_EQUAL(d9__cgroup_cpu_limit(dir, true), 2000);
	CU_ASSERT_EQUAL(d9__cgroup_cpu_limit(dir, false), UINT64_MAX);
	CU_ASSERT_EQUAL(d9__cgroup_memory_limit(dir, true), 1048576);
	CU_ASSERT_EQUAL(d9__cgroup_memory_limit(dir, false), UINT64_MAX);
	write_file(dir, "cpu.cfs_quota_us", "25000\n");
	CU_ASSERT_EQUAL(d9__cgroup_cpu_limit(dir, false), 250);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
		unlink(path);
	}
	rmdir(dir);
}

int main(void)
{
	static const CU_TestInfo tests[] = {
		{ "the processor has the name that its machine gives it",
		  test_the_processor_has_the_name_that_its_machine_gives_it },
		{ "a limit of processors is quota by period", test_a_limit_of_processors_is_quota_by_period },
		{ "both versions of cgroups tell their limits", test_both_versions_of_cgroups_tell_their_limits },
		CU_TEST_INFO_NULL,
	};

	return d9_test_main("system_facts", tests);
}
