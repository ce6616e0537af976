/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cmd.h"

static const struct d9__cmd commands[] = {
	{ "record", "run a program with its event loops recorded", d9__cmd_record },
	{ "recover", "make readable what killed programs left", d9__cmd_recover },
	{ "info", "what a trace holds", d9__cmd_info },
	{ "events", "every event, one line each", d9__cmd_events },
	{ "report", "what is wrong in a trace, worst first", d9__cmd_report },
	{ "query", "a trace in SQL: one question, or a prompt", d9__cmd_query },
	{ "serve", "a trace in the browser: what held the loop, and what waited", d9__cmd_serve },
	{ "diagram", "the life of one task or span as a picture", d9__cmd_diagram },
	{ "flamegraph", "where a program computed, by its samples, as a picture", d9__cmd_flamegraph },
	{ "export", "a trace as one file that other programs open", d9__cmd_export },
	{ "symbolize", "write functions and lines into a trace", d9__cmd_symbolize },
	{ "process", "run stages over sealed segments: symbols in, secrets out", d9__cmd_process },
	{ "scrub", "copy a trace for strangers, without its texts and addresses", d9__cmd_scrub },
	{ "ship", "send sealed segments and dumps to an object store", d9__cmd_ship },
	{ "status", "state of the recorders on this machine", d9__cmd_status },
	{ "top", "the callbacks of a running program, busiest first", d9__cmd_top },
	{ "trigger", "what makes a running program keep its last seconds", d9__cmd_trigger },
	{ "dump", "make a running program keep its last seconds", d9__cmd_dump },
	{ "dumps", "the dumps that triggers made in a directory, the latest last", d9__cmd_dumps },
	{ "enable", "switch recording on in a running program", d9__cmd_enable },
	{ "disable", "switch it off", d9__cmd_disable },
	{ "rotate", "seal the segment that a running program writes", d9__cmd_rotate },
	{ "agents", "guides and scripts for coding assistants", d9__cmd_agents },
	{ "doctor", "whether programs can be recorded here, and what to mend", d9__cmd_doctor },
	{ NULL, NULL, NULL },
};

static const struct d9__cmd *find_command(const char *name)
{
	for (const struct d9__cmd *cmd = commands; cmd->name; cmd++)
		if (!strcmp(cmd->name, name))
			return cmd;
	return NULL;
}

static void print_help(FILE *out)
{
	fputs("usage: dial9 COMMAND [ARGUMENTS]\n\n"
	      "Record what the event loop of a program does, and find what held it up.\n\n",
	      out);
	for (const struct d9__cmd *cmd = commands; cmd->name; cmd++)
		fprintf(out, "  %-10s %s\n", cmd->name, cmd->summary);
	fputs("  help       tell more about a command: dial9 help COMMAND\n\n"
	      "A TRACE is a segment, a directory of them, the manifest of a dump, or - for\n"
	      "standard input.\n"
	      "Exit status: 0 fine, 1 a finding or a failed check, 2 bad usage or broken input.\n"
	      "Manual: man dial9\n",
	      out);
}

static int run_help(const char *name)
{
	char help[] = "--help", *argv[] = { NULL, help, NULL };
	const struct d9__cmd *cmd;

	if (!name) {
		print_help(stdout);
		return D9__EXIT_OK;
	}
	cmd = find_command(name);
	if (!cmd)
		return d9__cmd_fail(NULL, "no command '%s'; see dial9 help", name);
	argv[0] = (char *)cmd->name;
	return cmd->run(2, argv);
}

static int run(int argc, char **argv)
{
	const char *name = argv[1];
	const struct d9__cmd *cmd;

	if (!strcmp(name, "--version")) {
		puts("dial9 " PACKAGE_VERSION);
		return D9__EXIT_OK;
	}
	if (!strcmp(name, "help") || !strcmp(name, "--help") || !strcmp(name, "-h"))
		return run_help(argc > 2 ? argv[2] : NULL);
	cmd = find_command(name);
	if (!cmd)
		return d9__cmd_fail(NULL, "no command '%s'; see dial9 help", name);
	/*
	 * A file that may not grow is an error like a full disk.  CMD of `dial9 record` keeps the
	 * default.
	 */
	if (cmd->run != d9__cmd_record)
		signal(SIGXFSZ, SIG_IGN);
	return cmd->run(argc - 1, argv + 1);
}

int main(int argc, char **argv)
{
	int status;

	if (argc < 2) {
		print_help(stderr);
		return D9__EXIT_USAGE;
	}
	status = run(argc, argv);
	/* Only help and version are printed by stdio; commands check their own output. */
	if (fflush(stdout) && errno != EPIPE && status == D9__EXIT_OK)
		status = d9__cmd_fail(NULL, "cannot write: %s", strerror(errno));
	return status;
}
