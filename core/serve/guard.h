/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Guard: limits the number of connections and their life.  A client without the token can open
 * connections, too, and be silent or slow; they are closed before those of clients that have shown
 * the token.
 */

#pragma once

struct event_base;
struct evhttp;
struct evhttp_request;
struct d9__guard;

/* Watch over all connections that |http| accepts.  Both must outlive it.  NULL: out of memory. */
struct d9__guard *d9__guard_new(struct event_base *base, struct evhttp *http);

/* |request| has the token: its connection has as much time as the answer takes. */
void d9__guard_admit(struct d9__guard *guard, struct evhttp_request *request);

void d9__guard_free(struct d9__guard *guard);
