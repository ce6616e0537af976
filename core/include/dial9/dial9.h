/* SPDX-License-Identifier: Apache-2.0 */
/* dial9: everything that a recorded program needs, in one header. */

#ifndef DIAL9_DIAL9_H
#define DIAL9_DIAL9_H

/*
 * A tour:
 *
 *	<dial9/recorder.h>   start and stop recording, switch it off and on, ask how it goes
 *	<dial9/options.h>    where traces go, how large they become, who is told about trouble
 *	<dial9/event.h>      the program's own events
 *	<dial9/span.h>       pieces of its work: a request, a query, a block of code
 *	<dial9/stack.h>      stacks that the program makes, of coroutines
 *	<dial9/loop.h>       for adapters: what a loop does, in words that no loop library owns
 *	<dial9/error.h>      what the negative return values mean
 *
 * A program on libevent needs none of it: <dial9/libevent.h> has one function, and attaching a loop
 * starts the recorder from the environment.  To read traces: <dial9/reader.h>, in a library of its own.
 */

#include <dial9/error.h>
#include <dial9/event.h>
#include <dial9/loop.h>
#include <dial9/options.h>
#include <dial9/recorder.h>
#include <dial9/span.h>
#include <dial9/stack.h>
#include <dial9/version.h>

#endif /* DIAL9_DIAL9_H */
