/* SPDX-License-Identifier: Apache-2.0 */
/* Runs every kind of libevent callback and writes what ran, how often and in which order. */

#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <event2/thread.h>

#include "libevent_kinds.h"

static const struct stage {
	const char *name;
	void (*run)(struct run *run);
} stages[] = {
	{ "descriptors", stage_descriptors },
	{ "timers", stage_timers },
	{ "signals", stage_signals },
	{ "active", stage_active },
	{ "once", stage_once },
	{ "priorities", stage_priorities },
	{ "finalizers", stage_finalizers },
	{ "getters", stage_getters },
#ifndef CORE_ONLY /* a libevent without its upper half */
	{ "bufferevents", stage_bufferevents },
	{ "listener", stage_listener },
	{ "http", stage_http },
	{ "dns", stage_dns },
#endif
	{ "cross_thread", stage_cross_thread },
};

static void run_stages(struct run *run, const char *only)
{
	for (size_t i = 0; i < sizeof(stages) / sizeof(stages[0]); i++) {
		if (only && !strstr(only, stages[i].name))
			continue;
		if (!strcmp(stages[i].name, "cross_thread") && !run->threads)
			continue;
		log_line("stage %s", stages[i].name);
		stages[i].run(run);
	}
}

/* The child goes on with the parent's base and writes PATH.child. */
static void run_in_child(struct run *run, const char *path, const char *only)
{
	char child_path[1024];
	pid_t pid = fork();
	int status = -1;

	if (pid) {
		waitpid(pid, &status, 0);
		if (status)
			complain("status of the child", 0, status);
		return;
	}
	counters_reset();
	if (event_reinit(run->base))
		complain("event_reinit", 0, -1);
	run_stages(run, only);
	snprintf(child_path, sizeof(child_path), "%s.child", path);
	event_base_free(run->base);
	exit(counters_write(child_path));
}

int main(int argc, char **argv)
{
	struct run run = { 0 };
	const char *out = NULL, *only = NULL, *library = NULL, *stages_of_child = NULL;
	bool attached = false, reinit = false;

	for (int i = 1; i < argc; i++) {
		const char *value = strchr(argv[i], '=') ? strchr(argv[i], '=') + 1 : NULL;

		if (!strncmp(argv[i], "--out=", 6))
			out = value;
		else if (!strncmp(argv[i], "--only=", 7))
			only = value;
		else if (!strncmp(argv[i], "--adapter=", 10))
			library = value;
		else if (!strncmp(argv[i], "--fork=", 7))
			stages_of_child = value;
		else if (!strcmp(argv[i], "--threads"))
			run.threads = true;
		else if (!strcmp(argv[i], "--attach"))
			attached = true;
		else if (!strcmp(argv[i], "--debug"))
			run.debug = true;
		else if (!strcmp(argv[i], "--reinit"))
			reinit = true;
		else
			return 2;
	}
	if (run.debug)
		event_enable_debug_mode();
	if (run.threads)
		evthread_use_pthreads();
	run.base = event_base_new();
	if (!run.base || event_base_priority_init(run.base, 3))
		return 99;
	if (attached || library)
		attach_base(run.base, library);
	if (reinit && event_reinit(run.base))
		complain("event_reinit", 0, -1);
	run_stages(&run, only);
	if (reinit) {
		event_reinit(run.base);
		run_stages(&run, only);
	}
	if (stages_of_child)
		run_in_child(&run, out, stages_of_child);
	event_base_free(run.base);
	return counters_write(out);
}
