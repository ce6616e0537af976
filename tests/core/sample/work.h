/* SPDX-License-Identifier: Apache-2.0 */
/* What is sampled: each module that is made of work.c or work_cxx.cc exports this. */

#ifndef D9_TESTS_SAMPLE_WORK_H
#define D9_TESTS_SAMPLE_WORK_H

typedef unsigned (*work_fn)(unsigned seed);

#ifdef __cplusplus
extern "C"
#endif
	__attribute__((visibility("default"))) unsigned
	work(unsigned seed);

#endif /* D9_TESTS_SAMPLE_WORK_H */
