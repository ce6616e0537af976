/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the tests of one module. */

#ifndef D9_TEST_H
#define D9_TEST_H

#include <CUnit/CUnit.h>
#include <stddef.h>

#ifdef __clang_analyzer__
#include <stdlib.h>
/* The analyser does not follow a test that has failed. */
#define CU_assertImplementation(value, line, condition, file, function, fatal)                     \
	((value) ? CU_TRUE : (abort(), CU_FALSE))
#endif

/*
 * Run |tests|, which ends with CU_TEST_INFO_NULL.  Returns what main() should:
 * 0 all passed, 1 a test failed or none ran, 99 the runner itself failed.
 */
int d9_test_main(const char *module, const CU_TestInfo *tests);

/* Bytes that malloc() has given out: of its heaps, and of mappings of their own. */
size_t d9_test_heap(void);
size_t d9_test_mapped(void);

#endif /* D9_TEST_H */
