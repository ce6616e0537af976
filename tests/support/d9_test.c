/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <CUnit/Basic.h>
#include <malloc.h>

#include "support/d9_test.h"

#ifndef HAVE_MALLINFO2
#define mallinfo2 mallinfo /* before glibc 2.33; good to 2 GiB */
#endif

size_t d9_test_heap(void)
{
	return (size_t)mallinfo2().uordblks;
}

size_t d9_test_mapped(void)
{
	return (size_t)mallinfo2().hblkhd;
}

int d9_test_main(const char *module, const CU_TestInfo *tests)
{
	CU_SuiteInfo suites[] = {
		{ module, NULL, NULL, NULL, NULL, (CU_TestInfo *)tests },
		CU_SUITE_INFO_NULL,
	};
	int failed;

	if (CU_initialize_registry() != CUE_SUCCESS ||
	    CU_register_suites(suites) != CUE_SUCCESS)
		return 99;
	CU_basic_set_mode(CU_BRM_VERBOSE);
	CU_basic_run_tests();
	failed = CU_get_number_of_failures() > 0 || CU_get_number_of_tests_run() == 0;
	CU_cleanup_registry();
	return failed;
}
