/* SPDX-License-Identifier: Apache-2.0 */
/* A module that uses the fake loop library; flags decide how its calls are linked. */
#include "core/hook/fake_loop.h"

#ifdef USER_OWN
/* An embedded copy of another version. */
int loop_run(int n)
{
	return -n;
}
#endif

#ifdef USER_DATA
int (*user_pointer)(int n) = loop_run;

/*
 * A plain read, as programs do it, of a word that the engine swaps with one aligned store: the two
 * are a race by the letter of C, and harmless on the machines that are supported.
 */
#if defined(__SANITIZE_THREAD__)
__attribute__((no_sanitize("thread")))
#endif
int user_call(int n)
{
	return user_pointer(n);
}
#else
int user_call(int n)
{
	return loop_run(n);
}
#endif

int user_step(int n)
{
	return loop_step(n);
}
