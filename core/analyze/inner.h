/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inner: the program's function that a library's callback calls.
 *
 * A method of a D-Bus object, a handler of a signal or of an HTTP request runs inside a callback of GIO's or libsoup's,
 * which is all that a loop knows.  The stacks of its time tell whose it is.
 */

#pragma once

#include "analyze/analysis.h"

/* Find the inner function of each callback that lies in a library.  Stacks have names.  0 or -ENOMEM. */
int d9__inner_find(struct d9__analysis *a);
