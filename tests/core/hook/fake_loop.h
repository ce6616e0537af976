/* SPDX-License-Identifier: Apache-2.0 */
/* The loop library and its users that the tests of hook/ patch. */

#ifndef FAKE_LOOP_H
#define FAKE_LOOP_H

#define FAKE_API __attribute__((visibility("default")))

FAKE_API int loop_run(int n);  /* n * 10 + 1 */
FAKE_API int loop_step(int n); /* n * 10 */
FAKE_API int loop_parent(void);

/* Of each user: call loop_run() in the way the user was built for. */
FAKE_API int user_call(int n);
FAKE_API int user_step(int n);

/* Of the user with data: a plain word that holds the function. */
extern FAKE_API int (*user_pointer)(int n);

#endif /* FAKE_LOOP_H */
