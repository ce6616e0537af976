/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "ship/ring_target.h"
#include "support/d9_test.h"

static struct d9__ring_header header;

static void reset(void)
{
	memset(&header, 0, sizeof(header));
	strcpy(header.s3_bucket, "bucket");
	strcpy(header.s3_prefix, "team/traces");
	strcpy(header.trace_dir, "/var/lib/dial9/shop");
	strcpy(header.boot_id, "abcd-17");
}

static int take(struct d9__ring_target *out)
{
	return d9__ring_target_take(out, &header, geteuid());
}

static void test_ring_names_bucket_prefix_and_directory(void)
{
	struct d9__ring_target target;

	reset();
	CU_ASSERT_EQUAL(take(&target), 0);
	CU_ASSERT_STRING_EQUAL(target.to, "s3://bucket/team/traces");
	CU_ASSERT_STRING_EQUAL(target.trace_dir, "/var/lib/dial9/shop");
	CU_ASSERT_STRING_EQUAL(target.boot_id, "abcd-17");
	header.s3_prefix[0] = '\0';
	CU_ASSERT_EQUAL(take(&target), 0);
	CU_ASSERT_STRING_EQUAL(target.to, "s3://bucket");
}

static void test_ring_of_another_user_or_without_a_bucket_names_nothing(void)
{
	struct d9__ring_target target;

	reset();
	CU_ASSERT_EQUAL(d9__ring_target_take(&target, &header, geteuid() + 1), -EPERM);
	header.s3_bucket[0] = '\0';
	CU_ASSERT_EQUAL(take(&target), -ENOENT);
	reset();
	header.trace_dir[0] = '\0'; /* it writes no files */
	CU_ASSERT_EQUAL(take(&target), -ENOENT);
}

/* One field at a time. */
static void refuses(char *field, const char *text)
{
	struct d9__ring_target target;

	strcpy(field, text);
	CU_ASSERT_EQUAL(take(&target), -EINVAL);
	reset();
}

static void test_ring_is_hostile_text(void)
{
	struct d9__ring_target target;

	reset();
	refuses(header.s3_bucket, "a");
	refuses(header.s3_bucket, "--to");
	refuses(header.s3_bucket, "bucket/../other");
	refuses(header.s3_bucket, "buck et");
	refuses(header.s3_bucket, "bucket@host");
	refuses(header.s3_bucket, "bucket\n");
	refuses(header.s3_prefix, "/p");
	refuses(header.s3_prefix, "p//q");
	refuses(header.s3_prefix, "p?acl");
	refuses(header.s3_prefix, "p\033[2J");
	refuses(header.trace_dir, "relative");
	refuses(header.trace_dir, "/var/../etc");
	refuses(header.trace_dir, "/var/lib/..");
	refuses(header.boot_id, "../../etc");
	refuses(header.boot_id, "");
	refuses(header.boot_id, "abcd-17/x");
	memset(header.s3_bucket, 'a', sizeof(header.s3_bucket));
	CU_ASSERT_EQUAL(take(&target), -EINVAL);
	reset();
	memset(header.s3_prefix, 'a', sizeof(header.s3_prefix));
	CU_ASSERT_EQUAL(take(&target), -EINVAL);
	reset();
	memset(header.trace_dir, '/', sizeof(header.trace_dir));
	CU_ASSERT_EQUAL(take(&target), -EINVAL);
}

static void test_directory_has_one_target_the_latest(void)
{
	struct d9__ring_targets targets = { 0 };
	struct d9__ring_target target;

	reset();
	CU_ASSERT_EQUAL(take(&target), 0);
	CU_ASSERT_PTR_NOT_NULL(d9__ring_targets_put(&targets, &target));
	targets.list[0].looked = 2;
	strcpy(header.s3_bucket, "another");
	CU_ASSERT_EQUAL(take(&target), 0);
	CU_ASSERT_PTR_NOT_NULL(d9__ring_targets_put(&targets, &target));
	CU_ASSERT_EQUAL_FATAL(targets.n, 1);
	CU_ASSERT_STRING_EQUAL(targets.list[0].to, "s3://another/team/traces");
	CU_ASSERT_EQUAL(targets.list[0].looked, 2);
	strcpy(header.boot_id, "abcd-18");
	CU_ASSERT_EQUAL(take(&target), 0);
	CU_ASSERT_PTR_NOT_NULL(d9__ring_targets_put(&targets, &target));
	CU_ASSERT_EQUAL_FATAL(targets.n, 2);
	d9__ring_targets_drop(&targets, 0);
	CU_ASSERT_EQUAL_FATAL(targets.n, 1);
	CU_ASSERT_STRING_EQUAL(targets.list[0].boot_id, "abcd-18");
	d9__ring_targets_release(&targets);
}

int main(void)
{
	static const CU_TestInfo tests[] = {
		{ "a ring names bucket, prefix and directory", test_ring_names_bucket_prefix_and_directory },
		{ "none of another user's", test_ring_of_another_user_or_without_a_bucket_names_nothing },
		{ "hostile text", test_ring_is_hostile_text },
		{ "one target a directory", test_directory_has_one_target_the_latest },
		CU_TEST_INFO_NULL,
	};

	return d9_test_main("ring_target", tests);
}
