/* SPDX-License-Identifier: Apache-2.0 */
/* The commands of the program `dial9`: one cmd_NAME.c each, one row each in main.c's table. */

#pragma once

#include "text/fail.h"

/* A command.  |run| gets its own name in argv[0]. */
struct d9__cmd {
	const char *name;
	const char *summary; /* for `dial9 help`, lower case, no full stop */
	int (*run)(int argc, char **argv);
};

int d9__cmd_agents(int argc, char **argv);
int d9__cmd_query(int argc, char **argv);
int d9__cmd_record(int argc, char **argv);
int d9__cmd_recover(int argc, char **argv);
int d9__cmd_info(int argc, char **argv);
int d9__cmd_events(int argc, char **argv);
int d9__cmd_report(int argc, char **argv);
int d9__cmd_diagram(int argc, char **argv);
int d9__cmd_flamegraph(int argc, char **argv);
int d9__cmd_export(int argc, char **argv);
int d9__cmd_symbolize(int argc, char **argv);
int d9__cmd_process(int argc, char **argv);
int d9__cmd_scrub(int argc, char **argv);
int d9__cmd_status(int argc, char **argv);
int d9__cmd_top(int argc, char **argv);
int d9__cmd_trigger(int argc, char **argv);
int d9__cmd_dump(int argc, char **argv);
int d9__cmd_dumps(int argc, char **argv);
int d9__cmd_enable(int argc, char **argv);
int d9__cmd_disable(int argc, char **argv);
int d9__cmd_rotate(int argc, char **argv);
int d9__cmd_serve(int argc, char **argv);
int d9__cmd_ship(int argc, char **argv);
int d9__cmd_doctor(int argc, char **argv);
