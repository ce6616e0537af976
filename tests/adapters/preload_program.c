/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program for check_preload.sh.  It is not linked with libevent:
 *
 *	preload_program LIBRARY [COPY]
 *
 * loads LIBRARY, a libevent, for itself alone and runs five callbacks on a base.  With COPY, a
 * module that embeds another implementation, it first calls that one through COPY.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

struct event_base;
struct event;
typedef void (*callback_fn)(int fd, short what, void *arg);

static void *must(void *pointer, const char *what)
{
	if (!pointer) {
		fprintf(stderr, "%s: %s\n", what, dlerror());
		exit(1);
	}
	return pointer;
}

static void count(int fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	++*(int *)arg;
}

static int run_loop(void *libevent)
{
	struct event_base *(*base_new)(void) = must(dlsym(libevent, "event_base_new"), "base_new");
	void (*base_free)(struct event_base *) = must(dlsym(libevent, "event_base_free"), "free");
	int (*loop)(struct event_base *, int) = must(dlsym(libevent, "event_base_loop"), "loop");
	int (*once)(struct event_base *, int, short, callback_fn, void *, const void *) =
		must(dlsym(libevent, "event_base_once"), "once");
	static const long at_once[2] = { 0, 0 };
	struct event_base *base = base_new();
	int n = 0;

	for (int i = 0; i < 5; i++)
		once(base, -1, 1, count, &n, at_once);
	loop(base, 0);
	base_free(base);
	return n;
}

int main(int argc, char **argv)
{
	void *libevent, *copy = NULL;

	if (argc > 2) {
		copy = must(dlopen(argv[2], RTLD_NOW | RTLD_LOCAL), argv[2]);
		int (*ask)(void) = must(dlsym(copy, "copy_ask"), "copy_ask");
		printf("copy %d\n", ask());
	}
	libevent = must(dlopen(argc > 1 ? argv[1] : "", RTLD_NOW | RTLD_LOCAL), "libevent");
	printf("callbacks %d\n", run_loop(libevent));
	if (argc > 2)
		printf("copy %d\n", ((int (*)(void))dlsym(copy, "copy_ask"))());
	return 3;
}
