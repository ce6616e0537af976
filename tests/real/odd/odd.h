/* SPDX-License-Identifier: Apache-2.0 */
/* Programs of odd shapes for test_odd_programs.sh: each runs a loop, does one thing few programs
 * do, and prints what it saw. */

#ifndef D9_TEST_ODD_H
#define D9_TEST_ODD_H

#include <stdbool.h>

struct shape {
	const char *name;
	void (*run)(void);
};

/* The shapes of each file, up to one without a name. */
extern const struct shape stack_shapes[], process_shapes[], signal_shapes[], right_shapes[],
	limit_shapes[], memory_shapes[];

/* The program itself, for those that execute it again. */
extern const char *own_path;
/* The argument behind the name of the shape, or NULL. */
extern const char *argument;

/* A loop of libevent that calls |fn| so many times, 1 ms after each other, and computes a little.
 */
void run_loop(int times, void (*fn)(void));

/* Compute for so many milliseconds of this thread's CPU time; a few hundred bytes of stack. */
void burn(int ms);

/* Print |what| and whether it holds.  Nothing that differs from run to run may be printed. */
void tell(const char *what, bool holds);

/* Print |what| and the result of a call that sets errno: 0 or the name of the error. */
void tell_result(const char *what, long result);

/* Wait for the child |pid| and print how it ended. */
void tell_child(const char *what, int pid);

/* End with |status|, without exit handlers, having written what was printed. */
_Noreturn void leave(int status);

#endif /* D9_TEST_ODD_H */
