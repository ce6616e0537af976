/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ship service: `dial9 ship` without --once.  It sends what is there, looks again when something is
 * sealed, and from time to time looks after the rest: dead processes, backlogs, and on SIGHUP its
 * configuration file.
 */

#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "cli/ship/ship_options.h"
#include "ship/dead.h"
#include "ship/hold.h"
#include "ship/shipper.h"
#include "ship/told.h"
#include "ship/tree.h"
#include "ship/watch.h"

struct d9__ship_service {
	struct d9__ship_options options;
	struct d9__shipper shipper;
	struct d9__ship_tree tree;
	struct d9__ship_hold hold;
	struct d9__ship_dead dead;
	struct d9__explained explained;
	struct d9__ship_watch watch;
	struct d9__told_lines told;
	int argc; /* of the command line, for reading the options again */
	char **argv, **paths;
	bool keeps; /* the paths are files that stay */
	bool absent; /* one of them is, and that was told */
	struct d9__stages few; /* those that a large backlog leaves; borrowed from |options| */
	uint64_t look_ns;      /* CLOCK_MONOTONIC: the next look at all */
	uint64_t fed_ns, watchdog_ns;
	uint64_t told_ns; /* of a backlog */
};

/* List the trees to send.  0 or -errno, and a line the first time. */
int d9__ship_service_look(struct d9__ship_service *ship);

/* Take SIGTERM and SIGINT from now on.  Returns a flag that is true once one has come. */
volatile sig_atomic_t *d9__ship_service_signals(void);

/* The shipper does from now on as the options say.  Signals that end it are taken. */
void d9__ship_service_prepare(struct d9__ship_service *ship);

/* Until SIGTERM or SIGINT.  0 or -errno. */
int d9__ship_service_run(struct d9__ship_service *ship);

void d9__ship_service_release(struct d9__ship_service *ship);
