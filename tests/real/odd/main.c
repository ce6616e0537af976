/* SPDX-License-Identifier: Apache-2.0 */
/*
 *	odd SHAPE [ARGUMENT]
 *	odd list
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <event2/event.h>

#include "odd.h"

const char *own_path, *argument;

static const struct shape *const all_shapes[] = {
	stack_shapes, process_shapes, signal_shapes, right_shapes, limit_shapes, memory_shapes,
};

struct rounds {
	struct event_base *base;
	struct event *timer;
	void (*fn)(void);
	int left;
};

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
	const struct timeval soon = { 0, 1000 };
	struct rounds *rounds = arg;

	(void)fd, (void)what;
	if (rounds->fn)
		rounds->fn();
	burn(1);
	if (--rounds->left > 0)
		event_add(rounds->timer, &soon);
}

void run_loop(int times, void (*fn)(void))
{
	const struct timeval now = { 0, 0 };
	struct rounds rounds = { .base = event_base_new(), .fn = fn, .left = times };

	rounds.timer = event_new(rounds.base, -1, 0, on_timer, &rounds);
	event_add(rounds.timer, &now);
	event_base_dispatch(rounds.base);
	event_free(rounds.timer);
	event_base_free(rounds.base);
}

static long thread_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void burn(int ms)
{
	long end = thread_ms() + ms;

	while (thread_ms() < end)
		for (volatile int i = 0; i < 2000; i++)
			;
}

void tell(const char *what, bool holds)
{
	printf("%s: %s\n", what, holds ? "yes" : "no");
}

void tell_result(const char *what, long result)
{
	printf("%s: %s\n", what, result < 0 ? strerror(errno) : "0");
}

void tell_child(const char *what, int pid)
{
	int status = 0;

	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		printf("%s: no child: %s\n", what, strerror(errno));
	else if (WIFSIGNALED(status))
		printf("%s: signal %d\n", what, WTERMSIG(status));
	else
		printf("%s: exit status %d\n", what, WEXITSTATUS(status));
}

void leave(int status)
{
	fflush(stdout);
	_exit(status);
}

static const struct shape *find(const char *name)
{
	for (size_t i = 0; i < sizeof(all_shapes) / sizeof(all_shapes[0]); i++)
		for (const struct shape *shape = all_shapes[i]; shape->name; shape++)
			if (!strcmp(shape->name, name))
				return shape;
	return NULL;
}

static int list(void)
{
	for (size_t i = 0; i < sizeof(all_shapes) / sizeof(all_shapes[0]); i++)
		for (const struct shape *shape = all_shapes[i]; shape->name; shape++)
			puts(shape->name);
	return 0;
}

int main(int argc, char **argv)
{
	const struct shape *shape = argc > 1 ? find(argv[1]) : NULL;

	if (argc > 1 && !strcmp(argv[1], "list"))
		return list();

	own_path = argv[0];
	argument = argc > 2 ? argv[2] : NULL;
	if (!shape) {
		fprintf(stderr, "which shape?\n");
		return 2;
	}
	alarm(120);
	shape->run();
	printf("end of %s\n", shape->name);
	return 0;
}
