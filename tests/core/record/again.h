/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Again: a test that needs a process of its own runs this program again with the name of a role.  Not
 * fork(2) alone: a child of it may not start threads under TSan, and knows the recorder of its parent.
 */

#ifndef D9_TESTS_RECORD_AGAIN_H
#define D9_TESTS_RECORD_AGAIN_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/record/self.h"
#include "support/d9_test.h"

#define AGAIN_SKIPPED 77

/* Its runtime has threads, descriptors and clocks of its own, and looks for leaks in /proc at the end. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define AGAIN_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define AGAIN_SANITIZED 1
#endif
#endif
#ifndef AGAIN_SANITIZED
#define AGAIN_SANITIZED 0
#endif

/* It tells so by what it preloads. */
static inline bool again_in_valgrind(void)
{
	const char *preloaded = getenv("LD_PRELOAD");

	return preloaded && strstr(preloaded, "vgpreload");
}

/* In a role: end with a failure that names the condition, behind what was printed before. */
#define MUST(condition)                                                                            \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fflush(stdout);                                                            \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);            \
			_exit(1);                                                                  \
		}                                                                                  \
	} while (0)

struct again_role {
	const char *name;
	int (*run)(void); /* its exit status */
};

static inline void again_pause_ms(long ms)
{
	const struct timespec t = { ms / 1000, ms % 1000 * 1000000 };

	nanosleep(&t, NULL);
}

/* Up to two minutes for |condition|; true if it came about. */
#define AGAIN_WAIT(condition)                                                                      \
	__extension__({                                                                            \
		time_t again_end_ = time(NULL) + 120;                                              \
		bool again_done_;                                                                  \
		while (!(again_done_ = (condition)) && time(NULL) < again_end_)                    \
			again_pause_ms(5);                                                         \
		again_done_;                                                                       \
	})

/* Run role |name| with |arg| (may be NULL) and return its wait(2) status. */
static inline int again(const char *name, const char *arg)
{
	int status = -1;
	pid_t pid = fork();

	if (!pid) {
		self_exec(name, arg);
		_exit(99);
	}
	waitpid(pid, &status, 0);
	return status;
}

/* The test for a role: it ends with 0, or says why it cannot be run here. */
static inline void again_check(const char *name, const char *arg)
{
	int status = again(name, arg);

	if (WIFEXITED(status) && WEXITSTATUS(status) == AGAIN_SKIPPED)
		return;
	if (status)
		printf("%s: status %#x\n", name, (unsigned)status);
	CU_ASSERT_EQUAL(status, 0);
}

static inline int again_skip(const char *why)
{
	printf("skipped: %s\n", why);
	fflush(stdout);
	return AGAIN_SKIPPED;
}

static const struct again_role *again_role;
static const char *again_arg; /* NULL if there is none */

/* Helpers of tests assert, which CUnit takes inside a test only. */
static inline void again_run_role(void)
{
	int status = again_role->run();

	fflush(stdout);
	if (status == AGAIN_SKIPPED)
		exit(status);
	CU_ASSERT_EQUAL(status, 0);
}

/* First thing in main(): plays the role this process was started for; -1 if it has none. */
static inline int again_main(int argc, char **argv, const struct again_role *roles)
{
	static const CU_TestInfo tests[] = { { "role", again_run_role }, CU_TEST_INFO_NULL };

	for (; argc > 1 && roles->name; roles++) {
		if (strcmp(argv[1], roles->name) != 0)
			continue;
		again_role = roles;
		again_arg = argc > 2 ? argv[2] : NULL;
		return d9_test_main(roles->name, tests);
	}
	return argc > 1 ? 98 : -1;
}

#endif /* D9_TESTS_RECORD_AGAIN_H */
