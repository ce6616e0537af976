/* SPDX-License-Identifier: Apache-2.0 */
/* A trace as release 0.5.4 of the original writes them. */

#ifndef D9_TESTS_CLI_MAKE_NEWEST_H
#define D9_TESTS_CLI_MAKE_NEWEST_H

struct trace;

void make_newest(struct trace *t);

#endif /* D9_TESTS_CLI_MAKE_NEWEST_H */
