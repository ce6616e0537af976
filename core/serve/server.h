/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Server: serves the viewer, the segments of one trace or bucket and their report over HTTP, on
 * loopback unless it is told otherwise.
 */

#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "serve/source.h"

struct d9__server;

struct d9__server_options {
	const char *trace;  /* directory or segment */
	struct d9__segment_source source; /* instead of it, with |name|, if it has list(): the server takes it, also if it fails */
	const char *name;
	const char *assets; /* the folder that holds viewer/ and toolkit/ */
	const char *listen; /* an address of this machine, as digits; NULL: 127.0.0.1 */
	uint16_t port;	    /* 0: the kernel chooses */
	bool live;	    /* |trace| is a directory that is being written: pages follow it */
};

/*
 * Listen.  0 with |*out|, -ENODATA if |trace| holds no segment and is not live, -ENOENT if |assets|
 * holds no viewer, -ENOMEM, or an error of the trace's folder, of bind(2) or of getrandom(2).
 */
int d9__server_new(const struct d9__server_options *options, struct d9__server **out);

/* "http://ADDRESS:PORT/TOKEN/": with it anybody may read the trace. */
const char *d9__server_url(const struct d9__server *server);

/* Serve until SIGINT or SIGTERM.  0 or -EIO. */
int d9__server_run(struct d9__server *server);

void d9__server_free(struct d9__server *server);
